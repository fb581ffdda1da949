import json

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cleanrank.errors import CleanrankError
from cleanrank.rankers.neural.checkpoint import read_tensors, write_tensors

TYPES = ["<f8", "<f4", "<f2", "<i8", "<i4", "<i2", "|i1", "|u1", "|b1"]
arrays = st.sampled_from(TYPES).flatmap(
    lambda code: hnp.arrays(np.dtype(code), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)
named = st.dictionaries(
    st.text(min_size=1, max_size=8).filter(lambda n: n != "__metadata__"), arrays, max_size=5
)


def same(a, b):
    return set(a) == set(b) and all(
        a[n].shape == b[n].shape and a[n].dtype == b[n].dtype and a[n].tobytes() == b[n].tobytes() for n in a
    )


@given(named)
def test_the_safetensors_package_reads_what_we_write(tmp_path_factory, tensors):
    path = tmp_path_factory.mktemp("tensors") / "a.safetensors"
    write_tensors(path, tensors, {"epoch": 3, "name": "mlp", "sizes": [1, 2]})
    assert same(safetensors.numpy.load_file(path), tensors)
    with safetensors.safe_open(path, "numpy") as file:
        assert {k: json.loads(v) for k, v in file.metadata().items()} == {
            "epoch": 3,
            "name": "mlp",
            "sizes": [1, 2],
        }
    found, metadata = read_tensors(path)
    assert same(found, tensors)
    assert metadata == {"epoch": 3, "name": "mlp", "sizes": [1, 2]}


@given(named)
def test_we_read_what_the_safetensors_package_writes(tmp_path_factory, tensors):
    path = tmp_path_factory.mktemp("tensors") / "a.safetensors"
    safetensors.numpy.save_file(tensors, path, metadata={"said": "plain text"})
    found, metadata = read_tensors(path)
    assert same(found, tensors)
    assert metadata == {"said": "plain text"}


def test_views_and_foreign_byte_orders_are_written_as_their_values(tmp_path):
    values = np.arange(12.0).reshape(3, 4)
    write_tensors(tmp_path / "a", {"t": values.T, "big": values.astype(">f8"), "cut": values[:, ::2]})
    found = safetensors.numpy.load_file(tmp_path / "a")
    np.testing.assert_array_equal(found["t"], values.T)
    np.testing.assert_array_equal(found["big"], values)
    np.testing.assert_array_equal(found["cut"], values[:, ::2])


def test_types_without_a_name_are_refused(tmp_path):
    with pytest.raises(CleanrankError, match="tensors must be of types that safetensors has"):
        write_tensors(tmp_path / "a", {"x": np.zeros(2, complex)})
    assert list(tmp_path.iterdir()) == []


def broken(header, body=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x01\x02",
        (10**15).to_bytes(8, "little") + b"{}",
        broken(b"{nonsense"),
        broken([1, 2]),
        broken({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, b"1234"),
        broken({"x": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}, b"12345678"),
        broken({"x": {"dtype": "PICKLE", "shape": [2], "data_offsets": [0, 8]}}, b"12345678"),
        broken({"x": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}}, b"12345678"),
        broken({"x": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}}, b"12345678"),
        broken({"x": 3}),
    ],
)
def test_broken_files_are_refused(tmp_path, raw):
    (tmp_path / "bad").write_bytes(raw)
    with pytest.raises(CleanrankError, match="tensor file"):
        read_tensors(tmp_path / "bad")
