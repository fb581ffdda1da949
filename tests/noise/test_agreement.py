import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from cleanrank.errors import BadFileError, InvalidInputError
from cleanrank.noise.agreement import (
    _shares_and_kappas,
    agreement,
    cohen_kappa,
    fleiss_kappa,
    judgements,
    krippendorff_alpha,
    table_agreement,
)

# Fourteen raters, ten subjects, five categories (Fleiss 1971, as reprinted in textbooks): kappa .210.
FLEISS = [
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
]  # fmt: skip
# Four observers, twelve units, * missing (Krippendorff 2011): nominal .743, ordinal .815, interval .849.
KRIPPENDORFF = ["1 2 3 3 2 1 4 1 2 * * *", "1 2 3 3 2 2 4 1 2 5 * 3", "* 3 3 3 2 3 4 2 2 5 1 *",
                "1 2 3 3 2 4 4 1 2 5 1 *"]  # fmt: skip


def counts_of(observers, C=6):
    table = np.zeros((12, C), dtype=int)
    for line in observers:
        for unit, value in enumerate(line.split()):
            if value != "*":
                table[unit, int(value)] += 1
    return table


def test_fleiss_example():
    assert fleiss_kappa(FLEISS) == pytest.approx(0.210, abs=5e-4)


@pytest.mark.parametrize(("distance", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_krippendorff_example(distance, alpha):
    assert krippendorff_alpha(counts_of(KRIPPENDORFF), distance) == pytest.approx(alpha, abs=6e-4)


def test_cohen_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, 200)
    b = np.where(rng.random(200) < 0.6, a, rng.integers(0, 4, 200))
    assert cohen_kappa(a, b) == pytest.approx(cohen_kappa_score(a, b))


def test_agreement_of_a_table_with_and_without_names():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 100)
    said = np.where(rng.random((2, 100)) < 0.7, truth, rng.integers(0, 3, (2, 100)))
    table = pd.DataFrame(
        {"item": np.tile(np.arange(100), 2), "annotator": np.repeat(["x", "y"], 100), "grade": said.ravel()}
    )
    found = agreement(table)
    assert found.share == pytest.approx((said[0] == said[1]).mean())
    assert found.cohen == pytest.approx(cohen_kappa_score(said[0], said[1]))
    unnamed = agreement(table.drop(columns="annotator"))
    assert unnamed.cohen is None
    assert (unnamed.fleiss, unnamed.alpha) == (found.fleiss, found.alpha)


def test_chance_is_zero_and_unanimity_one():
    rng = np.random.default_rng(2)
    guesses = rng.multinomial(3, [0.5, 0.3, 0.2], size=20_000)
    assert fleiss_kappa(guesses) == pytest.approx(0, abs=0.02)
    assert krippendorff_alpha(guesses) == pytest.approx(0, abs=0.02)
    same = 3 * np.eye(3, dtype=int)[rng.integers(0, 3, 50)]
    assert fleiss_kappa(same) == krippendorff_alpha(same) == 1.0
    assert np.isnan(fleiss_kappa([[3, 0], [3, 0]]))


def test_wrong_tables_are_refused():
    with pytest.raises(InvalidInputError, match="2 of item 'a' by 'x'"):
        judgements(item=["a", "a"], annotator=["x", "x"], grade=[0, 1])
    with pytest.raises(InvalidInputError, match=r"1\.5 at judgement 1"):
        judgements(item=[1, 1], grade=[0, 1.5])
    with pytest.raises(InvalidInputError, match="n_grades"):
        judgements(item=[1, 1], grade=[0, 3], n_grades=3)
    with pytest.raises(BadFileError, match="must have the columns item"):
        judgements(pd.DataFrame({"itm": [1], "grade": [0]}))
    with pytest.raises(InvalidInputError, match="an item and an annotator per grade"):
        judgements(item=[1], grade=[0, 1])
    with pytest.raises(InvalidInputError, match="two judgements"):
        agreement({"item": [1, 2], "grade": [0, 1]})


def test_agreement_of_a_table_of_counts_is_that_of_its_judgements():
    rng = np.random.default_rng(1)
    a = rng.integers(0, 4, 300)
    b = np.where(rng.random(300) < 0.5, a, rng.integers(0, 4, 300))
    counts = np.zeros((2, 4, 4))
    np.add.at(counts[0], (a, b), 1)
    counts[1] = counts[0].T
    found = table_agreement(counts)
    units = np.zeros((300, 4), dtype=int)
    for each in (a, b):
        np.add.at(units, (np.arange(300), each), 1)
    for name, weights in (("kappa", None), ("linear", "linear"), ("quadratic", "quadratic")):
        assert found[name] == pytest.approx([cohen_kappa_score(a, b, weights=weights)] * 2)
    assert found["alpha"] == pytest.approx([krippendorff_alpha(units)] * 2)
    assert found["share"] == pytest.approx([(a == b).mean()] * 2)


def test_tables_of_several_pairs_are_looked_at_one_by_one():
    rng = np.random.default_rng(0)
    said = rng.integers(0, 3, (3, 40))
    said[1] = np.where(rng.random(40) < 0.7, said[0], said[1])
    pairs = [(0, 1), (0, 2), (1, 2)]
    counts = np.zeros((3, 3, 3))
    for table, (a, b) in zip(counts, pairs, strict=True):
        np.add.at(table, (said[a], said[b]), 1)
    shares, kappas = _shares_and_kappas(counts)
    assert shares == pytest.approx([np.mean(said[a] == said[b]) for a, b in pairs])
    assert kappas == pytest.approx([cohen_kappa_score(said[a], said[b]) for a, b in pairs])
