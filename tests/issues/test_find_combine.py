import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.issues.find import combine
from cleanrank.issues.posterior import places, posterior_table
from cleanrank.issues.table import LabelIssues


def table_of(data, seed, name="dice"):
    rng = np.random.default_rng(seed)
    doubt = rng.random(data.n_docs).round(1)
    issues = doubt > 0.6
    suggested = np.where(issues, (data.y + rng.integers(1, 3, data.n_docs)) % 3, data.y)
    return LabelIssues.of(
        data,
        doubt=doubt,
        is_label_issue=issues,
        suggested_label=suggested,
        reasons={name: doubt, "n": doubt * 2},
    )


def test_ranks_are_averaged_with_ties_shared(toy):
    one, two = table_of(toy, 0), table_of(toy, 1)
    found = combine({"a": one, "b": two}, "rank", weights={"b": 3})
    order = np.array(
        [[np.mean([(d < x) + 0.5 * (d == x) for d in t.doubt]) for x in t.doubt[:20]] for t in (one, two)]
    )
    place = (order * 480 - 0.5) / 479
    np.testing.assert_allclose(found.doubt[:20], place[0] / 4 + 3 * place[1] / 4)
    mean = combine({"a": one, "b": two}, "mean")
    np.testing.assert_allclose(mean.doubt, (one.doubt + two.doubt) / 2)


def test_issues_and_suggestions_are_voted_on(toy):
    tables = {name: table_of(toy, seed) for seed, name in enumerate("abc")}
    weight = {"a": 2.0, "b": 1.0, "c": 0.5}
    found = combine(tables, weights=weight)
    for i in range(toy.n_docs):
        flagged = sum(weight[n] for n, t in tables.items() if t.is_label_issue[i])
        assert found.is_label_issue[i] == (flagged >= 3.5 / 2)
        if found.is_label_issue[i]:
            votes = np.zeros(3)
            for n, t in tables.items():
                if t.suggested_label[i] != toy.y[i]:
                    votes[t.suggested_label[i]] += weight[n]
            assert found.suggested_label[i] == votes.argmax()
        else:
            assert found.suggested_label[i] == toy.y[i]


def test_each_detector_keeps_a_reason_column_and_tables_are_matched_by_row(toy):
    one, two = table_of(toy, 0), table_of(toy, 1, "other")
    shuffled = two.select(np.random.default_rng(0).permutation(len(two)))
    found = combine({"a": one, "b": shuffled})
    np.testing.assert_array_equal(found.row_id, toy.row_ids)
    np.testing.assert_array_equal(found.reasons["a"], one.doubt)
    np.testing.assert_array_equal(found.reasons["b"], two.doubt)
    assert set(found.reasons) == {"a", "b", "n"}
    np.testing.assert_array_equal(found.doubt, combine({"a": one, "b": two}).doubt)


@pytest.mark.parametrize("how", ["rank", "mean"])
def test_one_table_keeps_its_order_and_perfect_ones_stay_perfect(toy, how):
    noisy = cr.corrupt(toy, rate=0.2, seed=0)
    oracle = LabelIssues.of(noisy.data, doubt=noisy.changed.astype(float), is_label_issue=noisy.changed)
    found = combine({"oracle": oracle}, how)
    assert found.average_precision(noisy) == found.precision(noisy) == 1.0
    weighed = combine({"oracle": oracle, "dice": table_of(noisy.data, 5)}, how, weights={"dice": 0.0})
    assert weighed.average_precision(noisy) == 1.0


def test_places_of_short_tables():
    assert places(np.array([])).tolist() == []
    assert places(np.array([0.4])).tolist() == [0.0]
    assert places(np.array([0.4, 0.4])).tolist() == [0.5, 0.5]


def test_mistakes_are_named(toy):
    one = table_of(toy, 0)
    with pytest.raises(CleanrankError, match="unknown way of combining 'ranks'"):
        combine({"a": one}, "ranks")
    with pytest.raises(CleanrankError, match="tables must hold at least one"):
        combine({})
    with pytest.raises(CleanrankError, match="unknown table 'b'"):
        combine({"a": one}, weights={"b": 1})
    with pytest.raises(CleanrankError, match="weights must be numbers >= 0"):
        combine({"a": one}, weights={"a": 0})
    with pytest.raises(CleanrankError, match="table 'b' must have the rows of the first"):
        combine({"a": one, "b": one.select(np.arange(9))})
    other = table_of(toy.with_labels((toy.y + 1) % 3), 0)
    with pytest.raises(CleanrankError, match="given_label of table 'b'"):
        combine({"a": one, "b": other})


def test_probabilities_of_one_table_are_not_mixed_with_those_of_another():
    data = cr.from_arrays(np.zeros((2, 1)), [0, 0], group=[2])
    two = posterior_table(data, np.array([[0.7, 0.3], [0.2, 0.8]]))
    three = posterior_table(data, np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]))
    found = combine({"two": two, "three": three}, "mean")
    np.testing.assert_array_equal(found.probabilities(), [[0.7, 0.3], [0.2, 0.8]])
    found = combine({"three": three, "two": two}, "mean")
    assert found.probabilities().shape == (2, 3)
    # One column may equal the doubt, and still belongs to the others.
    assert "p_true_1" in combine({"two": two}, "mean").reasons
