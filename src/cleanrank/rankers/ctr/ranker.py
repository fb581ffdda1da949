"""Models of the click-through rate in scikit-learn's manner: ``fit(rows)``, ``predict_proba(rows)``.

NumPy and torch are all that training needs, so that it runs on a bare GPU machine; saving needs safetensors.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from os import PathLike
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from cleanrank.data.behaviours import ClickRows
from cleanrank.data.events import Events
from cleanrank.data.ordered import code_events
from cleanrank.errors import error_text, invalid
from cleanrank.losses.torch.pair_sums import elementwise
from cleanrank.metrics.calibration import METHODS, fit_calibration
from cleanrank.metrics.clicks import auc
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.rankers.base import Estimator, NotFittedError
from cleanrank.rankers.ctr import MODELS
from cleanrank.rankers.ctr.model import TrainedModel, load_click_model, probabilities
from cleanrank.rankers.ctr.objective import KINDS, Objective, objective
from cleanrank.rankers.ctr.resident import (
    ResidentRows,
    batches,
    check_click_rows,
    check_layout,
    logits,
    resident,
)
from cleanrank.rankers.neural.checkpoint import TrainingState, fingerprint, plain_values, settings_of
from cleanrank.rankers.neural.denoising import (
    OTHER,
    Twins,
    check_forgetting,
    code_agreement_weights,
    kept_share,
    taught,
)
from cleanrank.rankers.neural.device import device_of
from cleanrank.rankers.neural.loop import Training, train
from cleanrank.rankers.neural.steps import Forward, Outputs, Step
from cleanrank.types import FloatArray, IntArray, Progress
from cleanrank.validation import check_integer, one_of

# (epoch, logits of the training rows)
Observer: TypeAlias = Callable[[int, FloatArray], None]


@dataclass(repr=False, eq=False)
class CTRModel(Estimator):
    """A network that predicts clicks from a user, a candidate item and the behaviours before.

    Args:
        model: one of ``rankers.ctr.MODELS``, such as "din", "dien" or "deepfm".
        robust: None, a robust form of the loss such as "peer" or {"name": "gce", "q": .5}, one of the
            schemes "coteaching", "reweight" and "sour" (with options in the same way), or several.
        alpha: weight of peers in [0, 1], or "auto": e+ + e- of ``noise``.
        noise: a matrix P(given label | true label), the shares of labels 0 and of labels 1 that are right, a
            NoiseProfile or a NoiseEstimate; read by "auto", and by "forward" and "backward".
        peers: "expected" (no variance) or "sampled" (as published).
        binary: the loss of a logit.
        model_options: options of the model, such as embedding, hidden and dropout.
        epochs: passes over the rows at the most.
        early_stopping_rounds: epochs without gain in validation AUC before it stops; 0 or None never stops.
            The best epoch is kept either way.
        optimizer: "adam", "adamw", "adagrad" or "sgd".
        learning_rate: its step.
        weight_decay: L2 on weights; biases, norms and embeddings have none.
        clip_norm: the norm that gradients are cut down to; None leaves them.
        batch_size: rows of a step.
        precision: "float32", "tf32" or "bfloat16".
        compile: whether the network is compiled for training on a GPU (torch.compile).
        random_state: for everything random.
        device: "auto", "cpu", "cuda" or "cuda:N".
        deterministic: the same bits in every run on a GPU too.
        checkpoint: a file that is rewritten after each epoch and from which a broken training goes on.
        calibration: "platt" or "isotonic": probabilities are made true on the validation rows, whose labels
            are taken to be as noisy as ``noise`` says (None: right). ``calibrate`` does it on other rows.
        n_jobs: threads; None leaves torch's number.
        validations: how often an epoch is validated, evenly spread; the best state of all is kept.

    Attributes:
        model_: the trained model.
        alpha_: the weight of peers in use, a number that says whether it is exact and why; None without.
        history_: per epoch its number, mean loss and AUC on validation rows.
        removed_: of "sour", which training rows were left out; None without.

    >>> from cleanrank.data.behaviours import Layout
    >>> layout, rng = Layout(user={"user": 9}, item={"item": 7}), np.random.default_rng(0)
    >>> item = rng.integers(1, 7, (400, 1))
    >>> rows = ClickRows(
    ...     user=rng.integers(1, 9, (400, 1)), item=item, context=np.zeros((400, 0)), y=item[:, 0] > 3,
    ...     history_of=np.arange(400), histories=rng.integers(1, 7, (400, 5, 1)), lengths=np.full(400, 5),
    ...     layout=layout, users=np.arange(400))
    >>> model = CTRModel("deepfm", epochs=5, batch_size=50, n_jobs=1).fit(rows)
    >>> model.score(rows) > 0.9, model.predict_proba(rows).shape
    (True, (400, 2))
    """

    model: str = "din"
    _: KW_ONLY
    robust: Any = None
    alpha: float | str = 0.1
    noise: Any = None
    peers: str = "expected"
    binary: Any = "logistic"
    model_options: Mapping[str, Any] | None = None
    epochs: int = 10
    early_stopping_rounds: int | None = 2
    optimizer: str = "adam"
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    clip_norm: float | None = None
    batch_size: int = 200
    precision: str = "float32"
    compile: bool = False
    random_state: int = 0
    device: str = "auto"
    deterministic: bool = False
    checkpoint: str | PathLike[str] | None = None
    calibration: str | None = None
    n_jobs: int | None = None
    validations: int = 1

    def fit(
        self,
        rows: ClickRows,
        validation: ClickRows | None = None,
        *,
        sample_weight: npt.ArrayLike | None = None,
        progress: Progress | None = None,
        observer: Observer | None = None,
    ) -> Self:
        """Trains on rows.

        Args:
            rows: what is learnt from; labels must be of both kinds.
            validation: rows by whose AUC the best epoch is chosen.
            sample_weight: multiplies a row's loss.
            progress: called with (epoch, epochs).
            observer: called with (epoch, logits of the training rows) after each epoch.

        Returns:
            Itself.
        """
        training, goal = self._checked(rows, validation)
        self.alpha_, self.removed_ = goal.alpha, None
        weight = _checked_weight(sample_weight, len(rows))
        if goal.scheme == "reweight":
            codes = np.hstack([rows.user, rows.item, rows.context])
            weight = np.multiply(weight, code_agreement_weights(codes, rows.y))
        if goal.scheme == "sour":
            kept = self._not_contradicted(rows, validation, weight, goal, training)
            self.removed_ = ~kept
            rows, weight = rows.select(kept), weight[kept]
        self._train(rows, validation, weight, goal, training, progress, observer)
        if self.calibration is not None and validation is not None:
            self.calibrate(validation, self.calibration, noise=self.noise)
        return self

    def calibrate(self, rows: ClickRows, method: str = "platt", *, noise: Any = None) -> Self:
        """Makes probabilities true on rows that it was not trained on; their order stays.

        Args:
            rows: with labels.
            method: "platt" (two numbers; for few rows) or "isotonic" (any rising curve; some thousand rows).
            noise: of their labels, as the parameter of the class; None takes them as they are.

        Returns:
            Itself.
        """
        rates = None
        if noise is not None:
            T = NoiseProfile.of(noise, 2).matrix
            rates = float(T[1, 0]), float(T[0, 1])
        curve = fit_calibration(rows.y, probabilities(self.predict(rows)), method, noise=rates)
        self.model_ = replace(self._fitted(), calibration=curve)
        return self

    def predict(self, rows: ClickRows) -> FloatArray:
        """One score per row (a log-odds), in the order of the rows; higher ranks first."""
        return self._fitted().predict(rows, device=self.device, n_jobs=self.n_jobs)

    def predict_proba(self, rows: ClickRows) -> FloatArray:
        """The probabilities of no click and of a click of every row, (N, 2); calibrated if the model is."""
        click, curve = probabilities(self.predict(rows)), self._fitted().calibration
        if curve is not None:
            click = curve.apply(click)
        return np.column_stack([1 - click, click])

    def score(self, rows: ClickRows) -> float:
        """The AUC on labelled rows."""
        scores = self.predict(rows)
        return auc(rows.y, scores)

    def rows_of(self, events: Events) -> ClickRows:
        """One row for every event of a log, in its order, coded as the rows that it was trained on.

        Args:
            events: as ``read_events`` gives them, with the fields of the training log. What a user clicked
                before is looked up in these events.

        Returns:
            The rows to score; ``unknown`` counts those with a user or an item that the model has no code for.
        """
        trained = self._fitted()
        if trained.vocabulary is None:
            rule = "must know which ids its codes stand for"
            raise invalid("the model", rule, remedy="Train it on rows of prepare_clicks.")
        context = tuple(trained.layout.context)
        return code_events(events, trained.vocabulary, history=trained.history, context=context)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the model as safetensors: a file that ends so, or model.safetensors in a folder."""
        self._fitted().save(path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """A fitted model from a file or folder; its parameters are the usual ones but for the network's."""
        trained = load_click_model(path)
        loaded = cls(trained.kind, model_options=trained.options)
        loaded.model_, loaded.alpha_, loaded.history_, loaded.removed_ = trained, None, [], None
        return loaded

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _fitted(self) -> TrainedModel:
        if not hasattr(self, "model_"):
            rule = "must be fitted before it predicts or is saved"
            raise NotFittedError(error_text(type(self).__name__, rule, remedy="Call fit."))
        return self.model_

    def _checked(self, rows: ClickRows, validation: ClickRows | None) -> tuple[Training, Objective]:
        """What is to be done, after everything was refused that cannot be."""
        one_of("model", self.model, MODELS)
        check_integer("batch_size", self.batch_size, least=1)
        check_integer("validations", self.validations, least=1)
        _check_rows("training rows", rows)
        if validation is not None:
            _check_rows("validation rows", validation)
            check_layout(validation, rows.layout, rows.vocabulary, rows.histories.shape[1], "validation rows")
        if self.calibration is not None:
            one_of("calibration", self.calibration, METHODS)
            if validation is None:
                raise invalid("calibration", "needs validation rows", repr(self.calibration))
        goal = objective(self.robust, self.alpha, self.noise, self.peers, self.binary, rows.y)
        if goal.scheme in ("coteaching", "sour"):
            if self.checkpoint is not None:
                remedy = "Train in one go, or without robust=."
                raise invalid(
                    "checkpoint", f"must be None with {goal.scheme}", str(self.checkpoint), remedy=remedy
                )
            if goal.scheme == "sour" and int(os.environ.get("WORLD_SIZE", "1")) > 1:
                raise invalid("sour", "must run in one process", os.environ["WORLD_SIZE"])
        return Training.of(self), goal

    def _build(self, rows: ClickRows, seed: int) -> tuple[Any, dict[str, Any]]:
        options = self.model_options or {}
        if not isinstance(options, Mapping):
            raise invalid("model_options", "must map names to values", repr(options))
        # A network that was loaded says how long its histories are.
        built = {"history": rows.histories.shape[1]} | dict(options)
        check_layout(rows, rows.layout, rows.vocabulary, built["history"], "training rows")
        return MODELS[self.model](rows.layout, seed=seed, **built), built

    def _train(
        self,
        rows: ClickRows,
        validation: ClickRows | None,
        weight: FloatArray,
        goal: Objective,
        training: Training,
        progress: Progress | None = None,
        observer: Observer | None = None,
    ) -> Self:
        network, options = self._build(rows, self.random_state)
        device, half = device_of(self.device), self.precision == "bfloat16"
        learn = resident(rows, device, options["history"])
        held = None if validation is None else resident(validation, device, options["history"])
        trained: nn.Module = network
        weights = torch.from_numpy((weight / weight.mean()).astype(np.float32)).to(device)
        epoch = [0]
        if goal.scheme == "coteaching":
            check_forgetting(goal.options["forget"], goal.options["ramp"])
            trained = Twins(network, self._build(rows, (self.random_state + OTHER) % 2**31)[0])
            step = _coteaching(learn, weights, goal, epoch)
        else:
            step = _plain(learn, weights, goal)
        if self.compile and device.type == "cuda":
            trained.compile()

        def epoch_batches(rng: np.random.Generator) -> list[IntArray]:
            epoch[0] += 1
            return batches(len(learn), self.batch_size, rng)

        def validate(_: nn.Module) -> float:
            assert held is not None
            assert validation is not None
            return auc(validation.y, logits(network, held, half=half))

        def watch(number: int, _: nn.Module) -> None:
            assert observer is not None
            observer(number, logits(network, learn, half=half))

        state = train(
            trained,
            step,
            epoch_batches,
            training,
            validate=None if held is None else validate,
            observer=None if observer is None else watch,
            progress=progress,
            checkpoint=self.checkpoint,
            identity=None if self.checkpoint is None else self._identity(rows, validation, weight),
            decayed=_decayed(trained),
            validations=self.validations,
        )
        if self.compile:
            trained._compiled_call_impl = None  # shapes of predictions differ, and each would be compiled
        return self._keep(network, options, rows, state)

    def _identity(self, rows: ClickRows, validation: ClickRows | None, weight: FloatArray) -> dict[str, Any]:
        names = ("user", "item", "context", "y", "history_of", "histories", "lengths")
        parts = [rows] if validation is None else [rows, validation]
        arrays = [getattr(part, name) for part in parts for name in names]
        return {"data": fingerprint(*arrays, weight), **settings_of(self)}

    def _keep(
        self, network: nn.Module, options: dict[str, Any], rows: ClickRows, state: TrainingState
    ) -> Self:
        validated = state.best_epoch > 0
        alpha = None if self.alpha_ is None else float(self.alpha_)
        self.history_ = state.history
        self.model_ = TrainedModel(
            network,
            self.model,
            plain_values(options),
            rows.layout,
            state.best_epoch if validated else state.epoch,
            state.best_value if validated else None,
            {**settings_of(self), "alpha": alpha},
            vocabulary=rows.vocabulary,
        )
        return self

    def _not_contradicted(
        self,
        rows: ClickRows,
        validation: ClickRows | None,
        weight: FloatArray,
        goal: Objective,
        training: Training,
    ) -> npt.NDArray[np.bool_]:
        """Which rows some epoch of the window of SOUR agrees with."""
        start = check_integer("start", goal.options["start"], least=0)
        end = check_integer("end", goal.options["end"], least=0)
        labels = KINDS[one_of("kind of outlier", goal.options["kind"], KINDS)]
        wrong: list[npt.NDArray[np.bool_]] = []

        def watch(epoch: int, scores: FloatArray) -> None:
            wrong.append((scores > 0) != (rows.y == 1))

        self._train(rows, validation, weight, goal, training, observer=watch)
        window = wrong[start : end or self.model_.best_epoch]
        if not window:
            rule = f"must leave epochs before {end or self.model_.best_epoch}, the last that is looked at"
            raise invalid("start of sour", rule, start)
        removed: npt.NDArray[np.bool_] = np.logical_and.reduce(window) & np.isin(rows.y, labels)
        if not 0 < rows.y[~removed].sum() < (~removed).sum():
            share = f"{int(removed.sum())} of {len(rows)} removed"
            raise invalid("sour", "must leave rows of both labels", share, remedy="Use a longer window.")
        return ~removed


def _check_rows(subject: str, rows: Any) -> None:
    check_click_rows(rows, subject)
    clicked = int(rows.y.sum())
    if not 0 < clicked < len(rows):
        rule = "must have rows that were clicked and rows that were not"
        raise invalid(subject, rule, f"{clicked} clicked of {len(rows)}")


def _checked_weight(sample_weight: npt.ArrayLike | None, n: int) -> FloatArray:
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,) or not (np.isfinite(weight) & (weight >= 0)).all() or not weight.any():
        rule = f"must hold {n} numbers >= 0, not all 0"
        raise invalid("sample_weight", rule, f"shape {weight.shape}, least {weight.min(initial=np.inf):g}")
    return weight


def _step(rows: ResidentRows, risk: Callable[[Outputs, Tensor, torch.Generator], Tensor]) -> Step:
    """A step whose members are rows."""

    def places(*parts: IntArray) -> Tensor:
        return torch.from_numpy(np.concatenate(parts)).to(rows.y.device, non_blocking=True)

    def scores(forward: Forward, places: Tensor) -> Outputs:
        outputs: Outputs = forward(*rows.inputs(places), auxiliary=True)
        return outputs

    return Step(places, scores, risk)


def _plain(rows: ResidentRows, weights: Tensor, goal: Objective) -> Step:
    def risk(outputs: Outputs, places: Tensor, generator: torch.Generator) -> Tensor:
        scores, extra = outputs
        return goal.risk(scores, rows.y[places], weights[places], generator) + extra

    return _step(rows, risk)


def _coteaching(rows: ResidentRows, weights: Tensor, goal: Objective, epoch: list[int]) -> Step:
    forget, ramp = goal.options["forget"], goal.options["ramp"]

    def risk(outputs: Outputs, places: Tensor, generator: torch.Generator) -> Tensor:
        first, extra, second, other = outputs
        losses = [elementwise(scores, rows.y[places], goal.loss) for scores in (first, second)]
        return taught(losses, weights[places], kept_share(epoch[0], forget, ramp)) + extra + other

    return _step(rows, risk)


def _decayed(network: nn.Module) -> Callable[[str, nn.Parameter], bool]:
    """Says which parameters L2 is for: weights of layers, not biases, norms or embeddings."""
    tables = {id(m.weight) for m in network.modules() if isinstance(m, nn.Embedding)}
    return lambda name, parameter: parameter.ndim > 1 and id(parameter) not in tables
