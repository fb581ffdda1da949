import json

import numpy as np
import pytest

from cleanrank.errors import CleanrankError
from cleanrank.noise.profiles import read_matrix, read_noise

T = [[0.9, 0.1], [0.3, 0.7]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", json.dumps(T)),
        ("b.json", json.dumps({"matrix": T, "name": "x"})),
        ("c.csv", "0.9,0.1\n0.3,0.7\n"),
    ],
)
def test_a_matrix_is_read_from_json_and_csv(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    np.testing.assert_array_equal(read_matrix(tmp_path / name).matrix, T)
    np.testing.assert_array_equal(read_noise(str(tmp_path / name), 2).matrix, T)


@pytest.mark.parametrize("text", ["{}", "[[1, 2], [3]]", "0.9,x\n", '{"matrix": "no"}', ""])
def test_other_files_are_refused_by_name(tmp_path, text):
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(CleanrankError, match=r"bad.json|square"):
        read_matrix(tmp_path / "bad.json")


def test_a_family_with_its_rate():
    assert read_noise("uniform:0.2", 3).matrix[0].tolist() == pytest.approx([0.8, 0.1, 0.1])
    with pytest.raises(CleanrankError, match="rate must be a number; got 'x'"):
        read_noise("uniform:x", 3)
    with pytest.raises(CleanrankError, match="rate must be a number >= 0 and <= 1"):
        read_noise("uniform:1.5", 3)
    with pytest.raises(CleanrankError, match="Did you mean 'uniform'"):
        read_noise("unifrom:0.1", 3)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "bytes.csv").write_bytes(bytes(range(256)))
    with pytest.raises(CleanrankError, match=r"bytes\.csv"):
        read_matrix(tmp_path / "bytes.csv")
