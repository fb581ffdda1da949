import subprocess
import sys

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


def test_the_import_is_light():
    heavy = ("torch", "numba", "pandas", "pyarrow", "scipy", "lightgbm", "sklearn", "matplotlib")
    code = f"import sys, cleanrank; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_types_and_measures_need_numpy_alone():
    code = """
import sys
class Only:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"numba", "scipy", "pandas", "pyarrow", "lightgbm", "sklearn"}:
            raise ImportError(name)
sys.meta_path.insert(0, Only())
import cleanrank as cr
data = cr.from_arrays([[1.0]] * 4, [1, 0, 0, 2], qid=[1, 1, 2, 2])
print(cr.evaluate([0.1, 0.2, 0.3, 0.4], data, ["ndcg@10", "mrr", "auc"]).means["mrr"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "0.75", done.stderr
