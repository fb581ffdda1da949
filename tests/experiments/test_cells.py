import dataclasses
import json

import pytest

from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.experiments import cells as module
from cleanrank.experiments.cells import expand, filter_cells, key_of
from cleanrank.experiments.methods import METHODS
from cleanrank.experiments.recipe import Data, Noise, read_recipe


@pytest.fixture
def recipe(small_recipe):
    return read_recipe(small_recipe)


def identity(name, fold, options):
    return f"{name} {fold}"


def test_a_recipe_expands_to_its_whole_grid(recipe):
    found = expand(recipe, identity)
    points = [tuple(c.inputs[k] for k in ("fold", "rate", "seed", "method")) for c in found]
    expected = [
        (fold, rate, seed, method)
        for fold in (1, 2)
        for rate in (0.0, 0.3)
        for seed in (1, 2)
        for method in ("norm on", "chance")
    ]
    assert points == expected
    assert len({c.key for c in found}) == 16


def test_cells_survive_json(recipe):
    for cell in expand(recipe, identity):
        assert json.loads(cell.text) == cell.inputs
        assert key_of(json.loads(cell.text)) == cell.key


CHANGES = {
    "options": {"n_queries": 41},
    "identity": "other data",
    "data": "mq2008",
    "fold": 2,
    "noise": "another",
    "rate": 0.2,
    "on": ["train"],
    "algorithm": "one_feature",
    "version": 2,
    "params": {"norm": False},
    "grid": {"num_leaves": [7]},
    "select": "map",
    "seed": 9,
    "measures": ["ndcg@5"],
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_input_counts_in_the_key(recipe, name):
    inputs = expand(recipe, identity)[4].inputs
    assert inputs["rate"] == 0.3
    assert inputs[name] != CHANGES[name]
    assert key_of({**inputs, name: CHANGES[name]}) != key_of(inputs)


def test_every_input_is_tried_above(recipe):
    assert set(expand(recipe, identity)[0].inputs) == set(CHANGES) | set(module.SHOWN_ONLY)


def test_labels_and_the_order_of_measures_do_not_count(recipe):
    inputs = expand(recipe, identity)[0].inputs
    turned = {**inputs, "dataset": "x", "method": "y", "measures": inputs["measures"][::-1]}
    assert key_of(turned) == key_of(inputs)


def test_the_protocol_counts(recipe, monkeypatch):
    inputs = expand(recipe, identity)[0].inputs
    before = key_of(inputs)
    monkeypatch.setattr(module, "PROTOCOL", module.PROTOCOL + 1)
    assert key_of(inputs) != before


def test_a_new_version_of_a_method_makes_new_cells(recipe, monkeypatch):
    before = {c.key for c in expand(recipe, identity)}
    newer = dataclasses.replace(METHODS["random"], version=METHODS["random"].version + 1)
    monkeypatch.setitem(METHODS, "random", newer)
    after = {c.key for c in expand(recipe, identity)}
    assert len(before & after) == 8


def test_rate_zero_is_clean_whatever_the_profile(recipe):
    noisy = expand(recipe, identity)
    clean = expand(dataclasses.replace(recipe, noise=()), identity)
    assert {c.key for c in clean} == {c.key for c in noisy if c.inputs["rate"] == 0}
    assert all(c.inputs["noise"] == "none" for c in (*clean, *noisy) if c.inputs["rate"] == 0)


def test_two_profiles_share_one_clean_cell(recipe):
    both = dataclasses.replace(recipe, noise=(Noise("uniform", (0.0, 0.1)), Noise("other", (0.0, 0.1))))
    rates = [(c.inputs["noise"], c.inputs["rate"]) for c in expand(both, identity)]
    assert list(dict.fromkeys(rates)) == [("none", 0.0), ("uniform", 0.1), ("other", 0.1)]


def test_the_same_data_twice_are_refused(recipe):
    twice = dataclasses.replace(
        recipe, data=(*recipe.data, dataclasses.replace(recipe.data[0], label="again"))
    )
    with pytest.raises(InvalidInputError, match="must differ"):
        expand(twice, identity)
    other = Data("synthetic", "other", (1,), {"n_queries": 41})
    assert len(expand(dataclasses.replace(recipe, data=(*recipe.data, other)), identity)) == 24


@pytest.mark.parametrize(
    ("only", "left"),
    [
        ([], 16),
        (["dataset=synthetic"], 16),
        (["fold=1"], 8),
        (["fold=1,2"], 16),
        (["rate=0.30"], 8),
        (["method=norm on", "seed=2"], 4),
        (["fold=1", "fold=2"], 0),
    ],
)
def test_only_filters(recipe, only, left):
    assert len(filter_cells(expand(recipe, identity), only)) == left


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ("flod=1", "unknown filter 'flod'. Did you mean 'fold'"),
        ("fold=7", "unknown fold '7'. Known: 1, 2"),
        ("method=norm of", "unknown method 'norm of'. Did you mean 'norm on'"),
    ],
)
def test_only_names_what_it_knows(recipe, only, message):
    with pytest.raises(UnknownNameError, match=message):
        filter_cells(expand(recipe, identity), [only])


def test_only_needs_an_equals_sign(recipe):
    with pytest.raises(InvalidInputError, match="must read field=value"):
        filter_cells(expand(recipe, identity), ["mq2008"])


def test_cells_read_as_words(recipe):
    found = expand(recipe, identity)
    assert str(found[0]) == "synthetic fold 1, norm on, seed 1"
    assert str(found[4]) == "synthetic fold 1 uniform 0.3, norm on, seed 1"


def test_a_derived_set_is_other_data_and_plain_data_keep_their_keys(recipe):
    plain = expand(recipe, identity)
    derived = dataclasses.replace(recipe, data=(dataclasses.replace(recipe.data[0], derived="MSLR2G"),))
    assert all("derived" not in c.inputs for c in plain)
    assert {c.inputs["derived"] for c in expand(derived, identity)} == {"MSLR2G"}
    assert not {c.key for c in plain} & {c.key for c in expand(derived, identity)}
