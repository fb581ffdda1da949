import io
import tarfile

import numpy as np
import pytest
from sklearn.datasets import _twenty_newsgroups as oracle
from sklearn.feature_extraction.text import CountVectorizer

import cleanrank as cr
from cleanrank.data.newsgroups import Document, body_of, make_splits, read_newsgroups
from cleanrank.errors import BadFileError, CleanrankError
from cleanrank.theory import auc_slope
from tests.oracles import same_data

GROUPS = ("alt.atheism", "sci.med", "sci.space")
WORDS = {"alt.atheism": "belief reason", "sci.med": "doctor cure", "sci.space": "orbit moon"}


def posting(group, number):
    quoted = "someone writes:\n> quotedword here\n"
    return f"From: headword\nNewsgroups: {group}\n\n{quoted}{WORDS[group]} the {number}\n\n--\nfootword"


def tar_of(path, members, mode="w:gz"):
    with tarfile.open(path, mode) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, tuple):
                info.type, info.linkname = content
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return path


def members(train=10, test=4):
    for part, count in (("train", train), ("test", test)):
        yield f"20news-bydate-{part}/", (tarfile.DIRTYPE, "")
        for group in GROUPS:
            for number in range(count):
                text = posting(group, f"{part}{number}")
                yield f"20news-bydate-{part}/{group}/{number}", text.encode("latin-1")


@pytest.fixture
def archive(tmp_path):
    return tar_of(tmp_path / "20news-bydate.tar.gz", members())


def test_a_group_is_a_query_over_all_documents(archive):
    splits = cr.load_dataset("20newsgroups", root=archive.parent)
    assert splits.made_validation
    for data, each in zip(splits, (8, 2, 4), strict=True):
        assert data.query_ids.tolist() == list(GROUPS)
        assert data.lengths.tolist() == [3 * each] * 3
        owner = np.array([d.split("/")[0] for d in data.doc_ids])
        np.testing.assert_array_equal(data.y, owner == data.qid)
    train, validation = (set(d.doc_ids) for d in (splits.train, splits.validation))
    assert not train & validation
    assert len(train | validation) == 30
    again, other = (cr.load_dataset("20news", root=archive.parent, seed=s) for s in (0, 1))
    assert all(same_data(a, b) for a, b in zip(splits, again, strict=True))
    assert set(other.validation.doc_ids) != validation


def test_a_document_has_the_same_features_in_every_list_and_no_place_of_its_own(archive):
    data = cr.load_dataset("20news", root=archive.parent).train
    blocks = [data.X[a:b].toarray() for a, b in zip(data.indptr, data.indptr[1:], strict=False)]
    np.testing.assert_array_equal(blocks[0], blocks[1])
    assert np.diff(np.flatnonzero(data.y[:24])).max() > 1


@pytest.mark.parametrize("weighting", ["counts", "tfidf"])
def test_words_are_those_of_training_documents_without_what_gives_them_away(archive, weighting):
    splits = cr.load_dataset("20news", root=archive.parent, weighting=weighting)
    names = splits.train.feature_names
    assert {"belief", "orbit", "the"} <= set(names)
    assert not {"headword", "quotedword", "footword", "writes", "test0"} & set(names)
    held = {d.split("/")[1] for d in splits.validation.doc_ids} - {
        d.split("/")[1] for d in splits.train.doc_ids
    }
    assert not {f"train{n}" for n in held} & set(names)
    if weighting == "tfidf":
        np.testing.assert_allclose(np.linalg.norm(splits.test.X.toarray(), axis=1), 1, rtol=1e-6)
    else:
        assert set(splits.test.X.data) == {1.0}
    few = cr.load_dataset("20news", root=archive.parent, terms=3)
    assert few.test.n_features == 3
    assert "the" in few.test.feature_names


def test_counts_are_scikit_learns():
    texts = ["a\n\nmoon moon orbit", "a\n\ncure the moon", "a\n\ncure cure cure", "a\n\nmoon the"]
    documents = [Document("train", "ab"[i % 2], str(i), t) for i, t in enumerate(texts)]
    documents.append(Document("test", "a", "9", "x\n\norbit orbit cure never"))
    splits = make_splits(documents, validation=0.5)
    kept = [int(d.split("/")[1]) for d in splits.train.doc_ids[: splits.train.lengths[0]]]
    expected = CountVectorizer(max_features=5000).fit([texts[i][3:] for i in kept])
    assert splits.train.feature_names == tuple(expected.get_feature_names_out())
    np.testing.assert_array_equal(
        splits.test.X.toarray()[:1], expected.transform(["orbit orbit cure never"]).toarray()
    )


@pytest.mark.parametrize(
    "text",
    [
        posting("sci.med", 1),
        "no header at all",
        "H: 1\n\n\n\nbody\n\n",
        "H: 1\n\nbody\n---\nfoot\n| quoted\nIn article <1> you said:\nleft",
        "H: 1\n\n-- \nfoot only",
        "H: 1\n\n> a\n>b\n > kept\nHe wrote: x",
        "",
    ],
)
def test_bodies_are_scikit_learns(text):
    expected = oracle.strip_newsgroup_quoting(
        oracle.strip_newsgroup_footer(oracle.strip_newsgroup_header(text))
    )
    assert body_of(text) == expected


def test_fewer_documents(archive):
    half = cr.load_dataset("20news", root=archive.parent, share=0.5)
    assert [d.lengths.tolist() for d in half] == [[12] * 3, [3] * 3, [12] * 3]
    assert half.train.y.mean() == pytest.approx(1 / 3)
    fewer = cr.load_dataset("20news", root=archive.parent, negatives=1)
    assert [d.lengths.tolist() for d in fewer] == [[16] * 3, [4] * 3, [12] * 3]
    assert fewer.train.y.mean() == pytest.approx(1 / 2)
    many = cr.load_dataset("20news", root=archive.parent, negatives=5)
    assert same_data(many.train, cr.load_dataset("20news", root=archive.parent).train)


def test_folders_read_as_the_archive_does(archive, tmp_path):
    folder = tmp_path / "other" / "20news"
    for name, content in members():
        if isinstance(content, bytes):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    assert same_data(
        cr.load_dataset("20news", root=tmp_path / "other").train,
        cr.load_dataset("20news", root=tmp_path).train,
    )


def test_only_postings_are_read_from_an_archive(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("H: 1\n\nsecretword")
    tricks = [
        ("20news-bydate-train/sci.med/link", (tarfile.SYMTYPE, str(secret))),
        ("20news-bydate-train/sci.med/hard", (tarfile.LNKTYPE, str(secret))),
        ("../20news-bydate-train/sci.med/77", b"x"),
        ("20news-bydate-train/../77", b"x"),
        ("/20news-bydate-train/sci.med/78", b"x"),
        ("README", b"x"),
    ]
    before = sorted(tmp_path.iterdir())
    path = tar_of(tmp_path / "a.tar.gz", [*members(), *tricks])
    found = read_newsgroups([path])
    assert len(found) == 42
    assert not any("secretword" in d.text for d in found)
    assert sorted(tmp_path.iterdir()) == sorted([*before, path])


def test_bad_archives(tmp_path, monkeypatch):
    path = tmp_path / "20news-bydate.tar.gz"
    path.write_bytes(b"no archive")
    with pytest.raises(BadFileError, match="cannot be unpacked"):
        cr.load_dataset("20news", root=tmp_path)
    tar_of(path, members())
    path.write_bytes(path.read_bytes()[:400])
    with pytest.raises(BadFileError, match="cannot be unpacked"):
        cr.load_dataset("20news", root=tmp_path)
    tar_of(path, members(test=0))
    with pytest.raises(BadFileError, match="holds no 20news-bydate-train"):
        cr.load_dataset("20news", root=tmp_path)
    tar_of(path, [*members(), *members()])
    with pytest.raises(BadFileError, match="comes twice"):
        cr.load_dataset("20news", root=tmp_path)
    tar_of(path, members())
    monkeypatch.setattr("cleanrank.data.newsgroups.MOST_IN_ALL", 1000)
    with pytest.raises(BadFileError, match="passes 1,000 bytes"):
        cr.load_dataset("20news", root=tmp_path)
    monkeypatch.setattr("cleanrank.data.newsgroups.MOST_BYTES", 10)
    with pytest.raises(BadFileError, match="too many for a posting"):
        cr.load_dataset("20news", root=tmp_path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"share": 0.0}, "share must be a number > 0 and <= 1"),
        ({"validation": 1.0}, "validation must be a number > 0 and < 1"),
        ({"terms": 0}, "terms must be an integer >= 1"),
        ({"negatives": -1}, "negatives must be an integer >= 0"),
        ({"weighting": "tf-idf"}, "Did you mean 'tfidf'"),
    ],
)
def test_complaints(archive, options, words):
    with pytest.raises(CleanrankError, match=words):
        cr.load_dataset("20news", root=archive.parent, **options)


def test_too_few_and_empty_documents():
    one = [Document("train", "a", "1", "\n\nmoon"), Document("test", "a", "1", "")]
    with pytest.raises(CleanrankError, match="group 'a' must have two training documents; got 1"):
        make_splits(one)
    with pytest.raises(CleanrankError, match="training documents must hold words"):
        make_splits([Document("train", "a", str(n), "H: moon\n\n") for n in range(3)])


@pytest.mark.data
def test_the_real_set(data_root):
    train, validation, test = cr.load_dataset("20newsgroups", root=data_root, share=0.2, terms=500)
    assert test.n_queries == 20
    assert set(test.lengths) == {7_532}
    assert train.lengths[0] + validation.lengths[0] == pytest.approx(0.2 * 11_314, abs=20)
    assert test.y.mean() == pytest.approx(0.05)
    # Flipped labels shrink what AUC says of a scorer by the factor that this prevalence has.
    rng = np.random.default_rng(0)
    scores = test.y + rng.normal(size=test.n_docs)
    clean = cr.evaluate(scores, test, "auc").means["auc"]
    noisy = cr.corrupt(test, "class-conditional", rate=0.1, seed=0).data
    slope = (cr.evaluate(scores, noisy, "auc").means["auc"] - 0.5) / (clean - 0.5)
    assert slope == pytest.approx(auc_slope(prevalence=0.05, gamma0=0.9, gamma1=0.9), abs=0.02)
    assert auc_slope(prevalence=0.05, gamma0=0.9, gamma1=0.9) == pytest.approx(0.3156, abs=1e-4)
