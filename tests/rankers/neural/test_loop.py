import numpy as np
import pytest
import torch
from torch import nn

from cleanrank.errors import CleanrankError
from cleanrank.rankers.neural.loop import OPTIMIZERS, Training, train
from cleanrank.rankers.neural.steps import Step

X = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
TARGET = X @ torch.tensor([1.0, -2.0, 0.5])


def model(dropout=0.0):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 1))


def squares(outputs, rows, generator):
    noise = 0.01 * torch.randn(len(rows), generator=generator)
    return ((outputs[0] - TARGET[rows] + noise) ** 2).mean()


def step_of(loss):
    def scores(forward, rows):
        return (forward(X[rows])[:, 0],)

    return Step(lambda *parts: np.concatenate(parts), scores, loss)


step = step_of(squares)


def batches(rng):
    return np.split(rng.permutation(64), 4)


def weights(found):
    return torch.cat([p.detach().ravel() for p in found.parameters()])


def error(found):
    with torch.no_grad():
        return float(((found.eval()(X)[:, 0] - TARGET) ** 2).mean())


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer_learns(optimizer):
    found, rate = model(), {"sgd": 0.1, "adagrad": 0.1}.get(optimizer, 0.01)
    before = error(found)
    train(found, step, batches, Training(20, optimizer, rate, device="cpu"))
    assert error(found) < 0.3 * before


def test_one_step_is_the_step_of_the_optimizer():
    """One full batch of SGD with clipping, by hand."""
    found = nn.Linear(3, 1, bias=False)
    start = found.weight.detach().clone()

    def plain(outputs, rows, generator):
        return ((outputs[0] - TARGET[rows]) ** 2).mean()

    train(
        found,
        step_of(plain),
        lambda rng: [np.arange(64)],
        Training(1, "sgd", 0.5, 0.1, clip_norm=0.3, device="cpu"),
    )
    gradient = 2 * ((X @ start[0] - TARGET)[:, None] * X).mean(0)
    gradient *= 0.3 / gradient.norm()
    torch.testing.assert_close(found.weight[0].detach(), start[0] - 0.5 * (gradient + 0.1 * start[0]))


def test_the_same_seed_gives_the_same_bits_and_torchs_stream_goes_on_as_before():
    torch.manual_seed(7)
    before = torch.get_rng_state()
    runs = []
    for seed in (0, 0, 1):
        found = model(dropout=0.5)
        train(found, step, batches, Training(3, seed=seed, device="cpu"))
        runs.append(weights(found))
        torch.rand(5)  # what others draw in between must not matter
    torch.set_rng_state(before)
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])
    train(model(), step, batches, Training(1, device="cpu"))
    assert torch.equal(before, torch.get_rng_state())


def test_torchs_settings_are_put_back():
    threads = torch.get_num_threads()
    seen = []

    def look(outputs, rows, generator):
        seen.append((torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()))
        return squares(outputs, rows, generator)

    train(model(), step_of(look), batches, Training(1, n_jobs=1, deterministic=True, device="cpu"))
    assert seen[0] == (1, True)
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == (threads, False)


@pytest.mark.parametrize("later", [(0.4, 0.3), (0.5, 0.5)], ids=["worse", "as good"])
def test_the_first_of_the_best_epochs_is_kept_and_patience_counts_from_it(later):
    values = iter([0.1, 0.5, *later, 0.9])
    kept = []
    found = model()
    done = train(
        found,
        step,
        batches,
        Training(5, patience=2, device="cpu"),
        validate=lambda network: next(values),
        observer=lambda epoch, network: kept.append(weights(network).clone()),
    )
    assert (done.epoch, done.best_epoch, done.best_value) == (4, 2, 0.5)
    assert torch.equal(weights(found), kept[1])
    assert not any(torch.equal(kept[1], other) for other in kept[2:])
    assert [h["value"] for h in done.history] == [0.1, 0.5, *later]


def test_validation_and_observers_see_the_model_at_rest():
    modes = []
    train(
        model(dropout=0.5),
        step,
        batches,
        Training(2, device="cpu"),
        validate=lambda network: modes.append(network.training) or 0.0,
        observer=lambda epoch, network: modes.append(network.training),
        progress=lambda done, total: modes.append((done, total)),
    )
    assert modes == [False, False, (1, 2), False, False, (2, 2)]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("validated", [False, True])
def test_a_training_in_parts_ends_in_the_same_bits(tmp_path, optimizer, validated):
    def run(epochs, checkpoint):
        found = model(dropout=0.2)
        judge = (lambda network: -error(network)) if validated else None
        settings = Training(epochs, optimizer, 0.01, weight_decay=0.01, device="cpu")
        done = train(found, step, batches, settings, validate=judge, checkpoint=checkpoint)
        return weights(found), done

    whole, done = run(6, None)
    run(2, tmp_path / "c")
    run(3, tmp_path / "c")
    parts, again = run(6, tmp_path / "c")
    assert torch.equal(whole, parts)
    assert done == again
    assert torch.equal(run(6, tmp_path / "c")[0], whole)  # nothing is left to do


def test_a_checkpoint_of_another_training_is_refused(tmp_path):
    train(
        model(), step, batches, Training(1, device="cpu"), checkpoint=tmp_path / "c", identity={"loss": "a"}
    )
    with pytest.raises(CleanrankError, match="whose loss is 'b'; got 'a'"):
        train(
            model(),
            step,
            batches,
            Training(2, device="cpu"),
            checkpoint=tmp_path / "c",
            identity={"loss": "b"},
        )


def test_products_in_16_bits_stay_near_and_scores_come_in_single_precision():
    kinds = []

    def look(outputs, rows, generator):
        kinds.append(outputs[0].dtype)
        return squares(outputs, rows, generator)

    full, half = model(), model()
    train(full, step, batches, Training(2, device="cpu"))
    train(half, step_of(look), batches, Training(2, precision="bfloat16", device="cpu"))
    assert set(kinds) == {torch.float32}
    assert not torch.equal(weights(full), weights(half))
    torch.testing.assert_close(weights(full), weights(half), rtol=0, atol=0.05)


def test_a_loss_that_bursts_is_an_error():
    def burst(outputs, rows, generator):
        return outputs[0].sum() * float("nan")

    with pytest.raises(
        CleanrankError, match=r"the loss must stay finite; got nan at epoch 1. Lower learning_rate"
    ):
        train(model(), step_of(burst), batches, Training(2, device="cpu"))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"optimizer": "adan"}, "Did you mean 'adam'"),
        ({"precision": "float16"}, "Known: float32"),
        ({"epochs": 0}, "epochs must be an integer >= 1"),
        ({"patience": -1}, "early_stopping_rounds must be"),
        ({"learning_rate": 0.0}, "learning_rate must be a number > 0"),
        ({"learning_rate": float("nan")}, "learning_rate must be a number > 0"),
        ({"weight_decay": -1.0}, "weight_decay must be a number >= 0"),
        ({"clip_norm": 0.0}, "clip_norm must be a number > 0"),
        ({"clip_norm": "5"}, "clip_norm must be a number > 0; got '5'"),
        ({"learning_rate": "fast"}, "learning_rate must be a number > 0; got 'fast'"),
        ({"weight_decay": float("nan")}, "weight_decay must be a number >= 0"),
        ({"seed": -1}, "seed must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"accumulate": 0}, "accumulate must be an integer >= 1"),
    ],
)
def test_wrong_settings_are_named(wrong, words):
    with pytest.raises(CleanrankError, match=words):
        Training(**wrong)


def test_a_kernel_that_changes_the_threads_does_not_change_the_bits():
    """numba and torch share OpenMP: its first kernel sets torch's number of threads."""
    seen = []

    def kernel(outputs, rows, generator):
        seen.append(torch.get_num_threads())
        found = squares(outputs, rows, generator)
        torch.set_num_threads(2)
        found.register_hook(lambda gradient: seen.append(torch.get_num_threads()))
        return found

    train(model(), step_of(kernel), batches, Training(1, n_jobs=1, device="cpu"))
    assert set(seen) == {1}


def test_an_interrupted_training_leaves_its_last_checkpoint_and_the_stream_as_they_were(tmp_path):
    before, mine = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    steps = [0]

    def interrupted(outputs, rows, generator):
        steps[0] += 1
        if steps[0] == 11:  # in the middle of the third epoch
            raise KeyboardInterrupt
        return squares(outputs, rows, generator)

    with pytest.raises(KeyboardInterrupt):
        train(model(0.2), step_of(interrupted), batches, Training(5, device="cpu"), checkpoint=tmp_path / "c")
    assert torch.equal(before, torch.get_rng_state())
    assert (mine == np.random.get_state()[1]).all()  # noqa: NPY002
    assert [file.name for file in tmp_path.iterdir()] == ["c"]
    whole, parts, seen = model(0.2), model(0.2), []
    train(whole, step, batches, Training(5, device="cpu"))
    train(
        parts, step, batches, Training(5, device="cpu"), checkpoint=tmp_path / "c",
        progress=lambda epoch, epochs: seen.append(epoch),
    )  # fmt: skip
    assert seen == [3, 4, 5]
    assert torch.equal(weights(whole), weights(parts))


def test_a_checkpoint_with_more_epochs_than_asked_for_is_refused(tmp_path):
    train(model(), step, batches, Training(3, device="cpu"), checkpoint=tmp_path / "c")
    with pytest.raises(CleanrankError, match="at most the 2 epochs of this training; got 3"):
        train(model(), step, batches, Training(2, device="cpu"), checkpoint=tmp_path / "c")


def test_a_checkpoint_in_no_folder_is_refused_before_anything_is_trained(tmp_path):
    def never(outputs, rows, generator):
        raise AssertionError

    for place, words in ((tmp_path / "no" / "c", "does not exist"), (tmp_path, "is a folder")):
        with pytest.raises(CleanrankError, match=words):
            train(model(), step_of(never), batches, Training(1, device="cpu"), checkpoint=place)


def test_a_value_that_is_no_number_is_an_error():
    with pytest.raises(CleanrankError, match="validation data must be a number; got nan at epoch 1"):
        train(model(), step, batches, Training(3, device="cpu"), validate=lambda network: float("nan"))
