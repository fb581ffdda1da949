"""Laws of all models of clicks: padding, the order of rows, empty histories; what each learns and saves."""

import subprocess
import sys

import numpy as np
import pytest

from cleanrank.data.behaviours import Layout
from cleanrank.errors import CleanrankError
from cleanrank.rankers.ctr import MODELS, Sizes

torch = pytest.importorskip("torch")

LAYOUT = Layout(user={"user": 8, "age": 3}, item={"item": 30, "category": 4}, context={"weekday": 8})
BARE = Layout(user={}, item={"item": 30})
LENGTHS = [0, 1, 2, 3, 4, 5, 6, 8]


@pytest.fixture(autouse=True)
def one_thread():
    """Threads cost more than they bring at these sizes."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def batch_of(layout, lengths=LENGTHS, T=8, seed=0):
    """Random codes; what stands behind the valid behaviours is random as well."""
    rng = np.random.default_rng(seed)

    def codes(sizes, *shape):
        columns = [rng.integers(0, size, shape) for size in sizes.values()]
        return torch.from_numpy(np.stack(columns, -1) if columns else np.zeros((*shape, 0), dtype=np.int64))

    n = len(lengths)
    fields = [codes(sizes, n) for sizes in (layout.user, layout.item, layout.context)]
    return [*fields, codes(layout.item, n, T), torch.tensor(lengths)]


def built(name, layout=LAYOUT, **options):
    """A network with weights large enough that every part of it shows in the logits."""
    options = {"embedding": 4, "hidden": 6, "history": 8, "layers": (16, 16)} | options
    network = MODELS[name](layout, **options).eval()
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(1)
        for parameter in network.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.5)
    return network


@pytest.mark.parametrize("name", MODELS)
def test_padding_rows_order_and_empty_histories(name):
    network, batch = built(name), batch_of(LAYOUT)
    user, item, context, history, lengths = batch
    with torch.no_grad():
        logits, extra = network(*batch, auxiliary=True)
        assert (logits.shape, extra.shape) == ((8,), ())
        torch.testing.assert_close(network(*batch), logits)
        assert len(logits.unique()) == 8

        other = torch.where(torch.arange(8)[:, None] < lengths[:, None, None], history, (history + 1) % 4)
        same, same_extra = network(user, item, context, other, lengths, auxiliary=True)
        torch.testing.assert_close(same, logits)
        torch.testing.assert_close(same_extra, extra)

        longer = torch.cat([history, history.flip(1)], dim=1)
        same, same_extra = network(user, item, context, longer, lengths, auxiliary=True)
        torch.testing.assert_close(same, logits)
        torch.testing.assert_close(same_extra, extra)

        shuffled = torch.randperm(8, generator=torch.Generator().manual_seed(0))
        torch.testing.assert_close(network(*(part[shuffled] for part in batch)), logits[shuffled])
        one_by_one = [network(*(part[row : row + 1] for part in batch)) for row in range(8)]
        torch.testing.assert_close(torch.cat(one_by_one), logits)

        # Each valid behaviour counts: another one in the first place or the last changes every such row.
        for place in (torch.zeros_like(lengths), lengths - 1):
            altered = history.clone()
            rows = torch.arange(8)[lengths > 0]
            altered[rows, place[rows]] = (altered[rows, place[rows]] + 1) % torch.tensor([30, 4])
            changed = network(user, item, context, altered, lengths) != logits
            assert changed[lengths > 0].float().mean() > 0.5
            assert not changed[0]


@pytest.mark.parametrize("name", MODELS)
def test_every_weight_learns_and_nothing_is_lost_in_a_state(name):
    options = {"embedding": 4, "hidden": 6, "history": 8, "layers": (16, 16)}
    network = MODELS[name](LAYOUT, dropout=0.0, **options)
    batch, y = batch_of(LAYOUT), torch.arange(8) % 2.0
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    losses, moved = [], set()
    for _ in range(40):
        logits, extra = network(*batch, auxiliary=True)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, y)
        optimizer.zero_grad()
        (loss + extra).backward()
        optimizer.step()
        losses.append(loss.item())
        moved |= {label for label, part in network.named_parameters() if part.grad.any()}
    assert moved == {label for label, _ in network.named_parameters()}
    assert losses[-1] < 0.5 * losses[0]
    assert network.has_auxiliary == (name in ("sasrec", "hpmn")) == (extra.item() != 0)
    again = MODELS[name](LAYOUT, seed=5, **options)
    again.load_state_dict(network.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(again.eval()(*batch), network.eval()(*batch))


@pytest.mark.parametrize("name", MODELS)
def test_single_places_and_default_sizes(name):
    network = MODELS[name](LAYOUT)
    for fields, model in ((LAYOUT, network), (BARE, MODELS[name](BARE))):
        logits, extra = model(*batch_of(fields, lengths=[1, 0], T=1), auxiliary=True)
        (logits.sum() + extra).backward()
        assert torch.isfinite(logits).tolist() == [True, True]
        without = batch_of(fields, lengths=[0, 0], T=1)
        empty = [*without[:3], without[3][:, :0], without[4]]
        torch.testing.assert_close(model.eval()(*empty), model(*without))
    assert network.sizes == Sizes(16, 32, 0.2, 20, (200, 80))
    same, other = MODELS[name](LAYOUT), MODELS[name](LAYOUT, seed=1)
    assert torch.equal(same.embed.table.weight, network.embed.table.weight)
    assert not torch.equal(other.embed.table.weight, network.embed.table.weight)


@pytest.mark.parametrize("name", MODELS)
def test_half_precision(name):
    network, batch = MODELS[name](LAYOUT, dropout=0.0), batch_of(LAYOUT)
    logits, extra = network(*batch, auxiliary=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half, half_extra = network(*batch, auxiliary=True)
    (half.sum() + half_extra).backward()
    torch.testing.assert_close(half.float(), logits, atol=0.01, rtol=0.02)
    torch.testing.assert_close(half_extra.float(), extra, atol=0.01, rtol=0.02)


@pytest.mark.parametrize("name", MODELS)
def test_no_value_is_read_while_it_runs(name):
    """On the meta device there are no values: whatever asks for one, and would wait for a GPU, fails."""
    network = MODELS[name](LAYOUT).to("meta")
    logits, extra = network(*(part.to("meta") for part in batch_of(LAYOUT)), auxiliary=True)
    (logits.sum() + extra).backward()
    assert (logits.device.type, logits.shape) == ("meta", (8,))


def test_sasrec_learns_the_next_behaviour_and_not_one_that_is_the_same():
    network, batch = built("sasrec"), batch_of(LAYOUT, lengths=[8, 8, 3], seed=3)
    user, _, context, history, lengths = batch
    with torch.no_grad():
        _, extra = network(*batch, auxiliary=True)
        states = network.attention(network.embed(*batch).behaviours)
        losses = []
        for row in range(3):
            for t in range(lengths[row] - 1):
                other = history[row - 1, t + 1]
                if t + 1 < lengths[row - 1] and not torch.equal(other, history[row, t + 1]):
                    for code, sign in ((history[row, t + 1], -1), (other, 1)):
                        rows = network.embed(
                            user[row : row + 1], code[None], context[row : row + 1], history[:1], lengths[:1]
                        )
                        losses.append(
                            torch.log1p(torch.exp(sign * network.logits(states[row, t][None], rows)))
                        )
        torch.testing.assert_close(extra, torch.stack(losses).sum() / (len(losses) / 2))
        history[:] = history[0]
        assert float(network(*batch, auxiliary=True)[1]) == 0


def test_hpmn_penalty_and_pace():
    network, batch = built("hpmn", penalty=0.3), batch_of(LAYOUT)
    with torch.no_grad():
        rows = network.embed(*batch)
        memory = network.memory(rows)
        norms = [
            np.sqrt(((c := np.cov(m, bias=True)) ** 2).sum() - (np.diag(c) ** 2).sum())
            for m in memory.numpy()
        ]
        np.testing.assert_allclose(float(network(*batch, auxiliary=True)[1]), 0.3 * np.mean(norms), rtol=1e-5)
        # Six behaviours: three go up to the second layer, one of these to the third.
        states = rows.behaviours[6:7, :6]
        for depth, layer in enumerate(network.layers):
            states = layer(states)[0]
            torch.testing.assert_close(memory[6, depth], states[0, -1])
            states = states[:, 1::2]


def test_caser_against_loops():
    network, batch = built("caser", filters=2, height=3), batch_of(LAYOUT)
    with torch.no_grad():
        rows = network.embed(*batch)
        summary = network.summary(rows).double().numpy()
    E, F = rows.behaviours.double().numpy(), network.horizontal.weight.detach().double().numpy()
    bias, G = network.horizontal.bias.detach().numpy(), network.vertical.detach().double().numpy()
    c, c0 = network.mix.weight[0].detach().double().numpy(), network.mix.bias.item()
    for row, length in enumerate(LENGTHS):
        padded = np.concatenate([E[row, :length], np.zeros((3, E.shape[2]))])
        for n in range(2):
            windows = [(F[n].T * padded[t : t + 3]).sum() + bias[n] for t in range(max(1, length - 2))]
            np.testing.assert_allclose(summary[row, n], max(windows), rtol=1e-5, atol=1e-6)
        mixture = c0 + sum(c[n] * G[n, length - 1 - t] * E[row, t] for n in range(2) for t in range(length))
        np.testing.assert_allclose(summary[row, 2:], mixture * np.ones(8), rtol=1e-5, atol=1e-6)


def test_din_weighs_with_either_unit():
    for unit in ("dot", "dense"):
        network, batch = built("din", unit=unit), batch_of(LAYOUT)
        with torch.no_grad():
            rows = network.embed(*batch)
            scores, summary = network.unit(rows.item, rows.behaviours), network.summary(rows)
        for row, length in enumerate(LENGTHS):
            weights = torch.softmax(scores[row, :length], 0)
            torch.testing.assert_close(summary[row], weights @ rows.behaviours[row, :length])


def test_wrong_options_are_named():
    takes = "model DIN takes embedding, hidden, dropout, history, layers, unit; got 'depth'"
    with pytest.raises(CleanrankError, match=takes):
        MODELS["din"](LAYOUT, depth=2)
    with pytest.raises(CleanrankError, match="unknown unit 'cosine'"):
        MODELS["din"](LAYOUT, unit="cosine")
    with pytest.raises(CleanrankError, match=r"heads must divide the width of a behaviour \(5\)"):
        MODELS["sasrec"](BARE, embedding=5)
    with pytest.raises(CleanrankError, match="layers must list the widths"):
        MODELS["dcn"](LAYOUT, layers=())
    with pytest.raises(CleanrankError, match="dropout"):
        MODELS["dcn"](LAYOUT, dropout=1.0)
    with pytest.raises(CleanrankError, match="seed"):
        MODELS["dcn"](LAYOUT, seed=-1)


def test_the_list_of_models_does_not_load_torch():
    heavy = "['torch' in sys.modules, 'pyarrow' in sys.modules]"
    code = f"import sys, cleanrank.rankers.ctr as ctr; print(len(ctr.MODELS), *{heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["13", "False", "False"]
