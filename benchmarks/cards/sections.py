"""The parts of the report card in words: the cards of each part, their sections in Markdown, their goals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cleanrank.experiments.driver import Reproduction
from cleanrank.report.summaries import Level
from cleanrank.report.table import Table
from cleanrank.types import RunRecord

from .compared import ALL, Compared, compared_card
from .detection import Detection, detection_card
from .goals import (
    DEFAULT,
    Goal,
    detection_goals,
    judge_goals,
    judged_detection_goals,
    recovery_goals,
    unharmed_goals,
)
from .recovery import Card, Setting, recovery_card
from .tables import (
    averages_table,
    detection_by_setting,
    detection_table,
    gain_text,
    gains_table,
    pooled_table,
    settings_table,
    shares_table,
)
from .whole import WholePart, ran_words, whole_part

RECIPES = ("card", "judges", "nist", "detection", "judges-detection", "cost")
OLD_CEILING = "clean-trained, noisy validation"
AS_JUDGED = "labels as judged"
NIST = "trained on NIST's labels"
JUDGED, CLEAN = Level("judge", 1.0), Level()
DETECTED = ("average precision", "average precision within grades", "precision", "recall", "base rate")
ROWS = (30, 100, 300, 1000)
LINES: dict[str, Sequence[tuple[int, str]]] = {
    **{
        f"{how} rows corrected": [(0, "noisy-trained"), *((n, f"{n} {how} rows corrected") for n in ROWS)]
        for how in ("random", "stratified", "doubt-ordered")
    },
    **{
        f"RobustRanker ({how} rows)": [
            (0, "RobustRanker (data alone)"),
            *((n, f"RobustRanker ({n} {how} rows)") for n in ROWS),
        ]
        for how in ("random", "stratified", "half-doubtful")
    },
}


@dataclass(frozen=True, eq=False)
class Cards:
    """What was computed, by recipe, and the cards that it makes; None where nothing ran."""

    runs: Mapping[str, Reproduction]
    whole: Mapping[str, WholePart]
    card: Card | None = None
    old: Card | None = None
    unharmed: Compared | None = None
    judges: Compared | None = None
    detection: Detection | None = None
    judged_detection: Detection | None = None
    cost: Card | None = None

    @property
    def goals(self) -> list[Goal]:
        """All that must hold and can be told from these cards."""
        goals: list[Goal] = []
        goals += recovery_goals(self.card) if self.card else []
        goals += unharmed_goals(self.unharmed) if self.unharmed else []
        goals += judge_goals(self.judges) if self.judges else []
        goals += detection_goals(self.detection, DETECTED[0]) if self.detection else []
        if self.judged_detection:
            goals += judged_detection_goals(self.judged_detection, DETECTED[0])
        return goals


def make_cards(runs: Mapping[str, Reproduction]) -> Cards:
    """The cards of what ran whole."""
    whole = {
        name: whole_part(run.records, collection if name.startswith("judges") else None)
        for name, run in runs.items()
    }
    records = {name: part.records for name, part in whole.items() if part.records}
    card = old = unharmed = None
    if "card" in records:
        noisy = {r.cell["rate"] > 0 for r in records["card"]}
        if True in noisy:
            card = recovery_card(records["card"])
            ran = {r.cell["method"] for r in records["card"]}
            old = recovery_card(records["card"], clean=OLD_CEILING) if OLD_CEILING in ran else None
        if False in noisy:
            # Where labels are right, a ceiling is the baseline.
            others = [r for r in records["card"] if r.cell["method"] not in ("clean-trained", OLD_CEILING)]
            unharmed = compared_card(others, level=CLEAN)
    judges = None
    if "judges" in records:
        beside = _beside_judges(records["judges"], runs["nist"].records if "nist" in runs else ())
        judges = compared_card(beside, level=JUDGED, group=collection)
    return Cards(
        runs,
        whole,
        card,
        old,
        unharmed,
        judges,
        _detection(records.get("detection")),
        _detection(records.get("judges-detection")),
        recovery_card(records["cost"]) if "cost" in records else None,
    )


def collection(dataset: str) -> str:
    """The collection of a judge's data: the first word of its label."""
    return dataset.partition(" ")[0]


def _beside_judges(judged: Sequence[RunRecord], nist: Sequence[RunRecord]) -> list[RunRecord]:
    """The judges' cells, and for each the cell of the ranker that learnt from NIST's labels as they are."""
    plain = {
        (r.cell["dataset"], r.cell["fold"], r.cell["seed"]): r
        for r in nist
        if r.cell["method"] == "noisy-trained" and r.status == "done"
    }
    cells = {(r.cell["dataset"], r.cell["fold"], r.cell["seed"]): r.cell for r in judged}
    copies = []
    for (dataset, fold, seed), cell in cells.items():
        if (record := plain.get((collection(dataset), fold, seed))) is not None:
            moved = {**cell, "method": NIST}
            copies.append(replace(record, key=f"{record.key} {dataset}", cell=moved))
    return [*judged, *copies]


def _detection(records: Sequence[RunRecord] | None) -> Detection | None:
    if not records:
        return None
    ran = {r.cell["method"] for r in records}
    return detection_card(records, DETECTED, reference=DEFAULT if DEFAULT in ran else None)


def sections_of(cards: Cards) -> list[str]:
    """Everything in Markdown, in the order of the parts."""
    return [
        *(_card_sections(cards) if cards.card else []),
        *(_unharmed_sections(cards.unharmed) if cards.unharmed else []),
        *(_judges_sections(cards.judges) if cards.judges else []),
        *(_detection_sections(cards.detection, "Detection") if cards.detection else []),
        *(
            _detection_sections(cards.judged_detection, "Detection, language models")
            if cards.judged_detection
            else []
        ),
        *(cost_sections(cards.cost) if cards.cost else []),
        *_extent_sections(cards),
    ]


def _card_sections(cards: Cards) -> list[str]:
    assert cards.card is not None
    card = cards.card
    parts = ["## Recovered share", averages_table(card, cards.old).markdown()]
    parts += ["## Pooled share by noise", pooled_table(card, lambda s: s.level.label).markdown()]
    parts += ["## Pooled share by data set", pooled_table(card, lambda s: s.dataset).markdown()]
    parts += ["## What noise costs", settings_table(card).markdown()]
    for level in dict.fromkeys(s.level for s in card.settings):
        parts += [f"## {level.label}", shares_table(card, level).markdown()]
    return parts


def _unharmed_sections(card: Compared) -> list[str]:
    words = "What methods gain in NDCG@10 where labels are right. Bold: clearly above or below 0."
    return ["## No noise at all", words, gains_table(card, "data set", card.base).markdown()]


def _judges_sections(card: Compared) -> list[str]:
    words = (
        "Trained on the labels of a language model, tested on NIST's: NDCG@10 of the labels as judged, then "
        "gains over them. All judges of a collection are tested on the same queries; intervals know that. "
        "Bold: clearly above or below 0."
    )
    parts = ["## Language models as judges", words]
    groups = list(dict.fromkeys(card.datasets.values()))
    for group in groups:
        parts += [f"### {group}", gains_table(card, "judge", AS_JUDGED, group).markdown()]
    lines = [[m, *(gain_text(card.average(m, group=g)) for g in (*groups, ALL))] for m in card.methods]
    return [*parts, "### Mean over judges", Table(["method", *groups, "all judges"], lines).markdown()]


def _detection_sections(card: Detection, title: str) -> list[str]:
    parts = [f"## {title}", detection_table(card).markdown()]
    for measure in card.measures[:2]:
        parts += [f"### {measure.capitalize()} by setting", detection_by_setting(card, measure).markdown()]
    return parts


def cost_sections(card: Card) -> list[str]:
    """Shares by rows judged again; gains where the loss is not clear."""
    parts = ["## What judgements buy"]
    for s in card.settings:
        what = "recovered share" if s.clear else "the loss is not clear, so this is the gain of NDCG@10"
        lines = [
            [f"{n:,}", *(_bought(card, s, points[i][1]) for points in LINES.values())]
            for i, n in enumerate((0, *ROWS))
        ]
        parts += [
            f"### {s.dataset}, {s.level.label}: loss {s.loss.value:.4f}; {what}",
            Table(["rows", *LINES], lines).markdown(),
        ]
    return parts


def _bought(card: Card, setting: Setting, method: str) -> str:
    """What a method won with its rows."""
    if method == card.noisy:
        return "0"
    row = card.find(setting.dataset, setting.level, method)
    if row is None:
        return "not run"
    if row.share is not None:
        return f"{row.share}"
    return f"{row.gain.value:+.3f} [{row.gain.low:+.3f}, {row.gain.high:+.3f}]"


def _extent_sections(cards: Cards) -> list[str]:
    """What ran of each recipe."""
    lines = [
        [name, dataset, folds, seeds, levels]
        for name, part in cards.whole.items()
        for dataset, folds, seeds, levels in ran_words(part.kept)
    ]
    counts = [
        f"* {name}: {len(cards.whole[name].records):,} of {len(run.cells):,} cells"
        + (f", {len(run.failed)} failed" if run.failed else "")
        + (
            f"; left out, since they ran in few places: {', '.join(few)}"
            if (few := cards.whole[name].few)
            else ""
        )
        for name, run in cards.runs.items()
    ]
    head = ["recipe", "data set", "folds", "seeds", "noise levels"]
    return ["## What ran", "\n".join(counts), Table(head, lines, headed=2).markdown()]
