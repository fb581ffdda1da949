import numpy as np
import pytest

from cleanrank.errors import CleanrankError
from cleanrank.report.collapse import AXES, SOURCES, kept, realised
from cleanrank.report.panels import kept_panels, pair_noise_panels
from cleanrank.report.summaries import Level, summarise

from .grids import record

FAST = {"resamples": 50, "permutations": 100}
# pNoise is twice dNoise on "hard" data and half of it on "easy" data
FACTOR = {"hard": 2.0, "easy": 0.5}


def noted(rate, factor):
    return {"train_dnoise": rate, "train_pnoise": rate * factor, "expected_pnoise": rate * factor + 0.01}


def grid(kinds=("uniform",), rates=(0.0, 0.1, 0.2)):
    """Rankings that keep 1 - pNoise of a clean .8 above a floor of .2."""
    made = []
    for dataset, factor in FACTOR.items():
        for kind in kinds:
            for rate in rates:
                if not rate and kind != kinds[0]:
                    continue
                for seed in (1, 2):
                    value = 0.2 + 0.6 * (1 - rate * factor)
                    for method, v in (("m", value), ("random", 0.2)):
                        chosen = noted(rate + 0.002 * (seed - 1.5), factor) if rate else {}
                        made.append(
                            record(
                                dataset,
                                1,
                                kind if rate else "none",
                                rate,
                                method,
                                seed,
                                {"map": [v, v]},
                                chosen=chosen,
                            )
                        )
    return summarise(made, **FAST)


def test_realised_noise_is_the_mean_over_cells_and_clean_is_zero():
    found = realised(grid(), "pnoise")
    assert found["hard", Level("uniform", 0.1)] == pytest.approx(0.2)
    assert found["easy", Level("uniform", 0.2)] == pytest.approx(0.1)
    assert found["hard", Level()] == 0.0


def test_a_study_of_labels_gives_the_same_figures():
    records = [
        record(
            noise="uniform",
            rate=0.1,
            method="labels",
            values={"pnoise": [0.2, 0.4], "pnoise:expected": [0.3, 0.3]},
        )
    ]
    summary = summarise(records, **FAST)
    assert realised(summary, "pnoise") == {("d", Level("uniform", 0.1)): pytest.approx(0.3)}
    assert set(SOURCES) == {"dnoise", "pnoise", "expected", "overall"}


@pytest.mark.parametrize(("floor", "shares"), [(None, (0.85, 0.7)), ("random", (0.8, 0.6))])
def test_shares_kept_of_the_clean_figure(floor, shares):
    found = {(k.dataset, k.level.rate): k for k in kept(grid(), "map", "m", floor=floor)}
    assert found["hard", 0.0].share == 1.0
    assert [found["hard", r].share for r in (0.1, 0.2)] == pytest.approx(shares)
    assert found["hard", 0.1].pnoise == pytest.approx(0.2)
    assert found["hard", 0.1].dnoise == pytest.approx(0.1)


def test_over_pnoise_the_lines_fall_together_and_over_dnoise_apart():
    (panel,) = kept_panels(grid(), "map", "pnoise")  # random order has nothing to lose
    assert (panel.kind, panel.title, panel.x_title) == ("traces", "m", AXES["pnoise"])
    assert panel.methods == ("hard", "easy")
    assert all(p.mean == pytest.approx(1 - 0.75 * p.x) for p in panel.points)
    (apart,) = kept_panels(grid(), "map", "dnoise")
    assert [p.x for p in apart.points if p.method == "easy"] == pytest.approx([0, 0.1, 0.2])
    assert not all(p.mean == pytest.approx(1 - 0.75 * p.x) for p in apart.points)
    assert "hard: 1.000 at 0, 0.700 at 0.4." in panel.words
    assert panel.measure == "map, share of clean"
    (above,) = kept_panels(grid(), "map", "pnoise", floor="random")
    assert above.measure == "map, share of clean above random"
    assert [p.mean for p in above.points] != [p.mean for p in panel.points]


def test_every_kind_of_noise_has_a_line_that_starts_clean():
    (panel,) = kept_panels(grid(("uniform", "adjacent")), "map", "dnoise")
    assert panel.methods == ("hard, adjacent", "hard, uniform", "easy, adjacent", "easy, uniform")
    assert [p.x for p in panel.points if p.method == "easy, adjacent"] == pytest.approx([0, 0.1, 0.2])


def test_pnoise_is_counted_as_points_and_closed_as_lines():
    (panel,) = pair_noise_panels(grid())
    assert (panel.title, panel.measure) == ("uniform noise", "pNoise")
    points, lines = ({(p.method, p.x): p.mean for p in ps} for ps in (panel.points, panel.lines))
    assert points["hard", 0.2] == pytest.approx(0.4)
    assert lines["hard", 0.2] == pytest.approx(0.41)
    assert lines["hard", 0.0] == 0.0


def test_without_noted_noise_there_is_nothing_to_draw():
    records = [record(noise="uniform" if r else "none", rate=r, values={"map": [0.5]}) for r in (0.0, 0.1)]
    summary = summarise(records, **FAST)
    assert kept_panels(summary, "map") == ()
    assert pair_noise_panels(summary) == ()
    with pytest.raises(CleanrankError, match="unknown axis 'xnoise'"):
        kept_panels(summary, "map", "xnoise")


def test_incomplete_rows_are_left_out():
    records = [
        record(rate=r, noise="uniform" if r else "none", seed=s, values={"map": [0.5]}, chosen=noted(r, 1.0))
        for r in (0.0, 0.1, 0.2)
        for s in (1, 2)
        if (r, s) != (0.1, 2)
    ]
    found = kept(summarise(records, **FAST), "map", "m")
    assert [k.level.rate for k in found] == [0.0, 0.2]
    assert np.isfinite([k.share for k in found]).all()
