"""``cleanrank label``: projects are made, gone on with, and asked about; ``test_terminal`` has the asking."""

import io
import re
import shlex
import sqlite3
import threading

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.cli.label import _batch
from cleanrank.labeling.answers import given_data, graded
from cleanrank.labeling.projects import add_label_batch, kept_systems, make_project
from cleanrank.labeling.store import open_project
from cleanrank.web import server

SHOP = """qid,label,a,b,doc_id,title
1,0,.1,2,d1,Apple
1,1,.5,1,d2,Pear
1,2,.7,0,d3,Car
2,0,.2,1,d1,Dog
2,1,.4,2,d4,Cat
"""


@pytest.fixture(autouse=True)
def shop(tmp_path, monkeypatch):
    """A folder with shop.csv, in which commands run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "shop.csv").write_text(SHOP)
    return tmp_path


@pytest.fixture
def judge(cli, monkeypatch):
    """Runs a command in the terminal as ann, who types words, each on a line."""

    def run(typed, *words, name="ann"):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed.replace(" ", "\n")))
        return cli(*words, "--terminal", "--annotator", name)

    return run


def answers(path="shop.sqlite"):
    """(row, value) of what stands."""
    with open_project(path) as project:
        return [(each.row, each.event.value) for each in graded(project)]


def batches(path="shop.sqlite"):
    with open_project(path) as project:
        return [(each, [unit.rows for unit in project.units(each.id)]) for each in project.batches()]


def test_the_same_command_goes_on_until_all_is_judged(judge):
    first = judge("0 1 q", "label", "shop.csv")
    assert first.code == 0, first.err
    assert "made shop.sqlite" in first.err
    assert "2 answers of ann stand in shop.sqlite, 2 of them new." in first.err
    assert "The same command goes on from here." in first.err
    assert answers() == [(0, 0), (1, 1)]
    second = judge("u 2 s 0 1 0", "label", "shop.csv")
    assert "made" not in second.err
    assert "5 answers of ann stand in shop.sqlite, 3 of them new." in second.err
    assert "Nothing is left to judge." in second.err
    # the labels of shop.csv are 0, 1, 2, 0, 1; the third was passed over, the second and the last corrected
    assert answers() == [(0, 0), (1, 2), (2, None), (3, 0), (4, 1)]
    assert "4 of 5 labels judged, 1 were wrong" in second.err
    again = judge("", "label", "shop.csv")
    assert "5 answers of ann stand in shop.sqlite." in again.err
    assert len(batches()) == 1
    assert len(answers()) == 5


def test_what_is_asked_is_said(judge):
    done = judge("", "label", "shop.csv", "--scale", "no,maybe,yes")
    shown = dict(re.split(" {2,}", line.strip()) for line in done.out.splitlines() if "   " in line.strip())
    assert shown["documents"] == shown["with labels"] == shown["with texts"] == "5"
    assert shown["grades"] == "0 no, 1 maybe, 2 yes"
    assert (shown["asked now"], shown["by"]) == ("Grade documents", "grade, blind")


def test_without_a_terminal_the_page_of_the_batch_opens(cli, monkeypatch):
    called = []
    monkeypatch.setattr(server, "listen", lambda host, port: Listening(port))
    monkeypatch.setattr(
        server, "serve", lambda path, listening, **options: called.append((str(path), options))
    )
    done = cli("label", "shop.csv", "--annotator", "ann", "--port", "9000")
    assert done.code == 0, done.err
    assert called[0][0] == "shop.sqlite"
    assert called[0][1]["open_link"] == "http://127.0.0.1:9000/judge/1"
    assert (called[0][1]["owner"], called[0][1]["tokens"]) == ("ann", False)
    done = cli("review", "shop.sqlite", "--annotator", "ann", "--n", "2", "--no-open")
    assert done.code == 0, done.err
    assert called[1][1]["open_link"] == ""
    assert "/review/2" in done.out


class Listening:
    def __init__(self, port):
        self.getsockname = lambda: ("127.0.0.1", port or 8765)


def test_the_last_answer_can_be_taken_back_too(judge):
    done = judge("0 0 0 0 0 u 1", "label", "shop.csv")
    assert done.code == 0, done.err
    assert "That was the last one." in done.out
    assert answers() == [(0, 0), (1, 0), (2, 0), (3, 0), (4, 1)]
    assert "Nothing is left to judge." in done.err
    assert "That was the last one." not in judge("", "label", "shop.csv").out


def test_who_has_nothing_to_judge_hears_what_others_have(judge):
    done = judge("0 0 0 0 0", "label", "shop.csv", "--annotators", "2")
    words = "Nothing is left for ann to judge at the moment; others have yet to judge 2 queries or documents."
    assert words in done.err


def test_a_project_may_be_prepared_for_others(cli):
    done = cli("label", "shop.csv", "-o", "a b.sqlite", "--prepare")
    assert done.code == 0, done.err
    assert "cleanrank serve 'a b.sqlite' opens it" in done.err
    assert answers("a b.sqlite") == []
    assert [rows for _, rows in batches("a b.sqlite")] == [[(0, 1, 2), (3, 4)]]


def test_comparisons_have_settings(cli):
    options = shlex.split("--task top-k --k 2 --no-ties --transitive --neither --annotators 3")
    assert cli("label", "shop.csv", "--prepare", *options).code == 0
    assert cli("label", "shop.csv", "--prepare", "--task", "pairs").code == 0
    (first, _), (second, _) = batches()
    assert (first.kind, first.settings) == (
        "top-k",
        {"k": 2, "ties": False, "transitive": True, "neither": True},
    )
    assert (first.annotators_per_unit, second.kind, second.settings) == (3, "pairs", {})


def test_comparisons_in_the_terminal(judge):
    done = judge("1 2 0 2 2 2 2", "label", "shop.csv", "--task", "pairs")
    assert done.code == 0, done.err
    assert "1 first is better | 2 second is better | 0 equally good" in done.out
    with open_project("shop.sqlite") as project:
        said = [(event.question, event.value) for event in project.events()]
    assert said == [("0,1", 1), ("2,0", 2), ("1,2", 0), ("0,1", 2)]
    assert "Nothing is left to judge." in done.err


def test_neither_in_the_terminal(judge):
    done = judge("3 0", "label", "shop.csv", "--task", "top-k", "--k", "3", "--neither")
    assert done.code == 0, done.err
    assert "0 equally good | 3 neither is relevant" in done.out
    with open_project("shop.sqlite") as project:
        assert [event.value for event in project.events()] == [3, 0]


def test_a_random_sample_goes_on_with_other_rows(judge):
    typed = "0 " * 9
    done = judge(typed, "label", "shop.csv", "--purpose", "gold", "--n", "3")
    assert done.code == 0, done.err
    assert "wrong labels as given: " in done.err
    drawn = {row for row, _ in answers()}
    assert len(drawn) == 3
    few = judge(typed, "label", "shop.csv", "--purpose", "gold", "--n", "3")
    assert (few.code, len(batches())) == (2, 1)
    assert "n must lie between the number of grades (2) and of rows (2); got 3" in few.err
    rest = judge(typed, "label", "shop.csv", "--purpose", "gold", "--n", "2", "--seed", "3")
    assert rest.code == 0, rest.err
    assert sorted(row for row, _ in answers()) == [0, 1, 2, 3, 4]
    none = judge(typed, "label", "shop.csv", "--purpose", "gold", "--n", "2", "--seed", "3")
    assert "rows must be left to draw; got all were drawn" in none.err


@pytest.fixture
def runs(tmp_path):
    """Two systems that rank the documents of data.csv; 6 queries with 8 documents."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"qid": np.repeat(np.arange(6), 8), "label": rng.integers(0, 3, 48)})
    frame["doc_id"] = [f"d{number}" for number in range(48)]
    frame["x"] = rng.normal(size=48).round(3)
    frame.to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "runs").mkdir()
    for name in ("old", "new"):
        lines = [f"{row.qid} Q0 {row.doc_id} 1 {rng.random():.4f} {name}\n" for row in frame.itertuples()]
        (tmp_path / "runs" / f"{name}.txt").write_text("".join(lines))


def test_an_evaluation_goes_on_with_further_documents_until_all_that_count_are_drawn(judge, runs):
    command = shlex.split(
        "label data.csv --purpose evaluation --runs runs -m ndcg@3 --n 20 --compare old,new"
    )
    sizes = []
    for _ in range(3):
        done = judge("1 " * 48, *command)
        assert done.code == 0, done.err
        assert "Nothing is left to judge." in done.err
        sizes.append(len(answers("data.sqlite")))
    assert sizes[:2] == [20, 40]
    with open_project("data.sqlite") as project:
        kept = kept_systems(project, 3)
        assert (kept["measure"], kept["compare"], set(kept["systems"])) == (
            "ndcg@3:trec",
            ["old", "new"],
            {"old", "new"},
        )
        assert len(project.units(3)) == kept["n_pool"] == sizes[2]
        first, second = ([unit.rows for unit in project.units(batch)] for batch in (1, 2))
        assert second[:20] == first
    assert "ndcg@3:trec of " in done.err
    last = judge("", *command)
    assert (last.code, len(batches("data.sqlite"))) == (2, 3)
    assert "documents must be left to draw; got all that count were drawn" in last.err


def test_judgements_to_begin_with_are_taken_once_and_not_asked_again(judge, tmp_path):
    (tmp_path / "old.csv").write_text("query_id,doc_id,annotator,grade\n1,d1,bob,2\n2,d4,bob,0\n")
    done = judge("", "label", "shop.csv", "--answers", "old.csv")
    assert done.code == 0, done.err
    assert "old.csv: 2 documents with judgements" in done.err
    assert [rows for _, rows in batches()] == [[(0,), (4,)], [(1, 2), (3,)]]
    again = judge("0 0 0", "label", "shop.csv", "--answers", "old.csv")
    assert "old.csv was imported before" in again.err
    assert answers() == [(0, 2), (4, 0), (1, 0), (2, 0), (3, 0)]
    # of two people for each document, bob was the first of two
    two = judge("", "label", "shop.csv", "--annotators", "2", name="cy")
    assert two.code == 0, two.err
    assert batches()[-1][1] == [(0, 1, 2), (3, 4)]
    none = judge("", "label", "shop.csv", "--scale", "3")
    assert "--scale must be what 'shop.sqlite' was made with (none); got '3'" in none.err


def test_all_that_were_graded_are_not_asked_again(judge, tmp_path):
    (tmp_path / "old.qrels").write_text("1 0 d1 2\n1 0 d2 0\n1 0 d3 0\n2 0 d1 1\n2 0 d4 1\n")
    done = judge("", "label", "shop.csv", "--answers", "old.qrels")
    assert (done.code, answers()[0]) == (2, (0, 2))
    assert "documents must be left to judge; got all were judged" in done.err


def test_known_grades_are_asked_among_the_others(judge, tmp_path):
    (tmp_path / "known.csv").write_text("query_id,doc_id,grade\n1,d3,0\n")
    done = judge("1 " * 5, "label", "shop.csv", "--gold", "known.csv")
    assert done.code == 0, done.err
    with open_project("shop.sqlite") as project:
        units = project.units(1)
    assert [unit.rows for unit in units] == [(0, 1), (3, 4), (2,)]
    assert units[2].about == {"is_gold": True, "true_grade": 0}
    assert dict(answers()) == dict.fromkeys(range(5), 1)


def test_texts_beside_the_data_are_shown(judge, tmp_path):
    (tmp_path / "texts.csv").write_text("query_id,doc_id,query,text\n1,d1,fruit,A red apple.\n")
    done = judge("", "label", "shop.csv", "--texts", "texts.csv")
    assert done.code == 0, done.err
    assert "Query: fruit (1)" in done.out
    assert "text: A red apple." in done.out
    assert judge("", "label", "shop.csv", "--texts", "texts.csv").code == 0
    assert judge("", "label", "shop.csv").code == 0
    (tmp_path / "texts.csv").write_text("query_id,doc_id,query,text\n1,d1,fruit,A green apple.\n")
    other = judge("", "label", "shop.csv", "--texts", "texts.csv")
    assert "--texts must be what 'shop.sqlite' was made with (texts.csv); got 'texts.csv'" in other.err


def test_columns_of_a_table_and_tables_of_texts(judge, tmp_path):
    (tmp_path / "marks.csv").write_text(SHOP.replace("label", "mark").replace("qid", "search"))
    done = judge("", "label", "marks.csv", "--label", "mark", "--qid", "search", "--features", "a")
    assert done.code == 0, done.err
    with open_project("marks.sqlite") as project:
        assert project.feature_names == ("a",)
        assert project.document(2).given_label == 2
    (tmp_path / "texts.jsonl").write_text(
        '{"query": "fruit", "title": "Apple"}\n{"query": "fruit", "title": "Car"}\n'
    )
    done = judge("2 0", "label", "texts.jsonl", "--scale", "bad,fair,good")
    assert done.code == 0, done.err
    assert answers("texts.sqlite") == [(0, 2), (1, 0)]


def test_another_data_set_does_not_go_on_with_a_project(judge, tmp_path):
    assert judge("", "label", "shop.csv").code == 0
    (tmp_path / "copy.csv").write_text(SHOP)  # by another name, the same data
    assert judge("", "label", "copy.csv", "-o", "shop.sqlite").code == 0
    (tmp_path / "shop.csv").write_text(SHOP.replace("1,0,.1", "1,1,.1"))
    done = judge("", "label", "shop.csv")
    assert done.code == 2
    assert "DATA must be what 'shop.sqlite' was made with (shop.csv); got 'shop.csv'" in done.err
    assert "Go on with it alone (cleanrank label shop.sqlite), or name another with -o." in done.err
    assert judge("", "label", "shop.sqlite").code == 0
    review = judge("", "review", "shop.csv")
    assert "(cleanrank review shop.sqlite)" in review.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("label nowhere.csv", "DATA must be a file or a data set of the catalogue; got 'nowhere.csv'"),
        ("label ml-100k", "a data set to judge must have judged documents; got 'movielens-100k'"),
        ("label empty.csv", "'empty.csv' must have a line of headings"),
        ("label notes.txt", "a row must name its query as qid:ID after the label; got 'no data' at line 1"),
        ("label folder", "'folder' must be a folder of shards, of BEIR"),
        ("label other.sqlite", "project must be a labelling project; got another program's SQLite file"),
        ("label shop.csv -o notes.txt", "project must be a labelling project; got another kind of file"),
        ("label shop.csv -o project.csv", "output must be .sqlite, .db; got 'project.csv'"),
        ("label shop.csv --task guess", "unknown task 'guess'. Known: grade, pairs, top-k, active."),
        ("label shop.csv --k 3", "--k goes with --task top-k or active; got --task grade"),
        ("label shop.csv --no-ties", "--no-ties goes with comparisons; got --task grade"),
        ("label shop.csv --task pairs --neither", "--neither goes with --task top-k; got --task pairs"),
        ("label shop.csv --transitive", "--transitive goes with comparisons; got --task grade"),
        ("label shop.csv --task pairs --gold shop.csv", "--gold goes with --task grade; got --task pairs"),
        ("label shop.csv --purpose fun", "unknown purpose 'fun'. Known: label, gold, evaluation."),
        ("label shop.csv --purpose gold --task pairs", "--task goes with --purpose label; got"),
        ("label shop.csv --n 3", "--n goes with --purpose gold or evaluation; got --purpose label"),
        ("label shop.csv --seed 3", "--seed goes with --purpose gold or evaluation; got --purpose label"),
        ("label shop.csv --runs runs", "--runs goes with --purpose evaluation; got --purpose label"),
        ("label shop.csv --purpose evaluation", "--purpose evaluation needs the systems (--runs); got none"),
        ("label shop.csv --purpose evaluation --runs nowhere", "there is no file 'nowhere'"),
        ("label shop.csv --prepare", "--terminal and --prepare must not be given together"),
        ("label shop.csv --port 9", "--port goes without --terminal"),
        ("label shop.csv --no-open", "--no-open goes without --terminal"),
        ("label shop.csv --annotator ' a'", "annotator must be a name of 1 to 64 printable characters"),
        ("label shop.csv --scale 1", "scale must be an integer >= 2"),
        ("label shop.csv --scale no,yes", "scale must have the grades of the labels, 0 to 2; got 2 grades"),
        ("label shop.csv --scale ''", "scale must be descriptions of at least two grades"),
        ("label shop.csv --answers notes.txt", "must have the columns grade, and row_id or query_id"),
        ("label shop.csv --gold notes.txt", "notes.txt"),
        ("label shop.csv --judge gpt", "--judge goes with dl19 and dl20"),
        ("label texts.csv --texts shop.csv", "--texts goes with data; a table of texts has its own"),
        ("label texts.csv --purpose gold", "documents must have labels to be judged again; got none"),
        ("review shop.csv nowhere.csv", "there is no file 'nowhere.csv'"),
        ("review shop.csv notes.txt", "notes.txt must have the column 'row_id'"),
        ("review shop.csv shop.csv --seed 3", "--seed goes without ISSUES; got shop.csv"),
        ("review texts.csv", "documents must have labels to be judged again; got none"),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_is_refused(cli, tmp_path, words, message):
    (tmp_path / "notes.txt").write_text("no data\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "texts.csv").write_text("query,title\nfruit,Apple\n")
    with sqlite3.connect(tmp_path / "other.sqlite") as other:
        other.execute("CREATE TABLE notes (text)")
    other.close()
    done = cli(*shlex.split(words), "--terminal")
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert "Traceback" not in done.err


@pytest.fixture
def issues():
    """A table that doubts the rows 2, 4, 0, 1 and 3, in this order."""
    data = cr.read_data("shop.csv")
    doubt = np.array([0.5, 0.2, 0.9, 0.1, 0.8])
    table = cr.LabelIssues.of(data, doubt=doubt, is_label_issue=doubt > 0.6, suggested_label=np.zeros(5))
    table.save("issues.csv", data)


def test_the_most_doubtful_labels_are_reviewed_and_then_the_next(judge, issues):
    done = judge("k d", "review", "shop.csv", "issues.csv", "--n", "2")
    assert done.code == 0, done.err
    assert [rows for _, rows in batches()] == [[(2,), (4,)]]
    assert "Given: 2 (relevant)" in done.out
    assert "Suggested: 0 (not relevant)" in done.out
    assert "k keep 2" in done.out
    assert answers() == [(2, 2), (4, "drop")]
    assert "2 of 5 labels judged, 1 were wrong" in done.err
    second = judge("n 1", "review", "shop.csv", "issues.csv", "--n", "2")
    assert second.code == 0, second.err
    assert [rows for _, rows in batches()][1] == [(0,), (1,)]
    third = judge("0 2", "review", "shop.csv", "issues.csv", "--n", "2")
    # nobody has judged row 0: who asked was unsure
    assert third.code == 0, third.err
    assert [rows for _, rows in batches()][2] == [(0,), (3,)]
    assert "rows must be left to review; got all were judged" in judge("", "review", "shop.csv").err


def test_blind_reviews_and_second_opinions(judge, issues):
    options = ("shop.csv", "issues.csv", "--blind", "--second-opinions", "1", "--n", "1")
    first = judge("1", "review", *options)
    assert first.code == 0, first.err
    for hidden in ("Given", "Suggested", "Doubted", "keep"):
        assert hidden not in first.out
    assert judge("2", "review", *options, name="bob").code == 0
    ((batch, rows),) = batches()
    assert (batch.blind, batch.annotators_per_unit, rows) == (True, 2, [(2,)])
    assert answers() == [(2, 1), (2, 2)]
    # ann has answered: the same command asks her for the next label
    assert judge("0", "review", *options).code == 0
    assert answers()[-1] == (4, 0)


def test_labels_are_doubted_by_the_usual_detector_unless_a_table_is_given(judge):
    data = cr.make_ranking(30, 4, docs_per_query=10, signal=0.95, seed=0)
    cr.write_letor(cr.corrupt(data, rate=0.2, seed=1).data, "noisy.txt")
    done = judge("q", "review", "noisy.txt", "--n", "7", "--seed", "3")
    assert done.code == 0, done.err
    with open_project("noisy.sqlite") as project:
        found = cr.find_label_issues(given_data(project), seed=3)
    order = found.row_id[np.lexsort((found.row_id, -found.doubt))][:7]
    assert [rows for _, rows in batches("noisy.sqlite")] == [[(row,) for row in order.tolist()]]
    assert "Doubted because: graded" in done.out


def test_options_of_new_projects_do_not_go_with_one_that_is_there(judge):
    assert judge("", "label", "shop.csv").code == 0
    for option in ("--scale 5", "-o x.sqlite", "--texts shop.csv", "--judge x", "--label b"):
        done = judge("", "label", "shop.sqlite", *option.split())
        assert done.code == 2
        assert "goes with new projects; got the project 'shop.sqlite'" in done.err


def test_two_who_ask_for_the_same_at_the_same_moment_get_one_batch(tmp_path):
    path = tmp_path / "p.sqlite"
    make_project(path, {"query": ["q", "q"], "doc_id": ["a", "b"]}, name="p").close()
    threads, got = [], []

    def other():
        with open_project(path) as project:
            request = {"purpose": "label"}
            got.append(_batch(project, "bob", request, lambda _: add_label_batch(project), goes_on=False))

    with open_project(path) as project:

        def ask(_):
            threads.append(threading.Thread(target=other))
            threads[0].start()
            threads[0].join(0.3)  # it waits for this one
            return add_label_batch(project)

        own = _batch(project, "ann", {"purpose": "label"}, ask, goes_on=False)
        threads[0].join()
        assert [each.id for each in project.batches()] == [own.id] == [got[0].id]
