"""Gold by query and document says what gold by row id says; spreadsheets of any country are read."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cleanrank as cr
from cleanrank.data.trec import read_qrels
from cleanrank.errors import CleanrankError
from cleanrank.noise.gold_sheet import gold_answers, read_sheet


@pytest.fixture(scope="module")
def data():
    """120 rows whose queries are mixed in the input; every document stands in several queries."""
    rng = np.random.default_rng(3)
    qid = np.repeat([11, 12, 149, 1320], 30)
    docs = np.tile([f"d{i}" for i in range(30)], 4)
    order = rng.permutation(120)
    return cr.from_arrays(
        rng.normal(size=(120, 3)), rng.integers(0, 3, 120), qid=qid[order], doc_ids=docs[order]
    )


@pytest.fixture(scope="module")
def judged(data):
    """Positions of 40 rows, their true grades, and both as a frame by query and document."""
    rng = np.random.default_rng(4)
    rows = rng.choice(120, 40, replace=False)
    grades = rng.integers(0, 3, 40)
    frame = pd.DataFrame({"query": data.qid[rows], "url": data.doc_ids[rows], "rating": grades})
    return rows, grades, frame


def qrels_of(frame, path):
    lines = (f"{q} 0 {d} {g}\n" for q, d, g in frame.itertuples(index=False))
    path.write_text("".join(lines))
    return path


FORMS = {
    "pandas": lambda frame, folder: frame,
    "polars": lambda frame, folder: pl.from_pandas(frame),
    "arrow": lambda frame, folder: pa.Table.from_pandas(frame),
    "columns": lambda frame, folder: {name: frame[name].to_numpy() for name in frame},
    "series": lambda frame, folder: frame.set_index(["query", "url"])["rating"],
    "mapping": lambda frame, folder: {(q, d): g for q, d, g in frame.itertuples(index=False)},
    "parquet": lambda frame, folder: frame.to_parquet(folder / "g.parquet") or folder / "g.parquet",
    "csv": lambda frame, folder: frame.to_csv(folder / "g.csv", index=False) or str(folder / "g.csv"),
    "pandas' index in csv": lambda frame, folder: frame.to_csv(folder / "g.csv") or folder / "g.csv",
    "xlsx": lambda frame, folder: frame.to_excel(folder / "g.xlsx", index=False) or folder / "g.xlsx",
    "qrels": lambda frame, folder: qrels_of(frame, folder / "qrels.txt"),
    "read qrels": lambda frame, folder: read_qrels(qrels_of(frame, folder / "qrels.txt")),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_what_row_ids_say(tmp_path, data, judged, form):
    rows, grades, frame = judged
    answers = gold_answers(FORMS[form](frame, tmp_path), data)
    truth = dict(zip(data.row_ids[rows].tolist(), grades.tolist(), strict=True))
    assert dict(zip(answers.row_ids.tolist(), answers.true_grades.tolist(), strict=True)) == truth
    assert any("random" in note for note in answers.notes)


def test_a_series_or_frame_without_ids_goes_by_its_index(data, judged):
    rows, grades, _ = judged
    series = pd.Series(grades, index=data.row_ids[rows])
    for gold in (series, series.to_frame("grade"), series.astype(float)):
        answers = gold_answers(gold, data)
        assert answers.row_ids.tolist() == data.row_ids[rows].tolist()
        assert answers.true_grades.tolist() == grades.tolist()
        assert answers.notes == ()
    column = pd.Series(-1, index=range(120))
    column[data.row_ids[rows]] = grades
    assert dict(zip(*vars_of(gold_answers(column, data)), strict=True)) == series.to_dict()


def vars_of(answers):
    return answers.row_ids.tolist(), answers.true_grades.tolist()


def test_the_same_estimate_through_every_entry_point(tmp_path, data, judged):
    rows, grades, frame = judged
    by_row = cr.estimate_noise(
        data, gold=dict(zip(data.row_ids[rows].tolist(), grades.tolist(), strict=True))
    )
    by_pair = cr.estimate_noise(data, gold=frame)
    assert by_pair.matrix == pytest.approx(by_row.matrix)
    assert "random" in by_pair.reasons[-1]
    assert by_pair.trusted
    frame.to_csv(tmp_path / "g.csv", index=False)
    issues = cr.find_label_issues(data, gold=tmp_path / "g.csv", folds=2)
    same = cr.find_label_issues(data, gold=frame, folds=2)
    assert issues.doubt.tolist() == same.doubt.tolist()
    wrong = data.y[rows] != grades
    assert issues.doubt[rows] == pytest.approx(wrong.astype(float))


def test_what_is_not_in_the_data_is_counted_and_nothing_at_all_is_an_error(data, judged):
    _, _, frame = judged
    foreign = frame.assign(query=frame["query"] + 5000)
    answers = gold_answers(pd.concat([frame, foreign]), data)
    assert len(answers.row_ids) == 40
    assert "40 of 80 answers are for documents not in the data" in answers.notes[0]
    with pytest.raises(
        CleanrankError, match=r"none of its queries and documents is there.*The data have \(11, d"
    ):
        gold_answers(foreign, data)


def test_contradictions_and_data_without_documents_are_refused(data, judged):
    _, grades, frame = judged
    twice = pd.concat([frame, frame.assign(rating=(grades + 1) % 3)])
    with pytest.raises(CleanrankError, match="must have one true grade, and row 0 says"):
        gold_answers(twice, data)
    assert len(gold_answers(pd.concat([frame, frame]), data).row_ids) == 40
    bare = cr.from_arrays(data.X, data.y, qid=data.qid)
    with pytest.raises(CleanrankError, match=r"must have document ids.*or give gold by row id"):
        gold_answers(frame, bare)


def test_frames_are_matched_by_their_own_columns():
    """Nobody must make a RankingData: the url beside the features is the document."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    frame = frame.assign(
        qid=np.arange(300) // 10, label=rng.integers(0, 2, 300), URL=[f"u{i}" for i in range(300)]
    )
    frame = frame.sample(frac=1, random_state=1)
    human = frame.sample(80, random_state=2)[["qid", "URL", "label"]]
    estimate = cr.estimate_noise(frame, gold=human)
    assert estimate.n == 80
    assert estimate.rate < 0.1
    issues = cr.find_label_issues(frame, gold=human, folds=2)
    assert issues.to_frame().loc[human.index, "doubt"].max() == 0


def test_a_document_listed_twice_has_its_grade_in_both_rows():
    data = cr.from_arrays(np.zeros((4, 1)), [0, 1, 1, 0], qid=[1, 1, 1, 2], doc_ids=["a", "a", "b", "a"])
    assert vars_of(gold_answers({("1", "a"): 1}, data)) == ([0, 1], [1, 1])


def test_headings_can_be_named(data, judged):
    _, _, frame = judged
    frame = frame.set_axis(["Suche", "Treffer", "Note"], axis=1)
    with pytest.raises(CleanrankError, match="gold must have the column true_grade"):
        gold_answers(frame, data)
    columns = {"query": "Suche", "doc": "treffer", "grade": "Note"}
    assert len(gold_answers(frame, data, columns=columns).row_ids) == 40
    with pytest.raises(CleanrankError, match="has no column 'Wort'"):
        gold_answers(frame, data, columns={**columns, "doc": "Wort"})
    with pytest.raises(CleanrankError, match="must be row, query, doc or grade"):
        gold_answers(frame, data, columns={"dok": "Treffer"})


def in_thousands(row, sign):
    return f"{row:,}".replace(",", sign)


@pytest.fixture(scope="module")
def long_data():
    rng = np.random.default_rng(0)
    names = [f"dé{i}" for i in range(3000)]
    return cr.from_arrays(
        rng.normal(size=(3000, 1)), rng.integers(0, 3, 3000), qid=np.arange(3000) // 10, doc_ids=names
    )


ROWS = (7, 149, 1320, 2999)


def sheet_text(cut=",", row=str, query=str, head=("row_id", "query_id", "titel", "true_grade"), end="\n"):
    lines = [cut.join(head), *(cut.join((row(r), query(r // 10), "dé", str(r % 3))) for r in ROWS)]
    return end.join(lines) + end


SHEETS = {
    "cp1252": sheet_text().encode("cp1252"),
    "utf-16": sheet_text("\t", end="\r\n").encode("utf-16"),
    "utf-8 with a mark": sheet_text().encode("utf-8-sig"),
    "sep=;": ("sep=;\r\n" + sheet_text(";", end="\r\n")).encode("cp1252"),
    "headings of any case": sheet_text(head=("Row_ID", "Query ID", "Titel", "TRUE_GRADE")).encode(),
    "decimals": sheet_text(row="{}.0".format, query="{}.0".format).encode(),
    "thousands by commas": sheet_text(";", row=lambda r: in_thousands(r, ",")).encode(),
    "thousands by points": sheet_text(row=lambda r: in_thousands(r, ".")).encode(),
    "thousands in quotes": sheet_text(row=lambda r: f'"{in_thousands(r, ",")}"').encode(),
    "thin spaces": sheet_text(row=lambda r: in_thousands(r, "\u202f")).encode(),
    "three decimals": sheet_text(row="{}.000".format, query="{}.000".format).encode(),
    "a total": (sheet_text() + "Total,,,5\n").encode(),
    "a total without a name": (sheet_text() + ",,,5\n").encode(),
}


@pytest.mark.parametrize("kind", SHEETS)
def test_spreadsheets_of_any_country_are_read(tmp_path, long_data, kind):
    (tmp_path / "sheet.csv").write_bytes(SHEETS[kind])
    answers = read_sheet(tmp_path / "sheet.csv", long_data)
    assert vars_of(answers) == (list(ROWS), [r % 3 for r in ROWS])
    assert bool(answers.notes) == ("total" in kind)


def test_a_workbook_is_read(tmp_path, long_data):
    frame = pd.DataFrame({"Row_ID": [float(r) for r in ROWS], "True grade": [r % 3 for r in ROWS]})
    frame.loc[4] = [None, 5]
    frame.to_excel(tmp_path / "sheet.xlsx", index=False)
    answers = read_sheet(tmp_path / "sheet.xlsx", long_data)
    assert vars_of(answers) == (list(ROWS), [r % 3 for r in ROWS])
    (tmp_path / "text.xlsx").write_text("row_id,true_grade\n1,0\n")
    with pytest.raises(CleanrankError, match="cannot be read as a workbook"):
        read_sheet(tmp_path / "text.xlsx", long_data)


def test_ids_that_a_spreadsheet_could_mean_twice_are_not_guessed():
    data = cr.from_arrays(np.zeros((3, 1)), [0, 1, 1], qid=["007", "7", "8"], doc_ids=["a", "a", "a"])
    answers = gold_answers({("7", "a"): 1, ("007", "a"): 0, ("8.0", "a"): 1}, data)
    assert vars_of(answers) == ([0, 1, 2], [0, 1, 1])
    assert gold_answers({("7.0", "a"): 1, ("8", "a"): 1}, data).row_ids.tolist() == [2]
