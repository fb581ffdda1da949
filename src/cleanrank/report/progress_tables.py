"""What the answers of a labelling project have changed, as tables, a picture and a page."""

from collections.abc import Sequence

from cleanrank.labeling.loop import PURPOSES, ProjectProgress, Step, share
from cleanrank.report.estimate_tables import estimate_tables
from cleanrank.report.pages import Page
from cleanrank.report.panels import Panel, Point
from cleanrank.report.sections import Part, Section, sections_page
from cleanrank.report.table import ABSENT, Cell, Line, Table, many, number

# Columns of the table of labels, and what they show of LabelProgress.
SHARES = {
    "wrong as given": "before",
    "wrong left": "after",
    "won back": "won_back",
    "wrong pairs as given": "pairs_before",
    "wrong pairs left": "pairs_after",
}
LOSS = (
    "A pair in the wrong order teaches a ranker the wrong thing: of what it could learn above chance, wrong "
    "pairs take twice their share (AUC's signal, 1 - 2 pNoise). How much of NDCG that is depends on the "
    "ranker and on the data, and labels alone do not tell: train on the labels as given and as mended, and "
    "compare both on the same test labels."
)
LOOKS = (
    "Intervals hold together at {level:.0%} for whoever looks once after every batch: the level of each look "
    "is higher than that, so later intervals are wider than a single look would give."
)


def steps_table(steps: Sequence[Step]) -> Table:
    """A row for every batch: how many labels were judged by then, and what is known of the rest."""
    rows: list[Line] = []
    for step in steps:
        counts = (step.labels.judged, step.labels.wrong) if step.labels else (None, None)
        known = [getattr(step.labels, name, None) for name in SHARES.values()]
        cells = [Cell(ABSENT) if each is None else Cell(share(each), each.mean) for each in known]
        rows.append([step_name(step), *(number(count, ",") for count in counts), *cells])
    explained = {
        "judged": "labels that were judged again so far, for whatever reason",
        "found wrong": "those of them that were wrong",
        "wrong as given": "share of all labels that were wrong before anybody answered",
        "wrong left": "share of all labels that is still wrong once the answers stand",
        "won back": "share of the wrong labels that the answers put right",
        "wrong pairs as given": "pNoise: pairs that the given labels put in the wrong order",
        "wrong pairs left": "pNoise once the answers stand",
    }
    head = ("after batch", "judged", "found wrong", *SHARES)
    caption = "Labels after every batch, with intervals"
    return Table(head, rows, caption=caption, explained=explained)


def step_name(step: Step) -> str:
    """A batch by its number and name."""
    return f"{step.batch.id}. {step.batch.name}"


def systems_table(steps: Sequence[Step]) -> Table:
    """A row for every system after every evaluation batch."""
    rows: list[Line] = []
    for step in steps:
        if step.systems is None or step.batch.purpose != "evaluation":
            continue
        for name, each in step.systems.estimates.items():
            spans = [f"{e.mean:.3f} [{e.low:.3f}, {e.high:.3f}]" for e in (each, each.gold_only)]
            cells = [number(each.judge_only, ".3f"), *(Cell(text) for text in spans)]
            rows.append([step_name(step), name, number(each.n_gold, ","), *cells])
    explained = {
        "answers": "judged documents that the estimate rests on",
        "as given": "under the given labels alone; no interval can be given for it",
        "estimate": "under true labels, from the given ones and the answers",
        "answers alone": "without using the given labels",
    }
    head = ("after batch", "system", "answers", "as given", "estimate", "answers alone")
    return Table(head, rows, headed=2, caption="Systems, with intervals", explained=explained)


def left_panel(steps: Sequence[Step]) -> Panel | None:
    """Wrong labels as given and left, after every batch; None before two batches tell."""
    points = []
    for step in steps:
        if step.labels is not None and step.labels.before is not None and step.labels.after is not None:
            for name, each in (("as given", step.labels.before), ("left", step.labels.after)):
                points.append(Point(step_name(step), name, each.mean, each.low, each.high))
    methods = tuple(dict.fromkeys(point.method for point in points))
    if len(methods) < 2:
        return None
    first, last = points[1], points[-1]
    ends = f"{first.mean:.1%} left after {first.method}, {last.mean:.1%} after {last.method}"
    return Panel(
        "dots",
        methods,
        ("as given", "left"),
        tuple(points),
        title="Wrong labels after every batch",
        measure="share of wrong labels",
        x_title="share of all labels that is wrong",
        series="Batch",
        x_form=".0%",
        colours=(0, 1),
        description=f"Wrong labels: {ends}.",
    )


def progress_page(progress: ProjectProgress) -> Page:
    """The page of a project's progress: verdicts, labels, pairs, systems, the noise matrix."""
    title = f"What the answers have changed: {progress.name}"
    step = progress.last
    if step is None:
        words = (
            f"No document was graded yet. {many(progress.n_labels, 'document')} came with a label; "
            "comparisons change none of them."
            if progress.n_labels
            else "The documents came without labels: there is nothing to compare the answers with."
        )
        return sections_page(title, [Section("Nothing yet", [words])])
    labels, figures = step.labels, []
    if labels is not None and labels.before is not None and labels.after is not None:
        figures = [
            (share(labels.before), "of labels were wrong as given"),
            (share(labels.after), "are wrong once the answers stand"),
        ]
        figures += [(share(labels.won_back), "of the wrong labels put right")] if labels.won_back else []
    elif labels is not None:
        figures = [(f"{labels.wrong:,}", f"of {many(labels.judged, 'judged label')} were wrong")]
    proposals = [f"{PURPOSES[each.purpose].capitalize()}: {each.why}." for each in progress.proposals()]
    verdicts = [*progress.verdicts(), *(f"Note: {note}." for note in progress.notes())]
    wanting = "" if labels is None or labels.before is not None else (
        "How many labels are wrong in all is not known: only a random sample tells."
    )  # fmt: skip
    picture = left_panel(progress.steps)
    changed: list[Part] = [] if labels is None else [wanting, *_part(picture), steps_table(progress.steps)]
    pairs: list[Part] = []
    if labels is not None and labels.pairs_won_back is not None:
        pairs = [f"{share(labels.pairs_won_back)} of the share of wrong pairs is taken away. {LOSS}"]
    sections = [
        Section("When to stop", [*verdicts, LOOKS.format(level=0.95)]),
        Section("Worth asking for next", proposals or ["Nothing: stop here."]),
        Section("Labels", changed),
        Section("What that is worth to a ranker", pairs),
        Section("Systems", [systems_table(progress.steps)] if step.systems is not None else []),
        Section("Which grades are given to which", _matrix(step)),
    ]
    return sections_page(title, sections, figures=figures)


def _part(panel: Panel | None) -> list[Part]:
    return [] if panel is None else [panel]


def _matrix(step: Step) -> list[Part]:
    if step.labels is None or step.labels.noise is None or step.labels.noise.profile is None:
        return []
    return list(estimate_tables(step.labels.noise))
