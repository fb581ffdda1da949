"""Model files that were altered: refused in words, and no walk down a tree that never ends."""

import re
import resource
import subprocess
import sys

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import BadFileError
from cleanrank.rankers._lightgbm import sum_of_models
from cleanrank.rankers._model_text import check_text
from cleanrank.rankers.trees import TreeModel

ALTERED = """
import sys
from pathlib import Path
import numpy as np
from cleanrank.errors import BadFileError
from cleanrank.rankers.trees import TreeModel

file, copy = Path(sys.argv[1]), Path(sys.argv[1] + ".altered")
text, rng = bytearray(file.read_bytes()), np.random.default_rng(0)
start, end = text.index(b"Tree=0"), text.index(b"end of trees")
places = [k for k in range(start + 6, end) if chr(text[k]).isdigit() or text[k] == ord("-")]
refused = 0
for place in rng.choice(places, 200):
    altered = text.copy()
    altered[place] = rng.choice(list(b"-0123456789"))
    copy.write_bytes(altered)
    try:
        TreeModel.load(copy).predict(np.random.default_rng(1).normal(size=(50, 5)))
    except BadFileError:
        refused += 1
print(refused)
"""


@pytest.fixture(scope="module")
def model():
    data = cr.make_ranking(30, 5, docs_per_query=20, seed=0)
    return cr.BoostedRanker(n_estimators=4, num_leaves=6).fit_data(data).model_


@pytest.fixture
def file(model, tmp_path):
    model.save(tmp_path / "model.txt")
    return tmp_path / "model.txt"


def _changed(text, name, change):
    """The text with the first line of a name changed, at the same length."""
    line = re.search(rf"^{name}=.*$", text, re.MULTILINE)[0]
    changed = f"{name}=" + change(line.partition("=")[2])
    assert changed != line
    return text.replace(line, changed.ljust(len(line))[: len(line)], 1)


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("left_child", lambda line: re.sub(r"(?<![-\d])[1-9]", "0", line, count=1), "no parent or more than"),
        ("right_child", lambda line: re.sub(r"-\d", "-9", line, count=1), "no parent or more than one"),
        ("split_feature", lambda line: "9" + line[1:], "a column that the model does not have"),
        ("num_leaves", lambda line: "7", "more or fewer numbers in leaf_value"),
        ("num_leaves", lambda line: "0", "how many leaves"),
        ("leaf_value", lambda line: "x" + line[1:], "cannot be read"),
        ("decision_type", lambda line: "1" + line[1:], "set of categories"),
    ],
)
def test_an_altered_tree_is_refused(file, name, change, problem):
    file.write_text(_changed(file.read_text(), name, change))
    with pytest.raises(BadFileError, match=problem):
        cr.load_ranker(file)


def test_200_files_with_one_digit_changed_neither_hang_nor_crash(file):
    run = [sys.executable, "-c", ALTERED, str(file)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    assert 0 < int(done.stdout) < 200


def test_trees_that_lightgbm_wrote_are_taken(tmp_path):
    """Stumps, single leaves, classes, categories, no trees at all."""
    import lightgbm

    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 30, 500), rng.normal(size=500)])
    y = (X[:, 0] % 3).astype(int)
    for settings in (
        {"objective": "regression"},
        {"objective": "multiclass", "num_class": 3},
        {"objective": "regression", "num_leaves": 2},
        {"objective": "regression", "min_gain_to_split": 1e9},
        {"objective": "regression", "linear_tree": True},
        {"objective": "regression", "boosting": "dart"},
    ):
        rows = lightgbm.Dataset(X, y, categorical_feature=[0], params={"verbosity": -1})
        booster = lightgbm.train({**settings, "verbosity": -1, "num_threads": 1}, rows, 5)
        booster.save_model(str(tmp_path / "m.txt"))
        loaded = TreeModel.load(tmp_path / "m.txt")
        np.testing.assert_array_equal(loaded.predict(X), booster.predict(X))
    booster.save_model(str(tmp_path / "m.txt"), num_iteration=5, start_iteration=5)
    check_text((tmp_path / "m.txt").read_bytes(), "m.txt")


def test_a_write_that_fails_is_an_oserror_and_leaves_the_old_file(model, file):
    old, limits = file.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            model.save(file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert file.read_bytes() == old
    assert [each.name for each in file.parent.iterdir()] == ["model.txt"]


@pytest.mark.parametrize(
    "params",
    [{}, {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}, {"linear_tree": True}],
    ids=["boosted", "random forest", "linear trees"],
)
def test_a_sum_of_models_is_one_model_that_scores_by_it(tmp_path, params):
    data = cr.make_ranking(40, 6, docs_per_query=12, seed=0)
    few, many = (
        cr.BoostedRanker(n_estimators=n, objective=objective, implementation="builtin", params=params)
        .fit_data(data)
        .model_
        for n, objective in ((3, "lambdarank"), (9, "gbdt"))
    )
    both = sum_of_models([few, many], [0.25, -2.0])
    scores = 0.25 * few.predict(data.X) - 2 * many.predict(data.X)
    np.testing.assert_allclose(both.predict(data.X), scores, atol=1e-12)
    both.save(tmp_path / "model.txt")  # the sizes in the head are those of the trees: it can be read again
    np.testing.assert_allclose(TreeModel.load(tmp_path / "model.txt").predict(data.X), scores, atol=1e-12)
