"""What LightGBM is told: parameters by one name each, what is refused, and its errors in our words."""

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import lightgbm
import numpy as np

from cleanrank.errors import InvalidInputError, invalid
from cleanrank.types import RankingData
from cleanrank.validation import check_n_jobs, check_seed, is_integer, one_of

DEFAULTS: dict[str, Any] = {
    "learning_rate": 0.05,
    "num_leaves": 31,
    "min_data_in_leaf": 20,
    "min_sum_hessian_in_leaf": 0.0,
    "max_bin": 255,
}
# What LightGBM's lambdarank reads among the parameters, and what our objective calls it.
LAMBDARANK: dict[str, str] = {
    "sigmoid": "sigmoid",
    "lambdarank_truncation_level": "truncation_level",
    "label_gain": "label_gain",
    "lambdarank_norm": "norm",
}
# Parameters that would get round an argument, and that argument.
ARGUMENTS: dict[str, str] = {
    "objective": "objective",
    "num_iterations": "the number of trees (n_estimators, rounds)",
    "early_stopping_round": "early_stopping_rounds",
    "metric": "measure",
}
SEEDS = 2**31
CHUNK = 4096


def by_main_name(params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Parameters under the names that LightGBM gives them first; unknown ones are refused.

    LightGBM lets an alias lose against the main name and passes over what it does not know, both without a
    word. A LightGBM that does not list its parameters gets them as they are.

    >>> by_main_name({"eta": 0.1, "min_child_samples": 5})
    {'learning_rate': 0.1, 'min_data_in_leaf': 5}
    """
    if params is not None and not isinstance(params, Mapping):
        raise invalid("params", "must be a mapping from LightGBM's parameters to values", repr(params))
    names = _main_names()
    found: dict[str, Any] = {}
    for name, value in (params or {}).items():
        main = names[one_of("parameter of LightGBM", name, names)] if names else name
        if main in ARGUMENTS:
            raise invalid(
                "params", f"must leave {name!r} to the argument", repr(value), remedy=_instead(main)
            )
        if main in found and found[main] != value:
            raise invalid(
                "params", f"must give {main!r} once", f"{found[main]!r} and {value!r} (as {name!r})"
            )
        found[main] = value
    return found


def _instead(main: str) -> str:
    return f"Set {ARGUMENTS[main]} instead."


@cache
def _main_names() -> dict[str, str]:
    """Every name of every parameter -> its main name, as this LightGBM lists them; empty if it does not.

    The list is private to LightGBM, so that any version may take it away. Names are then taken as they are:
    training goes on, and what LightGBM does with an alias or a slip of the pen is its own business again.
    """
    try:
        listed: dict[str, list[str]] = lightgbm.basic._ConfigAliases._get_all_param_aliases()
        found = {str(name): str(main) for main, names in listed.items() for name in (main, *names)}
    except (AttributeError, TypeError, ValueError):
        found = {}
    if found.get("eta") == "learning_rate":
        return found
    warnings.warn(
        f"LightGBM {lightgbm.__version__} does not list the names of its parameters: aliases are not "
        "resolved and unknown names not noticed. Use main names (learning_rate, min_data_in_leaf).",
        stacklevel=2,
    )
    return {}


def run_settings(seed: int, n_jobs: int | None) -> dict[str, Any]:
    """What every run is told: the same bits for a seed and any number of threads, and no chatter."""
    return {
        "seed": seed % SEEDS,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 0 if n_jobs in (None, -1) else n_jobs,
        "verbosity": -1,
    }


def lambdarank_settings(
    params: Mapping[str, Any] | None, norm: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parts the parameters that lambdarank reads, under our names, from those of the trees."""
    given = by_main_name(params)
    own = {"norm": norm} | {ours: given[name] for name, ours in LAMBDARANK.items() if name in given}
    return own, {name: value for name, value in given.items() if name not in LAMBDARANK}


def refuse_broken(params: Mapping[str, Any]) -> None:
    """Refuses LightGBM settings that are known to compute something else than they say."""
    if params.get("bagging_by_query"):
        raise invalid(
            "bagging_by_query",
            "must be off: LightGBM 4.7 gives the score updates of rows out of the bag to row 0",
            True,
            remedy="Use bagging_fraction without it.",
        )


def refuse_changing_trees(params: Mapping[str, Any]) -> None:
    """Refuses DART, which rescales earlier trees, so that no prefix of the forest is what was trained."""
    for name in ("boosting", "boosting_type", "boost"):
        if params.get(name) == "dart":
            raise invalid(
                name,
                "must not be 'dart' where the scores of prefixes are read: it rescales earlier trees",
                "dart",
                remedy="Use 'gbdt'.",
            )


def check_run(rounds: Any, early_stopping_rounds: Any, seed: Any, n_jobs: Any) -> None:
    """Refuses what is no number of trees, rounds, seed or threads."""
    if not is_integer(rounds) or rounds < 1:
        raise invalid("the number of trees", "must be a whole number from 1 on", repr(rounds))
    if not is_integer(early_stopping_rounds):
        raise invalid(
            "early_stopping_rounds", "must be a whole number; 0 never stops", repr(early_stopping_rounds)
        )
    check_seed(seed)
    check_n_jobs(n_jobs)


def check_rows(train: RankingData, validation: RankingData | None) -> None:
    """Refuses rows that no forest can learn from or be judged by."""
    if not train.n_docs:
        raise invalid("training data", "must have at least one document", "none")
    if not varies(train.X):
        raise invalid(
            "features",
            "must differ between documents in at least one column",
            f"{train.n_features} constant ones in {train.n_docs:,} rows",
            remedy="Check how the features were read or joined.",
        )
    if validation is None:
        return
    if not validation.n_docs:
        raise invalid("validation data", "must have at least one document", "none", remedy="Or give none.")
    if validation.n_features != train.n_features:
        raise invalid(
            "validation data", f"must have the {train.n_features} features of the training data",
            validation.n_features,
        )  # fmt: skip


def varies(X: Any) -> bool:
    """Whether some column holds two values; missing ones are alike. It stops where it finds them.

    >>> varies(np.ones((3, 2))), varies(np.eye(2))
    (False, True)
    """
    first = X[:1] if isinstance(X, np.ndarray) else X[:1].toarray()
    for start in range(0, X.shape[0], CHUNK):
        rows = X[start : start + CHUNK]
        rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
        if not ((rows == first) | (np.isnan(rows) & np.isnan(first))).all():
            return True
    return False


@contextmanager
def in_our_words(settings: Mapping[str, Any], train: RankingData) -> Iterator[None]:
    """Words what LightGBM complains about: the parameter, its rule and its value where it says so."""
    try:
        yield
    except lightgbm.basic.LightGBMError as error:
        text = re.sub(r" at \S+, line \d+ ?\.?", "", str(error)).strip()
        if "num_features()) > (0)" in text:
            found = f"{train.n_docs:,} rows, {settings['min_data_in_leaf']} a leaf at the least"
            raise invalid(
                "features", "must have a column that can be split", found,
                remedy="Lower min_child_samples (min_data_in_leaf) or give more rows.",
            ) from error  # fmt: skip
        rule = re.fullmatch(r"Check failed: \((\w+)\) (>=|<=|>|<) \((\S+)\)", text)
        if rule and rule[1] in settings:
            raise invalid(
                rule[1], f"must be {WORDS[rule[2]]} {float(rule[3]):g} (LightGBM)", repr(settings[rule[1]])
            ) from error
        kind = re.fullmatch(r'Parameter (\w+) should be of type (\w+), got "(.*)"', text)
        if kind:
            raise invalid(kind[1], f"must be of type {kind[2]} (LightGBM)", repr(kind[3])) from error
        raise InvalidInputError(
            f"LightGBM must be able to train; it said: {text.rstrip('.')}. Check its parameters and the data."
        ) from error


WORDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
