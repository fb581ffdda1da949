"""The one training loop: epochs of batches, an optimiser, validation, checkpoints.

What is trained and on what is up to the caller. ``batches`` gives an epoch's batches, each an array of
integers that mean queries, pairs or rows; a ``Step`` turns one into a loss, the mean over its members. Under
torchrun the members of a batch are shared out and the gradients added up, so that the number of processes
changes nothing but rounding.
"""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from cleanrank.errors import invalid
from cleanrank.rankers.neural.checkpoint import TrainingState, Weights, check_place, load_state, save_state
from cleanrank.rankers.neural.device import PRECISIONS, Processes, device_of, joined, seed_streams, settings
from cleanrank.rankers.neural.steps import Step, cast, sum_gradients
from cleanrank.types import IntArray, Progress
from cleanrank.validation import check_integer, check_n_jobs, check_number, check_seed, one_of

Batches: TypeAlias = Callable[[np.random.Generator], Sequence[IntArray]]
Watcher: TypeAlias = Callable[[int, nn.Module], None]
Validate: TypeAlias = Callable[[nn.Module], float]

OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adagrad": torch.optim.Adagrad,
    "sgd": torch.optim.SGD,
}


@dataclass(frozen=True)
class Training:
    """How a model is trained."""

    epochs: int = 50  # passes over the data at the most
    optimizer: str = "adam"  # one of OPTIMIZERS
    learning_rate: float = 1e-3  # its step
    weight_decay: float = 0.0  # of the optimiser; AdamW's is apart from the gradient
    clip_norm: float | None = 5.0  # the norm that gradients are cut down to; None leaves them
    patience: int = 0  # epochs without gain on validation data before it stops; 0 never stops
    precision: str = "float32"  # one of PRECISIONS
    device: str = "auto"  # "auto", "cpu", "cuda" or "cuda:N"
    deterministic: bool = False  # the same bits in every run on a GPU too; on a CPU they are the same anyway
    seed: int = 0  # for the order of batches and everything random in a step
    n_jobs: int | None = None  # threads; None or -1 leaves torch's number
    accumulate: int = 1  # parts of a batch that go through the model one after the other

    def __post_init__(self) -> None:
        one_of("optimizer", self.optimizer, OPTIMIZERS)
        one_of("precision", self.precision, PRECISIONS)
        check_seed(self.seed)
        check_n_jobs(self.n_jobs)
        check_integer("epochs", self.epochs, least=1)
        check_integer("early_stopping_rounds", self.patience, least=0)
        check_integer("accumulate", self.accumulate, least=1)
        check_number("learning_rate", self.learning_rate, above=0)
        check_number("weight_decay", self.weight_decay, least=0)
        if self.clip_norm is not None:
            check_number("clip_norm", self.clip_norm, above=0)

    @classmethod
    def of(cls, estimator: Any) -> "Training":
        """What the parameters of an estimator say."""
        named = ("epochs", "optimizer", "learning_rate", "weight_decay", "clip_norm", "precision", "device")
        return cls(
            **{name: getattr(estimator, name) for name in (*named, "deterministic", "n_jobs")},
            patience=estimator.early_stopping_rounds or 0,
            seed=estimator.random_state,
            accumulate=getattr(estimator, "accumulate", 1),
        )


def train(
    model: nn.Module,
    step: Step,
    batches: Batches,
    training: Training,
    *,
    validate: Validate | None = None,
    observer: Watcher | None = None,
    progress: Progress | None = None,
    checkpoint: str | PathLike[str] | None = None,
    identity: Mapping[str, Any] | None = None,
    decayed: Callable[[str, nn.Parameter], bool] | None = None,
    validations: int = 1,
) -> TrainingState:
    """Trains a model in place and leaves it with the weights of its best epoch, without validation the last.

    Args:
        model: what is trained.
        step: what is done with a batch.
        batches: called with a NumPy generator once per epoch.
        training: how.
        validate: called with the model in evaluation mode after each epoch; more is better.
        validations: how often an epoch is validated, evenly spread over its batches.
        observer: called with (epoch, model) after each epoch, the model in evaluation mode; in every process.
        progress: called with (epoch, epochs) in the first process.
        checkpoint: a file that the first process rewrites after each epoch. If it exists the training goes on
            from it, to the same weights as without the break; observers see only what is left.
        identity: what makes two trainings the same; a checkpoint of another one is refused.
        decayed: called with (name, parameter); says which of them ``weight_decay`` is for. None: all.

    >>> model = nn.Linear(1, 1, bias=False)
    >>> x = torch.linspace(-1, 1, 8)[:, None]
    >>> step = Step(
    ...     batch=lambda *parts: x[np.concatenate(parts)],
    ...     scores=lambda forward, rows: (forward(rows),),
    ...     loss=lambda outputs, rows, generator: ((outputs[0] - 3 * rows) ** 2).mean())
    >>> state = train(model, step, lambda rng: [rng.permutation(8)], Training(200, learning_rate=0.1))
    >>> state.epoch, round(model.weight.item(), 2)
    (200, 3.0)
    """
    device = device_of(training.device)
    tf32 = training.precision == "tf32"
    with (
        settings(n_jobs=training.n_jobs, deterministic=training.deterministic, tf32=tf32),
        torch.random.fork_rng(devices=[device] if device.type == "cuda" else []),
    ):
        processes = joined(device)
        run = _Run(model.to(device), step, training, processes, device, decayed)
        path = None if checkpoint is None else Path(checkpoint)
        if path is not None:
            run.restore(path, identity or {})
        while run.unfinished():
            run.epoch(batches, validate, validations)
            if observer is not None:
                observer(run.state.epoch, model)
            if processes.first:
                if progress is not None:
                    progress(run.state.epoch, run.total)
                if path is not None:
                    save_state(path, model, run.optimizer, run.state, run.best, identity or {})
            processes.wait()
        if run.best is not None:
            model.load_state_dict(run.best)
    model.eval()
    return run.state


class _Run:
    """A training under way."""

    def __init__(
        self,
        model: nn.Module,
        step: Step,
        training: Training,
        processes: Processes,
        device: torch.device,
        decayed: Callable[[str, nn.Parameter], bool] | None = None,
    ) -> None:
        self.model, self.training, self.processes, self.device = model, training, processes, device
        self.step, self.forward = step, cast(model, training.precision == "bfloat16", device.type)
        kind = OPTIMIZERS[training.optimizer]
        options: dict[str, Any] = {"lr": training.learning_rate, "weight_decay": training.weight_decay}
        groups: Any = model.parameters()
        if decayed is not None:
            named = list(model.named_parameters())
            groups = [
                {"params": [p for name, p in named if decayed(name, p)]},
                {"params": [p for name, p in named if not decayed(name, p)], "weight_decay": 0.0},
            ]
        if device.type == "cuda" and training.optimizer in ("adam", "adamw"):
            options["fused"] = True
        self.optimizer = kind(groups, **options)
        self.state, self.best = TrainingState(), None
        self.total, self.threads = training.epochs, torch.get_num_threads()

    best: Weights | None

    def restore(self, path: Path, identity: Mapping[str, Any]) -> None:
        if path.exists():
            self.state, self.best = load_state(path, self.model, self.optimizer, identity)
        else:
            # Refused now, not when the first epoch is over.
            check_place(path)
        first = int(self.processes.agree(self.state.epoch, self.device))
        if self.state.epoch != first:
            rule = f"must be seen by all processes; the first one sees {first} epochs there"
            remedy = "Name a file in a folder that all machines share."
            raise invalid(f"checkpoint {str(path)!r}", rule, self.state.epoch, remedy=remedy)
        if self.state.epoch > self.total:
            rule = f"must have at most the {self.total} epochs of this training"
            remedy = "Raise epochs, name another file, or remove this one to start anew."
            raise invalid(f"checkpoint {str(path)!r}", rule, self.state.epoch, remedy=remedy)

    def unfinished(self) -> bool:
        state, patience = self.state, self.training.patience
        waited = state.epoch - state.best_epoch
        return state.epoch < self.total and not (patience and state.best_epoch and waited >= patience)

    def hold_threads(self) -> None:
        """Puts torch's number of threads back: numba's kernels share OpenMP's and may have changed it."""
        if torch.get_num_threads() != self.threads:
            torch.set_num_threads(self.threads)

    def epoch(self, batches: Batches, validate: Validate | None, validations: int) -> None:
        """One pass over the data; its randomness depends on the seed and its number alone."""
        number, processes = self.state.epoch + 1, self.processes
        order, here = np.random.SeedSequence([self.training.seed, number]).spawn(2)
        words = [each.generate_state(2, np.uint64) for each in here.spawn(processes.world)]
        seed_streams(int(words[processes.rank][0]), self.device)
        # The loss of the whole batch is taken in every process, and must draw the same.
        generator = torch.Generator(self.device).manual_seed(int(words[0][1]))
        self.model.train()
        self.state.history.append({"epoch": number})
        losses, size = torch.zeros((), dtype=torch.float64, device=self.device), 0
        all_batches = batches(np.random.default_rng(order))
        stops = {len(all_batches) * part // validations for part in range(1, validations)} - {0}
        for place, batch in enumerate(all_batches):
            if place in stops:
                self.validate(validate, number)
                self.model.train()
            losses += self.move(batch, generator) * len(batch)
            size += len(batch)
        mean = float(losses.item()) / max(size, 1)
        if not math.isfinite(mean):
            remedy = "Lower learning_rate or clip_norm, or choose a bounded loss."
            raise invalid("the loss", "must stay finite", mean, at=f"epoch {number}", remedy=remedy)
        self.state.epoch = number
        self.state.history[-1]["loss"] = mean
        self.validate(validate, number)

    def move(self, batch: IntArray, generator: torch.Generator) -> Tensor:
        """One step of the optimiser; the mean loss of the batch before it."""
        self.optimizer.zero_grad(set_to_none=True)
        self.hold_threads()
        loss = self.loss(batch, generator)
        self.hold_threads()
        torch.autograd.backward(loss)
        if self.processes.world > 1:
            sum_gradients(list(self.model.parameters()))
        if self.training.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.training.clip_norm)
        self.optimizer.step()
        return loss.detach()

    def loss(self, batch: IntArray, generator: torch.Generator) -> Tensor:
        """The mean loss of a batch; of its parts where it is shared out or memory is saved."""
        accumulate = self.training.accumulate
        if accumulate == self.processes.world == 1:
            return self.step.of_one(self.forward, batch, generator)
        return self.step.of_parts(self.forward, batch, generator, self.processes, accumulate)

    def validate(self, validate: Validate | None, epoch: int) -> None:
        """Notes the value on validation data, of an epoch the best one, and keeps the best weights."""
        self.model.eval()
        if validate is None:
            return
        own = validate(self.model) if self.processes.first else 0.0
        value = self.processes.agree(own, self.device)
        if math.isnan(value):
            remedy = "Validation data need queries that the measure counts."
            at = f"epoch {epoch}"
            raise invalid("the value on validation data", "must be a number", value, at=at, remedy=remedy)
        entry = self.state.history[-1]
        entry["value"] = max(value, entry.get("value", value))
        if value > self.state.best_value or self.state.best_epoch == 0:
            self.state.best_value, self.state.best_epoch = value, epoch
            self.best = copy.deepcopy(self.model.state_dict())
