import numpy as np
import pytest

from cleanrank.data.catalogue import (
    CATALOGUE,
    PARTS,
    data_root,
    dataset_path,
    describe,
    entry_of,
    find,
    list_datasets,
    load_dataset,
    part_files,
)
from cleanrank.data.split import Splits
from cleanrank.errors import InvalidInputError, MissingDataError, UnknownNameError
from tests.oracles import same_data


def letor(path, qids, grade=1, features="1:0.5 3:2"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{g} qid:{q} {features}\n" for q in qids for g in (grade, 0)))


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Small files in the official layouts."""
    monkeypatch.delenv("CLEANRANK_DATA", raising=False)
    for fold in range(1, 6):
        for part, qids in (("train", range(3)), ("vali", [3]), ("test", [4])):
            letor(tmp_path / f"MSLR-WEB10K/Fold{fold}/{part}.txt", [10 * fold + q for q in qids], 4)
            spelt = {"train": "trainingset", "vali": "validationset", "test": "testset"}[part]
            letor(tmp_path / f"Gov/QueryLevelNorm/2003_td_dataset/Fold{fold}/{spelt}.txt", qids)
    for n in (1, 2):
        for part, qids in (("train", [1, 2]), ("valid", [3]), ("test", [4])):
            letor(tmp_path / f"ltrc_yahoo/set{n}.{part}.txt", [n * 100 + q for q in qids], 2, "1:.1 699:.5")
    letor(tmp_path / "istella-letor/full/train.txt", range(10), 4)
    letor(tmp_path / "istella-letor/full/test.txt", range(10, 12), 4)
    for part, qids in (("train", range(3)), ("vali", [3]), ("test", [4])):
        letor(tmp_path / f"istella-s-letor/sample/{part}.txt", qids)
        letor(tmp_path / f"Istella-X/{part}.txt", [100 + q for q in qids])
    return tmp_path


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("MQ2008", "mq2008"),
        ("mslr10k", "mslr-web10k"),
        ("MSLR-30K", "mslr-web30k"),
        ("web30k", "mslr-web30k"),
        ("Yahoo Set1", "yahoo-ltrc-1"),
        ("yahoo2", "yahoo-ltrc-2"),
        ("IstellaX", "istella-x"),
        ("istella_s", "istella-s"),
        ("20news", "20-newsgroups"),
        ("ML-100K", "movielens-100k"),
        ("TD 2003", "td2003"),
    ],
)
def test_names_are_taken_in_any_spelling(written, name):
    assert entry_of(written).name == name


def test_an_unknown_name_lists_the_known_and_the_closest():
    with pytest.raises(UnknownNameError, match=r"'mq2009'. Did you mean 'mq2008'\? Known: mq2007, mq2008"):
        entry_of("mq2009")


@pytest.mark.parametrize(
    ("name", "columns", "sizes"),
    [
        ("mslr-web10k", 136, (3, 1, 1)),
        ("td2003", 64, (3, 1, 1)),
        ("yahoo-ltrc-1", 700, (2, 1, 1)),
        ("yahoo-ltrc-2", 700, (2, 1, 1)),
        ("istella", 220, (8, 2, 2)),
        ("istella-s", 220, (3, 1, 1)),
        ("istella-x", 220, (3, 1, 1)),
    ],
)
def test_official_layouts_are_found_and_loaded_at_full_width(made, name, columns, sizes):
    splits = load_dataset(name, root=made, cache=False)
    assert isinstance(splits, Splits)
    train, validation, test = splits
    assert tuple(part.n_queries for part in splits) == sizes
    assert {part.n_features for part in (train, validation, test)} == {columns}
    assert splits.made_validation == (name == "istella")
    assert not set(train.query_ids) & set(validation.query_ids)


def test_folds_and_parts(made):
    assert load_dataset("mslr-web10k", fold=3, root=made, cache=False).test.query_ids.tolist() == [34]
    assert load_dataset("MSLR-WEB10K", 2, "validation", made, cache=False).query_ids.tolist() == [23]
    with pytest.raises(InvalidInputError, match=r"fold must be one of 1, 2, 3, 4, 5 for mslr-web10k; got 6"):
        load_dataset("mslr-web10k", fold=6, root=made)
    with pytest.raises(InvalidInputError, match="fold must be one of 1 for istella-x"):
        load_dataset("istella-x", fold=2, root=made)
    with pytest.raises(UnknownNameError, match="Did you mean 'validation'"):
        load_dataset("mslr-web10k", part="valid", root=made)
    listed = [part_files(find("td2003", made), part, 2) for part in PARTS]
    assert [[path.name for path in paths] for paths in listed] == [
        ["trainingset.txt"],
        ["validationset.txt"],
        ["testset.txt"],
    ]


def test_a_made_validation_part_is_seeded_and_leaves_no_query_out(made):
    first, again, other = (load_dataset("istella", root=made, seed=s, cache=False) for s in (0, 0, 1))
    assert same_data(first.validation, again.validation)
    assert set(first.validation.query_ids) != set(other.validation.query_ids)
    assert sorted([*first.train.query_ids, *first.validation.query_ids]) == list(range(10))
    alone = load_dataset("istella", root=made, part="validation", cache=False)
    assert same_data(alone, first.validation)
    half = load_dataset("istella", root=made, validation=0.5, cache=False)
    assert half.validation.n_queries == 5


def test_what_is_not_there_says_what_was_looked_for_and_how_to_get_it(made, monkeypatch):
    with pytest.raises(MissingDataError) as caught:
        load_dataset("mslr-web30k", root=made)
    said = str(caught.value)
    for words in (
        "mslr-web30k is not on this machine",
        "train.txt",
        "Fold1..Fold5",
        str(made / "MSLR-WEB30K"),
    ):
        assert words in said
    for words in ("MSLR-WEB30K.zip", "microsoft.com", "research use"):
        assert words in said
    with pytest.raises(
        MissingDataError, match=r"^mslr-web30k: no data folder .*Set CLEANRANK_DATA .* root= in Python"
    ):
        load_dataset("mslr-web30k")
    monkeypatch.setenv("CLEANRANK_DATA", str(made / "no"))
    with pytest.raises(MissingDataError, match=r"CLEANRANK_DATA names .*no folder"):
        data_root()
    monkeypatch.setenv("CLEANRANK_DATA", str(made))
    assert find("istella-x").folder == made / "Istella-X"
    (made / "Istella-X/vali.txt").unlink()
    with pytest.raises(MissingDataError, match=r"istella-x lacks its validation part: there is no vali.txt"):
        load_dataset("istella-x", cache=False)


def test_the_table_lists_every_set_and_knows_what_is_here(made):
    rows = {row.name: row for row in list_datasets(made)}
    assert list(rows) == list(CATALOGUE)
    assert rows["istella"].path == made / "istella-letor/full"
    assert rows["mq2007"].path is None
    assert rows["mq2007"].documents == 69_623
    assert rows["td2004"].documents is None
    assert all(row.path is None for row in list_datasets(made / "Istella-X"))


def test_describe_tells_all_and_needs_no_data(made, monkeypatch):
    told = describe("yahoo")
    assert told["path"] == ""
    train = {(row["part"], row["what"]): row["value"] for row in told["statistics"]}
    assert train["train", "queries"] == 19_944
    assert describe("yahoo", made)["path"] == str(made / "ltrc_yahoo")


def test_paths(made):
    assert dataset_path("td2003", made) == made / "Gov/QueryLevelNorm/2003_td_dataset"
    (made / "20news-bydate.tar.gz").write_bytes(b"")
    assert dataset_path("20news", made) == made / "20news-bydate.tar.gz"


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "queries", "documents"),
    [("mq2008", (471, 157, 156), (9630, 2707, 2874)), ("ohsumed", (63, 21, 22), (9219, 3538, 3383))],
)
def test_real_fold_one(data_root, name, queries, documents):
    splits = load_dataset(name, fold=1, root=data_root, cache=False)
    assert tuple(part.n_queries for part in splits) == queries
    assert tuple(part.n_docs for part in splits) == documents
    assert np.isfinite(splits.train.X).all()


@pytest.mark.data
def test_real_mslr_sample(data_root):
    splits = load_dataset("mslr-sample", root=data_root, cache=False)
    assert (splits.train.n_queries, splits.validation.n_queries, splits.test.n_queries) == (43, 11, 56)
    assert splits.train.n_docs + splits.validation.n_docs == 6_063
    assert splits.made_validation
    assert splits.test.n_features == 136


def test_a_root_that_is_no_folder_is_not_taken_for_an_empty_one(tmp_path, monkeypatch):
    with pytest.raises(MissingDataError, match="no folder"):
        list_datasets(tmp_path / "gone")
    monkeypatch.setenv("CLEANRANK_DATA", str(tmp_path / "gone"))
    with pytest.raises(MissingDataError, match="CLEANRANK_DATA names"):
        list_datasets()
