"""``cleanrank train`` and ``cleanrank predict``."""

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from cleanrank.cli import screen
from cleanrank.cli.networks import load_model, neural_ranker, scores_of, size_of, writes
from cleanrank.cli.noise import Force, Json, Options, parse_options
from cleanrank.errors import invalid
from cleanrank.validation import one_of

MODELS: dict[str, str] = {
    "lgbm": "lambdarank, normalised by query",
    "lambdamart": "lambdarank, not normalised",
    "gbdt": "least squares on the grade",
    "peer": "lambdarank less shuffled labels",
    "sour": "lambdarank without consistent outliers",
    "robust": "lambdarank on expected gains under the noise, tuned",
    "pairwise": "trees on any pairwise loss and its robust forms",
    "neural": "a network with any ranking loss",
}


def mount(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(train)
    app.command()(predict)


def train(
    file: Annotated[
        Path, typer.Argument(metavar="DATA", help="Judged data: LETOR/SVMlight, Parquet or CSV.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="MODEL", help="Model: LightGBM's text, a network as safetensors."
        ),
    ],
    valid: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Validation data, to stop and choose on.")
    ] = None,
    model: Annotated[str, typer.Option(help=f"One of {', '.join(MODELS)}.")] = "lgbm",
    trees: Annotated[int, typer.Option(min=1, help="Trees at the most.")] = 500,
    epochs: Annotated[int, typer.Option(min=1, help="For neural: passes over the data at the most.")] = 50,
    stop_after: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Rounds without gain on validation data before it stops; 0 never. 50 trees, 10 epochs.",
        ),
    ] = None,
    measure: Annotated[str, typer.Option(help="What stopping looks at.")] = "ndcg@10",
    learning_rate: Annotated[
        float | None, typer.Option(help="Shrinkage of a tree (.05) or step of a network (.001).")
    ] = None,
    leaves: Annotated[int, typer.Option(min=2, help="Leaves of a tree.")] = 31,
    min_docs: Annotated[int, typer.Option(min=1, help="Documents per leaf at the least.")] = 20,
    objective: Annotated[
        str, typer.Option(help="exact, parity (LightGBM's arithmetic) or builtin (LightGBM's own).")
    ] = "exact",
    noise: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="For robust, neural, pairwise: a noise matrix, an estimate or FAMILY:RATE (uniform:0.1).",
        ),
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(
            metavar="SHEET", help="For robust: a sheet of rows judged again (cleanrank gold sample)."
        ),
    ] = None,
    option: Options = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same trees.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Threads; the trees stay the same.")] = 1,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Train a forest or a network that ranks, and save it.

    --option sets what belongs to a model: alpha, peers, within, permutations (peer); start, end, kind, rule,
    min_frequency, variant, ... (sour); rounds, folds (robust); loss, robust, pairs, weighting, sigma,
    truncation_level (pairwise). robust chooses leaves and documents per leaf
    itself and says which road it took and why. neural takes loss, network, robust, pairs, alpha (auto with
    --noise), optimizer, batch_queries, checkpoint, device, precision, ... and hidden, dropout, activation of
    its network.
    """
    from cleanrank.data.files import refuse_overwriting
    from cleanrank.data.frames import kind_of_file, read_data
    from cleanrank.rankers.base import widened

    one_of("model", model, MODELS)
    refuse_overwriting(out, force=force)
    data = read_data(file)
    held = None if valid is None else read_data(valid)
    if valid is not None and held is not None and kind_of_file(file) == kind_of_file(valid) == "letor":
        # Such files leave zeros out: the last columns may occur in one of them alone.
        data, held = widened(data, held.n_features), widened(held, data.n_features)
    settings = {
        "implementation": objective,
        "n_estimators": trees,
        "early_stopping_rounds": 50 if stop_after is None and model != "neural" else stop_after,
        "measure": measure,
        "learning_rate": 0.05 if learning_rate is None and model != "neural" else learning_rate,
        "num_leaves": leaves,
        "min_child_samples": min_docs,
        "random_state": seed,
        "n_jobs": jobs,
    }
    options = parse_options(option)
    known: dict[str, Any] = {}
    if model == "robust":
        options |= {} if noise is None else {"noise": _noise(noise, data)}
        known = {"gold": _gold(gold, data)}
    elif model in ("neural", "pairwise") and gold is None:
        options |= {} if noise is None else {"noise": _noise(noise, data)}
    elif noise is not None or gold is not None:
        raise invalid("--noise and --gold", "go with --model robust", model)
    ranker = (
        neural_ranker(settings, options, epochs) if model == "neural" else _ranker(model, settings, options)
    )
    with screen.progress("epochs" if model == "neural" else "trees") as tick, warnings.catch_warnings():
        # The record below says the same.
        warnings.filterwarnings("ignore", "RobustRanker fell back")
        ranker.fit_data(data, held, progress=tick, **known)
    if not writes():
        return
    ranker.model_.save(out)
    record = _record(model, out, ranker, data, held)
    if as_json:
        screen.print_json(record)
        return
    screen.note(repr(data))
    shown = [
        (name, _text(value)) for name, value in record.items() if value is not None and name != "reasons"
    ]
    screen.table(("", model), shown)
    for reason in getattr(getattr(ranker, "report_", None), "reasons", ()):
        screen.note(f"{ranker.chosen_['strategy']}: {reason}")
    if model == "neural" and ranker.alpha_ is not None:
        screen.note(f"alpha: {ranker.alpha_}")
    screen.note(f"wrote {out}")


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A saved forest or network.")],
    file: Annotated[Path, typer.Argument(metavar="DATA", help="Rows to score.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="SCORES", help="One score per row of DATA; .npy or text.")
    ],
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Threads.")] = 1,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Score rows with a saved forest or network; scores follow the rows of the input file."""
    import numpy as np

    from cleanrank.data.files import refuse_overwriting, written_whole

    refuse_overwriting(out, force=force)
    found = load_model(model)
    data = read_rows(file, found.n_features, model)
    scores = np.empty(data.n_docs)
    scores[data.row_ids] = scores_of(found, data, jobs)
    with written_whole(out) as part:
        if out.suffix == ".npy":
            with part.open("wb") as file_out:
                np.save(file_out, scores, allow_pickle=False)
        else:
            part.write_text("".join(f"{score!r}\n" for score in scores.tolist()), encoding="utf-8")
    kind, many = size_of(found)
    record = {
        "documents": data.n_docs,
        "queries": data.n_queries,
        kind: many,
        "scores": str(out),
    }
    if as_json:
        screen.print_json(record)
        return
    screen.note(repr(data))
    screen.note(f"{data.n_docs:,} rows scored by {many:,} {kind}")
    screen.note(f"wrote {out}")


def _ranker(model: str, settings: dict[str, Any], options: dict[str, Any]) -> Any:
    """The estimator of a model; options it does not know are named."""
    from cleanrank.rankers import RANKERS

    entry = RANKERS["lambdarank" if model == "lgbm" else model]
    ranker, settings, options = entry.load(), {**entry.presets, **settings}, dict(options)
    known = ranker().get_params()
    if model == "sour":
        measure = str(settings.pop("measure"))
        name, _, cutoff = measure.partition("@")
        if name != "ndcg" or not cutoff.isdigit():
            raise invalid("--measure", "must be ndcg@K for sour", measure)
        settings["cutoff"] = int(cutoff)
    elif model == "pairwise" and "loss" in options:
        options["objective"] = options.pop("loss")
    if model in ("sour", "robust", "pairwise") and options.pop("norm", True) is False:
        options["objective"] = "lambdamart"
    for name in options:
        one_of(f"option of {model}", name, sorted(known))
    return ranker(**{**{name: value for name, value in settings.items() if name in known}, **options})


def _noise(text: str, data: Any) -> Any:
    """An estimate with what it says about itself, else a matrix or a family."""
    from cleanrank.noise.estimate import FORMAT, NoiseEstimate
    from cleanrank.noise.profiles import read_noise

    file = Path(text)
    if file.is_file() and FORMAT in file.read_text(encoding="utf-8", errors="replace")[:200]:
        return NoiseEstimate.load(file)
    return read_noise(text, max(data.n_grades, 2))


def _gold(sheet: Path | None, data: Any) -> Any:
    from cleanrank.noise.gold_sheet import read_sheet

    return None if sheet is None else read_sheet(sheet, data)


def _record(model: str, out: Path, ranker: Any, data: Any, held: Any) -> dict[str, Any]:
    found = ranker.model_
    robust = model == "robust"
    removed = None if robust else getattr(ranker, "cleaned_", None)
    return {
        "model": model,
        "file": str(out),
        "documents": data.n_docs,
        "queries": data.n_queries,
        **dict([size_of(found)]),
        "measure": None if held is None else getattr(ranker, "measure", None) or f"ndcg@{ranker.cutoff}",
        "validation": found.validation_value,
        "alpha": None if getattr(ranker, "alpha_", None) is None else float(ranker.alpha_),
        "removed": None if removed is None else data.n_docs - removed.data.n_docs,
        **(
            {"strategy": ranker.chosen_["strategy"], "reasons": list(ranker.report_.reasons)}
            if robust
            else {}
        ),
    }


def _text(value: object) -> str:
    return (
        f"{value:,}" if isinstance(value, int) else f"{value:.4f}" if isinstance(value, float) else str(value)
    )


def read_rows(file: Path, n_features: int, model: Path) -> Any:
    """The rows of a file with the columns of the model; LETOR files may end before its last ones."""
    from cleanrank.data.frames import kind_of_file, read_data
    from cleanrank.rankers.base import widened

    data = read_data(file)
    if kind_of_file(file) == "letor":
        data = widened(data, n_features)
    if data.n_features != n_features:
        rule = f"must have the {n_features} features that {model.name} was trained on"
        raise invalid(file.name, rule, data.n_features)
    return data
