"""Networks on the command line: what ``train --model neural`` builds and ``predict`` reads."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cleanrank.errors import invalid
from cleanrank.validation import one_of

RATE, PATIENCE = 1e-3, 10


def neural_ranker(settings: Mapping[str, Any], options: Mapping[str, Any], epochs: int) -> Any:
    """The NeuralRanker of the command's settings; options of its network are sorted out from its own."""
    from cleanrank.rankers.neural.networks import NETWORKS, network_options
    from cleanrank.rankers.neural.ranker import NeuralRanker

    params = NeuralRanker().get_params()
    network = one_of("network", str(options.get("network", params["network"])), NETWORKS)
    theirs = network_options(network)
    own, built = {}, {}
    for name, value in options.items():
        one_of("option of neural", name, sorted({*params, *theirs}))
        if name in theirs:
            # 64,32 is read as a list of numbers; widths are whole ones.
            built[name] = [int(width) for width in value] if isinstance(value, list) else value
        else:
            own[name] = value
    if "noise" in own and own.get("alpha") != "auto":
        raise invalid(
            "--noise",
            "is read by --model neural for alpha=auto alone",
            f"alpha={own.get('alpha', params['alpha'])}",
            remedy="Add --option robust=peer --option pairs=all_ordered --option alpha=auto.",
        )
    rate, patience = settings["learning_rate"], settings["early_stopping_rounds"]
    common = {
        "epochs": epochs,
        "learning_rate": RATE if rate is None else rate,
        "early_stopping_rounds": PATIENCE if patience is None else patience,
        **{name: settings[name] for name in ("measure", "random_state", "n_jobs")},
    }
    return NeuralRanker(**{**common, **({"network_options": built} if built else {}), **own})


def writes() -> bool:
    """Whether this process is the one that writes: of those that torchrun starts, the first."""
    return os.environ.get("RANK", "0") == "0"


def load_model(path: Path) -> Any:
    """A saved network or model of trees."""
    from cleanrank.rankers import load_ranker

    return load_ranker(path).model_


def scores_of(model: Any, data: Any, jobs: int) -> Any:
    """Scores in the order of the rows of the data."""
    lists = {"group": data.lengths} if hasattr(model, "listwise") else {}
    return model.predict(data.X, n_jobs=jobs, **lists)


def size_of(model: Any) -> tuple[str, int]:
    """What a model has many of, and how many are used."""
    trees = getattr(model, "best_iteration", None)
    return ("epochs", model.best_epoch) if trees is None else ("trees", trees)
