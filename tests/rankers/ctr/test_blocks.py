"""Blocks of click models against the same formulas in plain NumPy loops."""

import math

import numpy as np
import pytest

from cleanrank.data.behaviours import Layout

torch = pytest.importorskip("torch")
blocks = pytest.importorskip("cleanrank.rankers.ctr.blocks")


def random(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape)).float()


def filled(block, seed=1):
    """The block with random weights."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for part in block.parameters():
            part.copy_(torch.from_numpy(rng.normal(size=part.shape)) * 0.5)
    return block.eval()


def array(tensor):
    return tensor.detach().double().numpy()


def close(tensor, expected):
    np.testing.assert_allclose(array(tensor), expected, rtol=1e-4, atol=1e-5)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(np.asarray(x) - np.max(x))
    return e / e.sum()


def affine(layer, x):
    return array(layer.weight) @ x + (0 if layer.bias is None else array(layer.bias))


def test_embedding_looks_up_each_field_in_its_own_part_of_the_table():
    layout = Layout(user={"u": 3}, item={"i": 4, "c": 2}, context={"w": 2})
    block = filled(blocks.Embedding(layout, 5))
    table = array(block.table.weight)
    history = torch.tensor([[[1, 1], [3, 0], [2, 1]], [[2, 0], [1, 1], [0, 0]]])
    rows = block(
        torch.tensor([[2], [0]]),
        torch.tensor([[3, 1], [1, 0]]),
        torch.tensor([[1], [0]]),
        history,
        torch.tensor([3, 1]),
    )
    parts = {"u": table[:3], "i": table[3:7], "c": table[7:9], "w": table[9:]}
    close(rows.fields[0], [parts["u"][2], parts["i"][3], parts["c"][1], parts["w"][1]])
    close(rows.item[0], np.concatenate([parts["i"][3], parts["c"][1]]))
    close(rows.behaviours[0, 1], np.concatenate([parts["i"][3], parts["c"][0]]))
    assert rows.mask.tolist() == [[True, True, True], [True, False, False]]
    pooled = rows.pooled()
    assert pooled.shape == (2, 6, 5)
    close(pooled[0, 4], parts["i"][1] + parts["i"][3] + parts["i"][2])
    close(pooled[1, 4:], [parts["i"][2], parts["c"][0]])
    fresh = blocks.Embedding(layout, 5).table.weight
    assert not fresh[[0, 3, 7, 9]].any()
    assert fresh[[1, 2, 4, 5, 6, 8, 10]].all()


def test_factorisation_machine_and_inner_products():
    fields = random(3, 4, 2)
    pairs = [[x[i] @ x[j] for i in range(4) for j in range(i + 1, 4)] for x in array(fields)]
    close(blocks.InnerProducts(4)(fields), pairs)
    close(blocks.factorisation_machine(fields), np.sum(pairs, axis=1))
    # (1, 2), (3, 4), (5, 6): 11 + 17 + 39.
    assert blocks.factorisation_machine(torch.tensor([[[1.0, 2], [3, 4], [5, 6]]])).tolist() == [67]


def test_crosses():
    x0, vector, matrix = random(3, 4), filled(blocks.VectorCross(4, 2)), filled(blocks.MatrixCross(4, 2))
    for row, crossed, squared in zip(array(x0), vector(x0), matrix(x0), strict=True):
        x = y = row
        for l in range(2):
            x = row * (x @ array(vector.weight)[l]) + array(vector.bias)[l] + x
            y = row * affine(matrix.layers[l], y) + y
        close(crossed, x)
        close(squared, y)


def test_compressed_interaction():
    fields, block = random(2, 3, 2), filled(blocks.CompressedInteraction(3, [2, 4]))
    for X0, sums in zip(array(fields), block(fields), strict=True):
        X, expected = X0, []
        for weight, maps in zip(block.weights, (2, 4), strict=True):
            W = array(weight).reshape(maps, len(X), 3)
            X = np.array(
                [sum(W[h, i, j] * X[i] * X0[j] for i in range(len(X)) for j in range(3)) for h in range(maps)]
            )
            expected += X.sum(axis=1).tolist()
        close(sums, expected)


def test_attention_units_and_softmax_over_valid_places():
    item, behaviours = random(2, 3), random(2, 4, 3, seed=2)
    dot, unit = filled(blocks.DotUnit(3, 3)), filled(blocks.DenseUnit(3, (5, 2)))
    for b in range(2):
        v = array(item)[b]
        for t in range(4):
            e = array(behaviours)[b, t]
            hidden = sigmoid(affine(unit.first, np.concatenate([v, e, v - e, v * e])))
            expected = affine(unit.output, sigmoid(affine(unit.layers[0], hidden)))[0]
            close(unit(item, behaviours)[b, t], expected)
            close(dot(item, behaviours)[b, t], affine(dot.query, v) @ e)
    mask = torch.tensor([[True, True, False, False], [False] * 4])
    scores = torch.tensor([[1.0, 2, 99, math.inf], [1, 2, 3, 4]])
    shares = blocks.masked_softmax(scores, mask)
    close(shares, [[*softmax([1, 2]), 0, 0], [0] * 4])
    close(blocks.weighted_sum(shares[:1], behaviours[:1])[0], array(shares)[0] @ array(behaviours)[0])


def test_last_state():
    states = random(3, 4, 2)
    last = blocks.last_state(states, torch.tensor([4, 0, 2]))
    assert last.tolist() == [states[0, 3].tolist(), [0, 0], states[2, 1].tolist()]


def test_self_attention_of_behaviours_and_of_fields():
    x, causal, fields = (
        random(2, 3, 4),
        filled(blocks.CausalAttention(4, 2, 0.5)),
        filled(blocks.FieldAttention(4, 2, 3)),
    )
    q, r, k, v = None, None, None, None
    for b in range(2):
        X = array(x)[b]
        norm = (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5)
        norm = norm * array(causal.norm.weight) + array(causal.norm.bias)
        queries = [affine(causal.query, row) for row in norm]
        pairs = [affine(causal.key_value, row) for row in X]
        for t in range(3):
            mixed = []
            for part in (slice(0, 2), slice(2, 4)):
                a = softmax([queries[t][part] @ pairs[s][:4][part] / math.sqrt(2) for s in range(t + 1)])
                mixed += [sum(a[s] * pairs[s][4:][part] for s in range(t + 1))]
            close(causal(x)[b, t], norm[t] + np.concatenate(mixed))
        W = array(fields.project.weight)
        q, k, v, r = (X @ W[part : part + 6].T for part in (0, 6, 12, 18))
        for m in range(3):
            heads = []
            for part in (slice(0, 3), slice(3, 6)):
                a = softmax([q[m, part] @ k[n, part] for n in range(3)])
                heads.append(sum(a[n] * v[n, part] for n in range(3)))
            close(fields(x)[b, m], np.maximum(r[m] + np.concatenate(heads), 0))


def gru_terms(block, x, h, size):
    """What a GRU adds up for its three gates, from its input and from its state."""
    a, b = affine(block.of_input, x), affine(block.of_state, h)
    return (a[:size], a[size : 2 * size], a[2 * size :]), (b[:size], b[size : 2 * size], b[2 * size :])


def test_attention_gated_gru_by_hand_and_as_a_plain_gru():
    inputs, attention = random(2, 3, 4), torch.tensor([[0.2, 0.5, 0.3], [0.7, 0.0, 0.0]])
    block = filled(blocks.AttentionGRU(4, 5))
    for b in range(2):
        h = np.zeros(5)
        for t in range(3):
            (ar, au, an), (br, bu, bn) = gru_terms(block, array(inputs)[b, t], h, 5)
            update = array(attention)[b, t] * sigmoid(au + bu)
            h = (1 - update) * h + update * np.tanh(an + sigmoid(ar + br) * bn)
        close(block(inputs, attention)[b], h)
    # torch's update gate says what is kept; otherwise a GRU under full attention.
    gru = torch.nn.GRU(4, 5, batch_first=True)
    sign = torch.ones(15)
    sign[5:10] = -1
    with torch.no_grad():
        for mine, theirs in ((block.of_input, "ih"), (block.of_state, "hh")):
            getattr(gru, f"weight_{theirs}_l0").copy_(mine.weight * sign[:, None])
            getattr(gru, f"bias_{theirs}_l0").copy_(mine.bias * sign)
    torch.testing.assert_close(block(inputs, torch.ones(2, 3)), gru(inputs)[1][0])


def test_memory_reads_and_writes():
    behaviours, item = random(2, 3, 4), random(2, 4, seed=5)
    block = filled(blocks.Memory(4, 5, 3, 2))
    mask = torch.tensor([[True, True, True], [True, False, False]])
    read_out, sums = block(behaviours, mask, item)

    def cosine(x, y):
        return x @ y / np.sqrt((x @ x) * (y @ y))

    K = np.tanh(array(block.keys))
    for b, length in enumerate((3, 1)):
        M, S = np.tanh(array(block.start)), np.zeros((3, 4))
        h, read = np.zeros(5), np.tanh(array(block.first_read))
        for x in [*array(behaviours)[b, :length], array(item)[b]]:
            (ar, au, an), (br, bu, bn) = gru_terms(block, x, h, 5)
            R = array(block.of_read.weight) @ read
            u = sigmoid(au + R[5:10] + bu)
            h = (1 - u) * h + u * np.tanh(an + R[10:] + sigmoid(ar + R[:5] + br) * bn)
            p = affine(block.control, h)
            shares = []
            for head in range(2):
                k, beta = np.tanh(p[4 * head : 4 * head + 4]), 2 * (1 + np.log1p(np.exp(p[8 + head])))
                shares.append(softmax([beta * (cosine(k, M[s]) + cosine(k, K[s])) / 2 for s in range(3)]))
            read = shares[0] @ M
            before = M, S
            erase, add = sigmoid(p[10:14]), np.tanh(p[14:18])
            M = M * (1 - np.outer(shares[1], erase)) + np.outer(shares[1], add)
            S = S + np.outer(shares[1], add)
        close(sums[b], before[1])
        close(read_out[b], affine(block.output, np.concatenate([h, read])))


def test_head_is_scale_dense_layers_and_one_output():
    head, x = filled(blocks.head(3, (4, 2), 0.5)), random(2, 3)
    scale, first, _, _, second, _, _, output = head
    for row, logit in zip(array(x), head(x), strict=True):
        hidden = np.maximum(affine(first, row * array(scale.weight) + array(scale.bias)), 0)
        close(logit, affine(output, np.maximum(affine(second, hidden), 0)))
