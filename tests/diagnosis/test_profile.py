import numpy as np
import pytest

import cleanrank as cr
from cleanrank.diagnosis.profile import grade_counts, grades_of, idle_of, lengths_of, pairs_of
from cleanrank.errors import InvalidInputError

from .sets import plain


@pytest.fixture(scope="module")
def data():
    return plain()


def test_counts_are_those_of_a_loop(data):
    counts = grade_counts(data)
    for q in range(data.n_queries):
        mine = data.y[data.indptr[q] : data.indptr[q + 1]]
        assert counts[q].tolist() == [int((mine == g).sum()) for g in range(data.n_grades)]


def test_pairs_are_those_of_a_loop(data):
    every = different = 0
    for q in range(data.n_queries):
        mine = data.y[data.indptr[q] : data.indptr[q + 1]]
        for i in range(len(mine)):
            for j in range(i):
                every += 1
                different += mine[i] != mine[j]
    found = pairs_of(grade_counts(data))
    assert (found.all, found.different) == (every, different)


def test_idle_queries_are_those_with_one_grade_or_one_document():
    data = cr.from_arrays(
        np.zeros((8, 1)),
        [0, 1, 2, 2, 1, 0, 0, 0],
        qid=["two", "two", "twos", "twos", "single", "no", "no", "no"],
    )
    found = idle_of(data, grade_counts(data))
    assert (found.queries, found.documents, found.one_document) == (3, 6, 1)
    assert found.one_grade == (1, 0, 1)
    assert found.examples == ("twos", "single", "no")


def test_grades_by_hand():
    data = cr.from_arrays(np.zeros((6, 1)), [0, 0, 0, 3, 0, 3], group=[4, 2])
    found = grades_of(grade_counts(data))
    assert found.documents == (4, 0, 0, 2)
    assert found.unused == (1, 2)
    assert found.query_shares == pytest.approx((0.625, 0, 0, 0.375))
    assert found.queries == (2, 0, 0, 2)
    assert found.different == (0, 2, 0, 0)
    assert found.effective == pytest.approx((2 / 3) ** (-2 / 3) * (1 / 3) ** (-1 / 3))
    assert found.relevant == pytest.approx({"10": 0.275, "50": 0.375, "90": 0.475})


@pytest.mark.parametrize("lengths", [[1], [5, 5, 5], [1, 2, 3, 400], [7, 1251, 30], list(range(1, 60))])
def test_the_histogram_holds_every_query_in_few_whole_bins(lengths):
    found = lengths_of(np.array(lengths))
    assert sum(found.queries) == len(lengths)
    assert len(found.queries) <= 25
    widths = set(np.diff(found.edges).tolist())
    assert len(widths) == 1
    width = widths.pop()
    assert str(width).rstrip("0") in ("1", "2", "5")
    for low, high, n in zip(found.edges, found.edges[1:], found.queries[:-1], strict=False):
        assert n == sum(low <= m < high for m in lengths)
    assert found.quantiles["0"] == min(lengths)
    assert found.quantiles["100"] == max(lengths)


def test_labels_that_are_no_grades_are_refused():
    with pytest.raises(InvalidInputError, match=r"below 256; got 300 at row 1"):
        grade_counts(cr.from_arrays([[0.0], [1.0]], [0, 300], qid=[1, 1]))
    with pytest.raises(InvalidInputError, match="at least one document"):
        grade_counts(cr.from_arrays(np.zeros((0, 2)), [], qid=[]))
