import numpy as np
import pytest
import scipy.sparse

from cleanrank.data import _letor_writer as writer
from cleanrank.data._letor_writer import letor_blocks
from cleanrank.ragged import from_arrays


def text_of(data, n_jobs=1):
    return b"".join(bytes(block) for block in letor_blocks(data, n_jobs)).decode()


def naive(data):
    """The same text, value by value, with NumPy's shortest digits."""
    lines = []
    for row, (y, qid) in enumerate(zip(data.y, data.qid, strict=True)):
        cells = [f"{c + 1}:{float(str(v))!r}" for c, v in enumerate(data.X[row])]
        lines.append(" ".join([str(y), f"qid:{qid}", *cells]) + f" #docid = {data.doc_ids[row]}")
    return lines


@pytest.mark.parametrize("block", [1, 20, 1 << 16])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_text_equals_the_naive_one_number_by_number(monkeypatch, block, n_jobs):
    monkeypatch.setattr(writer, "BLOCK_VALUES", block)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 6)).astype(np.float32) * 10.0 ** rng.integers(-20, 20, (50, 6))
    data = from_arrays(
        X.astype(np.float32), rng.integers(0, 5, 50), qid=rng.integers(0, 9, 50), doc_ids=range(50)
    )
    lines = text_of(data, n_jobs).splitlines()
    assert len(lines) == 50
    for ours, theirs in zip(lines, naive(data), strict=True):
        ours, theirs = ours.split(" "), theirs.split(" ")
        assert (ours[:2], ours[8:]) == (theirs[:2], theirs[8:])
        for a, b in zip(ours[2:8], theirs[2:8], strict=True):
            assert a.split(":")[0] == b.split(":")[0]
            assert np.float32(float(a.split(":")[1])) == np.float32(float(b.split(":")[1]))


def test_a_sparse_row_names_its_stored_values_and_the_first_the_width():
    X = scipy.sparse.csr_matrix(np.array([[0, 2, 0, 0], [0, 0, 0, 0], [1, 0, 0, 3]], np.float32))
    data = from_arrays(X, [0, 1, 2], qid=["a", "a", "b"])
    assert text_of(data) == "0 qid:a 2:2 4:0\n1 qid:a\n2 qid:b 1:1 4:3\n"


def test_ids_beyond_ascii():
    data = from_arrays([[1.0], [2.0]], [0, 1], qid=["é", "z"], doc_ids=["日本", ""])
    assert text_of(data) == "0 qid:é 1:1 #docid = 日本\n1 qid:z 1:2\n"
