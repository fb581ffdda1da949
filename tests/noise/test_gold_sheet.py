from dataclasses import replace

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.data.spreadsheet import read_frame, write_frame
from cleanrank.errors import BadFileError, InvalidInputError, UnknownNameError
from cleanrank.noise.gold import sample_gold
from cleanrank.noise.gold_sheet import read_sheet, write_sheet
from cleanrank.noise.profiles import uniform


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    qid = np.repeat([11, 12, 13, 14], 30)
    rng.shuffle(qid)
    names = [f"d{i}" for i in range(120)]
    return cr.from_arrays(rng.normal(size=(120, 3)), rng.integers(0, 3, 120), qid=qid, doc_ids=names)


def fill_in(path, data, answer=lambda row, grade: grade):
    """Answers a sheet as a person would: only the column true_grade (or the leading ?) changes."""
    truth = dict(zip(data.row_ids.tolist(), data.y.tolist(), strict=True))
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    if lines[0].startswith("?"):
        for i, line in enumerate(lines):
            row = int(line.split("row_id = ")[1].split()[0])
            lines[i] = f"{answer(row, truth[row])}{line[1:]}"
    else:
        cut = "\t" if "\t" in lines[0] else ","
        place = lines[0].split(cut).index("true_grade")
        for i, line in enumerate(lines[1:], start=1):
            cells = line.split(cut)
            cells[place] = str(answer(int(cells[0]), truth[int(cells[0])]))
            lines[i] = cut.join(cells)
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("name", ["sheet.csv", "sheet.tsv", "sheet.txt"])
def test_what_is_filled_in_is_read_back(tmp_path, data, name):
    sheet = sample_gold(data, 30)
    write_sheet(sheet, tmp_path / name, data=data)
    fill_in(tmp_path / name, data)
    found = read_sheet(tmp_path / name, data)
    assert found.row_ids.tolist() == sheet.row_ids.tolist()
    assert found.true_grades.tolist() == sheet.given_grades.tolist()
    assert found.shares.tolist() == [1.0] * 30
    assert found.estimate(data).rate < 0.15


def test_the_given_grade_is_hidden_unless_asked_for(tmp_path, data):
    sheet = sample_gold(data, 30)
    for name in ("sheet.csv", "sheet.txt"):
        write_sheet(sheet, tmp_path / name, data=data)
        assert "given" not in (tmp_path / name).read_text()
        write_sheet(sheet, tmp_path / name, data=data, show_given=True)
        assert "given_grade" in (tmp_path / name).read_text()
    header, first = (tmp_path / "sheet.csv").read_text(encoding="utf-8-sig").splitlines()[:2]
    assert dict(zip(header.split(","), first.split(","), strict=True)) == {
        "row_id": str(sheet.row_ids[0]),
        "query_id": str(sheet.query_ids[0]),
        "doc_id": sheet.doc_ids[0],
        "given_grade": str(sheet.given_grades[0]),
        "true_grade": "",
    }


@pytest.mark.parametrize("name", ["sheet.csv", "sheet.txt"])
def test_shares_of_a_doubt_sheet_travel_with_it(tmp_path, data, name):
    sheet = sample_gold(data, 40, "doubt", doubt=np.arange(120.0))
    write_sheet(sheet, tmp_path / name, data=data)
    fill_in(tmp_path / name, data)
    assert read_sheet(tmp_path / name, data).shares == pytest.approx(sheet.shares, abs=1e-8)


def test_letor_sheets_keep_the_features(tmp_path, data):
    sheet = sample_gold(data, 20)
    write_sheet(sheet, tmp_path / "sheet.txt", data=data)
    line = (tmp_path / "sheet.txt").read_text().splitlines()[0]
    values = [np.float32(cell.split(":")[1]) for cell in line.split("#")[0].split()[2:]]
    assert values == data.X[sheet.rows[0]].tolist()


def test_spreadsheets_may_write_semicolons_marks_and_decimals(tmp_path, data):
    rows = data.row_ids[:6]
    lines = [
        "row_id;note;true_grade",
        *(f"{row};it's fine;{g}.0" for row, g in zip(rows, data.y, strict=False)),
    ]
    (tmp_path / "sheet.csv").write_text("\ufeff" + "\r\n".join(lines) + "\r\n\r\n", encoding="utf-8")
    found = read_sheet(tmp_path / "sheet.csv", data)
    assert found.row_ids.tolist() == rows.tolist()
    assert found.true_grades.tolist() == data.y[:6].tolist()


def read_text(tmp_path, data, text, **options):
    (tmp_path / "sheet.csv").write_text(text)
    return read_sheet(tmp_path / "sheet.csv", data, **options)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("row_id,true_grade\n1,0\n999,1\n", 3, "row_id must be a row of the data"),
        ("row_id,true_grade\none,0\n", 2, "got 'one'"),
        ("row_id,true_grade\n1,0\n2,3\n", 3, "grade from 0 to 2; got '3'"),
        ("row_id,true_grade\n1,0\n2,good\n", 3, "got 'good'"),
        ("row_id,true_grade\n1,-1\n", 2, "got '-1'"),
        ("row_id,true_grade\n1,0\n2,1\n1,2\n", 4, "line 2 says 0; got 2"),
        ("row_id,true_grade\n1,0\n2,\n3,?\n", 3, "2 are empty"),
        ("row_id,query_id,true_grade\n1,nowhere,0\n", 2, "the query of row 1"),
        ("row_id,stratum_share,true_grade\n1,0,0\n", 2, "stratum_share"),
        ("row_id,mark\n1,0\n", 1, "column true_grade"),
        ("query_id,true_grade\n11,0\n", 1, "row_id, or query_id and doc_id"),
        ("row_id,true_grade\n", 1, "at least one answer"),
        ("", 1, "line of headings"),
    ],
)
def test_wrong_sheets_are_named_with_their_line(tmp_path, data, text, line, words):
    with pytest.raises(BadFileError) as caught:
        read_text(tmp_path, data, text)
    assert words in str(caught.value)
    assert caught.value.line == line
    assert not text or f"line {line}" in str(caught.value)


def test_all_that_is_wrong_is_named_at_once(tmp_path, data):
    bad = "row_id,true_grade\n" + "".join(f"{row},9\n" for row in range(15))
    with pytest.raises(BadFileError, match=r"(?s)line 2.*line 11: .*and 5 more"):
        read_text(tmp_path, data, bad)


def test_a_letor_sheet_without_row_ids_is_refused(tmp_path, data):
    (tmp_path / "s.txt").write_text("1 qid:11 1:2 # row_id = 1\n2 qid:11 1:2\n")
    with pytest.raises(BadFileError, match="line 2"):
        read_sheet(tmp_path / "s.txt", data)


def test_unanswered_rows_may_be_left_out_and_the_same_answer_twice_counts_once(tmp_path, data):
    text = "row_id,true_grade\n1,0\n2,\n1,0\n3,2\n"
    found = read_text(tmp_path, data, text, allow_unanswered=True)
    assert found.row_ids.tolist() == [1, 3]
    assert found.true_grades.tolist() == [0, 2]
    assert found.unanswered == (3,)


def test_a_longer_scale_is_an_argument(tmp_path, data):
    found = read_text(tmp_path, data, "row_id,true_grade\n1,4\n", n_grades=5)
    assert found.true_grades.tolist() == [4]
    assert found.estimate(data, n_grades=5).n_grades == 5


def test_writing_refuses_unknown_forms(tmp_path, data):
    sheet = sample_gold(data, 10)
    with pytest.raises(UnknownNameError, match="letor"):
        write_sheet(sheet, tmp_path / "a", form="leter")
    with pytest.raises(InvalidInputError, match="data must be given"):
        write_sheet(sheet, tmp_path / "a.txt")
    assert list(tmp_path.iterdir()) == []


def test_noise_is_found_through_the_file(tmp_path):
    clean = cr.make_ranking(60, 3, docs_per_query=50, grades=[0.6, 0.3, 0.1], seed=5)
    noisy = uniform(0.3, 3).apply(clean, 1).data
    write_sheet(sample_gold(noisy, 600), tmp_path / "sheet.csv")
    fill_in(tmp_path / "sheet.csv", clean)
    found = read_sheet(tmp_path / "sheet.csv", noisy).estimate(noisy)
    assert found.matrix == pytest.approx(uniform(0.3, 3).matrix, abs=0.15)
    assert found.rate == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize("name", ["sheet.csv", "sheet.tsv", "sheet.xlsx"])
def test_a_judge_sees_what_to_judge_and_formulas_stay_texts(tmp_path, data, name):
    titles = np.array([f"dé {i}" for i in range(120)], dtype=object)
    titles[5] = "=HYPERLINK(1)"
    data = replace(data, extra={"title": titles, "true_grade": titles})
    sheet = sample_gold(data, 100)
    write_sheet(sheet, tmp_path / name, data=data)
    frame = read_frame(tmp_path / name)
    assert list(frame.columns) == ["row_id", "query_id", "doc_id", "title", "true_grade"]
    assert frame["title"].tolist() == titles[sheet.rows].tolist()
    assert frame["true_grade"].isna().all()
    if name != "sheet.xlsx":
        raw = (tmp_path / name).read_bytes()
        assert raw.startswith(b"\xef\xbb\xbf")
        assert b"\t=HYPER" not in raw.replace(b",", b"\t")
    write_frame(frame.assign(true_grade=sheet.given_grades), tmp_path / name)
    assert read_sheet(tmp_path / name, data).row_ids.tolist() == sheet.row_ids.tolist()
