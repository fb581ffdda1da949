import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import InvalidInputError
from cleanrank.judges.looks import level_of
from cleanrank.labeling.progress import DROPPED, UNJUDGED, label_progress
from cleanrank.noise.gold import from_gold


def noisy_rows(seed, n=2000):
    """Rows whose label is wrong with a probability that falls with the rank of their doubt."""
    rng = np.random.default_rng(seed)
    doubt = -np.sort(-rng.random(n))
    rank = np.arange(1, n + 1)
    chance = 0.8 / (1 + (rank / 150) ** 2) + 0.03
    truth = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    given = np.where(rng.random(n) < chance, (truth + rng.integers(1, 3, n)) % 3, truth)
    data = cr.from_arrays(np.zeros((n, 1)), given, qid=np.arange(n) // 20)
    return data, truth, doubt, given != truth


def answered(data, truth, *rows):
    judged = np.full(data.n_docs, UNJUDGED)
    for each in rows:
        judged[each] = truth[each]
    return judged


def draw(data, n, seed):
    drawn = np.zeros(data.n_docs, bool)
    drawn[cr.sample_gold(data, n, seed=seed).rows] = True
    return drawn


def test_with_every_row_judged_nothing_is_uncertain():
    data, truth, doubt, wrong = noisy_rows(0, 400)
    found = label_progress(data, truth, drawn=np.ones(400, bool))
    assert [found.before.mean, found.before.low, found.before.high] == pytest.approx([wrong.mean()] * 3)
    assert (found.after.high, found.won_back.mean, found.judged) == (0.0, 1.0, 400)
    mended = label_progress(data, truth, doubt=doubt)
    assert (mended.next_rows, mended.next_wrong.high, mended.wrong) == (0, 0.0, wrong.sum())
    assert mended.verdicts() == found.verdicts() == ["Stop: all rows are judged."]


def test_drawn_rows_alone_are_what_gold_read_says():
    data, truth, _, _ = noisy_rows(1)
    drawn = draw(data, 150, 1)
    found = label_progress(data, answered(data, truth, drawn), drawn=drawn, look=3)
    own = from_gold(data, data.row_ids[drawn], truth[drawn], level=level_of(3, 0.95))
    np.testing.assert_array_equal(found.noise.matrix, own.matrix)
    assert found.level == own.level
    assert found.before.mean == pytest.approx(own.rate, abs=0.01)
    assert found.before.high == pytest.approx(own.rate_interval[1], abs=0.01)


def test_shares_hold_the_truth_whatever_was_chosen_by_doubt():
    misses, errors = np.zeros(3), []
    for seed in range(40):
        data, truth, doubt, wrong = noisy_rows(seed)
        drawn = draw(data, 120, seed)
        chosen = np.arange(data.n_docs) < 150  # the most doubted
        judged = answered(data, truth, drawn, chosen)
        # level .9 at look 1 is .95
        found = label_progress(data, judged, drawn=drawn, doubt=doubt, level=0.9, seed=seed)
        assert found.level == pytest.approx(0.95)
        mended = (judged != UNJUDGED) & wrong
        truths = wrong.mean(), (wrong & ~mended).mean(), mended.sum() / wrong.sum()
        assert found.wrong == mended.sum()
        estimates = found.before, found.after, found.won_back
        misses += [not each.low <= value <= each.high for each, value in zip(estimates, truths, strict=True)]
        errors.append([each.mean - value for each, value in zip(estimates, truths, strict=True)])
        assert found.before.mean - found.after.mean == pytest.approx(found.wrong / data.n_docs)
    # .05 of 40 is 2; 7 or more of 40 have a probability below .004
    assert misses.max() <= 6
    mean, spread = np.mean(errors, axis=0), np.std(errors, axis=0) / np.sqrt(40)
    assert (abs(mean) < 4 * spread + [0.01, 0.01, 0.03]).all()


def test_a_drawn_row_that_was_chosen_anyway_speaks_for_nobody_else():
    """All wrong labels are among the chosen rows: the drawn ones among these must not raise the rest."""
    rng = np.random.default_rng(0)
    truth = rng.choice(2, 2000)
    chosen = np.arange(2000) < 200
    data = cr.from_arrays(np.zeros((2000, 1)), np.where(chosen, 1 - truth, truth), qid=np.arange(2000) // 10)
    drawn = draw(data, 300, 0)
    doubt = np.where(chosen, 0.9, 0.1)
    judged = answered(data, truth, drawn, chosen)
    found = label_progress(data, judged, drawn=drawn, doubt=doubt)
    assert found.after.mean < 0.01
    blind = label_progress(data, judged, drawn=drawn, doubt=np.where(drawn, np.nan, doubt))
    assert blind.after.mean > 0.08


def test_the_next_rows_are_foretold_and_mending_ends():
    misses = 0
    for seed in range(40):
        data, truth, doubt, wrong = noisy_rows(seed)
        judged = answered(data, truth, np.arange(data.n_docs) < 200)
        found = label_progress(data, judged, doubt=doubt, level=0.9, seed=seed)
        assert found.next_rows == 100
        assert found.before is None
        misses += not found.next_wrong.low <= wrong[200:300].sum() <= found.next_wrong.high
    assert misses <= 6
    assert not found.repaired
    assert found.verdicts()[0].startswith("Go on mending: about ")
    later = label_progress(data, answered(data, truth, np.arange(2000) < 1200), doubt=doubt)
    assert later.repaired
    assert later.verdicts()[0].startswith("Stop mending: about ")
    picky = label_progress(data, answered(data, truth, np.arange(2000) < 1200), doubt=doubt, worth=0.01)
    assert not picky.repaired


def test_dropped_rows_count_as_mended_and_drawn_rows_without_an_answer_are_named():
    data, truth, doubt, _ = noisy_rows(3)
    judged = np.full(data.n_docs, UNJUDGED)
    judged[:50], judged[50:100] = DROPPED, data.y[50:100]
    found = label_progress(data, judged, doubt=doubt)
    assert (found.judged, found.wrong) == (100, 50)
    drawn = draw(data, 150, 3)
    half = drawn & (np.cumsum(drawn) <= 75)
    found = label_progress(data, answered(data, truth, half), drawn=drawn)
    assert found.notes == (
        "75 drawn rows have no answer; if they are the hard ones, wrong labels are underestimated",
    )
    assert not found.noise_known
    assert found.verdicts()[0].startswith("Go on measuring the noise: ")
    assert found.to_json()["noise"]["n"] == 75
    many = draw(data, 900, 3)
    known = label_progress(data, answered(data, truth, many), drawn=many, width=0.3)
    assert known.noise_known
    assert known.verdicts()[0].startswith("Stop measuring the noise: the interval of pNoise is ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"judged": [0, 1]}, r"judged must have one value per row of data \(400\); got shape \(2,\)"),
        ({"judged": np.full(400, -3)}, r"must be grades, -1 \(not judged\) or -2 \(dropped\); got -3"),
        ({"drawn": [True]}, "drawn must have one value per row"),
        ({"worth": 1.0}, "worth must be a number > 0 and < 1"),
        ({"next_rows": 0}, "next_rows must be an integer >= 1"),
        ({"look": 0}, "look must be an integer >= 1"),
    ],
)
def test_mistakes_are_named(options, message):
    data, truth, _, _ = noisy_rows(0, 400)
    with pytest.raises(InvalidInputError, match=message):
        label_progress(data, **({"judged": truth} | options))
