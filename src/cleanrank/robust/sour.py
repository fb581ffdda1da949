"""SOUR as a ranker: train, find consistent outliers, leave them out, train again (Marcuzzi et al. 2022)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cleanrank.cleaning import Cleaned, clean
from cleanrank.errors import invalid
from cleanrank.issues.find import as_peers
from cleanrank.issues.outliers import KINDS, SOUR, BoolArray, Window
from cleanrank.issues.sour import Growing, watch_folds, watch_last, watch_training
from cleanrank.issues.table import LabelIssues
from cleanrank.losses.trees.peer import Peers
from cleanrank.rankers.base import Estimator, training_data, validation_data
from cleanrank.rankers.settings import by_main_name
from cleanrank.rankers.trees import TreeRanker
from cleanrank.robust._phases import ENDS, grow_in_phases, grow_while_filtering
from cleanrank.types import FloatArray, Progress, RankingData
from cleanrank.validation import is_integer, one_of

AUTO = "auto"
STARTS = 10
"""With start="auto" so many starts are tried, at equal steps from 0."""


class SOURRanker(Estimator):
    """A ranker that trains a base forest, leaves its consistent outliers out and trains again on the rest.

    Args:
        cutoff: k of the measure NDCG@k; outliers cross this rank, and early stopping looks at it.
        start: s; a list to choose from on validation data; "auto" for ten starts at equal steps from 0.
        end: e, trees of the base forest.
        kind: "neg", "pos" or "all"; a list to choose from on validation data; "auto" for all three.
        rule: "paper" or "reference", see ``issues/_outlier_kernels.py``.
        min_frequency: share of the forests that must flag a document; less than 1 is p-SOUR.
        include_f0: look at the empty forest too.
        highest_negative: the highest grade that is not relevant.
        variant: one of VARIANTS.
        ends: of "curr", the trees at which documents come back; shares of the paper's when not given.
        patience: of "fly", forests in a row that must flag a document before it is left out.
        folds: detect out of fold, in so many folds; 0 means by the base forest itself.
        peers: the peer objective inside; a number is its alpha, with expected peers.
        n_estimators: trees of the final forest, at the most.
        early_stopping_rounds: rounds without gain on validation data before the final forest stops.
        learning_rate: of both forests.
        num_leaves: of both forests.
        min_child_samples: documents per leaf at the least.
        objective: "exact", "parity" or "builtin".
        norm: on is lambda-LGBM, off lambda-MART.
        random_state: for everything random.
        n_jobs: threads.
        params: further LightGBM parameters.

    Attributes:
        model_: the final forest.
        base_: the base forest; None where the variant needs none.
        cleaned_: what was left out, with its audit trail; None where nothing was left out for good.
        issues_: the LabelIssues behind it.
        chosen_: start, kind, trees and the validation value.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(30, 5, docs_per_query=20, seed=0)
    >>> model = cr.SOURRanker(start=10, end=20, n_estimators=20).fit(data.X, data.y, qid=data.qid)
    >>> model.predict(data.X).shape == data.y.shape
    True
    """

    def __init__(
        self,
        *,
        cutoff: int = 10,
        start: int | str | Sequence[int] = 0,
        end: int = 1000,
        kind: str | Sequence[str] = "neg",
        rule: str = "paper",
        min_frequency: float = 1.0,
        include_f0: bool = False,
        highest_negative: int = 0,
        variant: str = "sour",
        ends: Sequence[int] | None = None,
        patience: int = 50,
        folds: int = 0,
        peers: Peers | float | None = None,
        n_estimators: int = 1000,
        early_stopping_rounds: int = 100,
        learning_rate: float = 0.05,
        num_leaves: int = 31,
        min_child_samples: int = 20,
        objective: str = "exact",
        norm: bool = True,
        random_state: int = 0,
        n_jobs: int = 1,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self.cutoff = cutoff
        self.start = start
        self.end = end
        self.kind = kind
        self.rule = rule
        self.min_frequency = min_frequency
        self.include_f0 = include_f0
        self.highest_negative = highest_negative
        self.variant = variant
        self.ends = ends
        self.patience = patience
        self.folds = folds
        self.peers = peers
        self.n_estimators = n_estimators
        self.early_stopping_rounds = early_stopping_rounds
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.min_child_samples = min_child_samples
        self.objective = objective
        self.norm = norm
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.params = params

    def fit(
        self,
        X: Any,
        y: npt.ArrayLike,
        *,
        qid: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        position: npt.ArrayLike | None = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Trains on rows in any order.

        Args:
            X: features; a column "qid" of a data frame names the queries.
            y: grades.
            qid: the query of every row.
            group: instead of ``qid``, documents per query when rows are contiguous.
            sample_weight: a weight per row.
            position: ignored; clicks are not what this ranker learns from.
            eval_set: (X, y) of validation data, or a list with that one pair, as in LightGBM.
            eval_qid: their queries.
            progress: called with (round, rounds) while a forest grows.
        """
        train = training_data(X, y, qid=qid, group=group, sample_weight=sample_weight)
        return self.fit_data(train, validation_data(eval_set, eval_qid), progress=progress)

    def fit_data(
        self, train: RankingData, validation: RankingData | None = None, *, progress: Progress | None = None
    ) -> Self:
        """Trains on a RankingData."""
        one_of("variant of SOUR", self.variant, VARIANTS)
        self._check_variant()
        if self._chooses():
            self._check_choosing(validation)
        self.base_: TreeRanker | None = None
        self.cleaned_: Cleaned | None = None
        self.issues_: LabelIssues | None = None
        VARIANTS[self.variant](self, train, validation, progress)
        return self

    def predict(self, X: Any) -> FloatArray:
        """One score per row, in input order; higher ranks first."""
        if not hasattr(self, "model_"):
            raise invalid("the ranker", "must be fitted before it predicts", "no model", remedy="Call fit.")
        return self.model_.predict(X)

    def growing(self) -> Growing:
        """How the forests are grown."""
        return Growing(
            objective=self.objective,
            norm=self.norm,
            peers=as_peers(self.peers, self.random_state),
            params={
                "learning_rate": self.learning_rate,
                "num_leaves": self.num_leaves,
                "min_data_in_leaf": self.min_child_samples,
                **by_main_name(self.params),
            },
            measure=f"ndcg@{self.cutoff}",
            seed=self.random_state,
            n_jobs=self.n_jobs,
        )

    def window(self, **changes: Any) -> Window:
        """What is looked for."""
        return Window(
            **{
                "cutoff": self.cutoff,
                "start": self.starts()[0] if len(self.starts()) == 1 else 0,
                "end": self.end,
                "kind": self.kinds()[0] if len(self.kinds()) == 1 else "all",
                "rule": self.rule,
                "min_frequency": self.min_frequency,
                "include_f0": self.include_f0,
                "highest_negative": self.highest_negative,
                **changes,
            }
        )

    def starts(self) -> list[int]:
        """The starts that are open."""
        if not is_integer(self.end) or self.end < 1:
            raise invalid("end", "must be a whole number of trees from 1 on", repr(self.end))
        if isinstance(self.start, str) and self.start == AUTO:
            return list(range(0, self.end, max(1, self.end // STARTS)))[:STARTS]
        listed: list[Any] = (
            list(self.start) if isinstance(self.start, Sequence | np.ndarray) else [self.start]
        )
        if not listed or not all(is_integer(start) for start in listed):
            raise invalid("start", "must be a number of trees, a list of them or 'auto'", repr(self.start))
        if len(listed) > 1 and not all(0 <= start < self.end for start in listed):
            # One of them alone is the window's to judge: not every variant ends here.
            raise invalid("start", f"must lie between 0 and {self.end - 1}, below end", repr(self.start))
        return [int(start) for start in listed]

    def kinds(self) -> list[str]:
        """The kinds that are open."""
        if isinstance(self.kind, str) and self.kind == AUTO:
            return list(KINDS)
        several = isinstance(self.kind, Sequence | np.ndarray) and not isinstance(self.kind, str)
        named: list[Any] = list(self.kind) if several else [self.kind]
        if not named:
            raise invalid("kind", f"must be one of {', '.join(KINDS)}, a list of them or 'auto'", "none")
        return [one_of("kind of outlier", str(kind), KINDS) for kind in named]

    def _chooses(self) -> bool:
        return len(self.starts()) * len(self.kinds()) > 1

    def _final(
        self, train: RankingData, validation: RankingData | None, progress: Progress | None = None
    ) -> TreeRanker:
        return self.growing().train(
            train, validation, rounds=self.n_estimators, early_stopping_rounds=self.early_stopping_rounds,
            progress=progress,
        )  # fmt: skip

    def _finish(self, model: TreeRanker, **chosen: Any) -> None:
        self.model_ = model
        self.chosen_ = {**chosen, "trees": model.best_iteration, "validation": model.validation_value}

    def _check_variant(self) -> None:
        """Refuses settings that the variant would pass over without a word."""
        given = {"min_frequency": self.min_frequency != 1.0, "folds": bool(self.folds)}
        for name, there in given.items():
            if there and self.variant != "sour":
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
            raise invalid(
                choice,
                "goes with variant 'sour', min_frequency 1 and folds 0",
                f"{self.variant}, {self.min_frequency}, {self.folds}",
            )


def fit_sour(
    ranker: SOURRanker, train: RankingData, validation: RankingData | None, progress: Progress | None
) -> None:
    """Base forest, consistent outliers, final forest; choices share the base forest."""
    if ranker.folds:
        detector, _ = watch_folds(train, ranker.window(), ranker.growing(), n_folds=ranker.folds)
    else:
        detector, ranker.base_ = watch_training(
            train,
            ranker.window(),
            ranker.growing(),
            progress=progress,
            keep="streak" if ranker._chooses() else "count",
        )
    best: tuple[float, TreeRanker, Cleaned, dict[str, Any]] | None = None
    tried: dict[bytes, TreeRanker] = {}
    for start, kind, outliers in _choices(ranker, detector):
        key = np.packbits(outliers).tobytes()
        cleaned = clean(train, detector.table(train, chosen=outliers), by="SOUR")
        if key not in tried:
            tried[key] = ranker._final(cleaned.data, validation, progress)
        value = tried[key].validation_value or 0.0
        if best is None or value > best[0]:
            best = value, tried[key], cleaned, {"start": start, "kind": kind}
    assert best is not None  # there is at least one choice
    ranker.cleaned_, ranker.issues_ = best[2], best[2].issues
    ranker._finish(best[1], **best[3], removed=int(best[2].acted.sum()))


def _choices(ranker: SOURRanker, detector: SOUR) -> Iterator[tuple[int, str, BoolArray]]:
    """(start, kind, outliers) of every choice that is open, in order."""
    for start in ranker.starts():
        for kind in ranker.kinds():
            yield start, kind, detector.outliers(start=start, kind=kind)


def fit_last(
    ranker: SOURRanker, train: RankingData, validation: RankingData | None, progress: Progress | None
) -> None:
    """last-SOUR: outliers of the base forest that validation data find best, else of all its trees."""
    ranker.base_ = ranker.growing().train(
        train, validation, rounds=ranker.end, early_stopping_rounds=ranker.early_stopping_rounds,
        progress=progress,
    )  # fmt: skip
    detector = watch_last(train, ranker.base_, ranker.window(start=0), n_jobs=ranker.n_jobs)
    ranker.cleaned_ = clean(train, detector.table(train), by="last-SOUR")
    ranker.issues_ = ranker.cleaned_.issues
    model = ranker._final(ranker.cleaned_.data, validation, progress)
    last = ranker.base_.best_iteration
    ranker._finish(model, start=last - 1, kind=ranker.kinds()[0], removed=int(ranker.cleaned_.acted.sum()))


def fit_curriculum(
    ranker: SOURRanker, train: RankingData, validation: RankingData | None, progress: Progress | None
) -> None:
    """curr-SOUR: documents that stay outliers up to a tree count come back when the forest exceeds it."""
    shares = [max(1, e * ranker.n_estimators // 1000) for e in ENDS]
    ends = tuple(shares if ranker.ends is None else ranker.ends)
    window = ranker.window(start=0, end=max(ends), min_frequency=1.0)
    detector, ranker.base_ = watch_training(train, window, ranker.growing(), progress=progress, keep="lead")
    model, removed = grow_in_phases(
        train, validation, detector, ends, ranker.growing(), rounds=ranker.n_estimators,
        early_stopping_rounds=ranker.early_stopping_rounds,
    )  # fmt: skip
    ranker.issues_ = detector.table(train, chosen=detector.outliers(end=ends[0]))
    ranker._finish(model, ends=[int(end) for end in ends], kind=ranker.kinds()[0], removed_in_phases=removed)


def fit_while_filtering(
    ranker: SOURRanker, train: RankingData, validation: RankingData | None, progress: Progress | None
) -> None:
    """One training run: documents give no gradients while the last forests all flag them."""
    window = ranker.window(end=ranker.n_estimators, min_frequency=1.0)
    model, detector, left_out = grow_while_filtering(
        train, validation, window, ranker.growing(), patience=ranker.patience, rounds=ranker.n_estimators,
        early_stopping_rounds=ranker.early_stopping_rounds, progress=progress,
    )  # fmt: skip
    ranker.issues_ = detector.table(train, chosen=left_out) if detector.seen else None
    ranker._finish(model, start=window.start, kind=ranker.kinds()[0], removed=int(left_out.sum()))


VARIANTS = {
    "sour": fit_sour,
    "last": fit_last,
    "curr": fit_curriculum,
    "fly": fit_while_filtering,
}
