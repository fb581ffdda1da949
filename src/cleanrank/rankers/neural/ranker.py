"""Neural rankers in scikit-learn's manner: ``fit(X, y, qid=...)``, ``predict(X)``, parameters one can search.

NumPy and torch are all that training needs, so that it runs on a bare GPU machine; saving needs safetensors.
Rows come in any order and scores go back in it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from os import PathLike
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from cleanrank.errors import invalid
from cleanrank.rankers.base import (
    BaseRanker,
    EvalsResult,
    check_labels,
    mean_over_queries,
    refuse_weights,
    validation_data,
)
from cleanrank.rankers.columns import frame_features, frame_qid
from cleanrank.rankers.neural.checkpoint import TrainingState, fingerprint, settings_of
from cleanrank.rankers.neural.documents import batch_scores, score_all
from cleanrank.rankers.neural.inputs import Batch, batch_of, bucketed
from cleanrank.rankers.neural.loop import Batches, Training, train
from cleanrank.rankers.neural.model import NeuralModel, Task, checked_preferences, label_columns, load_network
from cleanrank.rankers.neural.objective import LossConfig, list_loss, preference_loss, robust_words
from cleanrank.rankers.neural.steps import Forward, Outputs, Step
from cleanrank.types import FloatArray, IntArray, Progress, RankingData
from cleanrank.validation import check_integer, is_frame

# (epoch, scores of the training rows): what SOUR takes in place of (trees, scores).
Observer: TypeAlias = Callable[[int, FloatArray], None]


@dataclass(repr=False, eq=False)
class NeuralRanker(BaseRanker):
    """A network that ranks. It reads numbers alone: categories must be encoded first.

    Options of ``fit``: ``progress``, called with (epoch, epochs); ``observer``, called with (epoch, scores of
    the rows of X) after each epoch. ``sample_weight`` says how many copies a row stands for; ``position``
    is read where ``debias`` is given.

    Args:
        loss: a name of ``objective.LOSSES``, or a callable with the arguments of a loss of ``losses.torch``.
        pairs: "strict", "strict_both" or "all_ordered"; which pairs a pairwise loss sees.
        robust: None, a robust form such as "peer", "symmetrize" or {"name": "gce", "q": .5}, or several.
        alpha: weight of peers, or "auto": e+ + e- of ``noise``.
        noise: a matrix P(given grade | true grade), a NoiseProfile or a NoiseEstimate; read by "auto".
        peers: "expected" (no variance) or "sampled" (as published).
        debias: None, "ipw", "dla" or "pairdebias": labels are clicks, weighed by the rank they were shown at.
        click_rates: for "ipw": clicks per showing at ranks 1, 2, ... of lists in random order.
        binary: the loss of "pairwise" and "pointwise"; "hinge" on pairs with network="linear" is SVMRank.
        loss_options: further arguments of ``ranking_loss``, such as sigma, weighting, measure.
        network: one of NETWORKS.
        network_options: its options, such as hidden, dropout, activation.
        epochs: passes over the data at the most.
        early_stopping_rounds: epochs without gain on validation data before it stops; 0 or None never stops.
        measure: what early stopping looks at; the best epoch is kept.
        optimizer: "adam", "adamw", "adagrad" or "sgd".
        learning_rate: its step.
        weight_decay: of the optimiser.
        clip_norm: the norm that gradients are cut down to; None leaves them.
        batch_queries: queries of a step.
        accumulate: parts in which a batch goes through the network, one after the other. Memory falls, the
            step stays the same; every document goes through twice.
        scaling: "zscore", "minmax" (to [-1, 1]) or "none"; learnt on training rows.
        precision: "float32", "tf32" or "bfloat16".
        random_state: for everything random.
        device: "auto", "cpu", "cuda" or "cuda:N".
        deterministic: the same bits in every run on a GPU too.
        checkpoint: a file that is rewritten after each epoch and from which a broken training goes on.
        n_jobs: threads; None leaves torch's number. Sums may round otherwise for another number.

    Attributes:
        model_: the trained NeuralModel.
        alpha_: the weight of peers in use, a number that says whether it is exact and why; None without.
        history_: per epoch its number, mean loss and value on validation data.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(20, 5, docs_per_query=10, seed=0)
    >>> ranker = NeuralRanker(epochs=2, network_options={"hidden": (8,)})
    >>> ranker.fit(data.X, data.y, qid=data.qid).predict(data.X).shape == data.y.shape
    True
    """

    loss: Any = "ranknet"
    _: KW_ONLY
    pairs: str = "strict"
    robust: Any = None
    alpha: float | str = 0.1
    noise: Any = None
    peers: str = "expected"
    debias: str | None = None
    click_rates: Any = None
    binary: Any = "logistic"
    loss_options: Mapping[str, Any] | None = None
    network: str = "mlp"
    network_options: Mapping[str, Any] | None = None
    epochs: int = 50
    early_stopping_rounds: int | None = 10
    measure: str = "ndcg@10"
    optimizer: str = "adam"
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    clip_norm: float | None = 5.0
    batch_queries: int = 64
    accumulate: int = 1
    scaling: str = "zscore"
    precision: str = "float32"
    random_state: int = 0
    device: str = "auto"
    deterministic: bool = False
    checkpoint: str | PathLike[str] | None = None
    n_jobs: int | None = None

    def _for_rows(self, options: dict[str, Any], row_ids: IntArray) -> dict[str, Any]:
        observer = options.get("observer")
        return options if observer is None else options | {"observer": _in_input_order(observer, row_ids)}

    def _fit(
        self,
        data: RankingData,
        validation: RankingData | None = None,
        *,
        progress: Progress | None = None,
        observer: Observer | None = None,
    ) -> None:
        if not data.n_docs:
            raise invalid("training data", "must have documents")
        _refuse_categories(data.categories)
        pairs = isinstance(self.loss, str) and self.loss != "pointwise"
        check_labels(data, pairs=pairs)
        training = Training.of(self)
        loss, self.alpha_ = list_loss(self.loss_config(), data)
        if self.checkpoint is not None and not getattr(loss, "resumable", True):
            rule = "must be None with a loss that learns weights of its own"
            remedy = "Train in one go: what debiasing has learnt is no part of a checkpoint."
            raise invalid("checkpoint", rule, str(self.checkpoint), remedy=remedy)
        task = Task(self, data.X, data.indptr, data.row_ids, data.feature_names)
        labels, extra = label_columns(data, task.device, getattr(loss, "reads", ()))

        def batch(*parts: IntArray) -> Batch:
            return batch_of(data.indptr, np.concatenate(parts), task.device)

        def scores(forward: Forward, batch: Batch) -> Outputs:
            return (batch_scores(forward, task.listwise, task.docs, batch),)

        def risk(outputs: Outputs, batch: Batch, generator: torch.Generator) -> Tensor:
            columns = {name: batch.pad(values[batch.rows]) for name, values in extra.items()}
            y = batch.pad(labels[batch.rows])
            mean: Tensor = loss(batch.pad(outputs[0]), y, batch.mask, generator, **columns)
            return mean

        def batches(rng: np.random.Generator) -> list[IntArray]:
            return bucketed(data.lengths, self.batch_queries, rng)

        read = (data.y, data.indptr, data.gains, data.weights, data.positions)
        step = Step(batch, scores, risk)
        self._train(task, step, batches, training, read, validation, progress, observer)

    def fit_preferences(
        self,
        X: Any,
        preferences: npt.ArrayLike,
        *,
        eval_set: Any = None,
        eval_qid: Any = None,
        batch_pairs: int = 1024,
        progress: Progress | None = None,
        observer: Observer | None = None,
    ) -> Self:
        """Trains on judged pairs, as top-k judging yields them: which of two documents is better.

        Args:
            X: features of the documents.
            preferences: (P, 2), rows of X: the better document, the worse one.
            eval_set: (X, y) of judged validation rows, or a list with that one pair.
            eval_qid: their queries.
            batch_pairs: preferences of a step.
            progress: called with (epoch, epochs).
            observer: called with (epoch, scores of the rows of X) after each epoch.
        """
        parts = frame_features(X) if is_frame(X) else {"X": X, "feature_names": None}
        features, names = parts["X"], parts["feature_names"]
        _refuse_categories(parts.get("categories"))
        features = features if hasattr(features, "shape") else np.asarray(features)
        pairs = checked_preferences(preferences, features.shape[0])
        check_integer("batch_pairs", batch_pairs, least=1)
        training = Training.of(self)
        loss, self.alpha_ = preference_loss(self.loss_config())
        task = Task(self, features, np.array([0, features.shape[0]]), None, names)
        if task.listwise:
            raise invalid("preferences", "train networks that score documents one by one", repr(self.network))

        def batch(*parts: IntArray) -> tuple[IntArray, IntArray]:
            return distinct_rows([pairs[members] for members in parts])

        def scores(forward: Forward, batch: tuple[IntArray, IntArray]) -> Outputs:
            return (forward(task.docs.rows(torch.from_numpy(batch[0]))),)

        def risk(outputs: Outputs, batch: tuple[IntArray, IntArray], generator: torch.Generator) -> Tensor:
            stated = torch.from_numpy(np.pad(batch[1], ((0, 0), (1, 0)))).to(task.device)
            mean: Tensor = loss.on_preferences(outputs[0][None], stated, None, generator)
            return mean

        def batches(rng: np.random.Generator) -> list[IntArray]:
            cuts = range(batch_pairs, len(pairs), batch_pairs)
            return np.split(rng.permutation(len(pairs)), cuts)

        held = next(iter(validation_data(eval_set, eval_qid).values()), None)
        step = Step(batch, scores, risk)
        return self._train(task, step, batches, training, (pairs,), held, progress, observer)

    def predict(
        self, X: Any, *, qid: npt.ArrayLike | None = None, group: npt.ArrayLike | None = None
    ) -> FloatArray:
        """One score per row, in input order; networks that see whole lists need the queries."""
        model: NeuralModel = self._fitted()
        self._check_width(X)
        return model.predict(X, qid=qid, group=group, device=self.device, n_jobs=self.n_jobs)

    def score(
        self,
        X: Any,
        y: npt.ArrayLike,
        *,
        qid: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
        sample_weight: None = None,
    ) -> float:
        """The mean of ``measure`` over the queries of judged rows; ``sample_weight`` must be None."""
        refuse_weights(sample_weight)
        if qid is None and group is None:
            qid = frame_qid(X)
        return mean_over_queries(y, self.predict(X, qid=qid, group=group), qid, group, self.measure)

    @property
    def reads_positions(self) -> bool:
        """Networks may learn the bias of positions."""
        return True

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """A fitted ranker from a file; its parameters are the usual ones but for the network's."""
        model = load_network(path)
        ranker = cls(network=model.kind, network_options=model.options)
        ranker.model_, ranker.alpha_, ranker.history_ = model, None, []
        return ranker

    def _evaluations(self, sets: Mapping[str, RankingData]) -> EvalsResult:
        values = [[entry["value"] for entry in self.history_ if "value" in entry], *self._other_values]
        return {name: {self.measure: history} for name, history in zip(sets, values, strict=False)}

    def loss_config(self) -> LossConfig:
        """The parameters of the loss."""
        return LossConfig(
            self.loss,
            self.binary,
            self.pairs,
            self.robust,
            self.alpha,
            self.noise,
            self.peers,
            self.debias,
            self.click_rates,
            self.loss_options,
        )

    def _train(
        self,
        task: Task,
        step: Step,
        batches: Batches,
        training: Training,
        read: Sequence[Any],
        validation: RankingData | None,
        progress: Progress | None,
        observer: Observer | None,
    ) -> Self:
        half = self.precision == "bfloat16"
        if validation is not None:
            read = (*read, validation.X, validation.y, validation.indptr)

        def watch(epoch: int, network: nn.Module) -> None:
            assert observer is not None
            observer(epoch, score_all(network, task.docs, half=half))

        def validator(data: RankingData) -> Callable[[nn.Module], float]:
            return task.validator(data, self.measure, half=half)

        others = [validator(data) for data in list(self._sets.values())[1:]]
        self._other_values: list[list[float]] = [[] for _ in others]
        first = None if validation is None else validator(validation)

        def validate(network: nn.Module) -> float:
            assert first is not None
            for value, values in zip(others, self._other_values, strict=True):
                values.append(value(network))
            return first(network)

        state = train(
            task.network,
            step,
            batches,
            training,
            validate=None if first is None else validate,
            observer=None if observer is None else watch,
            progress=progress,
            checkpoint=self.checkpoint,
            identity=None
            if self.checkpoint is None
            else {"data": fingerprint(*read, task.docs.blocks()), **settings_of(self)},
        )
        return self._keep(task, state)

    def _keep(self, task: Task, state: TrainingState) -> Self:
        validated = state.best_epoch > 0
        settings = settings_of(self)
        robust = robust_words(self.loss_config().steps) or None
        alpha = None if self.alpha_ is None else float(self.alpha_)
        self.history_ = state.history
        self.model_ = NeuralModel(
            task.network,
            self.network,
            dict(settings["network_options"] or {}),
            task.scaling,
            state.best_epoch if validated else state.epoch,
            state.best_value if validated else None,
            {**settings, "robust": robust, "alpha": alpha},
            task.names,
        )
        return self


def distinct_rows(parts: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """The rows that some parts of preferences (P, 2) name, each once in a part, and the places of all pairs.

    >>> rows, places = distinct_rows([np.array([[7, 2]]), np.array([[7, 9], [9, 8]])])
    >>> rows.tolist(), places.tolist()
    ([2, 7, 7, 8, 9], [[1, 0], [2, 4], [4, 3]])
    """
    rows, places, n = [], [], 0
    for pairs in parts:
        named, place = np.unique(pairs, return_inverse=True)
        rows.append(named)
        places.append(n + place.reshape(-1, 2))
        n += len(named)
    return np.concatenate(rows), np.concatenate(places)


def _refuse_categories(categories: Mapping[str, Any] | None) -> None:
    if categories:
        remedy = "One-hot encode it first, as pandas.get_dummies does, or use trees: BoostedRanker."
        column = f"categories in {next(iter(categories))!r}"
        raise invalid("NeuralRanker", "reads numbers alone", column, remedy=remedy)


def _in_input_order(observer: Observer, row_ids: IntArray) -> Observer:
    def observe(epoch: int, scores: FloatArray) -> None:
        back = np.empty_like(scores)
        back[row_ids] = scores
        observer(epoch, back)

    return observe
