"""``cleanrank train --task ctr`` and ``cleanrank predict`` of models of clicks."""

import inspect
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cleanrank.cli import screen
from cleanrank.errors import invalid
from cleanrank.rankers import MODEL_FILE
from cleanrank.validation import one_of

# What a saved model says of the rows that it was trained on, so that others are prepared in the same way.
DATA, PREPARATION = "data", "preparation"


def log_name(data: str | None, file: Path | None) -> str:
    """The log that a command names, by --data or as its argument."""
    if (data is None) == (file is None):
        both = None if data is None else f"{data} and {file}"
        raise invalid(
            "train --task ctr", "needs one log of the catalogue", both, remedy="As in --data ml-100k."
        )
    return str(file) if data is None else data


def train(
    data: str,
    out: Path,
    model: str,
    *,
    settings: Mapping[str, Any],
    options: list[str] | None,
    noise: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Trains a model of clicks on a log of the catalogue; saves it in a folder or a .safetensors file."""
    from cleanrank.data.click_sets import load_clicks
    from cleanrank.data.files import check_outputs
    from cleanrank.noise.estimate import load_noise
    from cleanrank.rankers.ctr import MODELS
    from cleanrank.rankers.ctr.ranker import CTRModel

    one_of("model of clicks", model, MODELS)
    file = out / MODEL_FILE if out.suffix != ".safetensors" else out
    check_outputs(file if out.is_dir() else out, force=force)
    known = CTRModel().get_params()
    own, built, preparation = _sorted(screen.parse_options(options), known, MODELS[model].options())
    if noise is not None:
        own["noise"] = load_noise(noise, 2)
    shared = {name: value for name, value in settings.items() if name in known and value is not None}
    ranker = CTRModel(model, **{**shared, **own, "model_options": built or None})
    splits = load_clicks(data, **preparation)
    with screen.progress("epochs") as tick:
        ranker.fit(splits.train, splits.validation, progress=tick)
    if os.environ.get("RANK", "0") != "0":
        return  # of the processes that torchrun starts, the first one writes
    trained = ranker.model_
    prepared = {DATA: data, PREPARATION: preparation}
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
        "file": str(file),
    }
    shown = {name: value for name, value in record.items() if name != "model"}
    alpha = [] if ranker.alpha_ is None else [f"alpha: {ranker.alpha_}"]
    screen.show(record, as_json, repr(splits.train), screen.facts(shown, model), *alpha, f"wrote {file}")


def predict(model: Path, data: str, out: Path, part: str, jobs: int, force: bool, as_json: bool) -> None:
    """Writes the probability of a click of every row of a part of the data that a model was trained on."""
    from cleanrank.data.catalogue import PARTS, entry_of
    from cleanrank.data.click_sets import load_clicks
    from cleanrank.data.files import SCORES, check_outputs
    from cleanrank.data.scores import write_scores
    from cleanrank.metrics.clicks import evaluate_clicks
    from cleanrank.rankers import load_ranker

    check_outputs(out, inputs=[model], force=force, suffixes=SCORES)
    ranker = load_ranker(model)
    ranker.n_jobs = jobs
    trained = ranker.model_
    name = trained.record.get(DATA)
    if name is None:
        remedy = "Score rows in Python: load_ranker(...).predict_proba(rows)[:, 1]."
        raise invalid(
            "the model", "must say what it was trained on, as cleanrank train writes it", remedy=remedy
        )
    if entry_of(data).name != entry_of(name).name:
        remedy = "Codes of users and items mean something in their own data set alone."
        raise invalid("DATA", f"must be {name}, which the model was trained on", data, remedy=remedy)
    rows = getattr(load_clicks(data, **trained.record[PREPARATION]), one_of("part", part, PARTS))
    probability = ranker.predict_proba(rows)[:, 1]
    write_scores(probability, out)
    figures = evaluate_clicks(rows.y, probability, rows.users)
    record = {
        "rows": len(rows),
        "part": part,
        "epochs": trained.best_epoch,
        "auc": figures.auc,
        "auc interval": list(figures.auc_interval),
        "gauc": figures.gauc,
        "log loss": figures.log_loss,
        "calibration error": figures.ece,
        "scores": str(out),
    }
    shown = record | {"auc interval": "{:.4f} to {:.4f}".format(*figures.auc_interval)}
    screen.show(record, as_json, screen.facts(shown, trained.kind), f"wrote {out}")


def _sorted(
    options: dict[str, Any], known: Mapping[str, Any], of_model: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Options of CTRModel, of its network and of the preparation of rows; history is the preparation's."""
    from cleanrank.data.click_sets import CLICK_SETS
    from cleanrank.data.protocols import prepare_clicks

    of_rows = {
        name for name in inspect.signature(prepare_clicks).parameters if name not in ("events", "seed")
    }
    of_rows |= {"validation", *(option for each in CLICK_SETS.values() for option in each.options)}
    of_network = set(of_model) - of_rows
    own, built, preparation = {}, {}, {}
    for name, value in options.items():
        one_of("option of a model of clicks", name, sorted({*known, *of_network, *of_rows}))
        if name in of_rows:
            texts = name == "context" and isinstance(value, str)
            preparation[name] = value.split(",") if texts else value
        elif name in of_network:
            # 64,32 is read as a list of numbers; widths are whole ones.
            built[name] = [int(width) for width in value] if isinstance(value, list) else value
        else:
            own[name] = value
    return own, built, preparation
