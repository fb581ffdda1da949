"""``cleanrank train`` and ``cleanrank predict``."""

import os
import warnings
from pathlib import Path
from typing import Annotated

import typer

from cleanrank.cli import ctr, screen
from cleanrank.errors import invalid
from cleanrank.rankers import CLASSIC, RANKERS, is_click_model
from cleanrank.rankers.ctr import MODELS
from cleanrank.validation import one_of

# Options by the arguments of rankers that they set; those that a ranker lacks are refused for it.
SETTINGS = {
    "objective": "implementation",
    "trees": "n_estimators",
    "epochs": "epochs",
    "stop_after": "early_stopping_rounds",
    "measure": "measure",
    "learning_rate": "learning_rate",
    "leaves": "num_leaves",
    "min_docs": "min_child_samples",
    "seed": "random_state",
    "jobs": "n_jobs",
    "noise": "noise",
    "gold": "gold",
    "valid_clean": "clean_validation",
}
OF_RANKINGS = "valid valid_clean trees measure leaves min_docs objective gold gold_columns scheduler"

app = typer.Typer()


@app.command(epilog="\n\n".join(f"{name}: {entry.about}." for name, entry in RANKERS.items()))
@screen.with_columns
def train(
    context: typer.Context,
    out: Annotated[
        Path, screen.out_file("MODEL", "Model: LightGBM's text, a network as safetensors, else JSON.")
    ],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="DATA", help=f"Judged data: {screen.DATA_FORMATS}.", callback=screen.piped),
    ] = None,
    task: Annotated[str, typer.Option(help="rank, or ctr: predict clicks from behaviours.")] = "rank",
    data_set: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="LOG",
            help="For ctr: a log of events, CSV or Parquet, or one of the catalogue, such as ml-100k.",
        ),
    ] = None,
    valid: Annotated[Path | None, screen.in_option("FILE", "Validation data, to stop and choose on.")] = None,
    valid_clean: Annotated[
        bool,
        typer.Option("--valid-clean", help="For robust: the labels of --valid are right, not noisy too."),
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(help=f"One of {', '.join(RANKERS)} (lambdarank); for ctr of {', '.join(MODELS)} (din)."),
    ] = None,
    trees: Annotated[
        int | None,
        typer.Option(min=1, help="Trees or rounds at the most (500; rank-boost 300)."),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="For neural (50), prank (100), ctr (10): passes over the data at the most."),
    ] = None,
    stop_after: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Trees (50), epochs (10) or rounds without gain on validation data before it ends; 0: none.",
        ),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(help="What early stopping and choices look at (ndcg@10; of classic rankers map)."),
    ] = None,
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
            metavar="FILE|FAMILY:RATE",
            help="For robust, peer, pairwise, neural: a noise matrix, an estimate, or uniform:0.1.",
        ),
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(
            metavar="SHEET",
            help="For robust: rows judged again (gold sample), or true grades by query and document.",
        ),
    ] = None,
    gold_columns: screen.GoldColumns = None,
    option: screen.Options = None,
    seed: screen.Seed = 0,
    jobs: screen.Jobs = 1,
    scheduler: screen.Scheduler = None,
    force: screen.Force = False,
    as_json: screen.Json = False,
    *,
    columns: screen.Columns,
) -> None:
    """Train a ranker, and save the model.

    --option sets an argument of the ranker's class: alpha, peers, within, permutations (peer); start, end,
    kind, rule, min_frequency, variant, ... (sour); rounds, folds (robust); loss, robust, alpha, pairs,
    weighting, sigma, truncation_level (pairwise); loss, network, robust, alpha, pairs, debias, click_rates,
    optimizer, batch_queries, checkpoint, device, precision, ... and hidden, dropout, activation of its
    network (neural); C, loss (rank-svm); robust (prank, rank-boost); target, update (ada-rank); scaling (all
    of these). alpha, the weight of peers, is a number, auto (what undoes --noise) or, of trees, search (the
    best of four on validation data). debias (ipw, dla, pairdebias) takes labels as clicks and the ranks they
    were shown at from the column position; ipw also needs click_rates, of ranks 1, 2, ... in random lists.
    robust chooses leaves and documents per leaf itself, and says which strategy it took and why.
    For ctr: arguments of CTRModel, of its network and of prepare_clicks; of a file also user, item, time,
    behaviour, user_fields and item_fields, where columns are not called user, item, time (or timestamp),
    behaviour and category, and clicks and shown, which say what a behaviour means.
    """
    from cleanrank.cluster.client import at_scheduler
    from cleanrank.data.files import MODELS, check_outputs
    from cleanrank.noise.estimate import load_noise
    from cleanrank.noise.gold_sheet import read_sheet
    from cleanrank.rankers import configure
    from cleanrank.rankers.base import unused_columns

    if one_of("task", task, ("rank", "ctr")) == "ctr":
        columns_of_rankings = screen.TABLES.replace("delimiter", "")
        screen.refuse(context, f"{OF_RANKINGS} {columns_of_rankings}", "goes with --task rank", "--task ctr")
        shared = {"epochs": epochs, "early_stopping_rounds": stop_after, "learning_rate": learning_rate}
        ctr.train(
            ctr.log_name(data_set, file),
            out,
            model or "din",
            settings={**shared, "random_state": seed, "n_jobs": jobs},
            options=option,
            noise=noise,
            delimiter=columns.get("delimiter"),
            force=force,
            as_json=as_json,
        )
        return
    if data_set is not None or file is None:
        remedy = "Name a file, or add --task ctr for a log of clicks."
        raise invalid("train", "needs DATA, a file of judged rows", data_set, remedy=remedy)
    model = model or "lambdarank"
    one_of("model", model, RANKERS)
    for name, setting in SETTINGS.items():
        if not configure.reads(model, setting):
            readers = " or ".join(configure.readers_of(setting))
            screen.refuse(context, name, f"goes with --model {readers}", model)
        if valid is None and model not in configure.WITHOUT_VALIDATION.get(setting, RANKERS):
            screen.refuse(context, name, "goes with --valid, on which it stops or chooses", model)
    if gold is None:
        screen.refuse(context, "gold_columns", "goes with --gold")
    if configure.unit_of(model) != "trees":
        screen.refuse(context, "scheduler", "goes with rankers of trees", model)
    suffixes = (".json", *MODELS) if RANKERS[model].target.startswith(CLASSIC) else MODELS
    check_outputs(out, inputs=[file, valid, noise, gold], force=force, suffixes=suffixes)
    data, validation = configure.read_training(file, valid, **columns)
    if words := unused_columns(data):
        screen.note(words)
    options = screen.parse_options(option)
    if valid_clean:
        options["clean_validation"] = True
    if noise is not None:
        options["noise"] = load_noise(noise, max(data.n_grades, 2))
    settings = {
        setting: context.params[name]
        for name, setting in SETTINGS.items()
        if setting not in ("noise", "gold", "clean_validation")
    }
    ranker = configure.configured_ranker(model, settings, options)
    headings = screen.parse_columns("--gold-columns", gold_columns)
    answers = {} if gold is None else {"gold": read_sheet(gold, data, columns=headings)}
    for answer in answers.values():
        for text in answer.notes:
            screen.note(text)
    with (
        screen.progress(configure.unit_of(model)) as tick,
        at_scheduler(scheduler) as client,
        warnings.catch_warnings(),
    ):
        # The record below says the same.
        warnings.filterwarnings("ignore", "RobustRanker fell back")
        on = {} if client is None else {"client": client}
        ranker.fit_data(data, validation, progress=tick, **answers, **on)
    if os.environ.get("RANK", "0") != "0":
        return  # of the processes that torchrun starts, the first one writes
    ranker.save(out)
    record = configure.training_record(model, ranker, data, validation) | {"file": str(out)}
    reasons = [f"{record['strategy']}: {reason}" for reason in record.get("reasons", ())]
    alpha = getattr(ranker, "alpha_", None)
    because = [f"alpha: {alpha}"] if hasattr(alpha, "statement") else []
    shown = {name: value for name, value in record.items() if name not in ("model", "reasons")}
    screen.show(record, as_json, repr(data), screen.facts(shown, model), *reasons, *because, f"wrote {out}")


@app.command()
@screen.with_columns
def predict(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A saved model.")],
    file: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help=f"Rows, labelled or not: {screen.DATA_FORMATS}; for clicks a log, as in training.",
            callback=screen.piped,
        ),
    ],
    out: Annotated[Path, screen.out_file("SCORES", "One score per row of DATA; .npy or text.")],
    part: Annotated[
        str | None,
        typer.Option(help="For clicks: train, validation or test rows; else of a file all, of a name test."),
    ] = None,
    jobs: screen.Jobs = 1,
    force: screen.Force = False,
    as_json: screen.Json = False,
    *,
    columns: screen.Columns,
) -> None:
    """Score rows with a saved model; scores follow the rows of the input file.

    Columns are found by name where model and file have names; others are ignored, missing ones refused.
    """
    from cleanrank.data.files import SCORES, check_outputs
    from cleanrank.data.scores import write_scores
    from cleanrank.rankers.configure import score_file, size_of

    if is_click_model(model):
        screen.refuse(context, screen.TABLES, "goes with a model of rankings", str(model))
        ctr.predict(model, str(file), out, part, jobs, force, as_json)
        return
    screen.refuse(context, "part", "goes with a model of clicks", str(model))
    check_outputs(out, inputs=[model, file], force=force, suffixes=SCORES)
    scores, data, fitted = score_file(model, file, jobs, **columns)
    write_scores(scores, out)
    unit, size = size_of(fitted)
    record = {"documents": data.n_docs, "queries": data.n_queries, unit: size, "scores": str(out)}
    summary = f"{data.n_docs:,} rows scored by {size:,} {unit}"
    screen.show(record, as_json, summary, f"wrote {out}")
