"""Projects from data and tables, and the batches of rows that matter."""

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.errors import BadFileError, InvalidInputError, UnknownNameError
from cleanrank.issues.table import LabelIssues
from cleanrank.labeling.answers import given_data
from cleanrank.labeling.projects import (
    add_evaluation_batch,
    add_gold_batch,
    add_label_batch,
    add_repair_batch,
    answered_rows,
    as_scale,
    kept_systems,
    make_project,
)
from cleanrank.labeling.records import Scale
from cleanrank.labeling.session import Session
from cleanrank.labeling.store import open_project

TABLE = {
    "query_id": ["1", "1", "1", "2", "2"],
    "doc_id": ["a", "b", "c", "a", "d"],
    "query": ["fruit", "fruit", "fruit", "cars", "cars"],
    "title": ["Apple", "", "Pear", "Apple", "Saab"],
    "label": [2, None, 0, 0, 1],
}


def interleaved():
    """Six rows of two queries that are not contiguous in the input."""
    return cr.from_arrays(
        np.arange(12.0).reshape(6, 2),
        [0, 1, 2, 0, 1, 0],
        qid=[7, 8, 7, 8, 7, 8],
        doc_ids=list("abcdef"),
        feature_names=("bm25", "age"),
        extra={"query": ["x", "y"] * 3, "title": [f"t{i}" for i in range(6)]},
    )


@pytest.fixture
def project(tmp_path):
    with make_project(tmp_path / "p.sqlite", interleaved(), name="demo") as made:
        yield made


@pytest.fixture
def table_project(tmp_path):
    with make_project(tmp_path / "t.sqlite", TABLE, name="texts") as made:
        yield made


@pytest.fixture
def toy_project(tmp_path, toy):
    with make_project(tmp_path / "toy.sqlite", toy, name="toy") as made:
        yield made


def answer_all(project, batch, grade_of, annotator="ann"):
    session = Session(project, batch.id, annotator)
    while (asked := session.asked()) is not None:
        value = grade_of(asked.documents[0].row)
        session.answer(
            value,
            unit=asked.unit.position,
            question=asked.question.key,
            request=f"{batch.id} {asked.unit.position} {asked.question.key}",
        )


def test_documents_keep_row_ids_labels_texts_and_features(project):
    document = project.document(2)
    assert (document.query_id, document.doc_id, document.row_id, document.given_label) == ("7", "c", 2, 2)
    assert document.fields == {"title": "t2"}
    assert document.features.tolist() == [4.0, 5.0]
    assert project.feature_names == ("bm25", "age")
    assert [project.query_text(query) for query in project.query_ids()] == ["x", "y"]
    assert [each.row for each in project.documents_of("7")] == [0, 2, 4]
    assert project.scale == Scale(("not relevant", "partially relevant", "relevant"))


def test_the_data_come_back_as_they_went_in(project):
    data, back = interleaved(), given_data(project)
    np.testing.assert_array_equal(back.row_ids, data.row_ids)
    np.testing.assert_array_equal(back.y, data.y)
    np.testing.assert_array_equal(back.X, data.X)
    assert back.doc_ids.tolist() == data.doc_ids.tolist()
    assert back.query_ids.tolist() == ["7", "8"]


def test_sparse_features_categories_and_rows_that_nobody_judged(tmp_path):
    frame = pd.DataFrame(
        {"label": [0, 1], "qid": [1, 1], "x": [0.5, 0.0], "shop": pd.Categorical(["b", "a"])}
    )
    with make_project(tmp_path / "a.sqlite", cr.from_frame(frame), name="a") as project:
        assert [project.document(row).fields for row in (0, 1)] == [{"shop": "b"}, {"shop": "a"}]
    import scipy.sparse

    sparse = cr.from_arrays(scipy.sparse.csr_matrix([[0.0, 2.0], [1.0, 0.0]]), [0, 1], qid=[1, 1])
    with make_project(tmp_path / "b.sqlite", sparse, name="b") as project:
        assert project.document(0).features.tolist() == [0.0, 2.0]
        assert project.feature_names == ("feature 1", "feature 2")
        assert project.document(1).doc_id == "1"
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("1 0 a 1\n1 0 b -1\n")
    with make_project(tmp_path / "c.sqlite", cr.read_qrels(qrels), name="c") as project:
        assert {d.doc_id: d.given_label for d in project.documents_of("1")} == {"a": 1, "b": None}


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl", ".xlsx", "frame"])
def test_tables_of_texts_need_neither_all_labels_nor_features(tmp_path, suffix):
    frame = pd.DataFrame(TABLE)
    source = frame if suffix == "frame" else tmp_path / f"texts{suffix}"
    if suffix == ".jsonl":
        frame.to_json(source, orient="records", lines=True)
    elif suffix != "frame":
        from cleanrank.data.spreadsheet import write_frame

        write_frame(frame, source) if suffix != ".parquet" else frame.to_parquet(source)
    with make_project(tmp_path / "p.sqlite", source, name="texts") as project:
        assert project.query_text("1") == "fruit"
        documents = project.documents_of("1")
        assert [d.doc_id for d in documents] == ["a", "b", "c"]
        assert [d.given_label for d in documents] == [2, None, 0]
        assert [dict(d.fields) for d in documents] == [{"title": "Apple"}, {}, {"title": "Pear"}]
        assert given_data(project).y.tolist() == [2, 0, 0, 1]


def test_texts_may_be_given_beside_data(tmp_path):
    options = {"queries": {7: "other"}, "fields": {"text": list("uvwxyz")}}
    with make_project(tmp_path / "p.sqlite", interleaved(), name="p", **options) as project:
        assert project.query_text("7") == "other"
        # Fields follow the rows of the data, which were brought together by query.
        assert [d.fields["text"] for d in project.documents_of("7")] == ["u", "v", "w"]
    short = {"fields": {"text": ["u"]}}
    with pytest.raises(
        InvalidInputError, match=r"field 'text' must have a text for every row of the data \(6\)"
    ):
        make_project(tmp_path / "q.sqlite", interleaved(), name="p", **short)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"title": ["a"]}, "must have rows and a column of queries: query_id or query; got title"),
        ({"query_id": []}, "must have rows and a column of queries"),
        ({"query_id": ["1", ""]}, "a query must have an id; got nothing at row 1"),
        ({"query_id": ["1"], "label": ["good"]}, "a label must be a grade from 0; got 'good' at row 0"),
        (
            {"query_id": ["1", "1"], "query": ["x", "y"]},
            "query '1' must have one text, 'x'; got 'y' at row 1",
        ),
        (7, "data must be a RankingData or a table with a column of queries; got a int"),
    ],
)
def test_tables_that_cannot_be_judged_are_refused(tmp_path, table, words):
    with pytest.raises(InvalidInputError, match=words):
        make_project(tmp_path / "p.sqlite", table, name="p")
    assert not (tmp_path / "p.sqlite").exists()


def test_lines_that_are_no_json_are_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"query": "a"}\n{\n')
    with pytest.raises(
        BadFileError, match=r"a line of JSON lines must be an object; got '\{' at .*a.jsonl, line 2"
    ):
        make_project(tmp_path / "p.sqlite", tmp_path / "a.jsonl", name="p")


def test_a_score_is_no_label(tmp_path):
    table = {"query": ["a"], "score": [3.5]}
    with make_project(tmp_path / "p.sqlite", table, name="p") as project:
        assert project.document(0).given_label is None
        assert project.document(0).fields == {"score": "3.5"}


def test_scales(tmp_path):
    assert as_scale(None, 0).n_grades == 3
    assert as_scale(None, 1).n_grades == 2
    assert as_scale(5, 3).descriptions == ("bad", "fair", "good", "excellent", "perfect")
    assert as_scale([" no ", "yes"]) == Scale(("no", "yes"))
    for scale, words in [
        (1, "scale must be an integer >= 2"),
        (["one"], "descriptions of at least two grades"),
        ("ab", "descriptions of at least two grades"),
        (["no", " "], "descriptions of at least two grades"),
        (["no", "yes"], "must have the grades of the labels, 0 to 2; got 2 grades"),
        (2, "must have the grades of the labels, 0 to 2; got 2 grades"),
    ]:
        with pytest.raises(InvalidInputError, match=words):
            make_project(tmp_path / "p.sqlite", interleaved(), name="p", scale=scale)


def test_labels_are_asked_query_by_query(table_project):
    batch = add_label_batch(table_project)
    assert (batch.kind, batch.purpose, batch.blind, batch.settings) == ("grade", "label", True, {})
    assert [unit.rows for unit in table_project.units(batch.id)] == [(0, 1, 2), (3, 4)]
    some = add_label_batch(table_project, queries=["2"], name="cars", annotators_per_unit=2)
    assert (some.name, some.annotators_per_unit) == ("cars", 2)
    assert [unit.rows for unit in table_project.units(some.id)] == [(3, 4)]


@pytest.mark.parametrize(
    ("kind", "settings"),
    [("pairs", {"ties": False}), ("top-k", {"k": 2, "transitive": True}), ("active", {"k": 1})],
)
def test_comparisons_keep_their_settings(table_project, kind, settings):
    batch = add_label_batch(table_project, kind=kind, **settings)
    assert (batch.kind, batch.settings) == (kind, settings)
    assert Session(table_project, batch.id, "ann").asked().question.key in ("0,1", "1,0")


def test_queries_of_one_document_are_not_compared(tmp_path):
    with make_project(tmp_path / "p.sqlite", {"query": ["a", "b", "b"]}, name="p") as project:
        batch = add_label_batch(project, kind="pairs")
        assert [unit.rows for unit in project.units(batch.id)] == [(1, 2)]
        with pytest.raises(InvalidInputError, match="at least two documents to be compared"):
            add_label_batch(project, kind="pairs", queries=["a"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "guess"}, "unknown task 'guess'"),
        ({"k": 3}, "unknown setting of the task 'grade' 'k'"),
        ({"kind": "top-k", "k": 0}, "k must be an integer >= 1"),
        ({"queries": ["9"]}, "must be queries of the project; got '9'"),
        ({"kind": "pairs", "gold": {0: 1}}, "gold goes with grades"),
        ({"gold": {99: 1}}, "99"),
        ({"gold": {}}, "must hold at least one known grade"),
    ],
)
def test_batches_that_cannot_be_asked_are_refused(table_project, options, words):
    with pytest.raises((InvalidInputError, UnknownNameError), match=words):
        add_label_batch(table_project, **options)
    assert table_project.batches() == ()


def test_gold_questions_are_mixed_in_and_left_out_of_the_rest(table_project):
    gold = {"query": ["1", "2"], "doc": ["c", "d"], "true_grade": [0, 2]}
    batch = add_label_batch(table_project, gold=gold)
    units = table_project.units(batch.id)
    assert [unit.rows for unit in units] == [(0, 1), (3,), (2,), (4,)]
    assert [dict(unit.about) for unit in units[2:]] == [
        {"is_gold": True, "true_grade": 0},
        {"is_gold": True, "true_grade": 2},
    ]
    for annotator in ("ann", "bob"):
        answer_all(table_project, batch, lambda row: 1, annotator)
    said = table_project.events(batch.id)
    # Everybody answers what is known; the other three documents are answered once.
    assert sorted(e.unit for e in said) == [0, 0, 1, 2, 2, 3, 3]


def test_gold_questions_of_data_with_features(project):
    batch = add_label_batch(project, gold={0: 2})
    assert [unit.rows for unit in project.units(batch.id)] == [(2, 4), (1, 3, 5), (0,)]


def test_documents_that_were_judged_may_be_left_out(table_project):
    answer_all(table_project, add_label_batch(table_project, queries=["1"]), lambda row: 1)
    rest = add_label_batch(table_project, again=False)
    assert [unit.rows for unit in table_project.units(rest.id)] == [(3, 4)]
    two = add_label_batch(table_project, again=False, annotators_per_unit=2)
    assert [unit.rows for unit in table_project.units(two.id)] == [(0, 1, 2), (3, 4)]
    pairs = add_label_batch(table_project, kind="pairs", again=False)
    assert [unit.rows for unit in table_project.units(pairs.id)] == [(0, 1, 2), (3, 4)]
    with pytest.raises(InvalidInputError, match="documents must be left to judge; got all were judged"):
        add_label_batch(table_project, queries=["1"], again=False)


def test_a_gold_sample_is_blind_and_goes_on_with_other_rows(toy_project, toy):
    batch = add_gold_batch(toy_project, 60, seed=3)
    assert (batch.kind, batch.purpose, batch.blind) == ("grade", "gold", True)
    rows = [unit.rows[0] for unit in toy_project.units(batch.id)]
    expected = cr.sample_gold(toy, 60, seed=3).row_ids
    assert sorted(rows) == sorted(expected.tolist())
    given = dict(zip(toy.row_ids.tolist(), toy.y.tolist(), strict=True))
    assert np.bincount([given[row] for row in rows]).tolist() == [20, 20, 20]
    again = add_gold_batch(toy_project, 30, seed=3)
    assert not {unit.rows[0] for unit in toy_project.units(again.id)} & set(rows)
    with pytest.raises(InvalidInputError, match="n must lie between"):
        add_gold_batch(toy_project, 480)
    add_gold_batch(toy_project, 390)
    with pytest.raises(InvalidInputError, match="rows must be left to draw; got all were drawn"):
        add_gold_batch(toy_project, 3)


def test_rows_that_were_judged_are_drawn_but_not_asked_again(project):
    first = add_label_batch(project, queries=["7"])
    answer_all(project, first, lambda row: 1)
    assert answered_rows(project) == dict.fromkeys((0, 2, 4), first.id)
    batch = add_gold_batch(project, 6)
    units = {unit.rows[0]: dict(unit.about) for unit in project.units(batch.id)}
    assert units == {row: {"answered_in": first.id} if row in (0, 2, 4) else {} for row in range(6)}
    asked = []
    answer_all(project, batch, lambda row: asked.append(row) or 0)
    assert sorted(asked) == [1, 3, 5]


def test_documents_for_evaluation_keep_their_probabilities(toy_project, toy):
    scores = {"one": toy.X[:, 0], "other": toy.X[:, 1]}
    batch = add_evaluation_batch(toy_project, scores, 25, measure="dcg@5", seed=2)
    assert (batch.kind, batch.purpose, batch.blind) == ("grade", "evaluation", True)
    units = toy_project.units(batch.id)
    data = given_data(toy_project)
    runs = {
        name: {
            str(q): {str(data.doc_ids[i]): float(column[i]) for i in np.flatnonzero(data.qid == q)}
            for q in data.query_ids
        }
        for name, column in scores.items()
    }
    sample = cr.sample_for_evaluation(runs, data, 25, measure="dcg@5", seed=2).frame.sort_values("draw")
    assert [str(unit.rows[0]) for unit in units] == sample["docid"].tolist()
    np.testing.assert_allclose([unit.about["probability"] for unit in units], sample["probability"])
    kept = kept_systems(toy_project, batch.id)
    assert (kept["measure"], kept["seed"], kept["compare"]) == ("dcg@5:trec", 2, None)
    assert kept["systems"]["one"] == runs["one"]
    assert kept_systems(toy_project, 99) is None
    with open_project(toy_project.path) as reopened:
        assert kept_systems(reopened, batch.id) == kept
    with pytest.raises(UnknownNameError, match="nobody"):
        add_evaluation_batch(toy_project, scores, 25, compare=["one", "nobody"])


def test_the_most_doubtful_labels_are_reviewed_first_and_once(toy_project, toy, tmp_path):
    doubt = np.linspace(0, 1, toy.n_docs)
    issues = LabelIssues.of(
        toy, doubt=doubt, is_label_issue=doubt > 0.9, suggested_label=np.zeros(toy.n_docs)
    )
    order = toy.row_ids[::-1].tolist()
    first = add_repair_batch(toy_project, 4, issues=issues, annotators_per_unit=2)
    assert (first.kind, first.purpose, first.blind, first.annotators_per_unit) == (
        "review",
        "repair",
        False,
        2,
    )
    units = toy_project.units(first.id)
    assert [unit.rows[0] for unit in units] == order[:4]
    assert [unit.about["doubt"] for unit in units] == doubt[::-1][:4].round(4).tolist()
    assert units[0].about["suggested_label"] == 0
    session = Session(toy_project, first.id, "ann")
    for value in ("drop", "unsure", 1):
        asked = session.asked()
        session.answer(
            value, unit=asked.unit.position, question="0", request=f"{value} {asked.unit.position}"
        )
    issues.save(tmp_path / "issues.csv", toy)
    second = add_repair_batch(toy_project, 3, issues=tmp_path / "issues.csv", blind=True)
    assert second.blind
    # Who was unsure has not judged the row.
    assert [unit.rows[0] for unit in toy_project.units(second.id)] == [order[1], *order[3:5]]


def test_labels_are_doubted_by_the_usual_detector(toy_project):
    answer_all(toy_project, add_repair_batch(toy_project, 40), lambda row: 1)
    sample = add_gold_batch(toy_project, 120)
    answer_all(toy_project, sample, lambda row: 0)
    judged = answered_rows(toy_project)
    batch = add_repair_batch(toy_project, 5, seed=1)
    gold = {unit.rows[0]: int("answered_in" in unit.about) for unit in toy_project.units(sample.id)}
    assert set(gold.values()) == {0, 1}  # the whole sample tells of the noise, with what was judged before it
    issues = cr.find_label_issues(given_data(toy_project), gold=gold, seed=1)
    rows = [unit.rows[0] for unit in toy_project.units(batch.id)]
    order = issues.row_id[np.lexsort((issues.row_id, -issues.doubt))]
    assert rows == [row for row in order.tolist() if row not in judged][:5]


def test_rows_without_labels_cannot_be_judged_again(tmp_path):
    with make_project(tmp_path / "p.sqlite", {"query": ["a"]}, name="p") as project:
        for add in (add_gold_batch, add_repair_batch):
            with pytest.raises(InvalidInputError, match="must have labels to be judged again"):
                add(project)
        with pytest.raises(InvalidInputError, match="must have labels to be judged again"):
            add_evaluation_batch(project, {"a": {"a": {"0": 1.0}}})


def test_nothing_is_left_to_review(project):
    answer_all(project, add_label_batch(project), lambda row: 1)
    data = given_data(project)
    issues = LabelIssues.of(data, doubt=np.zeros(6), is_label_issue=np.zeros(6, bool))
    with pytest.raises(InvalidInputError, match="rows must be left to review; got all were judged"):
        add_repair_batch(project, issues=issues)
