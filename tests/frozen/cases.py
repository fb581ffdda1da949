"""What must not change when code moves: cell keys, model bits, detector and estimate bits, words on pages.

Each case is a function without arguments that returns a float array (compared by bits on the machine of the
record, to 1e-9 elsewhere, networks to 1e-3) or a text. ``python -m tests.frozen.record`` writes
``frozen.json``; run it only when a change of figures is meant, and say in the commit why.
"""

import hashlib
import json
import re
from functools import cache
from pathlib import Path

import numpy as np

import cleanrank as cr
from cleanrank.experiments.cells import expand
from cleanrank.experiments.methods import METHODS, Judge, MethodTask, Unjudged
from cleanrank.experiments.noises import INJECTED, add_noise, noise_profile
from cleanrank.experiments.recipe import read_recipe
from cleanrank.experiments.sources import load_splits
from cleanrank.experiments.studies import STUDIES, StudyTask
from cleanrank.issues.find import DETECTORS
from cleanrank.noise.profiles import PROFILES, uniform

ROOT = Path(__file__).parents[2]
TREES = {"rounds": 6, "min_data_in_leaf": 5, "num_leaves": 7}
BINARY = ["hinge", "sigmoid", "ramp", "exponential", "squared_hinge", "unhinged"]


@cache
def splits():
    return load_splits("synthetic", 1, {"n_queries": 60, "n_features": 8, "docs_per_query": 12.0})


@cache
def binary_splits():
    parts = (part.with_labels((part.y > 1).astype(int)) for part in splits())
    return type(splits())(*parts)


@cache
def noisy():
    """(corruption of the training data, validation data, test data), three sets of the same kind."""
    train, validation, test = splits().train, splits().validation, splits().test
    return cr.corrupt(train, "uniform", 0.2, seed=3), validation, test


def recipe_keys(name):
    """A hash over the keys of all cells, data stood in for by their names."""
    cells = expand(read_recipe(ROOT / "recipes" / f"{name}.toml"), lambda d, fold, options: f"{d} {fold}")
    keys = "\n".join(sorted(cell.key for cell in cells))
    return f"{len(cells)} {hashlib.sha256(keys.encode()).hexdigest()}"


def scores(ranker):
    noise, validation, test = noisy()
    data = noise.data
    ranker.fit(data.X, data.y, qid=data.qid, eval_set=(validation.X, validation.y), eval_qid=validation.qid)
    return np.asarray(ranker.predict(test.X), dtype=np.float64)


def boosted(**options):
    return lambda: scores(
        cr.BoostedRanker(n_estimators=8, num_leaves=7, min_child_samples=5, random_state=4, **options)
    )


def sour(**options):
    return lambda: scores(cr.SOURRanker(end=8, n_estimators=8, random_state=4, cutoff=3, **options))


def robust(gold=False, known=False):
    def run():
        noise, validation, test = noisy()
        data = noise.data
        told = {}
        if gold:
            sheet = cr.sample_gold(data, 60, seed=2)
            told = {"gold": (sheet.rows, splits().train.y[sheet.rows])}
        told_noise = noise.profile if known else None
        ranker = cr.RobustRanker(noise=told_noise, n_estimators=8, folds=2, random_state=4)
        ranker.fit(
            data.X,
            data.y,
            qid=data.qid,
            eval_set=(validation.X, validation.y),
            eval_qid=validation.qid,
            **told,
        )
        return np.asarray(ranker.predict(test.X), dtype=np.float64)

    return run


def neural(**options):
    """Scores about the mean of their query: ranking losses do not see it, so that rounding errors move it."""

    def run():
        ranker = cr.NeuralRanker(network_options={"hidden": (8,)}, epochs=2, random_state=4, **options)
        values, indptr = scores(ranker), noisy()[2].indptr
        means = np.add.reduceat(values, indptr[:-1]) / np.diff(indptr)
        return values - np.repeat(means, np.diff(indptr))

    return run


def detector(name):
    def run():
        options = {
            "auto": {"rounds": 5},
            "confident": {"rounds": 5},
            "posterior": {"noise": noisy()[0].profile},
            "by-grade": {"noise": noisy()[0].profile},
            "sour": {"end": 8, "cutoff": 3},
            "last-sour": {"end": 8, "cutoff": 3},
            "clicks": {"clicks": cr.simulate_clicks(noisy()[0].data, sessions=20, seed=1)},
        }.get(name, {})
        from cleanrank.issues.find import options_of

        options = {k: v for k, v in options.items() if k in options_of(name)}
        table = cr.find_label_issues(noisy()[0].data, name, seed=5, **options)
        return np.concatenate([table.doubt, table.is_label_issue, table.suggested_label]).astype(np.float64)

    return run


def method(name):
    def run():
        known = METHODS[name].params
        small = {**TREES, "epochs": 2, "hidden": [8], "steps": 20}
        params = {**known, **{k: v for k, v in small.items() if k in known}}
        given = {"cleaned": {"detector": "isolation"}, "robust": {"noise": "true"}}.get(name, {})
        data = splits()
        labels = add_noise("uniform", 0.2, (data.train, data.validation), ("train", "validation"), 3)
        task = MethodTask(
            labels[0],
            labels[1],
            Unjudged(data.test.X, data.test.indptr),
            {**params, **given},
            grid={"num_leaves": [3, 7]} if "num_leaves" in params else {},
            seed=3,
            judge=Judge(data.train.y, -1),
            profile=noise_profile("uniform", 0.2, data.train, labels[0], data.train.n_grades),
        )
        return np.asarray(METHODS[name].run(task).scores, dtype=np.float64)

    return run


def study(name):
    def run():
        data = binary_splits() if STUDIES[name].function.startswith("studies.labeling") else splits()
        known = STUDIES[name].params
        small = {"epochs": 3} if name == "epochs" else {**TREES, "end": 6, "steps": 20, "pairs": 200}
        train, validation = add_noise(
            "uniform", 0.2, (data.train, data.validation), ("train", "validation"), 3
        )
        profile = noise_profile("uniform", 0.2, data.train, train, data.train.n_grades)
        params = {**known, **{k: v for k, v in small.items() if k in known}}
        inquiry = StudyTask(data, train, validation, profile, params, "ndcg@10", 3)
        return np.array([value for _, value in sorted(STUDIES[name].run(inquiry).means.items())])

    return run


def labels(name):
    def run():
        data = splits() if name != "class-conditional" else binary_splits()
        made = add_noise(name, 0.3, (data.train, data.validation), ("train", "validation"), 3)
        return np.concatenate([part.y for part in made]).astype(np.float64)

    return run


def gold_estimate():
    sheet = cr.sample_gold(noisy()[0].data, 80, seed=2)
    estimate = cr.estimate_noise(noisy()[0].data, gold=(sheet.row_ids, splits().train.y[sheet.rows]), seed=1)
    return np.concatenate([estimate.matrix.ravel(), estimate.draws.ravel()])


def evaluation():
    test = noisy()[2]
    rng = np.random.default_rng(1)
    guess = test.y + rng.normal(size=test.n_docs)
    names = [
        "ndcg@10",
        "ndcg@5:letor",
        "ndcg@10:skip",
        "map",
        "map:letor",
        "mrr",
        "auc",
        "precision@5",
        "dcg@3",
    ]
    values = cr.evaluate(guess, test, names)
    compared = cr.compare({"a": guess, "b": rng.normal(size=test.n_docs)}, test, "ndcg@10", seed=3)
    row = [float(v) for v in re.findall(r"-?\d\.\d+", repr(compared))]
    return np.concatenate([*(values[name] for name in values), row])


def diagnosis():
    return repr(cr.diagnose(splits().train))


def command_line():
    from docs.generate_cli import page

    return page()


def report():
    """The text of an HTML report: what a reader reads, without markup, scripts and figures of charts."""
    import tempfile

    from cleanrank.report.pages import write_report
    from tests.report.grids import grid

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        write_report(
            grid(rates=(0.0, 0.2)),
            path,
            title="A grid",
            command="cleanrank reproduce x",
            baseline="lambdamart",
        )
        text = path.read_text(encoding="utf-8")
    return visible(text)


def visible(page):
    """The words of a page."""
    page = re.sub(r"<(script|style|svg)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


CASES = {
    **{
        f"keys {path.parent.name}/{path.stem}": (lambda n=f"{path.parent.name}/{path.stem}": recipe_keys(n))
        for path in sorted((ROOT / "recipes").glob("*/*.toml"))
    },
    "boosted exact": boosted(),
    "boosted parity": boosted(implementation="parity"),
    "boosted builtin": boosted(implementation="builtin"),
    "boosted lambdamart": boosted(objective="lambdamart"),
    "boosted gbdt": boosted(objective="gbdt"),
    "peer sampled": boosted(robust="peer", alpha=0.1),
    "peer expected": boosted(robust="peer", alpha=0.2, peers="expected"),
    "peer auto": boosted(robust="peer", alpha="auto", noise=uniform(0.2, 5), peers="expected"),
    "peer search": boosted(robust="peer", alpha="search", peers="expected"),
    **{f"pairwise {loss}": boosted(objective=loss) for loss in BINARY},
    "pairwise lambdarank gce": boosted(objective="lambdarank", robust={"name": "gce", "q": 0.5}),
    "pairwise peer": boosted(objective="logistic", robust={"name": "peer", "alpha": 0.1}),
    "pairwise smoothing": boosted(objective="ranknet", robust="label_smoothing"),
    "sour neg": sour(kind="neg"),
    "sour all reference": sour(kind="all", rule="reference", start=2),
    "sour last": sour(variant="last"),
    "sour curr": sour(variant="curr", ends=(2, 4, 6)),
    "robust known": robust(known=True),
    "robust gold": robust(gold=True),
    "robust nothing": robust(),
    "neural ranknet": neural(),
    "neural lambdarank": neural(loss="lambdarank"),
    "neural listnet": neural(loss="listnet"),
    "neural peer": neural(robust="peer", alpha=0.1, pairs="all_ordered"),
    **{f"detector {name}": detector(name) for name in DETECTORS},
    **{f"method {name}": method(name) for name in METHODS},
    **{
        f"study {name}": study(name)
        for name in STUDIES
        # These rows have no judge and no clicks.
        if name not in ("order", "ctr") and not STUDIES[name].function.startswith("studies.judges")
    },
    **{f"noise {name}": labels(name) for name in INJECTED},
    **{
        f"profile {name}": lambda n=name: cr.corrupt(splits().train, n, 0.3, seed=2).data.y.astype(float)
        for name in PROFILES
        if name != "class-conditional"  # of two grades; "noise class-conditional" has it
    },
    "gold estimate": gold_estimate,
    "evaluation": evaluation,
    "diagnosis": diagnosis,
    "report": report,
    "command line": command_line,
}


def machine():
    """The processor, since compiled arithmetic may differ in its last bits between kinds."""
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    names = re.findall(r"^(?:model name|flags)\s*: (.*)$", text, flags=re.MULTILINE)
    return hashlib.sha256(json.dumps(names[:2]).encode()).hexdigest()[:16]


def described(value):
    """What is kept of a case."""
    if isinstance(value, str):
        return value
    value = np.ascontiguousarray(value, dtype=np.float64)
    return {
        "sha256": hashlib.sha256(value.tobytes()).hexdigest(),
        "size": len(value),
        "first": np.nan_to_num(value[:8]).tolist(),
        "sum": float(np.nansum(value)),
    }
