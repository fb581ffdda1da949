import numpy as np
import pytest
import scipy.sparse

import cleanrank as cr
import cleanrank.issues.explain as explain_module
from cleanrank.errors import CleanrankError
from cleanrank.issues.explain import SPOKEN, explain, nearest
from cleanrank.issues.table import LabelIssues


@pytest.fixture
def judged():
    X = [[0.0, 5.0], [0.1, 5.0], [0.2, 5.0], [9.0, 5.0], [9.1, 5.0], [9.2, 5.0], [9.3, 5.0]]
    return cr.from_arrays(X, [0, 0, 0, 0, 2, 2, 2], qid=["a", "a", "a", "a", "a", "b", "b"])


def table_of(data, **reasons):
    doubt = np.linspace(0.1, 0.9, data.n_docs)
    return LabelIssues.of(
        data, doubt=doubt, is_label_issue=doubt > 0.4, suggested_label=data.y, reasons=reasons
    )


def test_the_sentence_of_a_missed_document(judged):
    # Row 3 looks like rows 4 to 6, which are graded 2, and out-of-fold forests rank it first.
    found = table_of(judged, expected_grade=[0.1, 0.2, 0.3, 1.9, 1.8, 1.5, 1.6])
    (told,) = explain(found, judged, rows=[3])
    assert (
        told.why
        == "graded 0, but ranked 1st of 5 by models that never saw it; 3 of 4 nearest neighbours are graded 2"
    )
    assert told.reasons["rank"].startswith("graded 0")
    assert (told.row_id, told.query_id, told.given_label) == (3, "a", 0)
    assert told.to_json()["why"] == told.why


def test_a_rank_that_fits_its_grade_is_no_but(judged):
    found = table_of(judged, expected_grade=[0.1, 0.2, 0.3, 0.4, 1.8, 1.5, 1.6])
    assert "graded 2, and ranked 1st of 5" in explain(found, judged, rows=[4])[0].why


def test_alike_scores_share_their_ranks(judged):
    """The order among them is that of the file, which nobody could check."""
    flat = table_of(judged, expected_grade=np.ones(7))
    assert "graded 2, and ranked 1st to 5th of 5 (tied) by" in explain(flat, judged, rows=[4])[0].why
    low = table_of(judged, expected_grade=[3, 2, 1, 0, 0, 1, 2])
    assert "graded 2, but ranked 4th to 5th of 5 (tied) by" in explain(low, judged, rows=[4])[0].why


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_without_features_say_so_instead_of_naming_neighbours(sparse):
    X = np.array([[0, 0], [0, np.nan], [0, 0], [1, 2], [0, 0], [0, 3]], dtype=np.float32)
    X = scipy.sparse.csr_matrix(X) if sparse else X
    data = cr.from_arrays(X, [2, 0, 0, 1, 1, 0], group=[6])
    told = explain(table_of(data), data, rows=[0, 3])
    assert told[0].why == "graded 2; all its features are 0, as in 3 others, 67% of them graded 0"
    assert "neighbours" not in told[0].reasons
    assert "neighbours" in told[1].reasons
    lone = data.select([0, 3, 5])
    assert "all its features are 0, as in no other row" in explain(table_of(lone), lone, rows=[0])[0].why
    assert explain_module.blank_rows(X).tolist() == [True, True, True, False, True, False]


def test_the_worst_issues_come_first_and_order_of_the_table_does_not_matter(judged):
    found = table_of(judged, expected_grade=np.arange(7.0))
    told = found.explain(judged, 3)
    assert [each.row_id for each in told] == [6, 5, 4]
    shuffled = found.select(np.random.default_rng(0).permutation(7))
    assert shuffled.explain(judged, 3) == told
    assert len(found.explain(judged, None)) == found.n_issues
    assert found.explain(judged, 0) == []


def test_without_a_model_only_what_is_known_is_said(judged):
    told = explain(table_of(judged), judged, rows=[0], neighbours=0)
    assert told[0].why == "graded 0"


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("block", [1 << 21, 40])
def test_neighbours_are_those_of_scikit_learn(monkeypatch, sparse, block):
    from sklearn.neighbors import NearestNeighbors
    from sklearn.preprocessing import StandardScaler

    monkeypatch.setattr(explain_module, "BLOCK_VALUES", block)
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(200, 5)) * [1, 10, 100, 1e-3, 0] + 7).astype(np.float32)
    rows = np.array([3, 77, 150])
    Z = StandardScaler().fit_transform(X.astype(np.float64))
    Z[:, 4] = 0
    wanted = NearestNeighbors(n_neighbors=6).fit(Z).kneighbors(Z[rows], return_distance=False)[:, 1:]
    found = nearest(scipy.sparse.csr_matrix(X) if sparse else X, rows, 5)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("grades", "said"),
    [
        ([2], "its nearest neighbour is graded 2"),
        ([2, 2], "all 2 nearest neighbours are graded 2"),
        ([2, 2, 2, 1], "3 of 4 nearest neighbours are graded 2"),
        ([0, 2, 2, 1], "its nearest neighbours are graded 0, 1, 2 and 2"),
        ([0, 2, 2, 0], "its nearest neighbours are graded 0, 0, 2 and 2"),
        ([3, 0, 1], "its nearest neighbours are graded 0, 1 and 3"),
    ],
)
def test_what_neighbours_say(grades, said):
    assert explain_module._neighbour_words(np.array(grades)) == said


def test_missing_and_infinite_values_have_neighbours():
    X = np.array([[0.0, np.nan], [0.1, 1.0], [5.0, np.inf], [5.1, 1.0]], dtype=np.float32)
    assert nearest(X, np.array([0, 2]), 1).tolist() == [[1], [3]]


def test_every_detector_has_words_of_its_own(judged):
    columns = {
        "p_true_0": [0.04] * 7, "p_true_1": [0.1] * 7, "p_true_2": [0.86] * 7, "confident": [0.999] * 7,
        "sour": [0.93] * 7, "isolation": [0.61] * 7, "loss": [2.345] * 7, "forgotten": [3.0] * 7,
        "rounds_wrong": [0.8] * 7, "contradiction": [2 / 3] * 7, "twins": [3.0] * 7, "clicks": [40.0] * 7,
        "impressions": [1000.0] * 7, "click_rate_excess": [0.3] * 7, "by_grade": [0.57] * 7,
    }  # fmt: skip
    (told,) = explain(table_of(judged, **columns), judged, rows=[0], neighbours=0)
    assert set(SPOKEN) < set(told.reasons)
    assert told.reasons["posterior"] == (
        "with the judgement weighed in, grade 2 has probability .86, its own .04"
    )
    assert told.reasons["confident"] == "by its features alone, its grade has probability < .01"
    assert told.reasons["sour"] == "93% of the models rank it where its grade does not belong"
    assert told.reasons["forgetting"] == "wrong after 80% of the rounds, forgotten 3 times"
    assert told.reasons["contradictions"] == "2 of its 3 twins (same features) are graded otherwise"
    assert told.reasons["clicks"] == "clicked 40 of 1,000 times, more than its grade and its ranks explain"
    assert told.reasons["by-grade"] == "labels of grade 0 are wrong in 57% of cases"


def test_what_did_not_happen_is_not_said(judged):
    silent = {"contradiction": [0.0] * 7, "twins": [0.0] * 7, "clicks": [0.0] * 7, "impressions": [0.0] * 7}
    (told,) = explain(table_of(judged, click_rate_excess=[0.0] * 7, **silent), judged, rows=[0], neighbours=0)
    assert told.why == "graded 0"


def test_mistakes_are_named(judged):
    found = table_of(judged)
    with pytest.raises(CleanrankError, match="rows must be row ids of the table; got 99"):
        explain(found, judged, rows=[99])
    with pytest.raises(CleanrankError, match=r"scores must have one value per row \(7\)"):
        explain(found, judged, scores=[1.0])
    with pytest.raises(CleanrankError, match="neighbours must not be negative"):
        explain(found, judged, neighbours=-1)
