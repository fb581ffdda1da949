"""Every parameter of every public function that computes changes the result or is refused.

For each parameter: what is set beside it, and what it is set to, as in test_parameters.py, which has the
rankers and the functions of measures. A new function or parameter without a case fails.
"""

import dataclasses
import inspect
import warnings

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.issues.outliers import Window
from cleanrank.noise.profiles import uniform
from tests.laws.test_parameters import FUNCTIONS, INPUTS, SMALL

PROFILE, SHARES = uniform(0.2, 3), [0.5, 0.3, 0.2]
JUDGED = {"judge": "JUDGE", "gold": "TRUTH", "resamples": 50}
SCREEN, BY_SCALE = {"screen_cost": 0.01}, {"scales": (2, 3), "error": {2: 0.1, 3: 0.2}}
CUT = {"indptr": [0, 240, 480]}
CASES = {
    "combine_judges": ({}, {
        "gold": ({}, "TRUTH"), "mapping": ({}, {0: 0, 1: 2, 2: 2}), "level": ({"gold": "TRUTH"}, 0.5),
        "seed": ({"gold": "TRUTH"}, 3),
    }),
    "compare_with_judge": (JUDGED, {
        "measure": ({}, "map"), "baseline": ({}, "new"), "target": ({}, "queries like these"),
        "design": ({}, "stratified"), "interval": ({}, "bootstrap-t"), "unjudged": ({}, "drop"),
        "mapping": ({}, {0: 0, 1: 2, 2: 2}), "level": ({}, 0.5),
        "resamples": ({"interval": "bootstrap-t"}, 60), "seed": ({"interval": "bootstrap-t"}, 3),
    }),
    "diagnose": ({}, {
        "rates": ({}, (0.0, 0.2)), "profiles": ({}, ("uniform",)), "new_weight": ({}, 0.9), "rate": ({}, 0.3),
        "turning_point": ({}, 0.2), "name": ({}, "toys"), "seed": ({}, 3),
    }),
    "estimate_noise": ({}, {
        "gold": ({}, "ANSWERS"), "judgements": ({"data": None}, "JUDGED"), "fit_predict": ({}, "CONSTANT"),
        "seed": ({}, 3), "options": ({}, {"family": "uniform"}),
    }),
    "evaluate_with_judge": (JUDGED, {
        "measure": ({}, "map"), "target": ({}, "queries like these"), "design": ({}, "stratified"),
        "interval": ({}, "bootstrap-t"), "unjudged": ({}, "drop"), "mapping": ({}, {0: 0, 1: 2, 2: 2}),
        "level": ({}, 0.5), "resamples": ({"interval": "bootstrap-t"}, 60),
        "seed": ({"interval": "bootstrap-t"}, 3),
    }),
    "explain_ndcg": ({}, {"k": ({}, 2), "doc_ids": ({}, ["d", "a", "b", "c"])}),
    "find_label_issues": ({"method": "confident"}, {
        "method": ({}, "isolation"), "noise": ({"method": "auto"}, PROFILE), "seed": ({}, 3),
        "client": ({}, "no client"), "gold": ({"method": "auto"}, "ANSWERS"), "options": ({}, {"folds": 3}),
        "qrels": ({"data": None, "runs": "RUNS"}, "TRUTH"),
        **{name: ({"data": None, "qrels": "TRUTH", **beside}, name.upper()) for name, beside in (
            ("runs", {"judges": "JUDGES"}), ("texts", {"runs": "RUNS"}), ("judges", {"runs": "RUNS"}),
        )},
    }),
    "find_missing": ({"runs": "FIRST RUN"}, {
        "runs": ({}, "BOTH RUNS"), "texts": ({}, "ALL TEXTS"), "judges": ({}, "LLM"), "gold": ({}, "LATER"),
        "relevant": ({}, 2), "depth": ({}, 3), "unjudged": ({}, "ignored"), "folds": ({}, 3), "seed": ({}, 3),
    }),
    "fisher_test": ({"permutations": 200}, {
        "permutations": ({}, 300), "alternative": ({}, "greater"), "seed": ({}, 3), "smoothing": ({}, False),
    }),
    "fit_without_outliers": ({}, {
        "validation": ({}, "HELD"), "window": ({}, Window(1, 3, kind="neg")),
    }),
    "folds": ({}, {"n": ({}, 3), "seed": ({}, 3), "validation": ({}, True)}),
    "judge_report": ({}, {
        "runs": ({}, "RUNS"), "measures": ({"runs": "RUNS"}, ("map",)),
        "mapping": ({}, {0: 0, 1: 2, 2: 2}), "level": ({}, 0.5), "seed": ({"runs": "RUNS"}, 3),
    }),
    "make_ranking": ({"n_queries": 5, "n_features": 9, "docs_per_query": 8.0}, {
        "n_queries": ({}, 6), "n_features": ({}, 8), "docs_per_query": ({}, 9.0), "grades": ({}, SHARES),
        "signal": ({}, 0.3), "shape": ({}, "yahoo"), "seed": ({}, 3),
    }),
    "plan_labels": ({}, {
        "cost": ({}, 2.0), "documents": ({}, 12), "proportions": ({}, SHARES), "prevalence": ({}, 0.3),
        "error": ({}, 0.2), "scales": ({}, (2, 3)), "repeats": ({}, (1, 3)), "top_k": ({}, 3),
        "pair_cost": ({}, 3.0), "pair_error": ({}, 0.3), "screen_cost": ({}, 0.01), "pool": (SCREEN, 60),
        "shared": ({}, 0.5), "profile": (BY_SCALE, "uniform"), "queries": ({}, 5), "seed": ({}, 3),
    }),
    "pnoise": ({}, {"indptr": ({}, CUT["indptr"]), "new_weight": ({}, 0.9), "weighting": (CUT, "macro")}),
    "pnoise_curve": ({"profile": "geometric"}, {
        "profile": ({}, "uniform"), "length": ({}, 5), "new_weight": ({}, 0.9), "options": ({}, {"rho": 0.9}),
    }),
    "pnoise_expected": ({}, {"length": ({}, 5), "new_weight": ({}, 0.9)}),
    "pnoise_matrices": ({}, {"n_grades": ({}, 4), "new_weight": ({}, 0.9)}),
    "prepare_clicks": ({}, {
        "protocol": ({}, "ubr"), "history": ({}, 3), "least": ({}, 3), "negatives": ({}, 2),
        "context": ({}, ("hour",)), "shares": ({}, (0.6, 0.2, 0.2)), "targets": ({}, 2),
        "draw": ({}, "popular"), "rare": ({}, 9), "repeats": ({}, True), "own": ({"protocol": "ubr"}, 1.0),
        "seed": ({}, 3),
    }),
    "sample_for_evaluation": ({"budget": 24}, {
        "budget": ({}, 25), "unit": ({}, "queries"), "measure": ({}, "dcg@5"),
        "compare": ({}, ("bm25", "new")), "gold": ({}, "SHEET"), "pilot": ({}, "TRUTH"),
        "mapping": ({}, {0: 0, 1: 2, 2: 2}),
        "width": ({"gold": "SHEET"}, 9.0), "level": ({"gold": "SHEET", "width": 0.4}, 0.6), "seed": ({}, 3),
    }),
    "sample_gold": ({"n": 30}, {
        "n": ({}, 40), "strategy": ({}, "random"), "seed": ({}, 3), "doubt": ({"strategy": "doubt"}, "DOUBT"),
    }),
    "simulate_clicks": ({}, {
        "model": ({}, "ccm"), "order": ({"scores": "DOUBT"}, "input"), "sessions": ({}, 2), "seed": ({}, 3),
        "flip": ({}, 0.3), "cutoff": ({}, 2), "top_grade": ({}, 6), "options": ({}, {"eta": 3.0}),
    }),
    "split": ({}, {"shares": ({}, (0.5, 0.5)), "seed": ({}, 3)}),
}  # fmt: skip
# They read, write, load or run; what their parameters do is tested beside them.
OTHERS = {"from_arrays", "from_frame", "list_datasets", "load_dataset", "load_ranker", "reproduce"}
OTHERS |= {f"read_{what}" for what in ("data", "events", "letor", "qrels", "run")} | {
    "write_data",
    "write_letor",
}


def test_every_public_function_has_its_cases():
    public = {name for name in cr.__all__ if inspect.isfunction(getattr(cr, name))}
    assert public == set(CASES) | set(FUNCTIONS) | OTHERS


@pytest.fixture(scope="module")
def given(toy):
    """Arguments by the name of the function, and what capital words among the options stand for."""
    rng = np.random.default_rng(0)
    noisy = cr.corrupt(toy, rate=0.3, seed=1)
    sheet = cr.sample_gold(noisy.data, 80, seed=2)
    pairs = pd.DataFrame([(f"q{q}", f"d{d}") for q in range(8) for d in range(10)], columns=["qid", "docid"])
    gold = rng.integers(0, 3, len(pairs))
    said = [
        np.where(rng.random(len(pairs)) < rate, rng.integers(0, 3, len(pairs)), gold) for rate in (0.3, 0.5)
    ]
    judge = pairs.assign(grade=said[0])[np.arange(len(pairs)) % 10 < 9]
    runs = {
        name: pairs.rename(columns={"qid": "query_id", "docid": "doc_id"}).assign(
            score=rng.permutation(80) * 1.0
        )
        for name in ("bm25", "new")
    }
    truth = pairs.assign(grade=gold)[:60]
    judged = pd.concat(
        [pairs.assign(annotator=str(who), grade=each) for who, each in enumerate([gold, *said])]
    )
    train, held = cr.split(noisy.data, (0.7, 0.3), seed=0)
    small = {**SMALL, "epochs": 20, "learning_rate": 0.3}  # so that the best epoch is not the last one
    rows = cr.sample_for_evaluation(runs, judge, 16).frame
    log = pd.DataFrame({"user": rng.integers(9, size=300), "item": rng.zipf(1.3, size=300) % 50})
    words = {
        "JUDGED": judged, "RUNS": runs, "HELD": held, "DOUBT": rng.random(toy.n_docs),
        "ANSWERS": (sheet.row_ids, noisy.true_labels[sheet.rows]),
        "TRUTH": truth, "JUDGE": judge, "JUDGES": {"llm": judge},
        "SHEET": rows.drop(columns="true_grade").merge(pairs.assign(true_grade=gold)),
        "TEXTS": pairs.assign(query=pairs.qid, text=[f"{q} {d}" for d, q in enumerate(pairs.qid[::-1])]),
        "CONSTANT": lambda learn, rows: np.full((rows.n_docs, 3), 1 / 3),
    }  # fmt: skip
    judgements, of_holes = holes()
    words |= of_holes
    arguments = {
        "find_missing": (judgements,),
        "combine_judges": ({"one": judge, "two": pairs.assign(grade=said[1])},),
        "compare_with_judge": (runs,), "evaluate_with_judge": (runs,),
        "explain_ndcg": ([0, 2, 1, 0], [1.0, 1.0, 0.5, 0.5]), "judge_report": (truth, judge),
        "fisher_test": (rng.random(30), rng.random(30)), "make_ranking": (), "plan_labels": (500,),
        "fit_without_outliers": (cr.NeuralRanker(**small), train),
        "pnoise": (toy.y, noisy.data.y), "pnoise_curve": (SHARES, [0.1, 0.2]),
        "pnoise_expected": (PROFILE, SHARES), "pnoise_matrices": (PROFILE,),
        "prepare_clicks": (cr.read_events(log.assign(time=np.arange(300) * 3600)),),
        "sample_for_evaluation": (runs, judge),
    }  # fmt: skip
    return arguments, words, noisy.data


def holes():
    """Judgements of three quarters of the pairs that two runs retrieve, and evidence of all of them."""
    rng = np.random.default_rng(0)
    pairs = pd.DataFrame([(f"q{q}", f"d{d}") for q in range(20) for d in range(24)], columns=["qid", "docid"])
    grade = rng.integers(0, 3, len(pairs))
    runs = {name: pairs.assign(score=grade + rng.normal(size=len(pairs))) for name in ("first", "second")}
    is_judged = rng.random(len(pairs)) < 0.75
    texts = pairs.assign(query="red pie", text=np.array(["red pie", "a pie", "some car"])[grade])
    said = pairs.assign(grade=(grade + (rng.random(len(pairs)) < 0.3)) % 3)
    later = pairs.assign(grade=grade)[~is_judged & (np.arange(len(pairs)) % 2 == 0)]
    words = {"FIRST RUN": {"first": runs["first"]}, "BOTH RUNS": runs, "ALL TEXTS": texts,
             "LLM": {"llm": said}, "LATER": later}  # fmt: skip
    return pairs.assign(grade=grade)[is_judged], words


def described(value, parameters):
    """A result as nested plain values, without fields that repeat what a parameter was set to."""
    if dataclasses.is_dataclass(value):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {
            name: described(each, parameters)
            for name, each in fields.items()
            if name not in parameters or isinstance(each, np.ndarray)
        }
    if isinstance(value, pd.DataFrame):
        return value.to_dict("list")
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [described(each, parameters) for each in value]
    if isinstance(value, dict):
        return {str(name): described(each, parameters) for name, each in value.items()}
    return repr(value)


def called(name, options, given):
    """What a function gives, as text, or the words of its refusal."""
    arguments, words, data = given
    options = {
        key: words.get(value, value) if isinstance(value, str) else value for key, value in options.items()
    }
    options |= options.pop("options", {}) if name in ("estimate_noise", "find_label_issues") else {}
    inputs = arguments.get(name, (data,))
    if "data" in options:
        inputs = ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = getattr(cr, name)(*inputs, **options)
        except CleanrankError as error:
            return str(error)
    if name == "fit_without_outliers":
        ranker, cleaned = found
        found = ranker.predict(inputs[1].X), cleaned.acted
    # A name is there to be repeated. Text, because NaN differs from itself.
    return str(described(found, {*inspect.signature(getattr(cr, name)).parameters} - {"name"}))


@pytest.mark.parametrize("name", CASES)
def test_every_parameter_of_a_function_changes_its_result_or_is_refused(given, name):
    common, cases = CASES[name]
    parameters = inspect.signature(getattr(cr, name)).parameters
    needed = {
        key
        for key, each in parameters.items()
        if each.default is each.empty and each.kind is not each.VAR_KEYWORD
    }
    assert set(cases) == set(parameters) - set(INPUTS) - needed
    bases, ignored = {}, []
    for each, (company, value) in cases.items():
        options = {**common, **company}
        if str(options) not in bases:
            bases[str(options)] = called(name, options, given)
        found = called(name, {**options, each: value}, given)
        assert " at 0x" not in found, "an address differs from call to call"
        if found == bases[str(options)]:
            ignored.append(each)
    assert not ignored
