import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, precision_score, recall_score

import cleanrank as cr
from cleanrank.errors import BadFileError, CleanrankError
from cleanrank.issues.table import PROBABILITY, LabelIssues, read_issues


@pytest.fixture
def corrupted(toy):
    return cr.corrupt(toy, rate=0.2, seed=3)


def table_of(corrupted, seed=0):
    rng = np.random.default_rng(seed)
    doubt = rng.random(len(corrupted.changed)).round(1)
    return LabelIssues.of(corrupted.data, doubt=doubt, is_label_issue=doubt > 0.6, reasons={"dice": doubt})


def test_measures_agree_with_scikit_learn(corrupted):
    found = table_of(corrupted)
    wrong = corrupted.changed
    assert found.precision(corrupted) == pytest.approx(precision_score(wrong, found.is_label_issue))
    assert found.recall(corrupted) == pytest.approx(recall_score(wrong, found.is_label_issue))
    assert found.average_precision(corrupted) == pytest.approx(average_precision_score(wrong, found.doubt))
    within = found.quality(corrupted)
    assert set(within) == {"all", "grade 0", "grade 1", "grade 2"}
    for grade in range(3):
        rows = found.given_label == grade
        line = within[f"grade {grade}"]
        assert line["average_precision"] == pytest.approx(
            average_precision_score(wrong[rows], found.doubt[rows])
        )
        assert line["base_rate"] == pytest.approx(wrong[rows].mean())
        assert line["documents"] == rows.sum()


def test_average_precision_within_a_grade_is_that_of_scikit_learn(corrupted):
    found = table_of(corrupted)
    by_grade = found.average_precision_by_grade(corrupted)
    assert set(by_grade) == {0, 1, 2}
    for grade, value in by_grade.items():
        rows = found.given_label == grade
        assert value == pytest.approx(average_precision_score(corrupted.changed[rows], found.doubt[rows]))
    assert all(np.isnan(v) for v in found.average_precision_by_grade(np.zeros(480, bool)).values())


def test_row_ids_travel_with_values(corrupted):
    found = table_of(corrupted)
    shuffled = found.select(np.random.default_rng(1).permutation(len(found)))
    assert shuffled.quality(corrupted) == found.quality(corrupted)
    back = shuffled.aligned(corrupted.data)
    np.testing.assert_array_equal(back.doubt, found.doubt)
    np.testing.assert_array_equal(back.reasons["dice"], found.reasons["dice"])


def test_undefined_shares_are_nan(corrupted):
    nothing = LabelIssues.of(corrupted.data, doubt=np.zeros(480), is_label_issue=np.zeros(480, bool))
    assert np.isnan(nothing.precision(corrupted))
    assert nothing.recall(corrupted) == 0.0
    assert np.isnan(nothing.average_precision(np.zeros(480, bool)))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tables_come_back_from_files(corrupted, tmp_path, suffix):
    found = table_of(corrupted)
    found.save(tmp_path / f"issues.{suffix}")
    again = read_issues(tmp_path / f"issues.{suffix}")
    for name in ("row_id", "query_id", "given_label", "doubt", "is_label_issue", "suggested_label"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
    np.testing.assert_array_equal(again.reasons["dice"], found.reasons["dice"])


def test_the_frame_speaks_cleanlab(corrupted):
    frame = table_of(corrupted).to_frame()
    assert {"is_label_issue", "label_quality", "given_label", "suggested_label", "dice"} <= set(frame.columns)
    np.testing.assert_allclose(frame.label_quality, 1 - frame.doubt)
    assert frame.index.name == "row_id"


def test_the_worst_come_first(corrupted):
    found = table_of(corrupted)
    worst = found.worst(5)
    assert len(worst) == 5
    assert worst.is_label_issue.all()
    assert (np.diff(worst.doubt) <= 0).all()
    assert worst.doubt[0] == found.doubt.max()


def test_mistakes_are_named(corrupted, tmp_path):
    data = corrupted.data
    with pytest.raises(CleanrankError, match=r"doubt must lie in \[0, 1\]; got 2.0"):
        LabelIssues.of(data, doubt=np.full(480, 2.0), is_label_issue=np.zeros(480, bool))
    with pytest.raises(CleanrankError, match="one value per row"):
        LabelIssues.of(data, doubt=np.zeros(3), is_label_issue=np.zeros(480, bool))
    found = table_of(corrupted)
    with pytest.raises(CleanrankError, match="must be different in every row"):
        found.select([0, 0])
    with pytest.raises(CleanrankError, match="must have a row for every row of data"):
        found.select(np.arange(10)).aligned(data)
    with pytest.raises(CleanrankError, match="must be the grade in data"):
        found.aligned(data.with_labels((data.y + 1) % 3))
    (tmp_path / "bad.csv").write_text("row_id,doubt\n1,0.5\n")
    with pytest.raises(CleanrankError, match="must have the column 'query_id'"):
        read_issues(tmp_path / "bad.csv")


def test_columns_cannot_be_written_to(corrupted):
    with pytest.raises(ValueError, match="read-only"):
        table_of(corrupted).doubt[0] = 1.0


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("is_label_issue", "", "is_label_issue must be True or False; got an empty cell at row "),
        ("is_label_issue", "maybe", "is_label_issue must be True or False; got 'maybe'"),
        ("row_id", "", "row_id must be whole numbers"),
        ("row_id", "first", r"row_id must be whole numbers; got 'first' at place 3 \(from 0\)"),
        ("given_label", "1.5", "given_label must be whole numbers"),
        ("suggested_label", "", "suggested_label must be whole numbers"),
        ("doubt", "high", "doubt must be numbers; got 'high' at row "),
        ("doubt", "", "doubt must lie in"),
    ],
)
def test_cells_that_somebody_spoilt_are_named(corrupted, tmp_path, column, value, words):
    """A blank issue would pass for True and drop its row."""
    file = tmp_path / "doubts.csv"
    table_of(corrupted).save(file)
    frame = pd.read_csv(file, dtype=str)
    frame.loc[3, column] = value
    frame.to_csv(file, index=False)
    with pytest.raises(BadFileError, match=words) as caught:
        read_issues(file)
    assert str(caught.value).startswith("doubts.csv: ")


def test_spreadsheets_may_write_numbers_their_way(corrupted, tmp_path):
    file = tmp_path / "doubts.csv"
    found = table_of(corrupted)
    found.save(file)
    frame = pd.read_csv(file)
    for name in ("row_id", "given_label", "suggested_label", "is_label_issue"):
        frame[name] = frame[name].astype(float)
    frame.to_csv(file, index=False)
    again = read_issues(file)
    for name in ("row_id", "given_label", "suggested_label", "is_label_issue"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))


@pytest.mark.parametrize("content", [b"", b"PAR1 and no more"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_that_are_no_tables(tmp_path, content, suffix):
    file = tmp_path / f"doubts.{suffix}"
    file.write_bytes(content)
    with pytest.raises(BadFileError, match=r"doubts\.(csv|parquet) must (be a table|have the column)"):
        read_issues(file)


def test_a_truth_of_other_length_is_refused(corrupted):
    for measure in ("precision", "recall", "average_precision", "quality"):
        with pytest.raises(CleanrankError, match=r"truth must have one value per row \(480\)"):
            getattr(table_of(corrupted), measure)(np.ones(3, dtype=bool))


def test_reasons_are_the_tables_own(corrupted):
    mine = np.zeros(480)
    found = LabelIssues.of(
        corrupted.data, doubt=mine, is_label_issue=np.zeros(480, bool), reasons={"mine": mine}
    )
    mine[0] = 1.0
    assert found.reasons["mine"][0] == found.doubt[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        found.reasons["mine"][0] = 1.0


def test_probabilities_have_a_row_per_document(corrupted):
    p = np.random.default_rng(0).dirichlet(np.ones(3), len(corrupted.changed))
    doubt = np.zeros(len(p))
    reasons = {f"{PROBABILITY}{grade}": p[:, grade] for grade in range(3)}
    table = LabelIssues.of(corrupted.data, doubt=doubt, is_label_issue=doubt > 0, reasons=reasons)
    np.testing.assert_allclose(table.probabilities(), p)


def test_a_row_that_the_truth_does_not_know_is_named(corrupted):
    other = cr.corrupt(corrupted.data.select(np.arange(2)), rate=0.2, seed=3)
    rows = np.array([1, 0, 2, 3])  # of these four the truth knows two documents or two queries
    table = table_of(corrupted).select(rows)
    strange = next(int(row) for row in table.row_id if row not in other.data.row_ids)
    with pytest.raises(CleanrankError, match=rf"row_id must be one of the corrupted data; got {strange}\."):
        table.average_precision(other)
