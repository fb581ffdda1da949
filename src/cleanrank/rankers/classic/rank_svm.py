"""RankSVM: a linear ranker with a margin between different grades (Herbrich 2000; Joachims 2002).

    min_w  |w|^2 / 2 + C sum over pairs y_i > y_j of a query of loss(w.x_i - w.x_j)

The losses of a lead d are max(0, 1 - d) ("hinge", the paper's), its square ("squared_hinge") and
min(2, max(0, 1 - d)) ("ramp"), which no pair raises by more than 2, however wrong its labels are (Collobert
et al. 2006). No list of pairs is made: see ``_rank_svm`` for the sums and ``_pair_solver`` for the solver.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cleanrank.errors import error_text, invalid
from cleanrank.metrics.evaluation import evaluate_arrays
from cleanrank.ragged import indptr_of
from cleanrank.rankers.base import held_out
from cleanrank.rankers.classic._pair_solver import PairProblem, Shape, Solution, Tilt, minimise
from cleanrank.rankers.classic.base import LinearRanker, Rows, Watch
from cleanrank.rankers.classic.models import LinearModel
from cleanrank.types import Array, FloatArray, Progress, RankingData
from cleanrank.validation import check_integer, check_number, check_seed, is_number, one_of

LOSSES: dict[str, str] = {
    "hinge": "max(0, 1 - d) of the lead d of the better document, as published",
    "squared_hinge": "its square",
    "ramp": "min(2, max(0, 1 - d)), which bounds what a wrong label can do",
}
AUTO = "auto"
CS = tuple(10.0**power for power in range(-4, 4))
HELD_OUT, FEWEST_QUERIES = 0.2, 3
RAMP_ENDS = -1.0  # the lead below which the ramp is flat
# Its convex problems: how many at the most, the gain relative to the objective that the next one needs, the
# least tolerance of one.
RAMP_ROUNDS, RAMP_GAIN, RAMP_TOL = 20, 1e-3, 3e-4


@dataclass(kw_only=True, eq=False, repr=False)
class RankSVM(LinearRanker):
    """A linear ranker that wants a margin of 1 between documents of different grades of a query.

    The least objective is found to ``tol`` of its value, which the gap to the dual objective proves. "hinge"
    is the published loss; "squared_hinge" has no corner and is solved about ten times as fast.

    Args:
        C: weight of the sum of losses over all pairs; "auto" tries 1e-4, 1e-3, ..., 1e3 and keeps the best by
            ``measure`` on validation rows. Without validation rows a fifth of the queries is held out for the
            choice and all rows are learnt with it; with fewer than 3 queries it is 1.
        loss: "hinge", "squared_hinge" or "ramp": the hinge cut off at 2, for labels with errors. It is not
            convex; a sequence of convex problems (CCCP) leads from the hinge's solution downwards.
        tol: largest gap to the least objective, relative to it; at least 3e-4 for the problems of the ramp.
        max_iter: Newton steps for one C at the most; a warning says when they were not enough.
        measure: what C is chosen by.
        scaling: "minmax" (to [-1, 1], near to LETOR's features as they are), "zscore" or "none".
        random_state: for the queries that are held out.
        n_jobs: threads; results are the same for any number.

    Attributes:
        C_: the weight in use.
        objective_: the least objective on the training rows, of scaled features.
        gap_: the objective is at most this far above the least one (of the ramp, in its last convex problem).
        coef_: weights of the features as they were given.
        intercept_: what is added to them.
        best_iteration_: which C was kept, counted from 1.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(20, 5, docs_per_query=10, seed=0)
    >>> ranker = RankSVM(C=0.1).fit(data.X, data.y, qid=data.qid)
    >>> ranker.coef_.shape, ranker.gap_ <= 1e-6 * ranker.objective_
    ((5,), True)
    """

    C: float | str = AUTO
    loss: str = "hinge"
    tol: float = 1e-6
    max_iter: int = 1000
    measure: str = "map"
    scaling: str = "minmax"
    random_state: int = 0
    n_jobs: int = 1

    def _check_settings(self) -> None:
        if self.C != AUTO and not (is_number(self.C) and np.isfinite(self.C) and self.C > 0):
            rule, remedy = 'must be a number > 0 or "auto"', 'C="auto" chooses on validation rows.'
            raise invalid("C", rule, repr(self.C), remedy=remedy)
        one_of("loss of RankSVM", self.loss, LOSSES)
        check_number("tol", self.tol, above=0, below=1)
        check_integer("max_iter", self.max_iter, least=1)

    def _fit(
        self, train: RankingData, validation: RankingData | None = None, *, progress: Progress | None = None
    ) -> None:
        self._check_settings()
        check_seed(self.random_state)
        held = np.zeros(train.n_docs, dtype=bool)
        if self.C == AUTO and validation is None and train.n_queries >= FEWEST_QUERIES:
            held = np.isin(train.row_ids, held_out(train, HELD_OUT, self.random_state)[1].row_ids)
        self._held: Array = held
        try:
            super()._fit(train, validation, progress=progress)
        finally:
            del self._held

    def _train(self, rows: Rows, watch: Watch, progress: Progress | None) -> LinearModel:
        problem = PairProblem(rows.X, rows.y, rows.indptr, rows.weights)
        if not problem.pairs > 0:
            rule = "must be above 0 for two documents of different labels in at least one query"
            remedy = "Leave sample_weight out where all rows count alike."
            raise invalid("sample_weight", rule, "none such", remedy=remedy)
        start = None
        if self.C != AUTO:
            candidates: Sequence[float] = (float(self.C),)
        elif watch.sets:
            candidates = CS
        else:
            best, start = self._choose(rows)
            candidates = (best,)
        kept = None
        for step, C in enumerate(candidates):
            convex, solution = self._solve(problem, C, start)
            start = convex.w
            scores = [np.einsum("nf,f->n", X, solution.w) for X in watch.sets]
            if watch.see(scores) or kept is None:
                self.C_, kept = C, solution
            if progress is not None:
                progress(step + 1, len(candidates))
        assert kept is not None
        tol = max(self.tol, RAMP_TOL) if self.loss == "ramp" else self.tol
        if kept.gap > tol * kept.objective:
            rule = f"did not reach tol={tol:g} of the objective"
            remedy = "Increase max_iter or tol, or scale the features."
            gap = f"a gap of {kept.gap / kept.objective:.1e} after {kept.steps} steps"
            warnings.warn(error_text("RankSVM", rule, gap, remedy=remedy), stacklevel=5)
        self.objective_, self.gap_ = float(kept.objective), float(kept.gap)
        return self._linear(kept.w, watch)

    def _choose(self, rows: Rows) -> tuple[float, FloatArray | None]:
        """The best C on queries that are held out, and the weights that the others give with it."""
        learn, held = _part(rows, ~self._held), _part(rows, self._held)
        problem = PairProblem(learn.X, learn.y, learn.indptr, learn.weights)
        best: tuple[float, FloatArray | None] = 1.0, None
        if not problem.pairs > 0 or not len(held.y):
            return best
        start, most = None, -np.inf
        for C in CS:
            convex, solution = self._solve(problem, C, start)
            start = convex.w
            values = evaluate_arrays(held.y, held.X @ solution.w, held.indptr, self.measure, n_jobs=1)
            value = float(np.nan_to_num(next(iter(values.means.values()))))
            if value > most:
                most, best = value, (C, start)
        return best

    def _solve(self, problem: PairProblem, C: float, start: FloatArray | None) -> tuple[Solution, Solution]:
        """(the solution of the convex loss, that of the loss in use); ``start`` is one of a convex loss."""
        convex = "squared_hinge" if self.loss == "squared_hinge" else "hinge"
        solution = minimise(problem, C, convex, start=start, tol=self.tol, max_iter=self.max_iter)
        if self.loss != "ramp":
            return solution, solution
        return solution, descend_ramp(problem, C, solution, self.tol, self.max_iter)


def descend_ramp(problem: PairProblem, C: float, start: Solution, tol: float, max_iter: int) -> Solution:
    """CCCP: the ramp is the hinge minus a hinge at RAMP_ENDS, whose tangent at the last solution replaces it.

    Every round solves a convex problem, whose solution is kept only where it lowers the ramp's objective.
    """
    tol = max(tol, RAMP_TOL)
    solution = start
    value, tilt = _ramp(problem, C, start)
    for _ in range(RAMP_ROUNDS):
        new = minimise(problem, C, "hinge", start=solution.w, tilt=tilt, tol=tol, max_iter=max_iter)
        lower, tilt = _ramp(problem, C, new)
        gain = value - lower
        if gain > 0:
            solution, value = new, lower
        if gain <= RAMP_GAIN * value:
            break
    return replace(solution, objective=value)


def _ramp(problem: PairProblem, C: float, at: Solution) -> tuple[float, Tilt]:
    """The ramp's objective, and the tangent of what it subtracts from the hinge's."""
    hinge = problem.losses(at.scores, Shape.hinge()).loss
    cut = problem.losses(at.scores, Shape.hinge(at=RAMP_ENDS))
    slope = -C * problem.by_feature(cut.by_row)
    value = 0.5 * float(at.w @ at.w) + C * (hinge - cut.loss)
    return value, Tilt(slope, -C * cut.loss - float(slope @ at.w))


def _part(rows: Rows, mask: Array) -> Rows:
    """Whole queries of some rows."""
    lengths = np.diff(rows.indptr)
    kept = np.add.reduceat(np.append(mask, False), rows.indptr[:-1]) * (lengths > 0)
    weights = None if rows.weights is None else rows.weights[mask]
    return Rows(rows.X[mask], rows.y[mask], indptr_of(kept[kept > 0]), weights)
