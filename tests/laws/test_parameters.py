"""Every parameter of rankers, and of functions that choose or measure, changes the result or is refused.

For each parameter: what is set beside it, and what it is set to. A new parameter without a case fails.
"""

import inspect
import warnings
from dataclasses import replace

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.data.split import split
from cleanrank.errors import CleanrankError
from cleanrank.noise.profiles import uniform
from tests.rankers.ctr.planted import planted

TREES = {"n_estimators": 8, "num_leaves": 7, "min_child_samples": 5}
PEER = {"robust": "peer", "alpha": 0.4}
SOUR = {**TREES, "learning_rate": 0.3, "n_estimators": 12, "end": 12, "start": 2, "kind": "all", "cutoff": 4}
LONG = {"n_estimators": 60, "learning_rate": 0.9}
QUICK = {"n_estimators": 5, "folds": 2, "grid": {"num_leaves": (4, 8), "min_data_in_leaf": (10,)}}
TWO = {"num_leaves": [3, 9]}
SMALL = {"epochs": 3, "network_options": {"hidden": (8,)}, "batch_queries": 8, "n_jobs": 1, "device": "cpu"}
PAIRS = {"pairs": "all_ordered", "robust": "peer"}
CLICKS = {"epochs": 2, "batch_size": 100, "learning_rate": 3e-3, "n_jobs": 1, "device": "cpu"}
RATES = np.linspace(0.5, 0.1, 12)
FLIPS = [[0.9, 0.1], [0.3, 0.7]]
# The same bits with any number of threads, in every run and after a break; only for scripts of LightGBM.
ALIKE = ("n_jobs", "deterministic", "checkpoint")
RANKERS = {
    cr.BoostedRanker: (
        TREES,
        {
            "objective": ({}, "gbdt"), "robust": ({"alpha": 0.4}, "peer"), "alpha": (PEER, 0.1),
            "peers": (PEER, "expected"), "within": (PEER, "batch"), "permutations": (PEER, 3),
            "implementation": ({}, "builtin"), "pairs": ({"objective": "ranknet"}, "all_ordered"),
            "weighting": ({"objective": "ranknet"}, "macro"),
            "noise": ({"objective": "sigmoid", "weighting": "prevalence",
            "noise": uniform(0.1, 3)}, uniform(0.4, 3)),
            "truncation_level": ({}, 2), "sigma": ({}, 3.0), "label_gain": ({}, [0, 1, 20]),
            "grid": ({}, TWO),
            "selection": ({"grid": TWO}, "average"), "n_estimators": ({}, 4),
            "early_stopping_rounds": (LONG, None),
            "measure": ({}, "map"), "learning_rate": ({}, 0.4), "num_leaves": ({}, 3),
            "min_child_samples": ({}, 60),
            "random_state": (PEER, 3), "position_bias": ({}, True), "params": ({}, {"lambda_l2": 90.0}),
        },
    ),
    cr.SOURRanker: (
        SOUR,
        {
            "cutoff": ({}, 2), "start": ({}, 10), "end": ({}, 4), "kind": ({}, "neg"), "rule": ({},
            "reference"),
            "min_frequency": ({}, 0.2), "include_f0": ({"start": 0, "end": 2}, True),
            "highest_negative": ({}, 1),
            "variant": ({}, "last"), "ends": ({"variant": "curr", "ends": [1, 6]}, [2, 4]),
            "patience": ({"variant": "fly", "start": 0, "patience": 11}, 1), "folds": ({}, 2),
            "peers": ({}, 0.4),
            "n_estimators": ({}, 4), "early_stopping_rounds": ({**LONG, "end": 8}, None),
            "learning_rate": ({}, 0.1),
            "num_leaves": ({}, 3), "min_child_samples": ({}, 60), "objective": ({}, "lambdamart"),
            "implementation": ({}, "builtin"), "random_state": ({"folds": 2}, 3),
            "params": ({}, {"lambda_l2": 90.0}),
        },
    ),
    cr.RobustRanker: (
        QUICK,
        {
            "strategy": ({}, "posterior"), "noise": ({}, uniform(0.3, 3)), "rounds": ({}, 2),
            "folds": ({}, 3),
            "clean_validation": ({}, True), "grid": ({}, {"num_leaves": (3,)}),
            "selection": ({"strategy": "posterior"}, "best"),  # several strategies share the cells out
            "n_estimators": ({}, 3), "early_stopping_rounds": (LONG, None), "measure": ({}, "map"),
            "learning_rate": ({}, 0.4), "label_gain": ({}, [0, 1, 20]), "objective": ({}, "lambdamart"),
            "random_state": ({}, 3), "params": ({}, {"lambda_l2": 90.0}),
        },
    ),
    cr.PRank: (
        {"epochs": 4},
        {
            "epochs": ({"early_stopping_rounds": None}, 2), "robust": ({}, "average"),
            "margin": ({"robust": "margin"}, 9.0),
            "measure": ({}, "ndcg@3"), "scaling": ({}, "none"),
            "early_stopping_rounds": ({"epochs": 30}, None),
            "random_state": ({}, 3),
        },
    ),
    cr.RankSVM: (
        {"C": 0.1},
        {
            "C": ({}, 9.0), "loss": ({}, "ramp"), "tol": ({}, 0.3), "max_iter": ({}, 1),
            "measure": ({"C": "auto"}, "ndcg@1"), "scaling": ({}, "none"),
        },
    ),
    cr.RankBoost: (
        {"n_estimators": 12},
        {
            "n_estimators": ({"early_stopping_rounds": None}, 5), "directions": ({}, "up"),
            "max_bins": ({}, 4),
            "bins": ({"max_bins": 6}, "equal"), "measure": ({}, "ndcg@3"),
            "early_stopping_rounds": ({"n_estimators": 60}, None),
        },
    ),
    cr.ListNet: (
        {},
        {
            "max_iter": ({"early_stopping_rounds": None}, 3), "tol": ({"early_stopping_rounds": None}, 0.1),
            "measure": ({}, "ndcg@3"), "scaling": ({}, "none"),
            "early_stopping_rounds": ({"early_stopping_rounds": 0}, None),
        },
    ),
    cr.AdaRank: (
        {"n_estimators": 20, "early_stopping_rounds": None},
        {
            "n_estimators": ({}, 2), "target": ({}, "ndcg@3"), "update": ({}, "combined"),
            "directions": ({}, "both"), "repeats": ({}, "keep"), "tolerance": ({}, None),
            "early_stopping_rounds": ({}, 100), "measure": ({"early_stopping_rounds": 100}, "ndcg@1"),
            "scaling": ({}, "zscore"),
        },
    ),
    cr.NeuralRanker: (
        SMALL,
        {
            "loss": ({}, "listnet"), "pairs": ({}, "all_ordered"),
            "robust": ({"pairs": "all_ordered"}, "peer"), "alpha": (PAIRS, 0.4), "peers": (PAIRS, "sampled"),
            "noise": ({**PAIRS, "alpha": "auto", "noise": uniform(0.1, 3)}, uniform(0.4, 3)),
            "debias": ({"debias": None}, "pairdebias"),
            "click_rates": ({"debias": "ipw", "click_rates": RATES}, RATES**2),
            "binary": ({"loss": "pairwise"}, "hinge"), "loss_options": ({}, {"sigma": 3.0}),
            "network": ({"network_options": None}, "linear"), "network_options": ({}, {"hidden": (4,)}),
            "epochs": ({}, 2), "early_stopping_rounds": ({"epochs": 25, "learning_rate": 0.1}, 1),
            "measure": ({}, "ndcg@3"), "optimizer": ({}, "adagrad"), "learning_rate": ({}, 0.1),
            "weight_decay": ({}, 0.5), "clip_norm": ({}, 0.01), "batch_queries": ({}, 4),
            "accumulate": ({"batch_queries": 11}, 3),
            "scaling": ({}, "none"), "precision": ({}, "bfloat16"), "random_state": ({}, 3),
            "device": ({}, "cuda:99"),
        },
    ),
    cr.CTRModel: (
        CLICKS,
        {
            "model": ({}, "deepfm"), "robust": ({}, "peer"), "alpha": ({"robust": "peer"}, 0.4),
            "noise": ({"robust": "forward", "noise": FLIPS}, [[0.8, 0.2], [0.3, 0.7]]),
            "peers": ({"robust": "peer"}, "sampled"), "binary": ({}, "hinge"),
            "model_options": ({}, {"embedding": 4}), "epochs": ({}, 1),
            "early_stopping_rounds": ({"epochs": 12, "learning_rate": 0.05}, None),
            "optimizer": ({}, "adagrad"), "learning_rate": ({}, 0.1), "weight_decay": ({}, 0.5),
            "clip_norm": ({}, 0.01), "batch_size": ({}, 50), "precision": ({}, "bfloat16"),
            "random_state": ({}, 3), "device": ({}, "cuda:99"), "calibration": ({}, "platt"),
            "validations": ({"learning_rate": 0.05}, 4),
        },
    ),
}  # fmt: skip
# As they say themselves: not read, not needed by thresholds, of no effect where labels contradict each other.
NOT_READ = {cr.RankBoost: ("random_state", "margin", "scaling"), cr.ListNet: ("random_state",)}
NOT_READ[cr.RankSVM] = ("random_state",)  # of queries that it holds out without validation rows
NOT_READ |= {cr.AdaRank: ("random_state",), cr.CTRModel: ("compile",)}  # for a GPU


@pytest.fixture(scope="module")
def rows(toy):
    shown = replace(toy, positions=np.arange(toy.n_docs, dtype=np.int32) * 5 % 12 + 1)
    return split(cr.corrupt(shown, rate=0.25, seed=1).data, (0.7, 0.3), seed=0)


def fitted(kind, options, rows):
    """Scores and what was chosen, or the words of a refusal."""
    train, held = rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if kind is cr.CTRModel:
                clicks, others = planted(400), planted(200, seed=1)
                model = kind(**options).fit(clicks, others)
                return model.predict_proba(others).tolist(), len(model.history_)
            if "debias" in options:
                train, held = (replace(each, y=np.minimum(each.y, 1)) for each in rows)
            ranker = kind(**options).fit_data(train, held)
        except CleanrankError as error:
            return str(error)
    epochs = len(getattr(ranker, "history_", ()))
    return ranker.predict(train.X).tolist(), ranker.model_.validation_value, epochs


@pytest.mark.parametrize("kind", RANKERS, ids=lambda kind: kind.__name__)
def test_every_parameter_of_a_ranker_changes_the_model_or_is_refused(rows, kind):
    common, cases = RANKERS[kind]
    assert set(cases) | set(NOT_READ.get(kind, ())) == set(kind().get_params()) - set(ALIKE)
    bases, ignored = {}, []
    for name, (company, value) in cases.items():
        options = {**common, **company}
        if str(options) not in bases:
            bases[str(options)] = fitted(kind, options, rows)
            assert not isinstance(bases[str(options)], str), bases[str(options)]
        if fitted(kind, {**options, name: value}, rows) == bases[str(options)]:
            ignored.append(name)
    assert not ignored


@pytest.fixture(scope="module")
def measured(toy):
    rng = np.random.default_rng(0)
    return toy, {
        name: toy.y + spread * rng.normal(size=toy.n_docs) for name, spread in (("a", 1.0), ("b", 1.1))
    }


FUNCTIONS = {
    "compare": (
        {"permutations": 200, "order": "data"},
        {
            "measures": ({}, "map"), "order": ({}, "input"), "baseline": ({}, "b"), "test": ({}, "t"),
            "alternative": ({}, "greater"), "permutations": ({}, 300), "level": ({}, 0.5), "seed": ({}, 3),
            "correction": ({"measures": ["map", "mrr"]}, None),
        },
    ),
    "select_model": (
        {"repetitions": 20, "order": "data"},
        {
            "criterion": ({}, "mrr"), "noise": ({}, uniform(0.2, 3)), "order": ({}, "input"),
            "target": ({}, "mrr"),
            "criteria": ({}, ["mrr"]), "repetitions": ({}, 30), "seed": ({}, 3),
        },
    ),
    "calibrate_cutoff": (
        {"alpha": 0.4, "delta": 0.3, "order": "data"},
        {
            "risk": ({}, "false_positives"), "alpha": ({}, 0.6), "delta": ({}, 0.05), "order": ({}, "input"),
            "cut": ({}, "rank"), "method": ({"risk": "false_discovery", "grid": [0.0, 1.0, 2.0]}, "rcps"),
            "bound": ({}, "bentkus"), "grid": ({}, [0.0, 0.5]), "relevant": ({}, 2),
        },
    ),
    "evaluate": ({"order": "data"}, {"measures": ({}, "map"), "order": ({}, "input")}),
    "corrupt": (
        {"rate": 0.3},
        {
            "profile": ({}, "adjacent"), "rate": ({}, 0.1), "seed": ({}, 3), "n_grades": ({}, 5),
            "spread": ({}, 0.5), "options": ({"profile": "geometric"}, {"rho": 0.9}),
        },
    ),
    "clean": (
        {"mode": "reweight", "by": "ada", "at": "now"},
        {
            "mode": ({}, "relabel"), "min_doubt": ({}, 0.2), "weight": ({}, 0.5),
            "label_gain": ({"mode": "posterior"}, [0, 1, 9]), "n_grades": ({"mode": "relabel"}, 2),
            "by": ({}, "bob"),
            "at": ({}, "then"),
        },
    ),
}  # fmt: skip
# What is measured or cleaned; how rows are told otherwise is tested with ``data.inputs``.
INPUTS = ("systems", "scores", "data", "issues", "y", "label", "qid", "group", "features", "n_jobs")
INPUTS += ("progress",)  # which watches


def called(name, options, measured):
    data, systems = measured
    arguments = {"compare": (systems, data), "select_model": (systems, data), "corrupt": (data,)}.get(name)
    if name == "clean":
        p = np.full((data.n_docs, 3), 0.1)
        p[np.arange(data.n_docs), (data.y + np.arange(data.n_docs) % 2) % 3] = 0.8
        reasons = {f"p_true_{grade}": p[:, grade] for grade in range(3)}
        doubt = 1 - p[np.arange(data.n_docs), data.y]
        arguments = data, cr.LabelIssues.of(
            data, doubt=np.where(np.arange(data.n_docs) % 4 == 1, 0.3, doubt), is_label_issue=doubt > 0.5,
            suggested_label=p.argmax(axis=1), reasons=reasons,
        )  # fmt: skip
    try:
        found = getattr(cr, name)(*(arguments or (systems["a"], data)), **options)
    except CleanrankError as error:
        return str(error)
    if name in ("corrupt", "clean"):
        rows = found.data
        columns = [None if c is None else c.tolist() for c in (rows.y, rows.weights, rows.gains)]
        return columns, str(found.profile if name == "corrupt" else found.to_json())
    return repr(found), str(vars(found))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_of_a_function_changes_its_result_or_is_refused(measured, name):
    common, cases = FUNCTIONS[name]
    assert set(cases) == set(inspect.signature(getattr(cr, name)).parameters) - set(INPUTS)
    ignored = [
        each
        for each, (company, value) in cases.items()
        if called(name, {**common, **company}, measured)
        == called(name, {**common, **company, each: value}, measured)
    ]
    assert not ignored
