"""Linear scorers trained on one loss until convergence (Haddad 2022, Sect. 5.2).

The risk of a scorer w is a weighted mean of l(x . w, y) over documents or of l((x_i - x_j) . w, 1) over pairs
of a relevant and another document of a query; ``losses`` are logistic (convex) and sigmoid (symmetrised).

``adam`` is the published solver: full steps for every combination of 5 learning rates and 3 weight decays,
all of them columns of one matrix W. A run stops where, at a multiple of SPAN steps, its training objective
changed by less than ``tol`` (relative) over the last SPAN steps, or where the hold-out risk lies above its
least, which is more than 2 SPAN steps old. Of several starts (the origin, then random ones) a combination
goes on with the one whose training objective is least after RACE steps. ``lbfgs`` runs scipy's solver to the
end for each weight decay and start, and the start with the least objective counts. Of each run the step with
the least risk on noisy hold-out data is kept, and of all combinations the one where that is least.

Dense features are standardised; sparse ones, such as counts of words, stay sparse and as they are.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, hstack, issparse

from cleanrank.errors import invalid
from cleanrank.experiments.methods import MethodResult, MethodTask
from cleanrank.experiments.methods.linear_risk import LinearRisk, adam_step, risk_of
from cleanrank.theory.order_preservation import Risk
from cleanrank.types import Array, RankingData
from cleanrank.validation import check_integer, check_number, one_of

RATES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
DECAYS = (1e-5, 1e-4, 1e-3)
WEIGHTS = ("macro", "micro")
CONVEX = "logistic"
LOSSES = (CONVEX, "sigmoid")
# Steps between tests of convergence, between looks at the hold-out risk, and after which one start goes on.
SPAN, EVERY, RACE = 100, 10, 300
CONVERGED, RISING, BEHIND, LIMIT = "converged", "hold-out risk rises", "other start better", "limit of steps"


@dataclass(frozen=True, eq=False)
class Runs:
    """R runs of a solver, each at the step with its least hold-out risk."""

    W: Array  # (F, R)
    rate: Array  # learning rate; of L-BFGS 0
    decay: Array
    start: Array  # 0: the origin
    held: Array  # least risk on hold-out data
    step: Array  # where that was
    objective: Array  # training risk and penalty, at the last test
    steps: Array  # taken
    stopped: list[str]  # why
    ends: Array  # (F, R) of L-BFGS, the weights at the end

    @classmethod
    def begun(cls, W: Array, rate: Array, decay: Array, start: Array) -> "Runs":
        """Before the first step."""
        R = len(rate)
        none, nowhere = np.zeros((2, R), dtype=np.int64), np.full((2, R), np.inf)
        stopped = [LIMIT] * R
        return cls(W.copy(), rate, decay, start, nowhere[0], none[0], nowhere[1], none[1], stopped, W.copy())

    def note(self, running: Array, W: Array, held: Array, step: int) -> None:
        """Keeps the weights of runs whose hold-out risk is their least so far."""
        better = held < self.held[running]
        where = running[better]
        self.held[where], self.step[where], self.W[:, where] = held[better], step, W[:, better]

    def test(self, running: Array, objective: Array, held: Array, step: int, tol: float) -> Any:
        """Notes the training objective and why runs stop; returns which of them go on."""
        settled = np.abs(self.objective[running] - objective) <= tol * np.abs(objective)
        rising = (step - self.step[running] > 2 * SPAN) & (held > self.held[running])
        self.objective[running], self.steps[running] = objective, step
        behind = np.zeros(len(running), dtype=np.bool_)
        if step == RACE:
            behind = ~np.isin(running, list(self.best_starts()))
        for test, word in ((behind, BEHIND), (rising, RISING), (settled, CONVERGED)):
            for run in running[test]:
                self.stopped[run] = word
        return ~(settled | rising | behind)

    def best_starts(self) -> Iterable[int]:
        """Of every combination the run with the least training objective."""
        kept: dict[tuple[float, float], int] = {}
        for run, combination in enumerate(zip(self.rate.tolist(), self.decay.tolist(), strict=True)):
            before = kept.setdefault(combination, run)
            if self.objective[run] < self.objective[before]:
                kept[combination] = run
        return kept.values()

    def best(self) -> int:
        """The run to keep: of the best starts the one with the least hold-out risk."""
        return min(self.best_starts(), key=lambda run: float(self.held[run]))

    def chosen(self, run: int) -> dict[str, Any]:
        """What is noted of the run that is kept."""
        return {
            "learning_rate": float(self.rate[run]),
            "weight_decay": float(self.decay[run]),
            "start": int(self.start[run]),
            "step": int(self.step[run]),
            "steps": int(self.steps[run]),
            "stopped": self.stopped[run],
            "risk": float(self.held[run]),
        }


def linear(task: MethodTask) -> MethodResult:
    """One model for all queries, or (``per_query``) one for each, then with documents in all splits."""
    params = task.params
    risk = Risk.parse(params["loss"])
    if risk is None or risk.loss not in LOSSES or risk.pairs not in (None, *WEIGHTS):
        rule = f"must be logistic or sym-logistic, or ranknet or sym-ranknet with {' or '.join(WEIGHTS)}"
        raise invalid("loss", rule, repr(params["loss"]))
    scaled = _with_intercept if issparse(task.train.X) else _scaling(task.train)
    parts = [scaled(d.X) for d in (task.train, task.validation, task.test)]
    if not params["per_query"]:
        return MethodResult(*_fitted(risk, parts, task.train, task.validation, params, task.seed))
    cuts = [list(pairwise(d.indptr)) for d in (task.train, task.validation, task.test)]
    sizes = [len(c) for c in cuts]
    if len(set(sizes)) > 1:
        raise invalid("queries", "must be the same in all splits for one model a query", sizes)
    scores, notes = np.zeros(task.test.n_docs), []
    for q, spans in enumerate(zip(*cuts, strict=True)):
        mine = [x[a:b] for x, (a, b) in zip(parts, spans, strict=True)]
        train = task.train.select(np.arange(*spans[0]))
        validation = task.validation.select(np.arange(*spans[1]))
        scores[slice(*spans[2])], note = _fitted(risk, mine, train, validation, params, task.seed + q)
        notes.append(note)
    return MethodResult(scores, {key: [note[key] for note in notes] for key in notes[0]})


def _with_intercept(X: Any) -> Any:
    return hstack((X, csr_matrix(np.ones((X.shape[0], 1), dtype=np.float32))), format="csr")


def _scaling(train: RankingData) -> Callable[[Any], Array]:
    X = np.asarray(train.X, dtype=np.float64)
    centre, spread = X.mean(axis=0), X.std(axis=0)
    spread[spread == 0] = 1.0

    def scaled(other: Any) -> Array:
        # Single precision halves the time; a constant column serves as intercept.
        standardised = (np.asarray(other, dtype=np.float64) - centre) / spread
        return np.column_stack((standardised, np.ones(len(standardised)))).astype(np.float32)

    return scaled


def _fitted(
    risk: Risk, parts: list[Any], train: RankingData, validation: RankingData, params: Any, seed: int
) -> tuple[Array, dict[str, Any]]:
    X, X_val, X_test = parts
    rng = np.random.default_rng(seed)
    most = check_integer("max_pairs", params["max_pairs"], least=1)
    inside, outside = risk_of(risk, X, train, most, rng), risk_of(risk, X_val, validation, most, rng)
    starts = _starts(X, check_integer("starts", params["starts"], least=1), rng)
    solver = SOLVERS[one_of("solver", params["solver"], SOLVERS)]
    tol = check_number("tol", params["tol"], above=0)
    runs = solver(inside, outside, starts, tol, check_integer("max_steps", params["max_steps"], least=1))
    best = runs.best()
    return (X_test @ runs.W[:, best]).astype(np.float64), runs.chosen(best)


def _starts(X: Any, count: int, rng: np.random.Generator) -> Array:
    """(F, count): the origin, then random weights under which scores have a variance of about 1."""
    stored: Any = getattr(X, "data", X) if issparse(X) else X
    norm = float(np.sqrt(max((stored.astype(np.float64) ** 2).sum() / max(X.shape[0], 1), 1e-12)))
    starts: Array = (rng.standard_normal((X.shape[1], count)) / norm).astype(np.float32)
    starts[:, 0] = 0.0
    return starts


def adam(inside: LinearRisk, outside: LinearRisk, starts: Array, tol: float, max_steps: int) -> Runs:
    """Full steps of Adam for every start, learning rate and weight decay; runs that stop drop out."""
    combinations = list(product(range(starts.shape[1]), RATES, DECAYS))
    start, rate, decay = (np.array(column) for column in zip(*combinations, strict=True))
    runs = Runs.begun(np.ascontiguousarray(starts[:, start]), rate, decay, start)
    W, running = runs.W.copy(), np.arange(len(rate))
    rates, decays = rate.astype(np.float32), decay.astype(np.float32)
    first, second = np.zeros_like(W), np.zeros_like(W)
    for step in range(max_steps + 1):
        if step < EVERY or step % EVERY == 0:
            held = outside.values(W)
            runs.note(running, W, held, step)
        if step % SPAN == 0 or step == max_steps:
            penalty = 0.5 * decay[running] * (W.astype(np.float64) ** 2).sum(axis=0)
            on = runs.test(running, inside.values(W) + penalty, held, step, tol)
            if not on.any():
                break
            if not on.all():
                running = running[on]
                W, first, second = (np.ascontiguousarray(values[:, on]) for values in (W, first, second))
        adam_step(W, inside.gradients(W), first, second, rates[running], decays[running], step + 1)
    return runs


def lbfgs(inside: LinearRisk, outside: LinearRisk, starts: Array, tol: float, max_steps: int) -> Runs:
    """Scipy's L-BFGS for every start and weight decay.

    The second start of a symmetrised loss is where the convex one ends, from the origin with the same decay.
    """
    # Else every product would convert the features to the precision of the weights.
    inside, outside = (replace(risk, X=risk.X.astype(np.float64)) for risk in (inside, outside))
    start, decay = (np.array(column) for column in zip(*product(range(starts.shape[1]), DECAYS), strict=True))
    begin = starts[:, start].astype(np.float64)
    if inside.loss.name != CONVEX and starts.shape[1] > 1:
        convex = lbfgs(inside.with_loss(CONVEX), outside.with_loss(CONVEX), starts[:, :1], tol, max_steps)
        begin[:, start == 1] = convex.ends
    runs = Runs.begun(begin, 0.0 * decay, decay, start)
    for run in range(len(decay)):
        _lbfgs_run(inside, outside, runs, run, tol, max_steps)
    return runs


def _lbfgs_run(
    inside: LinearRisk, outside: LinearRisk, runs: Runs, run: int, tol: float, max_steps: int
) -> None:
    """One run, until a step changes the objective by less than ``tol`` / SPAN (relative)."""
    import scipy.optimize

    minimize: Any = scipy.optimize.minimize
    decay, begin = float(runs.decay[run]), runs.W[:, run].copy()

    def look(w: Array) -> None:
        runs.note(np.array([run]), w[:, None], outside.values(w[:, None]), int(runs.steps[run]))
        runs.steps[run] += 1

    def objective(w: Array) -> tuple[float, Array]:
        value, gradient = inside.values_and_gradients(w[:, None])
        return float(value[0]) + 0.5 * decay * float(w @ w), gradient[:, 0] + decay * w

    look(begin)
    options = {"maxiter": max_steps, "maxfun": 2 * max_steps, "ftol": tol / SPAN, "gtol": 1e-9}
    end = minimize(objective, begin, jac=True, method="L-BFGS-B", callback=look, options=options)
    runs.objective[run], runs.steps[run], runs.ends[:, run] = end.fun, end.nit, end.x
    runs.stopped[run] = CONVERGED if end.nit < max_steps else LIMIT


SOLVERS: dict[str, Callable[..., Runs]] = {"adam": adam, "lbfgs": lbfgs}
