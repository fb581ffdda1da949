"""Files of relevance tools: a real one of OpenSearch, and others in the layout that the tools write."""

import json

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.data.sheets import read_sheet_file
from cleanrank.errors import BadFileError, InvalidInputError


def saved(path, document):
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def rows(data):
    known = np.ones(data.n_docs, dtype=bool) if data.judged is None else data.judged
    grades = np.where(known, data.y, -1).tolist()
    return list(zip(data.qid.tolist(), data.doc_ids.tolist(), grades, strict=True))


@pytest.mark.data
def test_judgments_of_opensearch_as_it_writes_them(data_root):
    path = data_root / "relevance-tools/opensearch.esci_us_judgments.json"
    with pytest.warns(UserWarning, match="ratings 0, 1, 10, 100 are grades 0, 1, 2, 3"):
        data = cr.read_data(path)
    assert (data.n_queries, data.n_docs) == (150, 6678)
    assert data.query_ids[0] == "t towels kitchen"
    assert data.doc_ids[:4].tolist() == ["B07NCQWCQS", "B07NPC54DK", "B07NS654PC", "B07QLRTGVQ"]
    assert data.gains[:4].tolist() == [100, 100, 100, 10]
    assert data.y[:4].tolist() == [3, 3, 3, 2]
    assert np.bincount(data.y).sum() == 6678
    binary = cr.read_data(path, ratings=[10])
    assert (binary.y == (data.y >= 2)).all()


def test_judgments_as_the_api_answers_and_as_they_were_once_written(tmp_path):
    listed = [{"query": "a b", "ratings": [{"docId": "x", "rating": "1.000"}, {"docId": 7, "rating": 3}]}]
    expected = [("a b", "x", 1), ("a b", "7", 3)]
    answer = {"hits": {"hits": [{"_id": "1", "_source": {"name": "n", "judgmentRatings": listed}}]}}
    assert rows(cr.read_data(saved(tmp_path / "a.json", answer))) == expected
    former = {"judgmentRatings": {each["query"]: each["ratings"] for each in listed}}
    assert rows(cr.read_data(saved(tmp_path / "a.json", former))) == expected
    answer["hits"]["hits"] *= 2
    with pytest.raises(BadFileError, match=r"hits\.hits must hold one judgment list; got 2"):
        cr.read_data(saved(tmp_path / "a.json", answer))


BOOK = {
    "name": "Sample",
    "show_rank": False,
    "support_implicit_judgements": True,
    "scorer": {"name": "nDCG@10", "scale": [0, 1, 2, 3]},
    "query_doc_pairs": [
        {
            "query_text": "star wars", "doc_id": "11", "position": 1,
            "document_fields": '{"title": "Star Wars", "year": 1977, "label": "no"}',
            "judgements": [
                {"rating": 3.0, "unrateable": False, "judge_later": False, "user_email": "ann@x.org"},
                {"rating": 1.0, "unrateable": False, "judge_later": False, "user_email": "bob@x.org"},
                {"rating": 1.0, "unrateable": False, "judge_later": False, "explanation": None},
            ],
        },
        {
            "query_text": "star wars", "doc_id": "12", "position": 2, "document_fields": {"title": "Alien"},
            "judgements": [
                {"rating": None, "unrateable": True, "judge_later": False, "user_email": "ann@x.org"},
                {"rating": 0.0, "unrateable": False, "judge_later": False, "user_email": "bob@x.org"},
            ],
        },
        {"query_text": "moon", "doc_id": "12", "position": None, "document_fields": None, "judgements": []},
    ],
}  # fmt: skip


def test_a_book_of_quepid_with_several_people(tmp_path):
    path = saved(tmp_path / "book.json", BOOK)
    data = cr.read_data(path)
    assert rows(data) == [("star wars", "11", 1), ("star wars", "12", 0), ("moon", "12", -1)]
    assert data.extra["title"].tolist() == ["Star Wars", "Alien", None]
    assert sorted(data.extra) == ["query", "title"]
    assert rows(cr.read_data(path, combine="median"))[0][2] == 1
    soft = cr.read_data(path, combine="expected")
    np.testing.assert_allclose(soft.gains, [(7 + 1 + 1) / 3, 0, 0])


def test_csv_of_quepid_with_queries_without_ratings(tmp_path):
    text = 'query,docid,rating\nstar wars,12,3\n"a, b",7,0\nnothing\n\'=x,http://d.org/1,2\n'
    data = cr.read_data(saved(tmp_path / "a.csv", text))
    assert rows(data) == [("star wars", "12", 3), ("a, b", "7", 0), ("=x", "http://d.org/1", 2)]
    table = cr.read_data(saved(tmp_path / "a.csv", "query,docid,rating,label\n1,2,3,1\n"), qid="query")
    assert table.feature_names == ("docid", "rating")
    wide = saved(tmp_path / "a.csv", "query,docid,Ann,Bob\nq,1,3,2\nq,2,,1\nq,3,,\n")
    assert rows(cr.read_data(wide, combine="median")) == [
        ("q", "1", 2), ("q", "2", 1), ("q", "3", -1),
    ]  # fmt: skip
    with pytest.raises(BadFileError, match=r"column 'rating' must be a number; got 'x' at .*a.csv, line 3"):
        cr.read_data(saved(tmp_path / "a.csv", "query,docid,rating\nq,1,3\nq,2,x\n"))


RRE = {
    "index": "core1",
    "corpora_file": "electric_basses.json",
    "id_field": "id",
    "topics": [
        {
            "description": "basses",
            "query_groups": [
                {
                    "name": "brand",
                    "queries": [
                        {"template": "only_q.json", "placeholders": {"$query": "fender"}},
                        {"template": "other.json", "placeholders": {"$lang": "en", "$q": "Fender"}},
                    ],
                    "relevant_documents": {"1": {"gain": 3}, "2": {"gain": 0}},
                },
            ],
        }
    ],
}


def test_ratings_of_rre_by_document_and_by_grade(tmp_path):
    data = cr.read_data(saved(tmp_path / "a.json", RRE))
    other = "$lang=en $q=Fender"
    assert rows(data) == [("fender", "1", 3), ("fender", "2", 0), (other, "1", 3), (other, "2", 0)]
    quepid = {
        "id_field": "id", "index": "Movies", "template": "template.json",
        "queries": [
            {"placeholders": {"$query": "star wars"}, "relevant_documents": {"0": ["12"], "3": ["11", "13"]}},
            {"placeholders": {"$query": "moon"}, "relevant_documents": {}},
        ],
    }  # fmt: skip
    data = cr.read_data(saved(tmp_path / "a.json", quepid))
    assert rows(data) == [("star wars", "12", 0), ("star wars", "11", 3), ("star wars", "13", 3)]


def task(number, query, doc, said, **data):
    annotations = [
        {"completed_by": who, "was_cancelled": skipped, "result": [{"from_name": "grade", "value": value}]}
        for who, value, skipped in said
    ]
    return {"id": number, "data": {"query": query, "url": doc, **data}, "annotations": annotations}


TASKS = [
    task(
        1, "fruit", "d1",
        [({"email": "ann@x.org"}, {"choices": ["2: relevant"]}, False), (7, {"rating": 1}, False),
         ("bob", {"number": 2}, False), ("cy", {"choices": ["0"]}, True)],
        title="Apple", label=5,
    ),
    task(2, "fruit", "d2", [], title="Pear"),
]  # fmt: skip


def test_tasks_of_label_studio_with_several_people(tmp_path):
    path = saved(tmp_path / "a.json", TASKS)
    data = cr.read_data(path)
    assert rows(data) == [("fruit", "d1", 2), ("fruit", "d2", -1)]
    assert data.extra["title"].tolist() == ["Apple", "Pear"]
    assert data.extra["query"].tolist() == ["fruit", "fruit"]  # named by its words
    soft = cr.read_data(path, combine="expected")
    assert soft.gains.tolist() == [pytest.approx((3 + 1 + 3) / 3), 0]


def response(query, hits):
    return {
        "took": 2, "timed_out": False, **({} if query is None else {"query_id": query}),
        "hits": {"total": {"value": len(hits), "relation": "eq"}, "max_score": 1.0, "hits": hits},
    }  # fmt: skip


def hit(doc, features, grade=None, **source):
    logged = [{"name": n} if v is None else {"name": n, "value": v} for n, v in features.items()]
    return {
        "_index": "tmdb", "_id": doc, "_score": 0.0, "_source": source,
        "fields": {"_ltrlog": [{"log_entry1": logged}], "grade": grade}, "matched_queries": ["log"],
    }  # fmt: skip


def test_feature_logs_with_grades_of_their_own_and_of_judgements(tmp_path):
    first = response("rambo", [hit("7555", {"title_query": 9.5, "body_query": None}, 3)])
    second = response(
        "rocky", [hit("7555", {"body_query": 1.25, "popularity": 2}, [1]), hit("8", {}, rating=5)]
    )
    lines = saved(tmp_path / "a.ndjson", f"{json.dumps(first)}\n\n{json.dumps(second)}\n")
    data = cr.read_data(lines)
    assert rows(data) == [("rambo", "7555", 3), ("rocky", "7555", 1), ("rocky", "8", -1)]
    assert data.feature_names == ("title_query", "body_query", "popularity")
    nan = np.nan
    np.testing.assert_array_equal(data.X, np.float32([[9.5, nan, nan], [nan, 1.25, 2], [nan] * 3]))
    assert rows(cr.read_data(lines.rename(tmp_path / "a.v2.jsonl"), form="ltr-log")) == rows(data)
    for document in ([first, second], {"responses": [first, second]}):
        assert rows(cr.read_data(saved(tmp_path / "a.json", document))) == rows(data)
    bare = {
        "responses": [
            response(None, [hit("7555", {"x": 1.0}, movie="m1")]),
            response(None, [hit("8", {"x": 2.0}, movie="m2")]),
        ]
    }
    path = saved(tmp_path / "a.json", bare)
    with pytest.raises(BadFileError, match=r"must have grades .*\(unless grade or label\)"):
        cr.read_data(path)
    (tmp_path / "judged.qrels").write_text("1 0 7555 2\n2 0 8 0\n2 0 9 1\n")
    joined = cr.read_data(path, judgements=tmp_path / "judged.qrels")
    assert rows(joined) == [("1", "7555", 2), ("2", "8", 0)]
    with pytest.raises(BadFileError, match=r"the log has pairs such as \('m1', '7555'\), .* \('1', '7555'\)"):
        cr.read_data(path, qid="movie", judgements=tmp_path / "judged.qrels")
    (tmp_path / "judged.qrels").write_text("m1 0 7555 2\n")
    assert rows(cr.read_data(path, qid="movie", judgements=cr.read_qrels(tmp_path / "judged.qrels"))) == [
        ("m1", "7555", 2), ("m2", "8", -1),
    ]  # fmt: skip
    with pytest.raises(BadFileError, match="must have the query's id as 'q'"):
        cr.read_data(path, qid="q")
    mixed = {"responses": [first, *bare["responses"]]}
    with pytest.raises(BadFileError, match=r"responses\[1\] must have the query's id .* like the others"):
        cr.read_data(saved(tmp_path / "a.json", mixed))


def test_a_field_of_the_document_is_its_grade_only_where_it_is_named(tmp_path):
    hits = [hit("1", {"x": 1.0}, rating=2, topic="q"), hit("2", {"x": 0.0}, rating=0, topic="q")]
    path = saved(tmp_path / "a.json", response("a", hits))
    assert rows(cr.read_data(path, label="rating", qid="topic")) == [("q", "1", 2), ("q", "2", 0)]
    with pytest.raises(BadFileError, match="must have grades"):
        cr.read_data(path)


def changed(document, change):
    copy = json.loads(json.dumps(document))
    change(copy)
    return copy


def put(name, value):
    def change(document):
        *path, last = name
        for part in path:
            document = document[part]
        document[last] = value

    return change


OPENSEARCH = {
    "judgmentRatings": [
        {"query": "q", "ratings": [{"docId": "a", "rating": "1"}, {"docId": "b", "rating": "0"}]}
    ]
}
AT = ("judgmentRatings", 0, "ratings", 1)
PAIR = ("query_doc_pairs", 1)


GROUP = ("topics", 0, "query_groups", 0)


@pytest.mark.parametrize(
    ("document", "path", "value", "said"),
    [
        (OPENSEARCH, (*AT, "rating"), "high", r"Ratings\[0\].ratings\[1\].rating must be a number; got"),
        (OPENSEARCH, (*AT, "rating"), -1, r"ratings\[1\].rating must not be negative; got -1"),
        (OPENSEARCH, (*AT, "rating"), "1e999", "must be a number; got '1e999'"),
        (OPENSEARCH, (*AT, "rating"), True, "must be a number; got True"),
        (OPENSEARCH, (*AT, "rating"), None, "must have a member 'rating'; got 'docId', 'rating'"),
        (OPENSEARCH, (*AT, "docId"), "a", r"must be rated once only; got 'q', 'a' again .* The first is"),
        (OPENSEARCH, (*AT, "docId"), " ", r"ratings\[1\].docId must be a text; got ' '"),
        (OPENSEARCH, (*AT, "docId"), "a\0", "docId must be a text"),
        (OPENSEARCH, (*AT, "docId"), [], r"docId must be a text; got \[\]"),
        (OPENSEARCH, ("judgmentRatings", 0, "ratings"), "x", r"ratings must be a list; got 'x'"),
        (OPENSEARCH, ("judgmentRatings", 0, "ratings"), [], "must hold at least one rating"),
        (OPENSEARCH, ("judgmentRatings", 0), 7, r"judgmentRatings\[0\] must be an object; got 7"),
        (BOOK, (*PAIR, "document_fields"), "{", r"query_doc_pairs\[1\].document_fields must be JSON"),
        (BOOK, (*PAIR, "judgements", 1, "rating"), "x", r"judgements\[1\].rating must be a number"),
        (BOOK, (*PAIR, "doc_id"), "11", "must be rated once only by 'bob@x.org'"),
        (BOOK, (*PAIR, "query_text"), None, r"query_doc_pairs\[1\] must have a member 'query'"),
        (RRE, (*GROUP, "relevant_documents", "1"), 3, "documents.1 must be an object"),
        (RRE, (*GROUP, "queries", 0, "placeholders"), {}, "must hold the query"),
        (TASKS, (0, "data"), {"query": "x"}, r"\[0\].data must name a query and a document; got query"),
        (TASKS, (0, "annotations", 0, "result", 0, "value"), {"choices": ["?"]}, "begin with one; .* As in"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_its_place(tmp_path, document, path, value, said):
    wrong = changed(document, put(path, value))
    with pytest.raises(BadFileError, match=said) as caught:
        cr.read_data(saved(tmp_path / "a.json", wrong))
    assert "a.json" in str(caught.value)


def test_wrong_logs_name_their_line(tmp_path):
    good = json.dumps(response("q", [hit("a", {"x": 1.0}, grade=1)]))
    for wrong, said in (
        ("{", "line 2"),
        (good, "_id must come once in a query; got 'a' at .*line 2"),
        (good.replace('"q"', '"r"').replace("1.0}", '"x"}'), "value must be a number; got 'x' at .*line 2"),
        (good.replace('"q"', '"r"').replace("1.0}", "1e39}"), "must fit into float32; got 1e.39 at .*line 2"),
    ):
        with pytest.raises(BadFileError, match=said):
            cr.read_data(saved(tmp_path / "a.ndjson", f"{good}\n{wrong}\n"))


def test_opinions_of_tools_are_a_sheet_of_judgements(tmp_path):
    sheet = read_sheet_file(saved(tmp_path / "book.json", BOOK))
    assert sheet.values["query_id"] == ["star wars"] * 4
    assert sheet.values["doc_id"] == ["11", "11", "11", "12"]
    assert sheet.values["annotator"] == ["ann@x.org", "bob@x.org", "", "bob@x.org"]
    assert sheet.values["grade"] == [3.0, 1.0, 1.0, 0.0]


def test_soft_grades_need_several_people(tmp_path):
    with pytest.raises(InvalidInputError, match="goes with ratings of several people; got 'expected'"):
        cr.read_data(saved(tmp_path / "a.json", OPENSEARCH), combine="expected")
    with pytest.raises(cr.CleanrankError, match="Did you mean 'median'"):
        cr.read_data(saved(tmp_path / "a.json", BOOK), combine="medain")
