"""Rankers from names, settings and files, as the command line gives them."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.data.tables import kind_of_file, read_data, read_rows
from cleanrank.errors import invalid
from cleanrank.rankers import CLASSIC, RANKERS, load_ranker, make_ranker
from cleanrank.rankers.base import widened
from cleanrank.theory.peer import AUTO
from cleanrank.types import FloatArray, RankingData
from cleanrank.validation import one_of

TREES = {"n_estimators": 500, "early_stopping_rounds": 50}
# Rankers that read a setting, where their arguments do not say so: arguments of ``fit``, those that mean
# something for some objectives alone, the cut-off of SOUR.
READERS = {
    "noise": ("robust", "peer", "pairwise", "neural"),
    "gold": ("robust",),
    "implementation": ("lambdarank", "lambdamart", "peer", "sour"),
}
# Rankers that read noise for the weight of peers alone, and the options that give them peers.
READ_BY_PEERS = {"peer": "", "neural": "--option robust=peer --option pairs=all_ordered "}
# Rankers that stop or choose by a setting without validation data too: on rows that they hold out.
WITHOUT_VALIDATION = {
    "clean_validation": (),
    "early_stopping_rounds": ("peer", "robust", "ada-rank"),
    "measure": ("peer", "robust", "sour", "rank-svm"),
}


def configured_ranker(name: str, settings: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """A ranker of RANKERS that is not fitted yet.

    Args:
        name: one of RANKERS.
        settings: what rankers share, by the names of their arguments; those that this one does not take, and
            None, are left out. ``measure`` becomes the cut-off of SOUR.
        options: arguments of this ranker, each of which it must take; of a network its options too, of
            pairwise ``loss`` for ``objective``, and norm=False for objective="lambdamart".

    >>> configured_ranker("lambdarank", {"n_estimators": 9, "epochs": 3}, {"sigma": 2.0})
    BoostedRanker(n_estimators=9, sigma=2.0)
    """
    entry = RANKERS[one_of("ranker", name, RANKERS)]
    known = entry.load()().get_params()
    settings = {key: value for key, value in settings.items() if value is not None}
    options = dict(options)
    if "noise" in options and name in READ_BY_PEERS and options.get("alpha") != AUTO:
        stated = f"alpha={options.get('alpha', known['alpha'])}"
        remedy = f"Add {READ_BY_PEERS[name]}--option alpha=auto."
        raise invalid("--noise", f"is read by {name} for alpha=auto alone", stated, remedy=remedy)
    if name == "neural":
        options = _neural_options(options, known)
    elif unit_of(name) == "trees":
        settings = TREES | settings
    if name == "sour" and "measure" in settings:
        settings["cutoff"] = _cutoff(settings["measure"])
    if name == "pairwise" and "loss" in options:
        options["objective"] = options.pop("loss")
    if name in ("sour", "robust", "pairwise") and options.pop("norm", True) is False:
        options["objective"] = "lambdamart"
    for option in options:
        one_of(f"option of {name}", option, sorted(known))
    return make_ranker(name, **{key: settings[key] for key in settings if key in known} | options)


def reads(name: str, setting: str) -> bool:
    """Whether a ranker of RANKERS makes use of a setting.

    >>> reads("rank-svm", "n_estimators"), reads("sour", "measure"), reads("gbdt", "implementation")
    (False, True, False)
    """
    if setting in READERS:
        return name in READERS[setting]
    return setting in RANKERS[name].load()().get_params() or (name == "sour" and setting == "measure")


def readers_of(setting: str) -> list[str]:
    """The rankers that make use of a setting, of those whose parts are installed."""
    names: list[str] = list(READERS.get(setting, ()))
    for name in () if names else RANKERS:
        with suppress(ImportError):
            names += [name] if reads(name, setting) else []
    return names


def _cutoff(measure: str) -> int:
    name, _, cutoff = measure.partition("@")
    if name != "ndcg" or not cutoff.isdigit():
        raise invalid("--measure", "must be ndcg@K for sour", measure)
    return int(cutoff)


def _neural_options(options: dict[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a NeuralRanker, those of its network sorted out."""
    from cleanrank.rankers.neural.networks import NETWORKS, network_options

    network = one_of("network", str(options.get("network", known["network"])), NETWORKS)
    of_network = network_options(network)
    for name in options:
        one_of("option of neural", name, sorted({*known, *of_network}))
    # 64,32 is read as a list of numbers; widths are whole ones.
    built = {
        name: [int(width) for width in options[name]] if isinstance(options[name], list) else options[name]
        for name in of_network
        if name in options
    }
    own = {name: value for name, value in options.items() if name not in of_network}
    return own | ({"network_options": built} if built else {})


def read_training(
    train: Path, validation: Path | None, **columns: Any
) -> tuple[RankingData, RankingData | None]:
    """Training and validation data of the same width; LETOR files may leave their last columns out."""
    data = read_data(train, **columns)
    if validation is None:
        return data, None
    held = read_data(validation, **columns)
    if kind_of_file(train) == kind_of_file(validation) == "letor":
        data, held = widened(data, held.n_features), widened(held, data.n_features)
    return data, held


def read_for(model: Any, file: Path, *, judged: bool = True, **columns: Any) -> RankingData:
    """Rows with the columns of a model: by name where both have names, else by place.

    Args:
        model: a TreeModel, a NeuralModel or the model of a classic ranker.
        file: the rows; LETOR files may leave the last columns out.
        judged: whether the rows must have labels.
        columns: options of ``read_data`` for tables.
    """
    data = (read_data if judged else read_rows)(file, **columns)
    if kind_of_file(file) == "letor":
        data = widened(data, model.n_features)
    aligned: RankingData = model.columns.align(data, file.name)
    return aligned


def score_file(
    model: Path, file: Path, n_jobs: int = 1, **columns: Any
) -> tuple[FloatArray, RankingData, Any]:
    """(one score per row of the file, its data, the saved model that scored them).

    Labels may be missing, and query ids too unless the model is a network that sees whole lists.
    """
    fitted = load_ranker(model).model_
    whole_lists = getattr(fitted, "listwise", False)
    data = read_for(fitted, file, judged=whole_lists, **columns)
    group = {"group": data.lengths} if whole_lists else {}
    scores = np.empty(data.n_docs)
    scores[data.row_ids] = fitted.predict(data.X, n_jobs=n_jobs, **group)
    return scores, data, fitted


def unit_of(name: str) -> str:
    """What the progress of a ranker of RANKERS is counted in."""
    if name == "neural":
        return "epochs"
    return "steps" if RANKERS[name].target.startswith(CLASSIC) else "trees"


def size_of(model: Any) -> tuple[str, int]:
    """("trees", how many) of a model of trees, ("epochs", ...) of a network, else ("steps", ...)."""
    if hasattr(model, "best_epoch"):
        return "epochs", model.best_epoch
    return "trees" if hasattr(model, "booster") else "steps", model.best_iteration


def training_record(
    name: str, ranker: Any, data: RankingData, validation: RankingData | None
) -> dict[str, Any]:
    """What there is to say of a fitted ranker, as plain values."""
    report = getattr(ranker, "report_", None)
    cleaned = None if report else getattr(ranker, "cleaned_", None)
    alpha = getattr(ranker, "alpha_", None)
    return {
        "model": name,
        "documents": data.n_docs,
        "queries": data.n_queries,
        **dict([size_of(ranker.model_)]),
        "measure": None if validation is None else ranker.validation_measure(),
        "validation": ranker.model_.validation_value,
        "alpha": None if alpha is None else float(alpha),
        **({"C": ranker.C_} if hasattr(ranker, "C_") else {}),
        "removed": None if cleaned is None else data.n_docs - cleaned.data.n_docs,
        **({"strategy": report.strategy, "reasons": list(report.reasons)} if report else {}),
    }
