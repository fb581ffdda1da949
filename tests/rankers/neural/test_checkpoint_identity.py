import subprocess
import sys
from functools import partial

import numpy as np
import scipy.sparse

from cleanrank.losses.torch import ranking_loss
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.rankers.neural.checkpoint import fingerprint, plain_values


def test_settings_become_plain_values():
    T = [[0.9, 0.1], [0.2, 0.8]]
    found = plain_values(
        {"noise": NoiseProfile(np.array(T)), "hidden": np.array([8, 4]), "alpha": np.float32(0.5)}
    )
    assert found == {"noise": T, "hidden": [8, 4], "alpha": 0.5}


def test_losses_of_other_settings_differ():
    one, same, other = (plain_values({"loss": ranking_loss("ranknet", sigma=s)}) for s in (1.0, 1.0, 2.0))
    assert one == same != other
    assert plain_values({"loss": partial(max, 1)}) != plain_values({"loss": partial(max, 2)})


def test_functions_are_called_the_same_in_every_process():
    code = (
        "from cleanrank.losses.torch import ranking_loss\n"
        "from cleanrank.rankers.neural.checkpoint import plain_values\n"
        "print(plain_values({'a': ranking_loss('ranknet', robust='gce'), 'b': lambda x: x}))"
    )
    one, two = (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True) for _ in range(2)
    )
    assert one.stdout == two.stdout
    assert "0x" not in one.stdout
    assert one.returncode == 0, one.stderr


def test_fingerprints_see_every_value_and_no_storage():
    X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    X[X < 0] = 0
    other = X.copy()
    other[4, 2] += 1
    assert fingerprint(X) == fingerprint(scipy.sparse.csr_matrix(X)) == fingerprint(np.asfortranarray(X))
    assert fingerprint(X) != fingerprint(other)
    assert fingerprint(X, other) != fingerprint(other, X)
