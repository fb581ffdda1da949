import hashlib

import pytest

from cleanrank.errors import MissingDataError, UnknownNameError
from cleanrank.experiments.sources import identity_of, load_splits, source_of
from tests.oracles import same_data

OPTIONS = {"n_queries": 50, "n_features": 6, "docs_per_query": 6.0}


class Notes(dict):
    def file_hash(self, *place):
        return self.get(place)

    def note_file(self, *place_and_hash):
        self[place_and_hash[:-1]] = place_and_hash[-1]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A made-up MQ2008 in the official layout."""
    for fold in range(1, 6):
        for i, name in enumerate(("train", "vali", "test")):
            path = tmp_path / "MQ2008" / f"Fold{fold}" / f"{name}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"1 qid:{fold}{i} 1:0.5 2:{i}\n0 qid:{fold}{i} 1:0.1 2:1\n")
    monkeypatch.setenv("CLEANRANK_DATA", str(tmp_path))
    return tmp_path / "MQ2008"


def test_synthetic_data_split_by_query_and_a_fold_is_a_draw():
    one, again, two = (load_splits("synthetic", fold, OPTIONS) for fold in (1, 1, 2))
    assert [d.n_queries for d in one] == [30, 10, 10]
    assert all(same_data(a, b) for a, b in zip(one, again, strict=True))
    assert not same_data(one.train, two.train)
    assert not set(one.train.query_ids) & set(one.test.query_ids)


def test_synthetic_test_queries_come_beside_the_others():
    train, validation, test = load_splits("synthetic", 1, {**OPTIONS, "n_queries": 40, "test_queries": 100})
    assert [d.n_queries for d in (train, validation, test)] == [30, 10, 100]
    assert len({*train.query_ids, *validation.query_ids, *test.query_ids}) == 140


def test_judged_passages_take_their_judge_and_nothing_else():
    source = source_of("DL19")
    assert (source.name, dict(source.options), source.folds) == ("dl19", {"judge": ""}, (1, 2, 3, 4, 5))


def test_catalogue_data_come_from_their_files(folder):
    found = load_splits("MQ2008", 2, {})
    assert [d.query_ids.astype(int).tolist() for d in found] == [[20], [21], [22]]


def test_identity_is_the_contents_of_all_parts(folder):
    expected = hashlib.sha256()
    for part, name in (("train", "train"), ("validation", "vali"), ("test", "test")):
        content = (folder / "Fold1" / f"{name}.txt").read_bytes()
        expected.update(f"{part} {hashlib.sha256(content).hexdigest()}\n".encode())
    assert identity_of("MQ2008", 1, {}) == expected.hexdigest()
    assert identity_of("MQ2008", 2, {}) != identity_of("MQ2008", 1, {})


@pytest.mark.parametrize("name", ["train", "vali", "test"])
def test_a_changed_file_is_other_data(folder, name):
    before = identity_of("MQ2008", 1, {})
    path = folder / "Fold1" / f"{name}.txt"
    path.write_text(path.read_text().replace("0.5", "0.6"))
    assert identity_of("MQ2008", 1, {}) != before


def test_hashes_are_noted_and_reused(folder):
    notes = Notes()
    found = identity_of("MQ2008", 1, {}, hashes=notes)
    assert len(notes) == 3
    assert identity_of("MQ2008", 1, {}, hashes=notes) == found
    for place in notes:
        notes[place] = "noted"
    assert identity_of("MQ2008", 1, {}, hashes=notes) != found


def test_data_that_are_not_there_say_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("CLEANRANK_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match="is not on this machine"):
        identity_of("MQ2008", 1, {})


def postings(folder):
    for part in ("train", "test"):
        for group in ("a", "b"):
            for number, word in enumerate(("moon", "cure", "orbit", "moon")):
                path = folder / f"20news/20news-bydate-{part}/{group}/{number}"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"H: 1\n\n{group}{group} {word}")


def test_texts_take_the_options_of_their_preparation(tmp_path, monkeypatch):
    monkeypatch.setenv("CLEANRANK_DATA", str(tmp_path))
    postings(tmp_path)
    found = load_splits("20-newsgroups", 1, {"terms": 3, "share": 0.5})
    assert [d.n_docs for d in found] == [4, 4, 16]
    assert found.test.n_features == 3
    source = source_of("20news")
    assert (source.name, set(source.options)) == (
        "20-newsgroups",
        {"terms", "weighting", "share", "negatives"},
    )


def test_sources_are_known_by_name_on_this_machine_or_not():
    assert source_of("MSLR WEB10K").name == "mslr-web10k"
    assert source_of("synthetic").folds is None
    with pytest.raises(UnknownNameError, match=r"unknown data set 'mq2080'\. Did you mean 'mq200"):
        source_of("mq2080")
    assert source_of("ml-100k").name == "movielens-100k"
    with pytest.raises(UnknownNameError, match="unknown data set 'movielens"):
        source_of("movielens-1m")


def test_the_identity_of_folders_is_that_of_their_files(tmp_path, monkeypatch):
    monkeypatch.setenv("CLEANRANK_DATA", str(tmp_path))
    postings(tmp_path)
    before = identity_of("20-newsgroups", 1, {})
    assert identity_of("20-newsgroups", 1, {}) == before
    (tmp_path / "20news/20news-bydate-train/b/2").write_text("H: 1\n\nother")
    assert identity_of("20-newsgroups", 1, {}) != before


def test_every_file_of_a_log_of_clicks_counts(tmp_path, monkeypatch):
    monkeypatch.setenv("CLEANRANK_DATA", str(tmp_path))
    (tmp_path / "ml-100k").mkdir()
    identities = []
    for name, text in (
        ("u.data", "1\t2\t5\t9\n"),
        ("u.user", "1|20|M|writer|1\n"),
        ("u.item", "2|x|01-Jan-1995\n"),
        ("u.item", "2|x|01-Jan-1996\n"),
        ("u.genre", "not read"),
    ):
        (tmp_path / "ml-100k" / name).write_text(text)
        identities.append(identity_of("ml-100k", 1, {}))
    # Without both tables neither is read; then each of them counts, and nothing else.
    assert identities[0] == identities[1]
    assert len(set(identities[1:4])) == 3
    assert identities[3] == identities[4]
