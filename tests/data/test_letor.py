import gzip
import lzma
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

import cleanrank as cr
from cleanrank.data import files
from cleanrank.data.letor import read_letor, write_letor
from cleanrank.errors import BadFileError, InvalidInputError, MissingDataError
from cleanrank.ragged import from_arrays


@pytest.fixture
def read(tmp_path):
    """Reads text from a file, without the cache."""

    def read_text(text, **options):
        path = tmp_path / "some.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_letor(path, cache=False, **options)

    return read_text


def test_a_file_is_read_as_written(read):
    data = read(
        "2 qid:10 1:0.5 2:1 4:-3e-2 #docid = GX-1 inc = 0.1 prob = 0.2\n"
        "0 qid:11 1:.25 3:7. # docid=GX-2\n"
        "\n# only a comment\n"
        "1.0 qid:10 2:nan # D7 rest\r\n"
        "+3\tqid:11\t \t4:1E1"
    )
    np.testing.assert_array_equal(
        data.X, np.array([[0.5, 1, 0, -0.03], [0, np.nan, 0, 0], [0.25, 0, 7, 0], [0, 0, 0, 10]], np.float32)
    )
    assert data.X.dtype == np.float32
    assert data.y.tolist() == [2, 1, 0, 3]
    assert data.query_ids.tolist() == [10, 11]
    assert data.query_ids.dtype == np.int64
    assert data.row_ids.tolist() == [0, 2, 1, 3]
    assert data.indptr.tolist() == [0, 2, 4]
    assert data.doc_ids.tolist() == ["GX-1", "D7", "GX-2", ""]


@pytest.mark.parametrize(
    ("text", "options", "columns"),
    [
        ("0 qid:1 1:5 2:6", {}, [5, 6]),
        ("0 qid:1 0:5 2:6", {}, [5, 0, 6]),
        ("0 qid:1 1:5 2:6", {"zero_based": True}, [0, 5, 6]),
        ("0 qid:1 1:5 2:6", {"n_features": 4}, [5, 6, 0, 0]),
        ("0 qid:1 0:5 2:6", {"n_features": 3}, [5, 0, 6]),
        ("0 qid:1 3:5 1:6", {}, [6, 0, 5]),
        ("0 qid:1", {"n_features": 2, "dense": True}, [0, 0]),
        ("0 qid:1", {}, []),
    ],
)
def test_feature_indices_and_width(read, text, options, columns):
    assert read(text, **options).X.tolist() == [columns]


def test_an_index_0_anywhere_means_zero_based_even_far_behind_the_sample(read):
    many = "".join(f"{k % 3} qid:{k // 50} 1:1 2:{k} 3:1\n" for k in range(40_000))
    data = read(many + "1 qid:z 0:9 3:1\n")
    assert data.n_features == 4
    assert data.X[-1].tolist() == [9, 0, 0, 1]
    assert data.X[5].tolist() == [0, 1, 5, 1]


def test_wrong_guesses_from_the_sample_are_put_right(read):
    full = "".join(f"0 qid:{k // 50} 1:1 2:1 3:1\n" for k in range(30_000))
    wide = read(full + "0 qid:x 500:1\n" + full)
    assert isinstance(wide.X, scipy.sparse.csr_matrix)
    assert wide.X.shape == (60_001, 500)
    assert (wide.X.nnz, float(wide.X[wide.row_ids == 30_000, 499].sum())) == (180_001, 1.0)
    thin = "".join(f"0 qid:{k // 50} 9:0 {k % 8 + 1}:1\n" for k in range(7000))
    rest = "".join(f"0 qid:{k // 50} {' '.join(f'{c}:2' for c in range(1, 10))}\n" for k in range(20_000))
    dense = read(thin + rest)
    assert isinstance(dense.X, np.ndarray)
    assert dense.X.sum() == 7000 + 2 * 9 * 20_000


def test_dense_from_30_percent_on(read):
    assert isinstance(read("0 qid:1 1:1 2:1 3:1 10:0").X, np.ndarray)
    sparse = read("0 qid:1 1:1 2:1 10:0").X
    assert isinstance(sparse, scipy.sparse.csr_matrix)
    assert (sparse.shape, sparse.nnz, sparse.dtype) == ((1, 10), 2, np.float32)
    assert isinstance(read("0 qid:1 1:1 10:0", dense=True).X, np.ndarray)
    unsorted = read("0 qid:1 3:1 1:2", dense=False).X
    assert unsorted.indices.tolist() == [0, 2]
    assert unsorted.toarray().tolist() == [[2, 0, 1]]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["7", "-3", "7"], [7, -3]),
        (["7", "07", "7"], ["7", "07"]),
        (["é", "b", "é"], ["é", "b"]),
        (["9223372036854775808", "1", "1"], ["9223372036854775808", "1"]),
        (["q:1", "q=2", "+1"], ["q:1", "q=2", "+1"]),
    ],
)
def test_query_ids_are_numbers_only_if_all_are(read, ids, expected):
    data = read("".join(f"0 qid:{i} 1:1\n" for i in ids))
    assert data.query_ids.tolist() == expected


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zstandard.ZstdCompressor().compress])
def test_compression_is_told_by_the_first_bytes(read, pack):
    assert read(pack(b"1 qid:1 1:1\n0 qid:1 1:2")).X.tolist() == [[1], [2]]


def test_several_files_are_one_data_set(tmp_path):
    (tmp_path / "a").write_text("0 qid:1 1:1\n1 qid:2 1:2 #a")
    (tmp_path / "b").write_text("2 qid:2 0:7 1:3 #b\n0 qid:3 1:4\n")
    data = read_letor([tmp_path / "a", tmp_path / "b"], cache=False)
    assert data.query_ids.tolist() == [1, 2, 3]
    assert data.indptr.tolist() == [0, 1, 3, 4]
    assert data.X.tolist() == [[0, 1], [0, 2], [7, 3], [0, 4]]
    assert data.row_ids.tolist() == [0, 1, 2, 3]
    assert data.doc_ids.tolist() == ["", "a", "b", ""]
    mixed = read_letor([tmp_path / "b", tmp_path / "a"], cache=False)
    assert mixed.row_ids.tolist() == [0, 3, 1, 2]
    with pytest.raises(InvalidInputError, match="at least one file"):
        read_letor([])


def test_a_bad_line_in_the_second_file_names_that_file(tmp_path):
    (tmp_path / "a").write_text("0 qid:1 1:1\n")
    (tmp_path / "b").write_text("0 qid:1 1:1\n0 qid:1 1:x\n")
    with pytest.raises(BadFileError, match=r"line 2 of .*b") as caught:
        read_letor([tmp_path / "a", tmp_path / "b"], cache=False)
    assert (caught.value.path, caught.value.line) == (str(tmp_path / "b"), 2)


def test_side_files_of_lightgbm(tmp_path):
    path = tmp_path / "rank.train"
    path.write_text("0 1:1\n1 1:2\n2 1:3\n")
    with pytest.raises(BadFileError, match=r"name its query.*line 1.*rank.train.query"):
        read_letor(path, cache=False)
    (tmp_path / "rank.train.query").write_text("2\n1\n")
    (tmp_path / "rank.train.weight").write_text("1\n0.1\r\n3e0\n\n")
    (tmp_path / "rank.train.position").write_text("0\n1\n0\n")
    data = read_letor(path, cache=False)
    assert data.indptr.tolist() == [0, 2, 3]
    assert data.query_ids.tolist() == [0, 1]
    assert data.weights.tolist() == [1, np.float32(0.1), 3]
    assert data.positions.tolist() == [1, 2, 1]
    again = read_letor([path, path], cache=False)
    assert again.indptr.tolist() == [0, 2, 3, 5, 6]
    (tmp_path / "rank.train.query").write_text("2\n2\n")
    with pytest.raises(BadFileError, match="sum to the 3 rows; got 4"):
        read_letor(path, cache=False)
    (tmp_path / "rank.train.query").write_text("2\nx\n")
    with pytest.raises(BadFileError, match="whole number >= 1; got 'x' at line 2"):
        read_letor(path, cache=False)


def test_side_files_follow_rows_that_are_grouped(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"0 qid:1 1:1\n1 qid:2 1:2\n2 qid:1 1:3\n"))
    (tmp_path / "a.txt.weight").write_text("1\n2\n3\n")
    (tmp_path / "a.txt.gz.position").write_text("1\n5\n9\n")
    data = read_letor(path, cache=False)
    assert (data.weights.tolist(), data.positions.tolist()) == ([1, 3, 2], [1, 9, 5])
    (tmp_path / "a.txt.weight").write_text("1\n2\n")
    with pytest.raises(BadFileError, match="each of the 3 rows; got 2"):
        read_letor(path, cache=False)
    (tmp_path / "a.txt.weight").write_text("1\n-2\n3")
    with pytest.raises(BadFileError, match="line 2"):
        read_letor(path, cache=False)


def test_files_with_and_without_query_ids_do_not_mix(tmp_path):
    (tmp_path / "a").write_text("0 qid:1 1:1\n")
    (tmp_path / "b").write_text("0 1:1\n")
    (tmp_path / "b.query").write_text("1\n")
    with pytest.raises(InvalidInputError, match="some of each"):
        read_letor([tmp_path / "a", tmp_path / "b"], cache=False)


@pytest.mark.parametrize("text", ["", "\n\n", "# only comments\n", "\ufeff"])
def test_a_file_without_rows_is_refused(read, text):
    with pytest.raises(BadFileError, match="at least one row"):
        read(text)


def test_an_absurd_width_allocates_nothing(read):
    data = read("0 qid:1 1:1 2147483646:1\n")
    assert data.X.shape == (1, 2147483646)
    with pytest.raises(InvalidInputError, match="must fit into memory"):
        read("0 qid:1 1:1 2147483646:1\n" * 1000, dense=True)
    with pytest.raises(BadFileError, match="must not exceed 2147483646; got '4294967297:1' at line 2"):
        read("0 qid:1 1:1\n0 qid:1 4294967297:1\n")


@pytest.mark.parametrize(
    "options",
    [{"dense": "no"}, {"zero_based": "maybe"}, {"n_features": 0}, {"n_jobs": 0}, {"n_features": 2**31}],
)
def test_options_are_checked(read, options):
    with pytest.raises(InvalidInputError, match=next(iter(options))):
        read("0 qid:1 1:1", **options)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(MissingDataError, match=r"absent\.txt"):
        read_letor(tmp_path / "absent.txt")


def test_progress_reaches_the_end_and_feature_names_are_kept(read, monkeypatch):
    monkeypatch.setattr(files, "PART", 10)
    seen = []
    data = read(
        "0 qid:1 1:1\n" * 9, progress=lambda done, whole: seen.append((done, whole)), feature_names=["f"]
    )
    assert seen[-1] == (108, 108)
    assert sorted(seen) == seen
    assert data.feature_names == ("f",)


def random_data(rng, n=300, width=7, sparse=False):
    X = rng.normal(size=(n, width)).astype(np.float32) * 10.0 ** rng.integers(-9, 9, (n, width))
    X[rng.random((n, width)) < (0.9 if sparse else 0.2)] = 0
    X[rng.random((n, width)) < 0.02] = np.nan
    return from_arrays(
        scipy.sparse.csr_matrix(X.astype(np.float32)) if sparse else X.astype(np.float32),
        rng.integers(0, 5, n),
        qid=rng.integers(0, 40, n),
        doc_ids=[f"d{k}" for k in range(n)],
        weights=rng.random(n),
        positions=rng.integers(1, 20, n),
    )


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_any_number_of_threads_and_parts_gives_the_same(tmp_path, monkeypatch, n_jobs):
    write_letor(random_data(np.random.default_rng(0)), tmp_path / "a")
    whole = read_letor(tmp_path / "a", cache=False, n_jobs=1)
    monkeypatch.setattr(files, "PART", 300)
    monkeypatch.setattr(files, "SMALL", 0)
    cut = read_letor(tmp_path / "a", cache=False, n_jobs=n_jobs)
    assert_same(cut, whole)


def assert_same(a, b, but=()):
    for name in ("X", "y", "indptr", "query_ids", "row_ids", "doc_ids", "weights", "positions"):
        left, right = getattr(a, name), getattr(b, name)
        if name not in but:
            assert type(left) is type(right), name
            if scipy.sparse.issparse(left):
                left, right = left.toarray(), right.toarray()
            np.testing.assert_array_equal(left, right, err_msg=name)


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
@pytest.mark.parametrize("sparse", [False, True])
def test_what_is_written_is_read_back(tmp_path, suffix, sparse):
    data = random_data(np.random.default_rng(1), sparse=sparse)
    path = tmp_path / f"a.txt{suffix}"
    assert write_letor(data, path) == path
    back = read_letor(path, cache=False, dense=not sparse)
    assert_same(back, data, but=("row_ids",))
    assert back.row_ids.tolist() == list(range(data.n_docs))
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        path.name,
        path.name + ".position",
        path.name + ".weight",
    ]


IDS = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zs"), exclude_characters="#"), min_size=1, max_size=6
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_data_survive_the_round_trip(tmp_path, data):
    n, width = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 5))
    floats = st.floats(width=32, allow_infinity=False)
    X = np.array(data.draw(st.lists(floats, min_size=n * width, max_size=n * width)), np.float32)
    ids = data.draw(st.one_of(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=n, max_size=n),
                              st.lists(IDS.map("q".__add__), min_size=n, max_size=n)))  # fmt: skip
    docs = data.draw(st.none() | st.lists(IDS, min_size=n, max_size=n))
    y = data.draw(st.lists(st.integers(0, 65_535), min_size=n, max_size=n))
    made = from_arrays(X.reshape(n, width), y, qid=ids, doc_ids=docs)
    back = read_letor(write_letor(made, tmp_path / "a.txt"), cache=False, dense=True)
    assert_same(back, made, but=("row_ids",))
    known = ~np.isnan(made.X)
    assert np.array_equal(np.signbit(back.X[known]), np.signbit(made.X[known]))


@pytest.mark.parametrize("cache", [False, True])
def test_comments_are_kept_whole(tmp_path, cache):
    lines = [
        "2 qid:10 1:0.5 #docid = GX029-35 inc = 0.0119881192468859 prob = 0.139842",
        "0 qid:11 1:0.25 #docid = GX000-1",
        "1 qid:10 1:1 #docid = GX-é inc = 1\tprob = ü",
        "1 qid:11 1:2",
    ]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    for _ in range(2):
        data = read_letor(tmp_path / "a.txt", cache=cache)
        assert data.extra["comment"].tolist() == [
            "inc = 0.0119881192468859 prob = 0.139842", "inc = 1\tprob = ü", "", "",
        ]  # fmt: skip
    noisy = cr.corrupt(data, "uniform:0.5", seed=1).data
    written = write_letor(noisy, tmp_path / "b.txt").read_text().splitlines()
    for k, (line, row) in enumerate(zip(written, data.row_ids.tolist(), strict=True)):
        assert line == f"{noisy.y[k]}{lines[row][1:]}".replace("\t", " ")
    part = read_letor(write_letor(data.drop([0]), tmp_path / "c.txt"), cache=False)
    assert part.extra["comment"].tolist() == ["inc = 1 prob = ü", "", ""]


def test_comments_of_other_tables_stay_on_their_line(tmp_path):
    notes = np.array(["two\nlines", None, "x" * 5000, "  "], dtype=object)
    data = from_arrays(
        np.ones((4, 1)), [0, 1, 0, 1], group=[4], doc_ids=list("abcd"), extra={"comment": notes}
    )
    back = read_letor(write_letor(data, tmp_path / "a.txt"), cache=False)
    assert back.extra["comment"].tolist() == ["two lines", "", "x" * 4096, ""]
    assert back.y.tolist() == [0, 1, 0, 1]


def test_our_files_are_read_by_scikit_learn_and_theirs_by_us(tmp_path):
    data = replace(random_data(np.random.default_rng(2)), weights=None, positions=None)
    X, y, qid = load_svmlight_file(str(write_letor(data, tmp_path / "a")), query_id=True, zero_based=False)
    np.testing.assert_array_equal(X.toarray().astype(np.float32), data.X)
    np.testing.assert_array_equal(y, data.y)
    np.testing.assert_array_equal(qid, data.qid)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"X": np.array([[np.inf], [0]])}, "finite or nan"),
        ({"query_ids": np.array(["a b"])}, "query ids must have no blanks"),
        ({"query_ids": np.array([""])}, "query ids"),
        ({"query_ids": np.array(["a#b"])}, "query ids"),
        ({"doc_ids": np.array(["a", "b\n0 qid:1"])}, "document ids"),
        ({"doc_ids": np.array(["a", "x" * 1025])}, "at most 1024 bytes"),
        ({"doc_ids": np.array(["a", "\ud800"])}, "valid Unicode"),
        ({"gains": np.array([0.5, 1])}, "gains cannot"),
        ({"y": np.array([0, 70_000])}, "grades up to 65535"),
        ({"positions": np.array([0, 1])}, "positions must count from 1"),
        ({"indptr": np.array([0, 2, 2]), "query_ids": np.array([1, 2])}, "none in query '2'"),
    ],
)
def test_what_the_format_cannot_say_is_refused_and_nothing_is_written(tmp_path, change, match):
    data = replace(from_arrays([[1.0], [2.0]], [0, 1], qid=[1, 1]), **change)
    with pytest.raises(InvalidInputError, match=match):
        write_letor(data, tmp_path / "a.txt")
    assert list(tmp_path.iterdir()) == []


def test_foreign_side_files_beside_the_target_are_refused(tmp_path):
    (tmp_path / "a.txt.weight").write_text("1\n")
    with pytest.raises(InvalidInputError, match=r"a\.txt\.weight. would be read as"):
        write_letor(from_arrays([[1.0]], [0], qid=[1]), tmp_path / "a.txt")


REAL = {
    "MQ2008": ("MQ2008/Fold{}/test.txt", 784, 15_211, 46),
    "OHSUMED": ("OHSUMED/QueryLevelNorm/Fold{}/test.txt", 106, 16_140, 45),
}


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_published_counts_of_the_test_parts(data_root, name):
    pattern, queries, documents, features = REAL[name]
    data = read_letor([data_root / pattern.format(fold) for fold in range(1, 6)], cache=False)
    assert (data.n_queries, data.n_docs, data.n_features) == (queries, documents, features)
    assert isinstance(data.X, np.ndarray)
    assert len(data.doc_ids) == documents
    assert (data.doc_ids != "").all()


@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "queries", "grades"),
    [
        ("rankeval_msn1_fold1/msn1.fold1.train.5k.txt", 43, [2792, 1458, 665, 55, 30]),
        ("rankeval_msn1_fold1/msn1.fold1.test.5k.txt", 43, [2847, 1442, 579, 98, 34]),
        ("martinpetlus/train.txt", 11, [622, 300, 124, 10, 7]),
        ("martinpetlus/test.txt", 13, [478, 548, 267, 40, 12]),
    ],
)
def test_the_mslr_sample_agrees_with_scikit_learn(data_root, file, queries, grades):
    path = data_root / "MSLR-sample" / file
    data = read_letor(path, cache=False)
    assert (data.n_queries, data.n_features) == (queries, 136)
    assert np.bincount(data.y).tolist() == grades
    X, y, qid = load_svmlight_file(str(path), query_id=True, zero_based=False)
    np.testing.assert_array_equal(data.X[np.argsort(data.row_ids)], X.toarray().astype(np.float32))
    np.testing.assert_array_equal(data.y[np.argsort(data.row_ids)], y)
    np.testing.assert_array_equal(data.qid[np.argsort(data.row_ids)], qid)


@pytest.mark.parametrize(
    "options", [{"n_features": 5.0}, {"n_features": "5"}, {"n_jobs": "2"}, {"n_jobs": 1.5}]
)
def test_options_of_another_kind_are_refused(tmp_path, options):
    (tmp_path / "a.txt").write_text("1 qid:1 1:2\n")
    with pytest.raises(InvalidInputError, match=next(iter(options))):
        read_letor(tmp_path / "a.txt", cache=False, **options)


@pytest.mark.parametrize("path", [None, 5, b"a.txt"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(InvalidInputError, match="path or a list of paths"):
        read_letor(path)
