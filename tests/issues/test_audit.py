"""A made collection: relevant documents hold the words of their query and rank high; one query is misread."""

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.issues.audit import audit_of, sheet_to_judge
from cleanrank.issues.by_query import doubt_by_query
from cleanrank.issues.evidence import evidence_words, quote
from cleanrank.issues.table import LabelIssues
from cleanrank.noise.gold_sheet import read_sheet
from cleanrank.report.audit_tables import queries_table

QUERIES, DOCS, MISREAD = 24, 20, "q3"
TOPICS = ("apple", "river", "engine", "violin", "desert", "planet")


def collection(seed=0):
    rng = np.random.default_rng(seed)
    qrels, runs, texts, truth = {}, {"bm25": {}, "bert": {}}, [], {}
    for q in range(QUERIES):
        query = f"{TOPICS[q % 6]} story {q}"
        grades = rng.choice([0, 1, 2], size=DOCS, p=[0.6, 0.25, 0.15])
        docs = [f"d{q}-{d}" for d in range(DOCS)]
        for name in runs:
            scores = (grades + rng.normal(0, 0.7, DOCS)).tolist()
            runs[name][f"q{q}"] = dict(zip(docs, scores, strict=True))
        for doc, grade in zip(docs, grades, strict=True):
            words = ["filler"] * 10 + query.split()[: grade + 1] * grade
            texts.append({"query_id": f"q{q}", "doc_id": doc, "query": query, "text": " ".join(words)})
        truth[f"q{q}"] = dict(zip(docs, grades.tolist(), strict=True))
        given = rng.permutation(grades) if f"q{q}" == MISREAD else grades
        qrels[f"q{q}"] = dict(zip(docs, given.tolist(), strict=True))
    columns = {name: [text[name] for text in texts] for name in texts[0]}
    return qrels, runs, columns, truth


@pytest.fixture(scope="module")
def made():
    return collection()


@pytest.fixture(scope="module")
def issues(made):
    qrels, runs, texts, truth = made
    judge = {"q3": truth["q3"], "q4": truth["q4"]}
    return cr.find_label_issues(qrels=qrels, runs=runs, texts=texts, judges={"llm": judge}, repeats=2)


@pytest.fixture(scope="module")
def audit(issues):
    return audit_of(issues, top=10)


def test_the_misread_query_holds_the_most_doubted_labels_and_is_named(issues, audit):
    top = np.argsort(-issues.doubt)[:8]
    assert (issues.query_id[top] == MISREAD).mean() >= 0.75
    assert [query.query_id for query in audit.suspects] == [MISREAD]
    assert audit.queries[0].order < 0.75 < np.median([query.order for query in audit.queries])


def test_evidence_says_how_well_it_goes_with_the_judgements(audit):
    kinds = {(each.kind, each.name): each for each in audit.evidence}
    assert kinds["run", "bm25"].signal.auc > 0.7
    assert kinds["judge", "llm"].pairs == 2 * DOCS
    assert 0 < kinds["judge", "llm"].far < kinds["judge", "llm"].far_on_top
    assert np.isnan(kinds["run", "bm25"].far)


def test_reasons_quote_runs_texts_and_judges(issues):
    row = issues.row_id[np.argmax(issues.doubt)]
    why = issues.explain(rows=[row])[0].reasons
    assert why["runs"].startswith("2 of 2 systems retrieve it, the best at rank ")
    assert "filler" in why["text"]
    assert why["judges"].startswith("llm gives ")


def test_a_quote_starts_shortly_before_the_first_word_of_the_query():
    text = "much talk of nothing before the flag of Thailand is shown to all who came to see it"
    assert quote(text, ["flag"], 40) == "... before the flag of Thailand is shown to ..."
    assert quote("short", ["flag"]) == "short"
    assert len(quote(text, [], 20)) <= 24


def test_words_that_a_text_lacks_are_named():
    extra = {"query": ["the daily life of thai people"] * 2, "text": ["The Thai flag.", "stripes"]}
    data = cr.from_arrays(
        [[0.5], [0.0]], [3, 0], qid=["q", "q"], feature_names=("text:coverage",), extra=extra
    )
    words = evidence_words(data, np.array([0, 1]))
    assert words[0]["text"] == "the text has no 'daily' and no 'life' and no 'people': “The Thai flag.”"
    assert words[1]["text"].startswith("the text has no word of the query")


def test_equal_doubts_make_no_query_suspect():
    """Whose rows come first says nothing."""
    data = cr.from_arrays(np.zeros((100, 1)), [0, 1] * 50, qid=np.repeat(np.arange(10), 10))
    alike = LabelIssues.of(data, doubt=np.zeros(100), is_label_issue=np.zeros(100, dtype=bool))
    assert not any(each.doubted or each.is_suspect for each in doubt_by_query(alike))


def test_texts_of_queries_stand_left_aligned_beside_their_numbers(audit):
    with_texts = queries_table(audit.queries, {MISREAD: "violin story"})
    assert with_texts.align == "lrrrrrrrl"
    assert queries_table(audit.queries).align == "lrrrrrrr"


def test_words_to_look_for_are_neither_a_possessive_s_nor_none_at_all():
    extra = {"query": ["medicare's rules", "who is it"], "text": ["The machine's motor.", "A motor."]}
    names = ("text:coverage",)
    data = cr.from_arrays([[0.3], [0.0]], [3, 0], qid=["q", "r"], feature_names=names, extra=extra)
    for each in evidence_words(data, np.array([0, 1])):
        assert each["text"].startswith("the text has no word of the query")


def test_a_sheet_is_read_by_gold_and_stands_for_all_rows(issues, audit, tmp_path):
    sheet = sheet_to_judge(audit, 40, seed=1)
    assert len(sheet) == 40
    assert sheet_to_judge(audit, 40, seed=1).equals(sheet)
    top = issues.row_id[np.lexsort((issues.row_id, -issues.doubt))][:20]
    assert set(top) < set(sheet.row_id)
    assert not (sheet.row_id[:20].isin(top)).all()  # in random order
    data = audit.data
    sheet["grade"] = data.y[sheet.row_id]
    sheet["annotator"] = "ann"
    sheet.to_csv(tmp_path / "sheet.csv", index=False)
    answers = read_sheet(tmp_path / "sheet.csv", data)
    # Of every grade, what is doubted and what is not stand for all rows together.
    for grade in np.unique(data.y):
        shares = answers.shares[answers.true_grades == grade]
        assert sum(np.unique(shares)) == pytest.approx(1.0)


def test_rows_that_nobody_judged_are_not_doubted(made):
    qrels, runs, _, _ = made
    some = {q: dict(docs) for q, docs in qrels.items()}
    some["q0"]["d0-0"] = -1
    issues = cr.find_label_issues(qrels=some, runs=runs, repeats=1)
    row = int(np.flatnonzero(issues.source.data.doc_ids == "d0-0")[0])
    assert (issues.doubt[row], issues.is_label_issue[row]) == (0.0, False)
    assert issues.probabilities()[row].tolist() == [1.0, 0.0, 0.0]
    cleaned = cr.clean(issues.source.data, issues, min_doubt=np.sort(issues.doubt)[-5])
    assert len(cleaned.removed) == 5


def test_queries_are_ordered_by_their_share_of_doubt():
    data = cr.from_arrays(np.zeros((60, 1)), [0, 1] * 30, qid=np.repeat([1, 2, 3], 20))
    doubt = np.full(60, 0.1)
    doubt[20:26] = 0.9
    table = LabelIssues.of(data, doubt=doubt, is_label_issue=doubt > 0.5)
    first, *others = doubt_by_query(table)
    assert (first.query_id, first.doubted, first.is_suspect) == (2, 3, False)  # 5 % of 60 rows
    assert np.isnan(first.expected)
    assert not any(each.is_suspect for each in others)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"data": [[1.0]], "qrels": {"q": {"a": 1}}}, "takes either `data` or `qrels`, not both"),
        ({"data": [[1.0]], "runs": "r.txt"}, "runs= must go with qrels="),
        ({"qrels": {"q": {"a": -1}}, "runs": {"s": {"q": {"a": 1}}}}, "must hold at least one grade >= 0"),
    ],
)
def test_evidence_goes_with_judgements(options, words):
    with pytest.raises(CleanrankError, match=words):
        cr.find_label_issues(**options)


def test_one_query_is_too_few():
    with pytest.raises(CleanrankError, match="need at least two queries"):
        cr.find_label_issues(qrels={"q": {"a": 1, "b": 0}}, runs={"s": {"q": {"a": 1.0}}})


def test_where_all_grades_are_alike_nothing_is_an_issue():
    qrels = {"q": {"a": 1}, "r": {"a": 1, "b": 1}}
    with pytest.warns(UserWarning, match="not seen to tell anything"):
        issues = cr.find_label_issues(qrels=qrels, runs={"s": qrels})
    assert issues.n_issues == 0
