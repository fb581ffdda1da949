"""``cleanrank train --task ctr`` and ``cleanrank predict`` of models of clicks."""

import inspect
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cleanrank.cli import screen
from cleanrank.errors import invalid
from cleanrank.types import IntArray
from cleanrank.validation import one_of

if TYPE_CHECKING:
    from cleanrank.data.behaviours import ClickRows, ClickSplits
    from cleanrank.rankers.ctr.ranker import CTRModel

# What a saved model says of the rows that it was trained on, so that others are prepared in the same way: the
# log's name in the catalogue (None: a file), how a file is read, and what prepare_clicks was told.
DATA, READING, PREPARATION = "data", "reading", "preparation"
NOT_IN_A_FILE = ("source", "row_numbers", "delimiter")
PARTS = ("train", "validation", "test")
LISTS = ("context", "clicks", "shown", "known", "user_fields", "item_fields", "names")


def log_name(data: str | None, file: Path | None) -> str:
    """The log that a command names, by --data or as its argument."""
    if (data is None) == (file is None):
        both = None if data is None else f"{data} and {file}"
        remedy = "As in --data log.csv, or --data ml-100k of the catalogue."
        raise invalid("train --task ctr", "needs one log of clicks", both, remedy=remedy)
    return str(file) if data is None else data


def train(
    data: str,
    out: Path,
    model: str,
    *,
    settings: Mapping[str, Any],
    options: list[str] | None,
    noise: str | None,
    delimiter: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Trains a model of clicks on a log of events; saves it in a folder or a .safetensors file."""
    from cleanrank.data.event_files import is_log_file
    from cleanrank.data.files import check_outputs
    from cleanrank.noise.estimate import load_noise
    from cleanrank.rankers.ctr import MODELS
    from cleanrank.rankers.ctr.model import model_file
    from cleanrank.rankers.ctr.ranker import CTRModel

    one_of("model of clicks", model, MODELS)
    file = model_file(out)
    in_file = is_log_file(data)
    if delimiter is not None and not in_file:
        raise invalid("--delimiter", "goes with a log in a file", data)
    check_outputs(file if out.is_dir() else out, inputs=[data] if in_file else [], force=force)
    known = CTRModel().get_params()
    own, built, reading, preparation = _sorted(
        screen.parse_options(options), known, MODELS[model].options(), in_file
    )
    if noise is not None:
        own["noise"] = load_noise(noise, 2)
    shared = {name: value for name, value in settings.items() if name in known and value is not None}
    ranker = CTRModel(model, **{**shared, **own, "model_options": built or None})
    prepared: dict[str, Any] = {DATA: None if in_file else data, PREPARATION: preparation}
    if in_file:
        prepared[READING] = _completed(data, reading, delimiter)
    splits = _splits(data, prepared)
    for reason, count in splits.report.items():
        if count:
            screen.note(f"{count:,} {reason}")
    with screen.progress("epochs") as tick:
        ranker.fit(splits.train, splits.validation, progress=tick)
    if os.environ.get("RANK", "0") != "0":
        return  # of the processes that torchrun starts, the first one writes
    trained = ranker.model_
    ranker.model_ = replace(trained, record={**trained.record, **prepared})
    ranker.save(out)
    record = {
        "model": model,
        "rows": len(splits.train),
        "epochs": trained.best_epoch,
        "measure": "auc",
        "validation": trained.validation_value,
        "alpha": None if ranker.alpha_ is None else float(ranker.alpha_),
        "removed": None if ranker.removed_ is None else int(ranker.removed_.sum()),
        "log": dict(splits.report),
        "file": str(file),
    }
    shown = {name: value for name, value in record.items() if name not in ("model", "log")}
    alpha = [] if ranker.alpha_ is None else [f"alpha: {ranker.alpha_}"]
    screen.show(record, as_json, repr(splits.train), screen.facts(shown, model), *alpha, f"wrote {file}")


def predict(
    model: Path, data: str, out: Path, part: str | None, jobs: int, force: bool, as_json: bool
) -> None:
    """Writes the probability of a click of every row of a file, or of a part prepared as in training."""
    from cleanrank.data.event_files import is_log_file
    from cleanrank.data.files import SCORES, check_outputs
    from cleanrank.data.scores import write_scores
    from cleanrank.metrics.clicks import evaluate_clicks
    from cleanrank.rankers import load_ranker

    in_file = is_log_file(data)
    check_outputs(out, inputs=[model, data] if in_file else [model], force=force, suffixes=SCORES)
    ranker = load_ranker(model)
    ranker.n_jobs = jobs
    trained = ranker.model_
    _check_log(data, in_file, trained.record)
    if in_file and part is None:
        rows, places, n_rows = _rows_of_file(ranker, data)
    else:
        part = part or "test"
        rows = getattr(_splits(data, trained.record), one_of("part", part, PARTS))
        places, n_rows = None, len(rows)
    probability = ranker.predict_proba(rows)[:, 1]
    scores = probability
    if places is not None:
        scores = np.full(n_rows, np.nan)
        scores[places] = probability
        if len(rows) < n_rows:
            screen.note(
                f"{n_rows - len(rows):,} rows without a user, an item or a time or of other behaviours: nan"
            )
    for name, count in rows.unknown.items():
        if count:
            screen.note(f"{count:,} rows with a {name} that was rare in training or is new (code 0)")
    write_scores(scores, out)
    record: dict[str, Any] = {
        "rows": len(rows),
        "part": part or "all",
        "unknown": rows.unknown,
        "not scored": n_rows - len(rows),
        "epochs": trained.best_epoch,
    }
    shown = {name: value for name, value in record.items() if name != "unknown"}
    if 0 < rows.y.sum() < len(rows):
        figures = evaluate_clicks(rows.y, probability, rows.users)
        measured = {
            "auc": figures.auc,
            "auc interval": list(figures.auc_interval),
            "gauc": figures.gauc,
            "log loss": figures.log_loss,
            "calibration error": figures.ece,
        }
        record |= measured
        shown |= measured | {"auc interval": "{:.4f} to {:.4f}".format(*figures.auc_interval)}
    record["scores"] = shown["scores"] = str(out)
    screen.show(record, as_json, screen.facts(shown, trained.kind), f"wrote {out}")


def _check_log(data: str, in_file: bool, record: Mapping[str, Any]) -> None:
    """Refuses a log of another kind than the one that a model was trained on."""
    from cleanrank.data.catalogue import entry_of

    if PREPARATION not in record:
        remedy = "Score rows in Python: load_ranker(...).predict_proba(rows)[:, 1]."
        rule = "must say what it was trained on, as cleanrank train writes it"
        raise invalid("the model", rule, remedy=remedy)
    name = record[DATA]
    if name is None and not in_file:
        remedy = "Name a file with the columns of the training log."
        raise invalid("DATA", "must be a file, as the model was trained on one", data, remedy=remedy)
    if name is not None and (in_file or entry_of(data).name != entry_of(name).name):
        remedy = "Codes of users and items mean something in their own data set alone."
        raise invalid("DATA", f"must be {name}, which the model was trained on", data, remedy=remedy)


def _splits(data: str, prepared: Mapping[str, Any]) -> "ClickSplits":
    """Training, validation and test rows of a log."""
    from cleanrank.data.click_sets import load_clicks
    from cleanrank.data.events import read_events
    from cleanrank.data.protocols import prepare_clicks

    if prepared[DATA] is not None:
        return load_clicks(data, **prepared[PREPARATION])
    return prepare_clicks(read_events(data, **prepared[READING]), **prepared[PREPARATION])


def _rows_of_file(ranker: "CTRModel", data: str) -> tuple["ClickRows", IntArray, int]:
    """The rows of a file that can be scored, their places in it, and how many rows it has."""
    from cleanrank.data.events import read_events

    events = read_events(data, **ranker.model_.record[READING], row_numbers=True)
    assert events.rows is not None
    return ranker.rows_of(events), events.rows, events.report["events read"]


def _completed(data: str, reading: Mapping[str, Any], delimiter: str | None) -> dict[str, Any]:
    """The options of read_events for a file; columns that are not read are named."""
    from cleanrank.data.event_files import usual_columns

    options = dict(reading) if delimiter is None else {**reading, "delimiter": delimiter}
    completed, unread = usual_columns(data, options)
    if unread:
        screen.note(
            f"columns that are not read: {', '.join(unread)} (--option item_fields=NAME,... reads them)"
        )
    return completed


def _sorted(
    options: dict[str, Any], known: Mapping[str, Any], of_model: Mapping[str, Any], in_file: bool
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Options of CTRModel, of its network, of the file and of the preparation, which has history."""
    from cleanrank.data.click_sets import CLICK_SETS
    from cleanrank.data.events import read_events
    from cleanrank.data.protocols import prepare_clicks

    of_rows = set(inspect.signature(prepare_clicks).parameters) - {"events", "seed"}
    of_file = set(inspect.signature(read_events).parameters) - set(NOT_IN_A_FILE) if in_file else set()
    if not in_file:
        of_rows |= {"validation", *(option for each in CLICK_SETS.values() for option in each.options)}
    of_network = set(of_model) - of_rows
    own, built, reading, preparation = {}, {}, {}, {}
    for name, value in options.items():
        one_of("option of a model of clicks", name, sorted({*known, *of_network, *of_rows, *of_file}))
        if name in of_file:
            reading[name] = _names(value) if name in LISTS else None if value == "None" else value
        elif name in of_rows:
            preparation[name] = _names(value) if name in LISTS else value
        elif name in of_network:
            # 64,32 is read as a list of numbers; widths are whole ones.
            built[name] = [int(width) for width in value] if isinstance(value, list) else value
        else:
            own[name] = value
    return own, built, reading, preparation


def _names(value: Any) -> list[str]:
    """Names with commas between them, which may look like numbers.

    >>> _names("pv,buy"), _names(4), _names([4.0, 5.0])
    (['pv', 'buy'], ['4'], ['4', '5'])
    """
    values = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    return [f"{each:g}" if isinstance(each, float) else str(each) for each in values]
