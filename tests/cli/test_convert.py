"""The command convert, and formats of other tools in the commands that take data."""

import json

import numpy as np
import pytest

import cleanrank as cr
from tests.data.test_formats import CASES, assert_same, features, judgements, plain, words
from tests.data.test_relevance_tools import BOOK


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("form", CASES)
def test_every_format_becomes_every_other_that_holds_as_much(cli, folder, form):
    name, make = CASES[form]
    data = make()
    cr.write_data(data, f"{folder}/{name}", form=form)
    done = cli("convert", name.rstrip("/"), "out.parquet", "--json")
    assert done.code == 0, done.err
    record = json.loads(done.out)
    assert (record["rows"], record["queries"]) == (data.n_docs, data.n_queries)
    known = np.ones(data.n_docs, dtype=bool) if data.judged is None else data.judged
    assert cr.read_data("out.parquet").y.tolist() == np.where(known, data.y, 0).tolist()
    assert cli("convert", name.rstrip("/"), f"back-{name}", "--to", form).code == 0
    assert_same(cr.read_data(f"{folder}/back-{name}"), data)


def test_a_name_with_a_slash_at_its_end_becomes_a_folder_of_beir(cli, folder):
    (folder / "a.qrels").write_text("q1 0 a 2\nq1 0 b 0\n")
    assert cli("convert", "a.qrels", "made/").code == 0
    assert (folder / "made" / "qrels" / "test.tsv").is_file()
    assert cli("convert", "made", "b.qrels").code == 0
    assert (folder / "b.qrels").read_text().split() == (folder / "a.qrels").read_text().split()


def test_opinions_are_combined_and_logs_get_grades(cli, folder):
    (folder / "book.json").write_text(json.dumps(BOOK))
    assert cli("convert", "book.json", "out.csv", "--combine", "expected").code == 0
    np.testing.assert_allclose(cr.read_data("out.csv").gains, [3, 0, 0])
    bare = features()
    cr.write_data(bare.with_labels(np.zeros(8, dtype=int)), "log.ndjson")
    text = (folder / "log.ndjson").read_text().replace('"grade":[0]', '"seen":[0]')
    (folder / "log.ndjson").write_text(text)
    done = cli("convert", "log.ndjson", "out.txt")
    assert done.code == 2
    assert "must have grades beside its features" in done.err
    cr.write_data(judgements(), "judged.json", form="opensearch")
    assert cli("convert", "log.ndjson", "joined.csv", "--judgements", "judged.json").code == 0
    assert_same(cr.read_data("joined.csv"), features())


def test_what_cannot_be_converted_is_refused(cli, folder):
    cr.write_data(words(plain()), "a.qrels")
    for line, said in (
        ("convert a.qrels out.json", "form= one of opensearch"),
        ("convert a.qrels a.qrels --force", "must differ from every input"),
        ("convert a.qrels out --to beir --force", "does not go with a folder of BEIR"),
        ("convert a.qrels out.csv --from csv", "a.qrels"),
        ("convert a.qrels out.csv --split test", "--split must go with a BEIR folder"),
        ("convert a.qrels out.csv --to csw", "Did you mean 'csv'"),
    ):
        done = cli(*line.split())
        assert done.code == 2, line
        assert said in done.err, done.err
    assert sorted(path.name for path in folder.iterdir()) == ["a.qrels"]


def test_commands_take_the_formats_of_other_tools(cli, folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    y = np.digitize(X[:, 0], [-0.5, 0.8])
    docs = [f"d{i}" for i in range(300)]
    data = cr.from_arrays(X, y, qid=np.repeat([f"q {i}" for i in range(15)], 20), doc_ids=docs)
    cr.write_data(data, "log.ndjson")
    cr.write_data(data, "judged.json", form="opensearch")
    cr.write_data(data, "beir/")
    assert cli("find-issues", "log.ndjson", "-o", "issues.csv", "--noise", "uniform:0.1").code == 0
    assert cli("train", "log.ndjson", "-o", "model.txt", "--trees", "5").code == 0
    assert cli("predict", "model.txt", "log.ndjson", "-o", "scores.txt").code == 0
    assert len((folder / "scores.txt").read_text().split()) == 300
    for name in ("judged.json", "beir", "log.ndjson"):
        done = cli("diagnose", name, "--json")
        assert done.code == 0, done.err
        assert cli("evaluate", name, "scores.txt").code == 0
    done = cli("diagnose", "judged.json", "--ratings", "1", "--json")
    assert done.code == 0, done.err
    done = cli("find-issues", "judged.json", "-o", "more.csv", "--noise", "uniform:0.1")
    assert done.code == 2
    assert "must have features to learn from; got none. Judgements without features go into" in done.err
    assert cli("corrupt", "beir", "--rate", ".3", "-o", "noisy.csv").code == 0
    assert cli("label", "beir", "-o", "p.sqlite", "--prepare", "--annotator", "ann").code == 0
    assert cli("label", "log.ndjson", "-o", "log.sqlite", "--prepare", "--annotator", "ann").code == 0
    done = cli("diagnose", "judged.json", "--features", "x")
    assert done.code == 2
    assert "must go with CSV or Parquet" in done.err


# Folders of shards


@pytest.fixture
def letor(folder):
    data = cr.make_ranking(40, 6, docs_per_query=12, seed=0)
    cr.write_letor(data, "train.txt")
    return data


def test_a_folder_is_one_of_shards_where_there_are_features(cli, letor, folder):
    cr.write_data(letor, "train.csv")
    cr.write_data(letor, "train.parquet")
    for name in ("train.txt", "train.csv", "train.parquet"):
        done = cli("convert", name, "-o", f"{name}-made/")
        assert done.code == 0, done.err
        assert "6 features (on disk)" in done.err
        np.testing.assert_array_equal(cr.read_data(f"{name}-made/").X.toarray(), letor.X)
    (folder / "judged.csv").write_text("qid,label,doc_id\n1,2,a\n1,0,b\n")
    assert cli("convert", "judged.csv", "-o", "judged/").code == 0
    assert (folder / "judged" / "qrels" / "test.tsv").is_file()
    # And back, or from one folder to another.
    assert cli("convert", "train.txt-made", "-o", "again.txt").code == 0
    assert (folder / "again.txt").read_bytes() == (folder / "train.txt").read_bytes()
    assert cli("convert", "train.txt-made", "-o", "half/", "--dtype", "float16").code == 0
    assert cr.read_data("half").X.stored_as == np.float16


def test_a_folder_must_be_new_or_forced_and_no_other_file(cli, letor, folder):
    assert cli("convert", "train.txt", "-o", "made/").code == 0
    done = cli("convert", "train.txt", "-o", "made/")
    assert (done.code, "Overwrite with --force" in done.err) == (2, True)
    assert cli("convert", "train.txt", "-o", "made/", "--force").code == 0
    (folder / "other").mkdir()
    (folder / "other" / "letter.txt").write_text("dear")
    done = cli("convert", "train.txt", "-o", "other/", "--force")
    assert (done.code, "must be a new or empty folder" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("train.txt",), "needs one output, as OUT or as --out; got none"),
        (("train.txt", "a.csv", "-o", "b.csv"), "needs one output, as OUT or as --out; got two"),
        (("train.txt", "-o", "a.csv", "--dtype", "uint8"), "--dtype goes with a folder of shards"),
        (("train.txt", "-o", "a/", "--dtype", "int8"), "unknown dtype 'int8'. Did you mean 'uint8'?"),
        (("train.txt", "-o", "a/", "--n-features", "3"), "must not exceed 3 (--n-features)"),
        (("train.txt", "-o", "none/a/"), "does not exist"),
    ],
)
def test_what_cannot_become_shards_is_refused(cli, letor, words, said):
    done = cli("convert", *words)
    assert (done.code, said in done.err.replace("\n", " ")) == (2, True), done.err


def test_every_command_takes_a_folder_and_those_that_write_data_make_one(cli, letor, folder):
    assert cli("convert", "train.txt", "-o", "data/").code == 0
    steps = (
        "corrupt data -o noisy --rate .2 --seed 1",
        "diagnose noisy",
        "find-issues noisy -o issues.parquet --method sour --option end=20",
        "clean noisy issues.parquet -o cleaned --min-doubt .5",
        "train cleaned -o model.txt --trees 5",
        "predict model.txt data -o scores.npy",
        "evaluate data scores.npy -m ndcg@10",
    )
    for step in steps:
        done = cli(*step.split())
        assert done.code == 0, (step, done.err)
    cleaned, noisy = cr.read_data("cleaned"), cr.read_data("noisy")
    assert 0 < cleaned.n_docs < noisy.n_docs
    np.testing.assert_array_equal(cleaned.X.toarray(), letor.X[cleaned.row_ids])
    # The same steps in memory end in the same model.
    assert cli("corrupt", "train.txt", "-o", "noisy.txt", "--rate", ".2", "--seed", "1").code == 0
    assert (cr.read_data("noisy.txt").y == noisy.y).all()
    for step in ("corrupt data -o noisy --rate .2", "clean noisy issues.parquet -o cleaned"):
        done = cli(*step.split())
        assert (done.code, "must not exist yet" in done.err) == (2, True), step
    done = cli("corrupt", "data", "-o", "data", "--rate", ".2", "--force")
    assert (done.code, "must differ from every input" in done.err) == (2, True)
    # A name with an ending is a file of that kind all the same.
    assert cli("corrupt", "data", "-o", "noisy.parquet", "--rate", ".2").code == 0
    assert (folder / "noisy.parquet").is_file()
