"""SOUR as a ranker: train, find consistent outliers, leave them out, train again (Marcuzzi et al. 2022)."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeAlias

import numpy as np

from cleanrank.cleaning import Cleaned, clean
from cleanrank.errors import invalid
from cleanrank.issues.outliers import KINDS, SOUR, Window
from cleanrank.issues.sour import as_peers, watch_folds, watch_last, watch_training
from cleanrank.issues.table import BoolArray, LabelIssues
from cleanrank.losses.trees.lambdarank import LambdaRankObjective
from cleanrank.losses.trees.peer import Peers
from cleanrank.rankers.base import best_of, check_labels, check_rows
from cleanrank.rankers.tree_ranker import TreeRanker
from cleanrank.rankers.trees import TreeModel, TreeParams, common_params, lambdarank_params
from cleanrank.types import FloatArray, Progress, RankingData
from cleanrank.validation import check_integer, is_integer, one_of

AUTO = "auto"
STARTS = 10  # starts that "auto" tries, at equal steps from 0
ENDS = (50, 200, 500, 800, 900)  # tree counts of 1,000 at which curr-SOUR lets documents back
CHECK_EVERY = 10  # trees after which variant "fly" looks up who is left out

Fitted: TypeAlias = tuple[TreeModel, dict[str, Any]]
Rows: TypeAlias = RankingData | None


@dataclass(kw_only=True, eq=False, repr=False)
class SOURRanker(TreeRanker):
    """A ranker that trains a base model, leaves its consistent outliers out and trains again on the rest.

    Options of ``fit``: ``progress``, called with (trees, n_estimators) while a model is trained; ``client``,
    a ``distributed.Client``, whose workers train each model together.

    Args:
        cutoff: k of the measure NDCG@k; outliers cross this rank, and early stopping looks at it.
        start: s; a list to choose from on validation data; "auto" for ten starts at equal steps from 0.
        end: e, trees of the base model.
        kind: "neg", "pos" or "all"; a list to choose from on validation data; "auto" for all three.
        rule: "paper" or "reference", see ``issues/outliers.py``.
        min_frequency: share of the models that must flag a document; less than 1 is p-SOUR.
        include_f0: look at the model without trees too.
        highest_negative: the highest grade that is not relevant.
        variant: one of VARIANTS.
        ends: of "curr", the trees at which documents come back; shares of the paper's when not given.
        patience: of "fly", models in a row that must flag a document before it is left out.
        folds: detect out of fold, in so many folds; 0 means by the base model itself.
        peers: the peer objective inside; a number is its alpha, with expected peers.
        n_estimators: trees of the final model, at the most.
        early_stopping_rounds: trees without gain on validation data before the final model stops.
        learning_rate: of both models.
        num_leaves: of both models.
        min_child_samples: documents per leaf at the least.
        objective: "lambdarank" or "lambdamart".
        implementation: "exact", "parity" or "builtin".
        random_state: for everything random.
        n_jobs: threads.
        params: further LightGBM parameters.

    Attributes:
        model_: the final TreeModel.
        base_: the base model; None where the variant needs none.
        cleaned_: what was left out, with its audit trail; None where nothing was left out for good.
        issues_: the LabelIssues behind it.
        chosen_: start, kind, trees and the validation value.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(30, 5, docs_per_query=20, seed=0)
    >>> model = cr.SOURRanker(start=10, end=20, n_estimators=20).fit(data.X, data.y, qid=data.qid)
    >>> model.predict(data.X).shape == data.y.shape
    True
    """

    cutoff: int = 10
    start: int | str | Sequence[int] = 0
    end: int = 1000
    kind: str | Sequence[str] = "neg"
    rule: str = "paper"
    min_frequency: float = 1.0
    include_f0: bool = False
    highest_negative: int = 0
    variant: str = "sour"
    ends: Sequence[int] | None = None
    patience: int = 50
    folds: int = 0
    peers: Peers | float | None = None
    n_estimators: int = 1000
    early_stopping_rounds: int | None = 100
    learning_rate: float = 0.05
    num_leaves: int = 31
    min_child_samples: int = 20
    objective: str = "lambdarank"
    implementation: str = "exact"
    random_state: int = 0
    n_jobs: int = 1
    params: Mapping[str, Any] | None = None

    def _measure(self) -> str:
        return f"ndcg@{self.cutoff}"

    def _fit(
        self, train: RankingData, validation: RankingData | None, *, progress: Progress | None = None
    ) -> None:
        one_of("variant of SOUR", self.variant, VARIANTS)
        self._check_variant()
        if self._chooses():
            self._check_choosing(validation)
        check_rows(train, validation)
        own, _ = lambdarank_params(self.params)
        check_labels(train, own.get("label_gain"))
        self.base_: TreeModel | None = None
        self.cleaned_: Cleaned | None = None
        self.issues_: LabelIssues | None = None
        self.model_, facts = VARIANTS[self.variant](self, train, validation, progress)
        self.chosen_ = {
            **facts, "trees": self.model_.best_iteration, "validation": self.model_.validation_value
        }  # fmt: skip

    def tree_params(self, **changes: Any) -> TreeParams:
        """How trees are grown."""
        settings = TreeParams(
            objective=self.objective,
            implementation=self.implementation,
            peers=as_peers(self.peers, self.random_state),
            params=common_params(self.learning_rate, self.num_leaves, self.min_child_samples, self.params),
            n_estimators=self.n_estimators,
            early_stopping_rounds=self.early_stopping_rounds,
            measure=self._measure(),
            seed=self.random_state,
            n_jobs=self.n_jobs,
            callbacks=self._callbacks,
        )
        return replace(settings, **changes)

    def window(self, **changes: Any) -> Window:
        """What is looked for."""
        starts, kinds = self.starts(), self.kinds()
        widest = {
            "start": starts[0] if len(starts) == 1 else 0,
            "kind": kinds[0] if len(kinds) == 1 else "all",
        }
        return Window(**{each.name: getattr(self, each.name) for each in fields(Window)} | widest | changes)

    def starts(self) -> list[int]:
        """The starts to choose from."""
        check_integer("end", self.end, least=1)
        if isinstance(self.start, str) and self.start == AUTO:
            return list(range(0, self.end, max(1, self.end // STARTS)))[:STARTS]
        starts = np.atleast_1d(self.start).tolist()
        if not starts or not all(is_integer(start) for start in starts):
            raise invalid("start", "must be a number of trees, a list of them or 'auto'", repr(self.start))
        if len(starts) > 1 and not all(0 <= start < self.end for start in starts):
            # One of them alone is the window's to judge: not every variant ends here.
            raise invalid("start", f"must lie between 0 and {self.end - 1}, below end", repr(self.start))
        return list(starts)

    def kinds(self) -> list[str]:
        """The kinds to choose from."""
        if isinstance(self.kind, str) and self.kind == AUTO:
            return list(KINDS)
        kinds = np.atleast_1d(self.kind).tolist()
        if not kinds:
            raise invalid("kind", f"must be one of {', '.join(KINDS)}, a list of them or 'auto'", "none")
        return [one_of("kind of outlier", str(kind), KINDS) for kind in kinds]

    def _chooses(self) -> bool:
        return len(self.starts()) * len(self.kinds()) > 1

    def _check_variant(self) -> None:
        """Refuses settings that the variant would pass over without a word."""
        for name, is_set in (("min_frequency", self.min_frequency != 1.0), ("folds", bool(self.folds))):
            if is_set and self.variant != "sour":
                raise invalid(name, "goes with variant 'sour'", f"variant {self.variant!r}")
        if self.ends is None:
            return
        if self.variant != "curr":
            raise invalid("ends", "goes with variant 'curr'", f"variant {self.variant!r}")
        ends: Any = self.ends
        if isinstance(ends, str) or not isinstance(ends, Sequence | np.ndarray) or not len(ends):
            raise invalid("ends", "must be a list of tree counts", repr(self.ends))

    def _check_choosing(self, validation: RankingData | None) -> None:
        choice = "a choice of start and kind"
        if validation is None:
            raise invalid(choice, "needs validation data", "none", remedy="Give eval_set= and eval_qid=.")
        if self.variant != "sour" or self.min_frequency != 1.0 or self.folds:
            settings = f"{self.variant}, {self.min_frequency}, {self.folds}"
            raise invalid(choice, "goes with variant 'sour', min_frequency 1 and folds 0", settings)

    def _fit_sour(self, train: RankingData, validation: Rows, progress: Progress | None) -> Fitted:
        """Base model, consistent outliers, final model; choices share the base model."""
        window, settings = self.window(), self.tree_params()
        if self.folds:
            detector, _ = watch_folds(train, window, settings, n_folds=self.folds)
        else:
            keep = "streak" if self._chooses() else "count"
            detector, self.base_ = watch_training(train, window, settings, progress=progress, keep=keep)
        models: dict[bytes, TreeModel] = {}
        tried: list[tuple[TreeModel, Cleaned, dict[str, Any]]] = []
        for start, kind in itertools.product(self.starts(), self.kinds()):
            outliers = detector.outliers(start=start, kind=kind)
            cleaned = clean(train, detector.table(train, issues=outliers), by="SOUR")
            key = np.packbits(outliers).tobytes()
            if key not in models:
                models[key] = settings.train(cleaned.data, validation, progress=progress)
            facts = {"start": start, "kind": kind, "removed": int(cleaned.acted.sum())}
            tried.append((models[key], cleaned, facts))
        model, self.cleaned_, facts = best_of(tried, lambda each: each[0].validation_value or 0.0)
        self.issues_ = self.cleaned_.issues
        return model, facts

    def _fit_last(self, train: RankingData, validation: Rows, progress: Progress | None) -> Fitted:
        """last-SOUR: outliers of the base model that validation data find best, else of all its trees."""
        settings = self.tree_params()
        self.base_ = replace(settings, n_estimators=self.end).train(train, validation, progress=progress)
        detector = watch_last(train, self.base_, self.window(start=0), n_jobs=self.n_jobs)
        self.cleaned_ = clean(train, detector.table(train), by="last-SOUR")
        self.issues_ = self.cleaned_.issues
        model = settings.train(self.cleaned_.data, validation, progress=progress)
        start, removed = self.base_.best_iteration - 1, int(self.cleaned_.acted.sum())
        return model, {"start": start, "kind": self.kinds()[0], "removed": removed}

    def _fit_curriculum(self, train: RankingData, validation: Rows, progress: Progress | None) -> Fitted:
        """curr-SOUR: documents that stay outliers up to a tree count come back when the model exceeds it."""
        shares = [max(1, e * self.n_estimators // 1000) for e in ENDS]
        ends = tuple(shares if self.ends is None else self.ends)
        window = self.window(start=0, end=max(ends), min_frequency=1.0)
        settings = self.tree_params()
        detector, self.base_ = watch_training(train, window, settings, progress=progress, keep="lead")
        model, sizes = train_in_phases(train, validation, detector, ends, settings)
        self.issues_ = detector.table(train, issues=detector.outliers(end=ends[0]))
        facts = {"ends": [int(end) for end in ends], "kind": self.kinds()[0], "removed_in_phases": sizes}
        return model, facts

    def _fit_while_filtering(self, train: RankingData, validation: Rows, progress: Progress | None) -> Fitted:
        """One training run: documents give no gradients while the last models all flag them."""
        window = self.window(end=self.n_estimators, min_frequency=1.0)
        model, detector, left_out = train_while_filtering(
            train, validation, window, self.tree_params(), patience=self.patience, progress=progress
        )
        self.issues_ = detector.table(train, issues=left_out) if detector.seen else None
        return model, {"start": window.start, "kind": self.kinds()[0], "removed": int(left_out.sum())}


def train_in_phases(
    train: RankingData,
    validation: RankingData | None,
    detector: SOUR,
    ends: Sequence[int],
    settings: TreeParams,
) -> tuple[TreeModel, list[int]]:
    """Trees e_(i-1)+1..e_i learn without O_i, the outliers of all models up to e_i; the last ones from all.

    ``detector``, with keep="lead", has watched the base model. Gives the model and the sizes of the O_i.
    """
    cuts = [0, *ends, settings.n_estimators]
    if not all(is_integer(end) for end in cuts) or any(a >= b for a, b in itertools.pairwise(cuts)):
        raise invalid("ends", f"must rise from above 0 to below {settings.n_estimators}", list(ends))
    model: TreeModel | None = None
    sizes = []
    for first, last in itertools.pairwise(cuts[:-1]):
        outliers = detector.outliers(end=last)
        sizes.append(int(outliers.sum()))
        model = replace(settings, n_estimators=last - first).train(train.drop(outliers), init_model=model)
    rest = replace(settings, n_estimators=settings.n_estimators - cuts[-2])
    return rest.train(train, validation, init_model=model), sizes


class FilteringObjective(LambdaRankObjective):
    """LambdaRank gradients without the documents that the last ``patience`` models all flagged."""

    def __init__(self, data: RankingData, detector: SOUR, patience: int, every: int, **options: Any) -> None:
        super().__init__(data, **{**options, "observer": detector})
        # Gradients need grades and queries; weights are applied once, by this objective.
        bare = np.zeros((data.n_docs, 0), dtype=np.float32)
        self.rows = replace(data, X=bare, weights=None, feature_names=None, categories=None)
        self.detector, self.patience, self.every, self.options = detector, patience, every, options
        self.left_out: BoolArray = np.zeros(data.n_docs, dtype=np.bool_)
        self.inner: LambdaRankObjective | None = None

    def part(self, first: int, last: int) -> Self:
        """The objective of the queries first, ..., last - 1 alone, with a detector of their rows."""
        part = super().part(first, last)
        indptr = self.ranking.indptr
        part.detector = part.observer = self.detector.part(first, last)
        part.inner = None
        part.left_out = self.left_out[indptr[first] : indptr[last]]
        part.rows = self.rows.select_queries(np.arange(first, last))
        return part

    def take(self, rows: slice, part: Any) -> None:
        """Takes over what a part saw of its rows, and whom it left out."""
        super().take(rows, part)
        self.left_out[rows] = part.left_out

    def _base(self, scores: FloatArray) -> None:
        if self.rounds % self.every == 0:
            self._choose()
        if self.inner is None:
            super()._base(scores)
            return
        self.ranking.update(scores)
        kept = ~self.left_out
        grad, hess = self.inner(scores[kept])
        self._grad[:], self._hess[:] = 0.0, 0.0
        self._grad[kept], self._hess[kept] = grad, hess

    def _choose(self) -> None:
        """Looks up who is left out now; the inner objective is made anew when that changes."""
        flagged = self.detector.counts >= self.patience
        if (flagged == self.left_out).all():
            return
        self.left_out = flagged
        self.inner = LambdaRankObjective(self.rows.drop(flagged), **self.options) if flagged.any() else None


def train_while_filtering(
    train: RankingData,
    validation: RankingData | None,
    window: Window,
    settings: TreeParams,
    *,
    patience: int,
    every: int = CHECK_EVERY,
    progress: Progress | None = None,
) -> tuple[TreeModel, SOUR, BoolArray]:
    """Trains one model and leaves documents out on the fly; gives it, its detector and who was out last.

    ``patience`` models in a row must flag a document; who is left out is looked up after ``every`` so many
    trees, and models up to ``window.start`` trees leave nobody out.
    """
    if settings.implementation == "builtin" or settings.peers is not None:
        value = f"{settings.implementation}{'' if settings.peers is None else ' with peers'}"
        raise invalid("variant 'fly'", "needs implementation 'exact' or 'parity' without peers", value)
    if not is_integer(patience) or not 1 <= patience <= settings.n_estimators:
        rule = f"must lie between 1 and the number of trees ({settings.n_estimators})"
        raise invalid("patience", rule, repr(patience))
    detector = SOUR.of(train, window, keep="streak", n_jobs=settings.n_jobs)
    own, rest = lambdarank_params(settings.params)
    options = {"norm": settings.objective == "lambdarank", "mode": settings.implementation} | own
    objective = FilteringObjective(train, detector, patience, every, n_jobs=settings.n_jobs, **options)
    model = replace(settings, params=rest).train(train, validation, objective=objective, progress=progress)
    return model, detector, objective.left_out


VARIANTS: dict[str, Callable[..., Fitted]] = {
    "sour": SOURRanker._fit_sour,
    "last": SOURRanker._fit_last,
    "curr": SOURRanker._fit_curriculum,
    "fly": SOURRanker._fit_while_filtering,
}
