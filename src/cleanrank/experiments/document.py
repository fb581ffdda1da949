"""A recipe's results as a Markdown page for the documentation."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cleanrank.experiments.driver import Reproduction, left_out
from cleanrank.experiments.studies import STUDIES
from cleanrank.metrics.measure import CONVENTIONS, Measure
from cleanrank.report.collapse import Collapse, collapse, kept, realised
from cleanrank.report.grid_tables import collapse_table, pair_noise_table, results_table, verdict_table
from cleanrank.report.published import Published, compare_published
from cleanrank.report.summaries import Summary
from cleanrank.report.table import Line, Table, number

COLUMNS = 6
RESAMPLES = 500
_STUDIED = {name: words for study in STUDIES.values() for name, words in study.measures.items()}


def markdown_page(run: Reproduction) -> str:
    """Figures with intervals, what is published, and how they came about."""
    recipe = run.recipe
    summary = run.summarise(recipe.measures)
    parts = [f"# {recipe.title}", f"    {run.command}", recipe.about, recipe.source]
    for heading, measures in _tables(summary.measures):
        parts += [f"## {heading}", results_table(summary, measures).markdown()]
    parts += _noise(summary)
    verdicts = compare_published(summary, recipe.published)
    judged = [v for v in verdicts if v.published is not None and not v.context]
    if judged:
        parts += ["## Published figures", verdict_table(judged).markdown()]
    parts += [_context(recipe.published), "## How the figures came about", _protocol(run)]
    return "\n\n".join(p.strip("\n") for p in parts if p) + "\n"


def _noise(summary: Summary) -> list[str]:
    """What the noise of training labels came to, and which of its measures explains the loss."""
    noted = {place for place in realised(summary, "pnoise") if not place[1].clean}
    if not noted or any(m in _STUDIED for m in summary.measures):
        return []
    parts = ["## Noise of the training labels", pair_noise_table(summary).markdown()]
    falls = {
        f"{method}, {measure}": fall
        for method in summary.methods
        for measure in summary.measures
        if (fall := _fall(summary, measure, method))
    }
    if falls:
        words = (
            "R² of the best falling curve through the shares of the clean figure that are kept at all noisy "
            "levels of all data sets, and rank correlation ρ with the loss; in brackets 95% of a bootstrap "
            "over data sets and queries."
        )
        parts += ["## Does dNoise or pNoise explain the loss?", collapse_table(falls).markdown(), words]
    return parts


def _fall(summary: Summary, measure: str, method: str) -> Collapse | None:
    points = [k for k in kept(summary, measure, method) if not k.level.clean]
    alone = len({k.dataset for k in points}) < 2 or len(points) < 3
    # a method that learns nothing loses nothing
    return None if alone or len({k.share for k in points}) == 1 else collapse(points, resamples=RESAMPLES)


def _tables(measures: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Measures by convention, a few columns at a time."""
    groups: dict[str, list[str]] = {}
    for text in measures:
        named = next((word for word in text.split(":")[1:] if word in CONVENTIONS), "lightgbm")
        groups.setdefault("Measured" if text in _STUDIED else f"Convention {named}", []).append(text)
    for name, mine in groups.items():
        for start in range(0, len(mine), COLUMNS):
            part = tuple(mine[start : start + COLUMNS])
            span = part[0] if len(part) == 1 else f"{part[0]} to {part[-1]}"
            yield f"{name}: {span}", part


def _context(published: Sequence[Published]) -> str:
    """Figures of other rankers: a line for each ranker and source, a column for each measure."""
    context = [p for p in published if p.context]
    if not context:
        return ""
    measures = list(dict.fromkeys(p.measure for p in context))
    values = {(p.dataset, p.method, p.source, p.measure): p.value for p in context}
    rows: list[Line] = [
        [dataset, method, *(number(values.get((dataset, method, source, m))) for m in measures), source]
        for dataset, method, source in dict.fromkeys((p.dataset, p.method, p.source) for p in context)
    ]
    align = f"ll{'r' * len(measures)}l"
    table = Table(["data set", "method", *measures, "source"], rows, align=align)
    return f"## Published figures of other rankers, for orientation\n\n{table.markdown()}"


def _protocol(run: Reproduction) -> str:
    recipe = run.recipe
    cells = [c.inputs for c in run.cells]  # what ran, which may be a part of the recipe
    data = dict.fromkeys(c["dataset"] for c in cells)
    done = [r for r in run.records if r.status == "done"]
    lines = [
        "Data: " + "; ".join(f"{d}, folds {_list(_values(cells, 'fold', dataset=d))}" for d in data) + ".",
        left_out(run),
        f"Seeds: {_list(_values(cells, 'seed'))}, averaged query by query; then test queries are pooled.",
        *(
            f"Noise: {n.profile}, rates {_list(rates)}, on the labels of {' and '.join(n.on)} data."
            for n in recipe.noise
            if (rates := tuple(r for r in n.rates if r in {0, *_values(cells, "rate", noise=n.profile)}))
        ),
        f"Model selection: {recipe.select} on validation data.",
        *(
            f"{c.label}: {c.method} ({_settings({k: v for k, v in c.params.items() if k not in c.grid})})"
            + (f"; searched: {_settings(c.grid)}." if c.grid else ".")
            for c in recipe.methods
        ),
        *(f"`{words}`" for words in _described(recipe.measures)),
        f"Cells: {len(done)} of {len(run.cells)} done.",
        "Versions: " + _settings(done[0].versions) + "." if done else "",
    ]
    return "\n".join(f"* {line}" for line in lines if line)


def _described(measures: tuple[str, ...]) -> list[str]:
    """The measures in words; of those that differ in their cut-off only, the last."""
    studied = [f"{m}: {_STUDIED[m]}." for m in measures if m in _STUDIED]
    parsed = [Measure.parse(m) for m in measures if m not in _STUDIED]
    kept = {str(m).replace(f"@{m.cutoff}", ""): m for m in parsed}
    return [*studied, *(m.describe() for m in kept.values())]


def _values(cells: Sequence[Mapping[str, Any]], name: str, **where: Any) -> tuple[Any, ...]:
    """The values of an input that occur in cells with the given other inputs."""
    return tuple(sorted({c[name] for c in cells if all(c[k] == v for k, v in where.items())}))


def _list(values: Sequence[Any]) -> str:
    return ", ".join(f"{v:g}" if isinstance(v, float) else _setting(v) for v in values)


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {_setting(value)}" for key, value in values.items() if value not in ({}, []))


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return f"({_settings(value)})"
    return _list(value) if isinstance(value, list | tuple) else str(value)
