from xml.etree import ElementTree

from cleanrank.report.pictures import DRAWN, write_pictures
from cleanrank.report.plots import PICTURES
from cleanrank.report.summaries import summarise

from .grids import grid, record

FAST = {"resamples": 200, "permutations": 200}


def test_every_measure_has_its_pictures_in_both_formats(tmp_path, summary):
    made = write_pictures(summary, tmp_path / "new" / "pictures")
    stems = ("ndcg-10", "map", "ndcg-5-letor")
    assert {p.name for p in made} == {f"{s}-{k}.{e}" for s in stems for k in PICTURES for e in ("png", "svg")}
    assert {p.name for p in (tmp_path / "new" / "pictures").iterdir()} == {p.name for p in made}
    for path in made:
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG")
        else:
            assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_without_noise_there_are_bars_alone(tmp_path):
    clean = summarise(grid(rates=(0.0,), measures=("map",)), baseline="lambdamart", **FAST)
    assert sorted(p.name for p in write_pictures(clean, tmp_path)) == ["map-bars.png", "map-bars.svg"]
    assert set(DRAWN) == set(PICTURES)


def test_where_nothing_ran_there_is_no_picture(tmp_path):
    failed = [record(noise="uniform", rate=r, status="failed", error="x") for r in (0.0, 0.2)]
    assert write_pictures(summarise(failed, measures=["map"], **FAST), tmp_path) == []
