"""The shape of the code: who talks to LightGBM, and how often a walk of the data changes packages."""

import ast
import re
import sys
import warnings
from pathlib import Path

import pytest

import cleanrank as cr

SRC = Path(cr.__file__).parent
# Modules of the root that every package uses.
SHARED = {"errors", "validation", "types", "ragged", "jit", "remember", "cluster"}
INNER = re.compile(r"(\.<locals>)?\.?<(listcomp|dictcomp|setcomp|genexpr|lambda)>.*")


def package_of(frame):
    """The package below cleanrank that a frame runs in; None outside and in shared modules."""
    root, _, rest = str(frame.f_globals.get("__name__", "")).partition(".")
    package = rest.partition(".")[0]
    return package if root == "cleanrank" and package and package not in SHARED else None


def caller_of(frame):
    """Who called; whoever calls a remembered function calls the function itself."""
    back = frame.f_back
    while back is not None and back.f_globals.get("__name__") == "cleanrank.remember":
        back = back.f_back
    return back


def function_of(frame):
    """Module and function of a frame; comprehensions and lambdas are part of the function around them."""
    return f"{frame.f_globals['__name__']}:{INNER.sub('', frame.f_code.co_qualname)}"


def call_sites(function):
    """The calls from one package into another that a function makes, as pairs (caller, callee)."""
    sites = set()

    def look(frame, event, _):
        if event == "call" and (back := caller_of(frame)) is not None:
            caller, callee = package_of(back), package_of(frame)
            if caller and callee and caller != callee:
                sites.add((function_of(back), function_of(frame)))

    function()  # once, so that imports and compilation are not part of the walk
    before = sys.getprofile()
    sys.setprofile(look)
    try:
        function()
    finally:
        sys.setprofile(before)
    return sorted(sites)


@pytest.fixture(scope="module")
def noisy():
    return cr.corrupt(cr.make_ranking(40, 6, docs_per_query=15, seed=1), rate=0.2, seed=2)


@pytest.fixture(scope="module")
def held():
    return cr.corrupt(cr.make_ranking(15, 6, docs_per_query=15, seed=3), rate=0.2, seed=4).data


def test_the_tracer_sees_calls_between_packages(noisy):
    sites = call_sites(lambda: cr.BoostedRanker(n_estimators=2).fit_data(noisy.data, noisy.data))
    callees = {callee for _, callee in sites}
    assert "cleanrank.losses.trees.lambdarank:LambdaRankObjective.__init__" in callees
    assert "cleanrank.metrics.evaluation:evaluate_mean" in callees
    assert not any(":_boost" in site for pair in sites for site in pair)


@pytest.mark.parametrize("is_known", [False, True])
def test_finding_label_issues_changes_packages_at_most_twelve_times(noisy, is_known):
    noise = noisy.profile if is_known else None
    sites = call_sites(lambda: cr.find_label_issues(noisy.data, noise=noise, folds=2))
    assert 3 <= len(sites) <= 12, sites


@pytest.mark.parametrize("validated", [False, True])
@pytest.mark.parametrize("is_known", [False, True])
def test_fitting_a_robust_ranker_changes_packages_at_most_thirty_times(noisy, held, is_known, validated):
    data = noisy.data
    ranker = cr.RobustRanker(noise=noisy.profile if is_known else None, n_estimators=3, folds=2)
    pair = {"eval_set": (held.X, held.y), "eval_qid": held.qid} if validated else {}

    def fit():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ranker.fit(data.X, data.y, qid=data.qid, **pair)

    sites = call_sites(fit)
    assert ranker.chosen_["strategy"] == ("posterior" if is_known else "auto")
    assert 6 <= len(sites) <= 30, sites


def test_one_module_imports_lightgbm():
    def imports(path):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield node.module or ""

    users = [
        str(path.relative_to(SRC))
        for path in sorted(SRC.rglob("*.py"))
        if any(name.split(".")[0] == "lightgbm" for name in imports(path))
    ]
    assert users == ["rankers/_lightgbm.py"]
