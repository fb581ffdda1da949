import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cleanrank


@pytest.mark.parametrize("name", [n for n in cleanrank.__all__ if n != "__version__"])
def test_public_names_are_functions_and_classes_that_pickle_and_explain_themselves(name):
    value = getattr(cleanrank, name)
    assert inspect.isfunction(value) or inspect.isclass(value)
    assert pickle.loads(pickle.dumps(value)) is value
    assert inspect.getdoc(value)
    assert name in dir(cleanrank)


def test_an_unknown_name_is_an_attribute_error():
    name = "serach"
    with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
        getattr(cleanrank, name)


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
