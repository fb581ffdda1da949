import copy

import numpy as np
import pytest

from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.losses.binary import LOSSES, gce
from cleanrank.losses.robust import clipped, peer
from cleanrank.losses.robust_specs import read_spec, robust_loss

LOGITS = np.linspace(-6, 6, 25)


def test_a_spec_is_nothing_a_name_a_mapping_or_several() -> None:
    assert robust_loss(None, "hinge") is LOSSES["hinge"]
    assert robust_loss("gce").name == gce().name
    assert robust_loss({"name": "gce", "q": 0.25}).name == "gce(q=0.25)"
    several = robust_loss([{"name": "peer", "alpha": 0.3}, {"name": "clipped", "at": 1.5}], "hinge")
    expected = clipped(peer("hinge", 0.3), 1.5)
    np.testing.assert_array_equal(several.value(LOGITS, 1), expected.value(LOGITS, 1))


def test_a_mapping_can_name_its_own_loss() -> None:
    assert robust_loss({"name": "peer", "alpha": 0.5, "loss": "ramp"}).constant == 0.5


def test_a_copied_loss_is_the_same_loss() -> None:
    copied = copy.deepcopy(LOSSES["logistic"])
    assert robust_loss("gce", copied).name == robust_loss("gce").name


def test_a_mapping_is_not_changed() -> None:
    spec = {"name": "gce", "q": 0.25}
    robust_loss(spec)
    assert spec == {"name": "gce", "q": 0.25}


def test_sampled_peers_come_last_and_need_a_batch() -> None:
    spec = {"name": "peer", "alpha": 0.1, "mode": "sampled"}
    assert read_spec(spec).peers.mode == "sampled"
    with pytest.raises(InvalidInputError, match="peers must be expected where there is no batch"):
        robust_loss(spec)
    with pytest.raises(InvalidInputError, match="sampled peers must come last"):
        read_spec([spec, "clipped"])
    with pytest.raises(UnknownNameError, match=r"unknown mode of peers 'sample'. Did you mean 'sampled'"):
        robust_loss({**spec, "mode": "sample"})


@pytest.mark.parametrize("name", ["gce", "sce", "taylor"])
def test_what_is_made_of_probabilities_stands_for_the_logistic_loss_alone(name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{name} is made of probabilities.*loss 'hinge'"):
        robust_loss(name, "hinge")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("gcee", "unknown robust loss 'gcee'. Did you mean 'gce'"),
        ({"name": "gce", "Q": 0.5}, "unknown option of gce 'Q'"),
        ({"name": "peer", "alhpa": 0.5}, "unknown option of peer 'alhpa'. Did you mean 'alpha'"),
    ],
)
def test_unknown_names_list_the_known_ones(spec: object, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        robust_loss(spec)


def test_missing_parts_are_named() -> None:
    with pytest.raises(InvalidInputError, match="backward needs the matrix of the noise"):
        robust_loss("backward")
    with pytest.raises(InvalidInputError, match="a robust loss must have a name"):
        robust_loss({"q": 0.5})


@pytest.mark.parametrize("spec", [5, True, b"gce", ["gce", 3], [None]])
def test_what_is_no_spec_is_refused_with_the_names(spec: object) -> None:
    with pytest.raises(InvalidInputError, match=r"robust must be a name, a mapping .*Known: symmetrize"):
        robust_loss(spec)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"name": "gce", "q": "half"}, "q must be a number > 0 and <= 1; got 'half'"),
        ({"name": "sce", "a": "x"}, "a must be a number >= 0; got 'x'"),
        ({"name": "peer", "alpha": "auto"}, r"alpha must lie in \[0, 1\].*got 'auto'"),
        ({"name": "peer", "prior": None}, "prior must be a number >= 0 and <= 1; got None"),
        ({"name": "bootstrap", "beta": None}, "beta must be a number >= 0 and <= 1; got None"),
        ({"name": "bootstrap", "hard": "no"}, "hard must be True or False; got 'no'"),
        ({"name": "clipped", "at": "x"}, "at must be a number > 0; got 'x'"),
        ({"name": "forward", "matrix": 3}, "noise must be a square matrix.*got 3"),
        ({"name": "backward", "matrix": [[0.9], [0, 1]]}, "noise must be a square matrix"),
    ],
)
def test_options_of_the_wrong_kind_are_named(spec: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        robust_loss(spec)
