"""With the same weights the same outputs as DeepCTR-Torch, torch-rechub and RecBole.

These are not dependencies: ``pip install --no-deps --target FOLDER deepctr-torch torch-rechub recbole`` and
FOLDER on PYTHONPATH run these tests; without a package its tests are skipped.
"""

import numpy as np
import pytest

from cleanrank.data.behaviours import Layout
from cleanrank.rankers.ctr import MODELS, blocks

torch = pytest.importorskip("torch")

LAYOUT = Layout(user={"user": 9}, item={"item": 20, "category": 5}, context={"weekday": 8})
T = 4


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    sizes = {**LAYOUT.user, **LAYOUT.item, **LAYOUT.context}
    codes = {name: torch.from_numpy(rng.integers(1, size, 6)) for name, size in sizes.items()}
    lengths = torch.tensor([4, 3, 2, 1, 4, 2])
    valid = torch.arange(T) < lengths[:, None]
    for name in LAYOUT.item:
        codes[f"hist_{name}"] = torch.from_numpy(rng.integers(1, sizes[name], (6, T))) * valid
    return {**codes, "length": lengths}


def ours(network, batch):
    """Our probabilities."""

    def stack(names):
        return torch.stack([batch[name] for name in names], dim=-1)

    history = stack([f"hist_{name}" for name in LAYOUT.item])
    fields = [stack(names) for names in (LAYOUT.user, LAYOUT.item, LAYOUT.context)]
    return torch.sigmoid(network.eval()(*fields, history, batch["length"]))


def copy(target, source):
    with torch.no_grad():
        target.copy_(source)


def fill(network):
    generator = torch.Generator().manual_seed(0)
    for part in network.parameters():
        copy(part, torch.randn(part.shape, generator=generator) * 0.5)


def copy_tables(tables, network, column=slice(None)):
    """Our table to theirs, one for each field; a history may have one of its own."""
    first = 0
    for name, size in {**LAYOUT.user, **LAYOUT.item, **LAYOUT.context}.items():
        for key in (name, f"hist_{name}"):
            if key in tables:
                copy(tables[key].weight, network.embed.table.weight[first : first + size, column])
        first += size


# DeepCTR-Torch


def deepctr_columns(embedding):
    inputs = pytest.importorskip("deepctr_torch.inputs")
    names = {**LAYOUT.user, **LAYOUT.item, **LAYOUT.context}
    columns = [inputs.SparseFeat(name, size, embedding) for name, size in names.items()]
    for name, size in LAYOUT.item.items():
        own = inputs.SparseFeat(f"hist_{name}", size, embedding)
        columns.append(inputs.VarLenSparseFeat(own, T, combiner="sum", length_name="length"))
    return columns


def deepctr_probability(model, batch):
    """Their forward reads one matrix of codes."""
    columns = [batch[name].reshape(6, -1) for name in model.feature_index]
    return model.eval()(torch.cat(columns, dim=1).float()).squeeze(1)


def copy_head(theirs, network):
    """Dense layers without the scale (which stays 1 and 0) and without a bias of the output."""
    linear = [part for part in network.head if isinstance(part, torch.nn.Linear)]
    copy(network.head[0].weight, torch.ones_like(network.head[0].weight))
    copy(network.head[0].bias, torch.zeros_like(network.head[0].bias))
    for part, layer in zip(linear[:-1], theirs.dnn.linears, strict=True):
        copy(layer.weight, part.weight)
        copy(layer.bias, part.bias)
    copy(theirs.dnn_linear.weight, linear[-1].weight)
    copy(theirs.out.bias, linear[-1].bias)


def pair(theirs, network, first_order=False):
    """Fills our network and copies what all models of DeepCTR-Torch share."""
    fill(network)
    size = network.sizes.embedding
    copy_tables(theirs.embedding_dict, network, slice(size))
    if first_order:
        copy_tables(theirs.linear_model.embedding_dict, network, slice(size, size + 1))
    if hasattr(network, "head"):
        copy_head(theirs, network)


def test_deepctr_deepfm(batch):
    models, columns = pytest.importorskip("deepctr_torch.models"), deepctr_columns(4)
    theirs = models.DeepFM(columns, columns, dnn_hidden_units=(6, 5))
    network = MODELS["deepfm"](LAYOUT, embedding=4, layers=(6, 5))
    pair(theirs, network, first_order=True)
    torch.testing.assert_close(ours(network, batch), deepctr_probability(theirs, batch))


def test_deepctr_xdeepfm(batch):
    models, columns = pytest.importorskip("deepctr_torch.models"), deepctr_columns(4)
    theirs = models.xDeepFM(
        columns, columns, (6, 5), cin_layer_size=(3, 3), cin_split_half=False, cin_activation="linear"
    )
    network = MODELS["xdeepfm"](LAYOUT, embedding=4, layers=(6, 5), depth=2, maps=3)
    pair(theirs, network, first_order=True)
    for layer, weight in zip(theirs.cin.conv1ds, network.interactions.weights, strict=True):
        copy(layer.weight, weight.unsqueeze(2))
        copy(layer.bias, torch.zeros_like(layer.bias))
    copy(theirs.cin_linear.weight, network.output.weight)
    torch.testing.assert_close(ours(network, batch), deepctr_probability(theirs, batch))


def test_deepctr_ipnn(batch):
    models, columns = pytest.importorskip("deepctr_torch.models"), deepctr_columns(4)
    theirs = models.PNN(columns, dnn_hidden_units=(6, 5), use_inner=True, use_outter=False)
    network = MODELS["ipnn"](LAYOUT, embedding=4, layers=(6, 5))
    pair(theirs, network)
    torch.testing.assert_close(ours(network, batch), deepctr_probability(theirs, batch))


def test_deepctr_dcn(batch):
    models, columns = pytest.importorskip("deepctr_torch.models"), deepctr_columns(4)
    theirs = models.DCN([], columns, cross_num=2, dnn_hidden_units=(6, 5))
    network = MODELS["dcn"](LAYOUT, embedding=4, layers=(6, 5))
    pair(theirs, network)
    copy(theirs.crossnet.kernels, network.cross.weight.unsqueeze(2))
    copy(theirs.crossnet.bias, network.cross.bias.unsqueeze(2))
    for layer, part in zip(theirs.dnn.linears, network.dense[::3], strict=True):
        copy(layer.weight, part.weight)
        copy(layer.bias, part.bias)
    copy(theirs.dnn_linear.weight, network.output.weight)
    copy(theirs.out.bias, network.output.bias)
    torch.testing.assert_close(ours(network, batch), deepctr_probability(theirs, batch))


def test_deepctr_matrix_cross_of_dcn_m():
    layers = pytest.importorskip("deepctr_torch.layers.interaction")
    theirs, block = layers.CrossNet(6, layer_num=3, parameterization="matrix"), blocks.MatrixCross(6, 3)
    fill(block)
    copy(theirs.kernels, torch.stack([layer.weight for layer in block.layers]))
    copy(theirs.bias, torch.stack([layer.bias for layer in block.layers]).unsqueeze(2))
    x = torch.randn(5, 6)
    torch.testing.assert_close(block(x), theirs(x))


def test_deepctr_autoint(batch):
    models, columns = pytest.importorskip("deepctr_torch.models"), deepctr_columns(6)
    theirs = models.AutoInt([], columns, att_layer_num=2, att_head_num=2, dnn_hidden_units=())
    network = MODELS["autoint"](LAYOUT, embedding=6, depth=2, heads=2, head_width=3)
    pair(theirs, network)
    for layer, block in zip(theirs.int_layers, network.layers, strict=True):
        parts = block.project.weight.chunk(4)
        for target, part in zip((layer.W_Query, layer.W_key, layer.W_Value, layer.W_Res), parts, strict=True):
            copy(target, part.T)
    copy(theirs.dnn_linear.weight, network.output.weight)
    copy(theirs.out.bias, network.output.bias)
    torch.testing.assert_close(ours(network, batch), deepctr_probability(theirs, batch))


def test_deepctr_din_with_its_own_unit(batch):
    models, columns = pytest.importorskip("deepctr_torch.models"), deepctr_columns(4)
    theirs = models.DIN(
        columns,
        list(LAYOUT.item),
        dnn_hidden_units=(6, 5),
        att_hidden_size=(80, 40),
        att_activation="sigmoid",
        att_weight_normalization=True,
    )
    network = MODELS["din"](LAYOUT, embedding=4, layers=(6, 5), unit="dense")
    pair(theirs, network)
    unit, attention = network.unit, theirs.attention.local_att
    for layer, part in zip(attention.dnn.linears, (unit.first, *unit.layers), strict=True):
        copy(layer.weight, part.weight)
        copy(layer.bias, part.bias)
    copy(attention.dense.weight, unit.output.weight)
    copy(attention.dense.bias, unit.output.bias)
    # Theirs puts the behaviours behind the fields, ours in front.
    width = network.item_width
    first = network.head[1].weight
    copy(theirs.dnn.linears[0].weight, torch.cat([first[:, width:], first[:, :width]], dim=1))
    torch.testing.assert_close(ours(network, batch), deepctr_probability(theirs, batch))


# torch-rechub


def test_rechub_evolution_of_dien():
    dien = pytest.importorskip("torch_rechub.models.ranking.dien")
    theirs, unit, block = dien.AUGRU(4), blocks.DotUnit(4, 4), blocks.AttentionGRU(4, 4)
    fill(unit)
    fill(block)
    copy(unit.query.bias, torch.zeros(4))
    copy(block.of_state.bias, torch.zeros(12))
    copy(theirs.Wa, unit.query.weight)
    cell = theirs.augru_cell
    terms = (cell.Wr, cell.Wu, cell.Wh), (cell.Ur, cell.Uu, cell.Uh)
    for layer, targets in zip((block.of_input, block.of_state), terms, strict=True):
        for target, part in zip(targets, layer.weight.chunk(3), strict=True):
            copy(target, part.T)
    for target, part in zip((cell.br, cell.bu, cell.bh), block.of_input.bias.chunk(3), strict=True):
        copy(target, part.unsqueeze(0))
    states, item = torch.randn(3, T, 4), torch.randn(3, 4)
    mask = torch.arange(T) < torch.tensor([4, 2, 1])[:, None]
    weights = blocks.masked_softmax(unit(item, states), mask)
    torch.testing.assert_close(block(states, weights), theirs(states, item, mask)[1])


def test_rechub_attention_of_sasrec():
    sasrec, features = (
        pytest.importorskip(f"torch_rechub.{part}") for part in ("models.matching.sasrec", "basic.features")
    )
    sequence = features.SequenceFeature("seq", vocab_size=9, embed_dim=4, pooling="concat")
    theirs = sasrec.SASRec([sequence], max_len=T, dropout_rate=0.0, num_blocks=1, num_heads=2).eval()
    norm, attention = theirs.attention_layernorms[0], theirs.attention_layers[0]
    block = blocks.CausalAttention(4, 2, 0.0).eval()
    fill(block)
    norm.eps = block.norm.eps
    copy(norm.weight, block.norm.weight)
    copy(norm.bias, block.norm.bias)
    copy(attention.in_proj_weight, torch.cat([block.query.weight, block.key_value.weight]))
    copy(attention.in_proj_bias, torch.cat([block.query.bias, block.key_value.bias]))
    copy(attention.out_proj.weight, torch.eye(4))
    copy(attention.out_proj.bias, torch.zeros(4))
    x = torch.randn(3, T, 4)
    later = ~torch.tril(torch.ones(T, T, dtype=torch.bool))
    queries = norm(x.transpose(0, 1))
    mixed, _ = attention(queries, x.transpose(0, 1), x.transpose(0, 1), attn_mask=later)
    torch.testing.assert_close(block(x), (queries + mixed).transpose(0, 1))


def test_rechub_dcn(batch):
    dcn, features = (
        pytest.importorskip(f"torch_rechub.{part}") for part in ("models.ranking.dcn", "basic.features")
    )
    names = {**LAYOUT.user, **LAYOUT.item, **LAYOUT.context}
    columns = [features.SparseFeature(name, vocab_size=size, embed_dim=4) for name, size in names.items()]
    for name, size in LAYOUT.item.items():
        columns.append(
            features.SequenceFeature(
                f"hist_{name}", vocab_size=size, embed_dim=4, pooling="sum", padding_idx=0
            )
        )
    theirs = dcn.DCN(columns, n_cross_layers=2, mlp_params={"dims": [6, 5]}).eval()
    network = MODELS["dcn"](LAYOUT, embedding=4, layers=(6, 5))
    fill(network)
    copy_tables(theirs.embedding.embed_dict, network)
    for layer, bias, ours_w, ours_b in zip(
        theirs.cn.w, theirs.cn.b, network.cross.weight, network.cross.bias, strict=True
    ):
        copy(layer.weight, ours_w.unsqueeze(0))
        copy(bias, ours_b)
    for linear, norm, part in zip(theirs.mlp.mlp[::4], theirs.mlp.mlp[1::4], network.dense[::3], strict=True):
        copy(linear.weight, part.weight)
        copy(linear.bias, part.bias)
        norm.eps = 0.0  # batch norm of a fresh model then changes nothing
    copy(theirs.linear.fc.weight, network.output.weight)
    copy(theirs.linear.fc.bias, network.output.bias)
    torch.testing.assert_close(ours(network, batch), theirs(batch))


# RecBole


def recbole_layers():
    return pytest.importorskip("recbole.model.layers", exc_type=ImportError)


def test_recbole_factorisation_machine():
    fields = torch.randn(3, 5, 4)
    theirs = recbole_layers().BaseFactorizationMachine(reduce_sum=True)
    torch.testing.assert_close(blocks.factorisation_machine(fields), theirs(fields).squeeze(1))


def test_recbole_unit_of_din():
    layers = recbole_layers()
    theirs = layers.SequenceAttLayer(torch.arange(T).view(1, -1), att_hidden_size=(16, 6, 3))
    unit = blocks.DenseUnit(4, (6, 3))
    fill(unit)
    linear = [part for part in theirs.att_mlp_layers.mlp_layers if isinstance(part, torch.nn.Linear)]
    for layer, part in zip(linear, (unit.first, *unit.layers), strict=True):
        copy(layer.weight, part.weight)
        copy(layer.bias, part.bias)
    copy(theirs.dense.weight, unit.output.weight)
    copy(theirs.dense.bias, unit.output.bias)
    item, behaviours, lengths = torch.randn(3, 4), torch.randn(3, T, 4), torch.tensor([4, 2, 1])
    scores = theirs.eval()(item, behaviours, lengths).squeeze(1) * 2  # divided by the root of the width
    mask = torch.arange(T) < lengths[:, None]
    torch.testing.assert_close(unit(item, behaviours) * mask, scores)


def test_recbole_attention_of_sasrec():
    theirs = recbole_layers().MultiHeadAttention(2, 4, 0.0, 0.0, 1e-5).eval()
    block = blocks.CausalAttention(4, 2, 0.0).eval()
    fill(block)
    # Theirs norms behind the residual, ours in front of the queries: an input that its norm leaves as it is.
    copy(block.norm.weight, torch.ones(4))
    copy(block.norm.bias, torch.zeros(4))
    x = torch.nn.functional.layer_norm(torch.randn(3, T, 4), (4,), eps=0.0)
    block.norm.eps = 0.0
    copy(theirs.query.weight, block.query.weight)
    copy(theirs.query.bias, block.query.bias)
    parts = block.key_value.weight.chunk(2), block.key_value.bias.chunk(2)
    for layer, weight, bias in zip((theirs.key, theirs.value), *parts, strict=True):
        copy(layer.weight, weight)
        copy(layer.bias, bias)
    copy(theirs.dense.weight, torch.eye(4))
    copy(theirs.dense.bias, torch.zeros(4))
    later = torch.full((T, T), -10000.0).triu(1)
    torch.testing.assert_close(theirs.LayerNorm(block(x)), theirs(x, later))
