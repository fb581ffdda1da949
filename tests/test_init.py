import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cleanrank


@pytest.mark.parametrize("name", sorted(cleanrank.PUBLIC))
def test_every_public_name_is_there(name):
    assert getattr(cleanrank, name) is not None


def test_public_names_are_listed_once_and_alike():
    assert sorted([*cleanrank.PUBLIC, "__version__"]) == sorted(cleanrank.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'serach'"):
        cleanrank.serach  # noqa: B018


@pytest.mark.parametrize(
    "first",
    ["cr.evaluate", "from cleanrank.evaluate import fisher_test", "import cleanrank.evaluate.compare as c"],
)
def test_a_room_that_is_a_verb_is_called_whatever_was_imported_before(first):
    code = f"""
import cleanrank as cr
{first}
data = cr.from_arrays([[1.0]] * 2, [1, 0], qid=[1, 1])
print(cr.evaluate([1, 2], data, "mrr").means["mrr"])
from cleanrank.evaluate import fisher_test
import cleanrank.evaluate.compare as c
print(cr.evaluate([1, 2], data, "mrr").means["mrr"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["0.5", "0.5"], done.stderr


def test_the_import_is_light():
    heavy = ("torch", "numba", "pandas", "pyarrow", "scipy", "lightgbm", "sklearn", "matplotlib")
    code = f"import sys, cleanrank; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_types_and_measures_need_numpy_alone(tmp_path):
    """A folder with NumPy and cleanrank in it, and nothing else, stands for a bare machine."""
    installed = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs"):
        if (installed / name).exists():
            (tmp_path / name).symlink_to(installed / name)
    (tmp_path / "cleanrank").symlink_to(Path(cleanrank.__file__).parent)
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import cleanrank as cr
data = cr.from_arrays([[1.0]] * 4, [1, 0, 0, 2], qid=[1, 1, 2, 2])
print(cr.evaluate([0.1, 0.2, 0.3, 0.4], data, ["ndcg@10", "mrr", "auc"]).means["mrr"])
"""
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "0.75", done.stderr
