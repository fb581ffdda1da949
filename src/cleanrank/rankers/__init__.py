"""Rankers: models that are fitted on judged rows and score rows.

``RANKERS`` is the one list of them, read by the command line, the recipes and the manual. It names classes
without importing them, so that neither torch nor LightGBM is loaded before a ranker is made.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from cleanrank.data.files import existing_file
from cleanrank.errors import BadFileError, error_text
from cleanrank.validation import check_path, one_of

# What a file of a model of clicks says it is, and its name in a folder.
CLICK_MODEL, MODEL_FILE = "cleanrank click model", "model.safetensors"
HEADER = 1 << 20
BOOSTED = "cleanrank.rankers.boosted:BoostedRanker"
CLASSIC = "cleanrank.rankers.classic"


@dataclass(frozen=True)
class RankerEntry:
    """A named ranker: its class as "module:Class", a line about it, arguments that the name stands for."""

    target: str
    about: str
    presets: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> type[Any]:
        """The class."""
        module, _, name = self.target.partition(":")
        ranker: type[Any] = getattr(importlib.import_module(module), name)
        return ranker


RANKERS: dict[str, RankerEntry] = {
    "lambdarank": RankerEntry(BOOSTED, "lambdarank, normalised by query"),
    "lambdamart": RankerEntry(BOOSTED, "lambdarank, not normalised", {"objective": "lambdamart"}),
    "gbdt": RankerEntry(BOOSTED, "least squares on the grade", {"objective": "gbdt"}),
    "peer": RankerEntry(BOOSTED, "lambdarank minus shuffled labels", {"robust": "peer"}),
    "pairwise": RankerEntry(
        BOOSTED,
        "trees on any pairwise loss and its robust forms",
        {"objective": "sigmoid", "alpha": 0.1},
    ),
    "sour": RankerEntry("cleanrank.robust.sour:SOURRanker", "lambdarank without consistent outliers"),
    "robust": RankerEntry(
        "cleanrank.robust.robust_ranker:RobustRanker", "lambdarank on expected gains under the noise, tuned"
    ),
    "neural": RankerEntry("cleanrank.rankers.neural.ranker:NeuralRanker", "a network with any ranking loss"),
    "prank": RankerEntry(f"{CLASSIC}.prank:PRank", "a perceptron with a threshold for every grade"),
    "rank-svm": RankerEntry(f"{CLASSIC}.rank_svm:RankSVM", "linear, large margins between pairs"),
    "rank-boost": RankerEntry(f"{CLASSIC}.rank_boost:RankBoost", "boosted thresholds of features, on pairs"),
    "list-net": RankerEntry(f"{CLASSIC}.list_net:ListNet", "linear, cross entropy of whole lists"),
    "ada-rank": RankerEntry(f"{CLASSIC}.ada_rank:AdaRank", "single features, boosted on MAP or NDCG itself"),
}


def make_ranker(name: str, **params: Any) -> Any:
    """A ranker of RANKERS that is not fitted yet.

    Args:
        name: one of RANKERS.
        params: arguments of its class, which replace what the name stands for.

    >>> make_ranker("lambdamart", n_estimators=20)
    BoostedRanker(n_estimators=20, objective='lambdamart')
    """
    entry = RANKERS[one_of("ranker", name, RANKERS)]
    return entry.load()(**{**entry.presets, **params})


def load_ranker(path: str | PathLike[str]) -> Any:
    """A fitted ranker from a file that ``save`` wrote: LightGBM's text, safetensors or JSON.

    Args:
        path: the file; of a model of clicks also its folder.

    Returns:
        A BoostedRanker, NeuralRanker or CTRModel with the usual parameters, or a classic ranker with its own.

    >>> import tempfile
    >>> import cleanrank as cr
    >>> data = cr.make_ranking(20, 5, docs_per_query=10, seed=0)
    >>> ranker = cr.BoostedRanker(n_estimators=5).fit(data.X, data.y, qid=data.qid)
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     ranker.save(file.name)
    ...     bool((load_ranker(file.name).predict(data.X) == ranker.predict(data.X)).all())
    True
    """
    folder = check_path(path)
    file = existing_file(folder / MODEL_FILE if folder.is_dir() else folder)
    with file.open("rb") as opened:
        start = opened.read(16)
    if start[8:9] == b"{" and b"\0" in start[:8]:  # the length of safetensors' header
        return _network(file)
    if start.lstrip()[:1] == b"{":
        return _classic_ranker(file)
    if not start.startswith(b"tree"):
        rule = "must be LightGBM's text, which begins with 'tree', a network as safetensors, or JSON"
        raise BadFileError(error_text(f"model file {str(file)!r}", rule, repr(start)), str(file))
    from cleanrank.rankers.trees import TreeModel

    ranker = make_ranker("lambdarank")
    ranker.model_ = TreeModel.load(file)
    return ranker


def is_click_model(path: str | PathLike[str]) -> bool:
    """Whether a file, or the one in a folder, holds a model of clicks."""
    file = Path(path) / MODEL_FILE if Path(path).is_dir() else Path(path)
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        return CLICK_MODEL.encode() in opened.read(min(length, HEADER))


def _network(file: Path) -> Any:
    if is_click_model(file):
        from cleanrank.rankers.ctr.ranker import CTRModel

        return CTRModel.load(file)
    return RANKERS["neural"].load().load(file)


def _classic_ranker(path: str | PathLike[str]) -> Any:
    from cleanrank.rankers.classic.models import damaged, load_model

    model = load_model(path)
    classic = (entry for entry in RANKERS.values() if entry.target.startswith(CLASSIC))
    entries = {entry.target.partition(":")[2]: entry for entry in classic}
    try:
        ranker = entries[one_of("class", model.ranker, entries)].load()(**model.params)
    except (TypeError, ValueError) as error:
        raise damaged(path, error) from None
    ranker.model_ = model
    return ranker
