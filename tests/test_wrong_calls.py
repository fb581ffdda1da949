"""What newcomers pass to the public functions, and the sentence that they get."""

import contextlib
import inspect

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError

DATA = cr.make_ranking(12, 4, docs_per_query=8, seed=0)
FRAME = pd.DataFrame(DATA.X, columns=list("abcd")).assign(grade=DATA.y, query=DATA.qid)
SCORES = np.arange(float(DATA.n_docs))
MATRIX = np.eye(DATA.n_grades)
ISSUES = cr.LabelIssues.of(DATA, doubt=np.zeros(DATA.n_docs), is_label_issue=np.zeros(DATA.n_docs, bool))
WRONG = {
    "None": None,
    "a path": "train.csv",
    "a list": [1, 2, 3],
    "a number": 3,
    "a dictionary": {"a": 1},
    "a class": cr.RankingData,
    "scores": SCORES,
    "issues": ISSUES,
    "a corruption": cr.corrupt(DATA, rate=0.1),
    "a frame": FRAME,
    "words": pd.Series(["a", "b"]),
}
# Functions whose first argument is data, and what they need besides.
OF_DATA = {
    "find_label_issues": (),
    "diagnose": (),
    "corrupt": ("uniform", 0.2),
    "clean": (ISSUES,),
    "estimate_noise": (),
    "sample_gold": (),
    "split": (),
    "folds": (),
    "simulate_clicks": (),
    "write_data": ("out.csv",),
    "write_letor": ("out.txt",),
}
# Functions of scores and data.
SYSTEMS = {"a": SCORES, "b": -SCORES}
OF_SCORES = {"evaluate": SCORES, "compare": SYSTEMS, "select_model": SYSTEMS, "calibrate_cutoff": SCORES}
# They take no data, and all values, or none of these, are right.
OTHERS = {"list_datasets", "make_ranking", "reproduce"}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", OF_DATA)
@pytest.mark.parametrize("kind", WRONG)
def test_what_is_no_data_gets_a_sentence(name, kind):
    with pytest.raises(CleanrankError) as caught:
        getattr(cr, name)(WRONG[kind], *OF_DATA[name])
    text = str(caught.value)
    assert text.startswith(("data must", "there is no column 'label'")), text
    if kind == "a path":
        assert "cr.read_data('train.csv')" in text
    if kind == "a corruption":
        assert ".data" in text


@pytest.mark.parametrize("name", OF_SCORES)
@pytest.mark.parametrize("kind", WRONG)
def test_what_is_no_judged_data_gets_a_sentence(name, kind):
    with pytest.raises(CleanrankError, match=r"data must|no column 'label'"):
        getattr(cr, name)(OF_SCORES[name], WRONG[kind])
    with pytest.raises(CleanrankError):
        getattr(cr, name)(DATA, WRONG[kind])


def test_every_public_function_is_asked():
    functions = {name for name in dir(cr) if name[0] != "_" and inspect.isfunction(getattr(cr, name))}
    others = functions - set(OF_DATA) - set(OF_SCORES) - OTHERS
    for name in sorted(others):
        for value in WRONG.values():
            rest = [value] * (len(_needed(name)) - 1)
            named = dict.fromkeys(_needed(name, inspect.Parameter.KEYWORD_ONLY), value)
            # Some of these values are right; what is not must never be another kind of error.
            with contextlib.suppress(CleanrankError):
                getattr(cr, name)(value, *rest, **named)


def _needed(name, kind=inspect.Parameter.POSITIONAL_OR_KEYWORD):
    parameters = inspect.signature(getattr(cr, name)).parameters.values()
    return [p.name for p in parameters if p.default is p.empty and p.kind is kind]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: cr.evaluate(DATA, SCORES), "scores must come first, then the data; got a RankingData first"),
        (lambda: cr.evaluate(FRAME, SCORES), "scores must come first, then the data; got a DataFrame first"),
        (lambda: cr.evaluate(SCORES, DATA.y), "data must be a RankingData, a frame"),
        (lambda: cr.evaluate(SCORES, DATA, SCORES), "measure"),
        (lambda: cr.compare(DATA, {"a": SCORES, "b": SCORES}), "systems must map names (strings) to scores"),
        (lambda: cr.clean(ISSUES, DATA), "The data come first, as in cr.clean(data, issues)"),
        (lambda: cr.clean(DATA, "issues.csv"), "issues must be a LabelIssues"),
        (lambda: cr.clean(DATA, ISSUES, SCORES), "mode"),
        (lambda: cr.corrupt(FRAME, MATRIX), "there is no column 'label' (label=)"),
        (lambda: cr.corrupt(DATA, MATRIX[:2]), "noise must be a square matrix P(given grade | true grade)"),
        (lambda: cr.corrupt(DATA, 0.2), "noise must be a square matrix"),
        (lambda: cr.corrupt(DATA, "unifrom", 0.2), "Did you mean 'uniform'?"),
        (lambda: cr.find_label_issues(DATA.X, DATA.y), "queries must be given either as qid"),
        (lambda: cr.find_label_issues(DATA, SCORES), "y= go with a frame or X"),
        (lambda: cr.find_label_issues(DATA, method=SCORES), "method must name a detector"),
        (lambda: cr.find_label_issues(DATA.X, DATA.y, qid=DATA.qid[:5]), "qid must have one id per row of X"),
        (lambda: cr.sample_gold(DATA, "100"), "n must be an integer"),
        (lambda: cr.simulate_clicks(DATA, 3), "model"),
        (lambda: cr.write_data("out.csv", DATA), "data must be a RankingData"),
    ],
)  # fmt: skip
def test_the_usual_mistakes_get_the_right_call(call, sentence):
    with pytest.raises(CleanrankError) as caught:
        call()
    assert sentence in str(caught.value)


def test_matrices_and_texts_are_noise_in_every_function():
    n = DATA.n_grades
    noises = [
        "uniform:0.2",
        cr.NoiseProfile.of("uniform:0.2", n),
        cr.NoiseProfile.of("uniform:0.2", n).matrix,
    ]
    drawn = [cr.corrupt(DATA, noise, seed=1).data.y.tolist() for noise in noises]
    expected = [cr.pnoise_expected(noise, np.bincount(DATA.y)) for noise in noises]
    found = [cr.find_label_issues(DATA, noise=noise, seed=1).doubt.tolist() for noise in noises]
    chosen = [cr.select_model(SYSTEMS, DATA, noise=noise, repetitions=3).agreement for noise in noises]
    for values in (drawn, expected, found, chosen):
        assert values[0] == values[1] == values[2]
