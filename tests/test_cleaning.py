import json
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError, InvalidInputError
from cleanrank.issues.posterior import posterior_table
from cleanrank.issues.table import LabelIssues
from tests.oracles import same_data


@pytest.fixture
def issues(toy):
    rng = np.random.default_rng(0)
    doubt = rng.random(toy.n_docs)
    first = toy.indptr[1]
    doubt[:first] = 1.0  # the first query loses all its documents
    return LabelIssues.of(
        toy,
        doubt=doubt,
        is_label_issue=doubt > 0.8,
        suggested_label=np.where(doubt > 0.8, (toy.y + 1) % 3, toy.y),
        reasons={"sour": doubt},
    )


def test_drop_leaves_the_others_as_they_are_and_names_emptied_queries(toy, issues):
    found = cr.clean(toy, issues, by="ada")
    assert same_data(found.data, toy.drop(issues.is_label_issue))
    assert found.emptied == (toy.query_ids[0],)
    assert found.data.n_queries == toy.n_queries - 1
    assert found.removed.row_id.tolist() == toy.row_ids[issues.is_label_issue].tolist()
    assert set(found.removed.by) == {"ada"}
    assert found.removed.why.str.startswith("sour ").all()
    assert found.removed.new_label.isna().all()
    changes = found.to_json()["changes"]
    assert [each["row_id"] for each in changes] == found.removed.row_id.tolist()
    assert {each["by"] for each in changes} == {"ada"}


def test_relabel_takes_the_suggested_grades(toy, issues):
    found = cr.clean(toy, issues, mode="relabel")
    np.testing.assert_array_equal(found.data.y, issues.suggested_label)
    assert (found.removed.new_label != found.removed.given_label).all()
    assert found.emptied == ()
    assert len(found.removed) == issues.n_issues


def test_reweight_multiplies_by_the_quality_of_issues_alone(toy, issues):
    found = cr.clean(toy, issues, mode="reweight")
    wanted = np.where(issues.is_label_issue, 1 - issues.doubt, 1.0)
    np.testing.assert_allclose(found.data.weights, wanted, rtol=1e-6)
    halved = cr.clean(found.data, issues, mode="reweight", weight=0.5)
    np.testing.assert_allclose(
        halved.data.weights, wanted * np.where(issues.is_label_issue, 0.5, 1), rtol=1e-6
    )
    np.testing.assert_allclose(halved.removed.old_weight, wanted[issues.is_label_issue], rtol=1e-6)


@pytest.mark.parametrize("mode", ["drop", "relabel", "reweight"])
def test_everything_can_be_undone_and_the_input_is_untouched(toy, issues, mode):
    before = toy.y.copy()
    found = cr.clean(toy, issues, mode=mode)
    assert found.undo() is toy
    np.testing.assert_array_equal(toy.y, before)
    rows = found.removed.row_id.tolist()[:7]
    part = found.undo(rows)
    assert set(part.removed.row_id) == set(found.removed.row_id) - set(rows)
    kept = np.isin(part.data.row_ids, rows)
    assert kept.sum() == 7
    original = np.isin(toy.row_ids, rows)
    np.testing.assert_array_equal(part.data.y[kept], toy.y[original])
    with pytest.raises(CleanrankError, match="must be ids of changed rows"):
        part.undo(rows)


def test_rows_are_matched_by_id_not_by_place(toy, issues):
    shuffled = issues.select(np.random.default_rng(1).permutation(len(issues)))
    assert same_data(cr.clean(toy, shuffled).data, cr.clean(toy, issues).data)


def test_a_bar_of_doubt_stands_in_for_the_issues(toy, issues):
    found = cr.clean(toy, issues, min_doubt=0.95)
    np.testing.assert_array_equal(found.acted, issues.doubt >= 0.95)
    assert found.summary()["options"] == {"min_doubt": 0.95}


@pytest.mark.parametrize("suffix", ["json", "csv", "parquet"])
def test_the_audit_trail_is_written(toy, issues, tmp_path, suffix):
    found = cr.clean(toy, issues)
    path = tmp_path / f"audit.{suffix}"
    found.save_audit(path)
    if suffix == "json":
        record = json.loads(path.read_text())
        rows = pd.DataFrame(record["changes"])
        assert record["changed"] == issues.n_issues
        assert record["emptied_queries"] == [str(toy.query_ids[0])]
        assert sum(line["changed"] for line in record["by_grade"].values()) == issues.n_issues
    else:
        rows = pd.read_csv(path) if suffix == "csv" else pd.read_parquet(path)
    assert rows.row_id.tolist() == found.removed.row_id.tolist()
    assert {"action", "why", "by", "at", "doubt", "given_label"} <= set(rows.columns)


def test_nothing_to_do_changes_nothing(toy):
    none = LabelIssues.of(toy, doubt=np.zeros(480), is_label_issue=np.zeros(480, bool))
    for mode in ("drop", "relabel"):
        assert same_data(cr.clean(toy, none, mode=mode).data, toy)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "dorp"}, "Did you mean 'drop'"),
        ({"min_doubt": 0.0}, "min_doubt must be a number > 0 and <= 1"),
        ({"weight": 0.5}, "needs mode='reweight'"),
    ],
)
def test_mistakes_are_named(toy, issues, options, message):
    with pytest.raises(CleanrankError, match=message):
        cr.clean(toy, issues, **options)


def test_all_rows_cannot_go(toy):
    everybody = LabelIssues.of(toy, doubt=np.ones(480), is_label_issue=np.ones(480, bool))
    with pytest.raises(CleanrankError, match="must leave at least one document"):
        cr.clean(toy, everybody)


@pytest.fixture
def probable(toy):
    p = np.zeros((toy.n_docs, 3))
    p[np.arange(toy.n_docs), toy.y] = 0.75
    p[np.arange(toy.n_docs), (toy.y + 1) % 3] += 0.25
    return posterior_table(toy, p)


def test_posterior_gives_expected_gains_and_leaves_grades_and_weights(toy, probable):
    found = cr.clean(toy, probable, mode="posterior")
    gains = [0, 1, 3]
    wanted = [0.75 * gains[g] + 0.25 * gains[(g + 1) % 3] for g in toy.y]
    assert found.data.gains == pytest.approx(wanted)
    assert found.data.y.tolist() == toy.y.tolist()
    assert found.data.weights is toy.weights or found.data.weights.tolist() == toy.weights.tolist()
    assert found.removed["new_gain"].tolist() == pytest.approx(wanted)
    assert found.removed["old_gain"].tolist() == [gains[g] for g in toy.y]


def test_posterior_respects_other_gains(toy, probable):
    found = cr.clean(toy, probable, mode="posterior", label_gain=[0, 10, 20])
    wanted = [0.75 * 10 * g + 0.25 * 10 * ((g + 1) % 3) for g in toy.y]
    assert found.data.gains == pytest.approx(wanted)
    with pytest.raises(cr.CleanrankError, match="label_gain must list"):
        cr.clean(toy, probable, mode="posterior", label_gain=[0, 1])
    with pytest.raises(cr.CleanrankError, match="goes with mode='posterior'"):
        cr.clean(toy, probable, label_gain=[0, 1, 2])


def test_posterior_can_be_undone_row_by_row(toy, probable):
    found = cr.clean(toy, probable, mode="posterior")
    first = int(toy.row_ids[0])
    partly = found.undo([first])
    assert partly.data.gains[0] == 2.0 ** toy.y[0] - 1
    assert partly.data.gains[1:].tolist() == found.data.gains[1:].tolist()
    assert found.undo() is toy


def test_posterior_needs_probabilities_and_plain_grades(toy, issues, probable):
    with pytest.raises(cr.CleanrankError, match="the detector 'auto' or 'posterior'"):
        cr.clean(toy, issues, mode="posterior")
    once = cr.clean(toy, probable, mode="posterior").data
    with pytest.raises(cr.CleanrankError, match="must have grades only"):
        cr.clean(once, probable, mode="posterior")


def test_dropped_rows_have_neither_grade_nor_weight_left(toy, issues):
    removed = cr.clean(toy, issues).removed
    assert removed.new_label.isna().all()
    assert removed.new_weight.isna().all()
    assert (removed.old_weight == 1).all()


def test_one_row_or_none_may_be_taken_back(toy, issues):
    found = cr.clean(toy, issues)
    row = int(found.removed.row_id[0])
    assert row in found.undo(row).data.row_ids
    assert same_data(found.undo([]).data, found.data)
    with pytest.raises(CleanrankError, match="must be ids of changed rows; got 99999"):
        found.undo(99999)


def test_a_table_of_other_data_changes_nothing(toy, issues):
    with pytest.raises(CleanrankError, match="must have a row for every row of data"):
        cr.clean(toy, issues.select(np.arange(5)))
    other = cr.make_ranking(5, 3, docs_per_query=10, seed=9)
    with pytest.raises(CleanrankError, match=r"must be the grade in data|must have a row for every row"):
        cr.clean(other, issues)


KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}


def own_columns(kind, data):
    """Columns of a caller's frame, in an order that is not that of the queries."""
    rows = np.random.default_rng(5).permutation(data.n_docs)
    columns = {
        "url": [f"http://x/{row}" for row in rows],
        "grade": data.y[rows].astype(np.int8),
        "query": [f"q{i}" for i in data.qid[rows]],
        **{f"f{j}": data.X[rows, j] for j in range(data.n_features)},
        "title": [f"title {row}" for row in rows],
    }
    frame = KINDS[kind](columns)
    if kind == "pandas":
        frame.index = [f"row {row}" for row in rows]
    return frame, columns


def as_pandas(frame):
    return frame if isinstance(frame, pd.DataFrame) else frame.to_pandas()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["drop", "relabel", "reweight", "posterior"])
def test_a_frame_comes_back_as_the_frame_it_was(kind, mode):
    clean_data = cr.make_ranking(60, 6, docs_per_query=12, signal=0.95, seed=2)
    frame, columns = own_columns(kind, cr.corrupt(clean_data, rate=0.2, seed=3).data)
    issues = cr.find_label_issues(frame, label="grade", qid="query", noise="uniform:0.2")
    cleaned = cr.clean(frame, issues, mode, label="grade", qid="query")
    back, before = cleaned.frame, as_pandas(frame)
    assert type(back) is type(frame)
    after = as_pandas(back)
    table = issues.to_frame()
    acted = np.zeros(len(before), dtype=bool)
    acted[cleaned.before.row_ids[cleaned.acted]] = True
    assert acted.any()
    kept = before[~acted] if mode == "drop" else before
    assert after.index.tolist() == (kept.index.tolist() if kind == "pandas" else list(range(len(kept))))
    for name in columns:
        if name != "grade" or mode != "relabel":
            assert after[name].tolist() == kept[name].tolist(), name
        assert after[name].dtype == before[name].dtype, name
    by_row = table.set_index("row_id") if kind == "pandas" else table
    if mode == "relabel":
        suggested = by_row["suggested_label"].loc[range(len(before))].to_numpy()
        assert after["grade"].tolist() == np.where(acted, suggested, before["grade"]).tolist()
    if mode == "reweight":
        quality = by_row["label_quality"].loc[range(len(before))].to_numpy(np.float32)
        np.testing.assert_array_equal(after["weight"], np.where(acted, quality, 1))
    if mode == "posterior":
        np.testing.assert_array_equal(after["gain"].to_numpy()[cleaned.data.row_ids], cleaned.data.gains)
    assert as_pandas(frame).equals(before)


def test_issues_of_a_frame_have_its_index_its_documents_and_sentences():
    clean_data = cr.make_ranking(60, 6, docs_per_query=12, signal=0.95, seed=2)
    data = cr.corrupt(clean_data, rate=0.2, seed=3).data
    frame, _ = own_columns("pandas", data)
    frame = frame.rename(columns={"url": "doc_id"})
    issues = cr.find_label_issues(frame, label="grade", qid="query", noise="uniform:0.2")
    table = issues.to_frame(why=True)
    joined = frame.join(table.rename(columns={"doc_id": "document"}))
    assert (joined["doc_id"] == joined["document"]).all()
    assert (joined["grade"] == joined["given_label"]).all()
    assert (joined["query"] == joined["query_id"]).all()
    assert (table.loc[table.is_label_issue, "why"].str.startswith("graded")).all()
    assert (table.loc[~table.is_label_issue, "why"] == "").all()
    worst = issues.worst(3)
    assert worst.to_frame().index.tolist() == frame.index[worst.row_id].tolist()
    assert issues.explain(n=1)[0].why == table.loc[worst.to_frame().index[0], "why"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_corrupted_frame_is_the_frame_with_other_grades(kind):
    frame, columns = own_columns(kind, cr.make_ranking(10, 3, seed=2))
    noisy = cr.corrupt(frame, "uniform:0.3", label="grade", qid="query", seed=1)
    back = as_pandas(noisy.frame)
    changed = noisy.changed[np.argsort(noisy.data.row_ids)]
    assert ((back["grade"].to_numpy() != columns["grade"]) == changed).all()
    assert changed.any()
    assert back["title"].tolist() == columns["title"]


def test_a_frame_is_there_only_where_one_was_passed():
    data = cr.make_ranking(10, 3, seed=2)
    with pytest.raises(InvalidInputError, match="frame is there for results that were made from a frame"):
        _ = cr.corrupt(data, rate=0.2).frame
    frame, _ = own_columns("pandas", data)
    issues = LabelIssues.of(data, doubt=np.zeros(data.n_docs), is_label_issue=np.zeros(data.n_docs, bool))
    weighted = frame.assign(weight=1.0)
    cleaned = cr.clean(weighted, mode="reweight", label="grade", qid="query")
    with pytest.raises(InvalidInputError, match="must not have the column that is to be added; got 'weight'"):
        _ = cleaned.frame
    with pytest.raises(InvalidInputError, match=r"data come first, as in cr\.clean\(data, issues\)"):
        cr.clean(issues, data)
    with pytest.raises(InvalidInputError, match="issues must be a LabelIssues; got DataFrame"):
        cr.clean(data, frame)


def test_cleaning_without_issues_finds_them():
    data = cr.corrupt(cr.make_ranking(30, 5, seed=2), rate=0.2, seed=3).data
    assert cr.clean(data).acted.tolist() == cr.find_label_issues(data).is_label_issue.tolist()


def test_a_suggested_grade_beyond_the_scale_is_refused_by_row():
    data = cr.from_arrays(np.zeros((4, 1)), [0, 1, 2, 0], qid=["a", "a", "b", "b"])
    typed = LabelIssues.of(
        data, doubt=[0, 0, 0, 0.9], is_label_issue=[False, False, False, True], suggested_label=[0, 1, 2, 99]
    )
    with pytest.raises(InvalidInputError, match=r"grade from 0 to 2; got 99 at row 3 \(query 'b'\)"):
        cr.clean(data, typed, "relabel")
    higher = replace(typed, suggested_label=np.array([0, 1, 2, 4]))
    with pytest.raises(InvalidInputError, match="n_grades if the scale is longer"):
        cr.clean(data, higher, "relabel")
    assert cr.clean(data, higher, "relabel", n_grades=5).data.y.tolist() == [0, 1, 2, 4]
    assert cr.clean(data, typed, "drop").data.n_docs == 3


@pytest.fixture
def half_doubted(toy):
    """Every other row is likelier to have another grade."""
    p = np.zeros((toy.n_docs, 3))
    kept = np.where(np.arange(toy.n_docs) % 2, 0.25, 0.75)
    p[np.arange(toy.n_docs), toy.y], p[np.arange(toy.n_docs), (toy.y + 1) % 3] = kept, 1 - kept
    return posterior_table(toy, p)


def test_doubt_at_the_bar_is_acted_on(toy):
    doubt = np.where(np.arange(toy.n_docs) < 5, 0.5, 0.25)
    tied = LabelIssues.of(toy, doubt=doubt, is_label_issue=np.zeros(toy.n_docs, bool))
    assert cr.clean(toy, tied, min_doubt=0.5).acted.sum() == 5


def test_a_grade_that_stays_is_not_relabelled(toy):
    everybody = np.ones(toy.n_docs, bool)
    suggested = np.where(np.arange(toy.n_docs) < 7, (toy.y + 1) % 3, toy.y)
    table = LabelIssues.of(
        toy, doubt=np.ones(toy.n_docs), is_label_issue=everybody, suggested_label=suggested
    )
    found = cr.clean(toy, table, "relabel")
    assert found.acted.sum() == len(found.removed) == found.summary()["changed"] == 7


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("reweight", {"weight": 0.25}),
        ("reweight", {"min_doubt": 0.5}),
        ("posterior", {"label_gain": [0, 1, 5]}),
    ],
)
def test_taking_rows_back_keeps_the_options(toy, half_doubted, mode, options):
    whole = cr.clean(toy, half_doubted, mode, **options)
    back = whole.removed.row_id.to_numpy()[:3]
    left = whole.undo(back)
    assert dict(left.options) == dict(whole.options) != {}
    rest = ~np.isin(toy.row_ids, back)
    column = "weights" if mode == "reweight" else "gains"
    np.testing.assert_array_equal(getattr(left.data, column)[rest], getattr(whole.data, column)[rest])
    assert (getattr(left.data, column)[~rest] != getattr(whole.data, column)[~rest]).all()


def test_a_bar_of_doubt_leaves_the_gains_of_others(toy, half_doubted):
    found = cr.clean(toy, half_doubted, "posterior", min_doubt=0.5)
    others = half_doubted.doubt < 0.5
    assert 0 < others.sum() < toy.n_docs
    np.testing.assert_array_equal(found.data.gains[others], 2.0 ** toy.y[others] - 1)


def test_a_query_with_one_document_left_is_not_emptied(toy):
    dropped = np.arange(toy.n_docs) < toy.indptr[1] - 1
    table = LabelIssues.of(toy, doubt=dropped.astype(float), is_label_issue=dropped)
    found = cr.clean(toy, table)
    assert found.emptied == ()
    assert found.data.n_queries == toy.n_queries


def test_a_query_that_loses_its_only_document_is_emptied():
    data = cr.from_arrays(np.ones((3, 1)), [0, 1, 1], qid=["a", "b", "b"])
    table = LabelIssues.of(data, doubt=[1.0, 0.0, 0.0], is_label_issue=[True, False, False])
    assert cr.clean(data, table).emptied == ("a",)


def test_the_summary_counts_documents_and_changes_of_every_grade(toy, issues):
    found = cr.clean(toy, issues).summary()["by_grade"]
    changed = [int((issues.is_label_issue & (toy.y == grade)).sum()) for grade in range(3)]
    documents = np.bincount(toy.y).tolist()
    assert [each["documents"] for each in found.values()] == documents
    assert [each["changed"] for each in found.values()] == changed
    assert list(found) == ["0", "1", "2"]
