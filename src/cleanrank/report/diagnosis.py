"""The pages of a diagnosis and of a plan, made from their plain values (``to_dict``) alone."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cleanrank.report import curves
from cleanrank.report.article import Section, drawn, write_article
from cleanrank.report.page import Safe, Td, joined, number, table, tag

PILLS = {"act": ("bad", "act"), "know": ("none", "know"), "fine": ("ok", "fine")}


def write_diagnosis(found: Mapping[str, Any], path: str | os.PathLike[str]) -> Path:
    """Writes the page of a diagnosis; the same values give the same bytes."""
    pictures = curves.diagnosis_pictures(found)
    title = f"Diagnosis of {found['name']}" if found["name"] else "Diagnosis"
    sections: list[Section] = [
        ("advice", "What to do and know", [_advice(found["advice"])]),
        ("fragility", "How fragile the labels are", _fragility(found, pictures)),
        ("grades", "Grades and lengths", _shape(found, pictures)),
        ("merges", "Fewer grades, another balance", _merges(found)),
        ("repeats", "Rows that repeat one another", _repeats(found)),
        ("columns", "Columns and queries", _columns(found)),
    ]
    lede = (
        f"{found['queries']:,} queries · {found['documents']:,} documents · {found['features']:,} "
        f"features · {found['pairs']['different']:,} pairs of different grades"
    )
    return write_article(path, title, lede, _key_figures(found), sections, pictures)


def write_plan(found: Mapping[str, Any], path: str | os.PathLike[str]) -> Path:
    """Writes the page of a plan; the same values give the same bytes."""
    order = found["order"]
    pictures = curves.plan_pictures(found)
    chosen = next((o for o in found["options"] if o["name"] == found["recommended"]), None)
    figures = []
    if chosen:
        figures = [
            (chosen["name"], "recommended"),
            (f"{chosen['queries']:,}", "queries bought"),
            (f"{chosen['signal_left']:.0%}", "of AUC's signal left"),
        ]
    sections: list[Section] = [
        ("reasons", "Why", [_advice(found["reasons"])]),
        ("options", "All ways compared", [*drawn(pictures), _options(found)]),
        ("changes", "What would change it", _changes(found)),
        ("granted", "Taken for granted", [tag("ul", *(tag("li", c) for c in found["caveats"]))]),
    ]
    shares = " : ".join(f"{100 * p:.3g}" for p in order["proportions"])
    lede = (
        f"Budget {order['budget']:,g} · {order['cost']:,g} a judgement · {order['documents']} documents a "
        f"query · grades {shares} %"
    )
    return write_article(path, "Which labels to buy", lede, figures, sections, pictures)


def _advice(advice: Sequence[Mapping[str, Any]]) -> Safe:
    items = []
    for each in advice:
        kind, word = PILLS[each["kind"]]
        figures = [part for k, v in each["figures"].items() for part in (tag("dt", k), tag("dd", _plain(v)))]
        behind = tag("details", tag("summary", "figures"), tag("dl", *figures)) if figures else None
        items.append(tag("li", tag("span", word, class_=f"pill {kind}"), tag("div", each["text"], behind)))
    return tag("ul", *items, class_="advice")


def _key_figures(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    if not found["curves"]:
        return []
    curve, rate = found["curves"][0], found["rate"]
    place = curve["rates"].index(rate)
    knee = curve["limits"]["turning_point"]
    figures = [
        (f"{curve['pnoise'][place]:.1%}", f"of pairs wrong when {rate:.0%} of labels are"),
        (f"{curve['signal_left'][place]:.0%}", "of AUC's signal left there"),
        (
            "never" if knee is None else f"{knee:.1%}",
            f"label errors bring pNoise to {curve['limits']['at']:g}, the knee",
        ),
    ]
    if found["duplicates"]["within"]["groups"]:
        figures.append((f"{found['duplicates']['lower_bound']:.2%}", "of labels contradict an identical row"))
    return figures


def _fragility(found: Mapping[str, Any], pictures: Sequence[Mapping[str, Any]]) -> list[object]:
    if not found["curves"]:
        return [tag("p", "All documents have one grade: there are no pairs to spoil.")]
    words = (
        "The labels as given stand in for the truth. pNoise is the share of pairs that label errors turn "
        f"wrong; a pair that only errors created counts {found['new_weight']:g}. 1 − 2 pNoise of AUC's "
        "signal is left."
    )
    head = [
        ("Errors", "family of the noise"),
        ("Label error rate", ""),
        ("pNoise", "over the real queries"),
        ("Overall shares", "pNoise from overall proportions alone"),
        ("Worst tenth", "pNoise that a tenth of the queries with two grades reach"),
        ("Signal left", "of AUC"),
    ]
    rows = [
        [
            Td(c["profile"], kind="" if i == 0 else "again"),
            number(rate, ".0%"),
            *(number(c[k][i], ".3f") for k in ("pnoise", "overall", "worst_tenth")),
            number(c["signal_left"][i], ".0%"),
        ]
        for c in found["curves"]
        for i, rate in enumerate(c["rates"])
    ]
    full = tag(
        "details", tag("summary", "All figures"), table(head, rows, caption="pNoise by error rate", headed=2)
    )
    return [tag("p", words, class_="hint"), *drawn(pictures, "curves", "known"), _limits(found), full]


def _limits(found: Mapping[str, Any]) -> Safe:
    head = [
        ("Errors", "family of the noise"),
        ("Bend", "where the curve lies farthest above the line from its start to its end"),
        ("Half of the signal", "the error rate at which half is left"),
        ("Knee", "the error rate at which pNoise reaches the turning point"),
    ]
    rows = [
        [
            c["profile"],
            number(c["limits"]["bend"], ".1%", absent="none"),
            number(c["limits"]["half"], ".1%", absent="never"),
            number(c["limits"]["turning_point"], ".1%", absent="never"),
        ]
        for c in found["curves"]
    ]
    return table(head, rows, caption="Label error rates at which the curves leave which ground")


def _shape(found: Mapping[str, Any], pictures: Sequence[Mapping[str, Any]]) -> list[object]:
    grades = found["grades"]
    rows: list[list[Td | str]] = [
        [
            str(g),
            number(float(n), ",.0f"),
            number(s, ".1%"),
            number(m, ".1%"),
            number(float(q), ",.0f"),
        ]
        for g, (n, s, m, q) in enumerate(
            zip(grades["documents"], grades["shares"], grades["query_shares"], grades["queries"], strict=True)
        )
    ]
    head = [
        ("Grade", ""),
        ("Documents", ""),
        ("Share", ""),
        ("Mean share in a query", ""),
        ("Queries with it", ""),
    ]
    q = found["lengths"]["quantiles"]
    words = (
        f"As varied as {grades['effective']:.2f} even grades. Documents per query: {q['0']:g} to "
        f"{q['100']:g}, median {q['50']:g}, mean {found['lengths']['mean']:.1f}."
    )
    return [
        *drawn(pictures, "grade-shares", "lengths"),
        table(head, rows, caption="Grades"),
        tag("p", words),
    ]


def _merges(found: Mapping[str, Any]) -> list[object]:
    parts: list[object] = []
    if found["merges"]:
        head = [
            ("Scale", "grades that go together"),
            ("Shares", ""),
            ("Asked anew", "pNoise when judges err at the same rate on this scale"),
            ("Merged", "pNoise when the labels at hand are merged"),
            ("Pairs kept", "pairs of different grades, of those on the full scale"),
        ]
        rows: list[list[Td | str]] = [
            [
                m["name"],
                " : ".join(f"{100 * s:.3g}" for s in m["shares"]),
                number(m["asked_anew"], ".3f"),
                number(m["merged"], ".3f"),
                number(m["pairs_kept"], ".0%"),
            ]
            for m in found["merges"]
        ]
        place = found["curves"][0]["rates"].index(found["rate"])
        full = found["curves"][0]["pnoise"][place]
        caption = f"pNoise of coarser scales at an error rate of {found['rate']:.0%}; all grades: {full:.3f}"
        parts.append(table(head, rows, caption=caption))
    if found["balance"]:
        b = found["balance"]
        best = " : ".join(f"{100 * s:.0f}" for s in b["best_shares"])
        parts.append(
            tag(
                "p",
                f"Long lists in these shares have a pNoise of {b['given']:.3f} at {found['rate']:.0%}, in "
                f"even shares {b['even']:.3f}, in the best shares ({best}) {b['best']:.3f}.",
            )
        )
    return parts


REPEATED = {
    "within": "identical rows in a query",
    "blank": "rows of zeros in a query",
    "across": "identical rows across queries",
    "doc_ids": "document ids twice in a query",
}


def _repeats(found: Mapping[str, Any]) -> list[object]:
    kinds = {
        k: found["duplicates"][k]
        for k in REPEATED
        if found["duplicates"][k] and found["duplicates"][k]["groups"]
    }
    if not kinds:
        return [tag("p", "No two rows are identical.")]
    head = [
        ("Repeated", ""),
        ("Groups", ""),
        ("Rows", ""),
        ("Contradicting groups", "groups with more than one grade"),
        ("Rows in them", ""),
        ("Least wrong", "the fewest labels to change until all groups agree"),
    ]
    columns = ("groups", "rows", "contradicting_groups", "contradicting_rows", "least_wrong")
    rows: list[list[Td | str]] = [
        [REPEATED[k], *(number(float(r[c]), ",.0f") for c in columns)] for k, r in kinds.items()
    ]
    words = (
        "Identical rows of one query with different grades bound the noise from below, if equal features "
        "mean equal relevance. Rows of zeros say nothing about their document, and identical rows of "
        "different queries may truly differ: both stand apart."
    )
    return [
        table(head, rows, caption="Rows that repeat one another"),
        tag("p", words, class_="hint"),
        _examples(kinds),
    ]


def _examples(kinds: Mapping[str, Mapping[str, Any]]) -> Safe | None:
    rows = [
        [REPEATED[k], ", ".join(e["queries"][:4]), _some(e["rows"]), _some(e["grades"])]
        for k, r in kinds.items()
        if k != "across"
        for e in r["examples"]
    ]
    if not rows:
        return None
    head = [("Repeated", ""), ("Query", ""), ("Rows (from 0)", ""), ("Grades", "")]
    return tag(
        "details",
        tag("summary", "Examples"),
        table(head, rows, caption="Contradicting groups, largest first"),
    )


def _columns(found: Mapping[str, Any]) -> list[object]:
    columns, idle = found["columns"], found["idle"]
    facts = [
        ("Queries that teach nothing", f"{idle['queries']:,} with {idle['documents']:,} documents"),
        ("Such as", ", ".join(idle["examples"])),
        ("Constant columns", _names(columns["constant"])),
        ("Constant in every query", _names(columns["constant_in_queries"])),
        ("Missing values", f"{columns['missing']:,}"),
        (
            "Columns with missing values",
            _names([f"{k} ({v:,})" for k, v in columns["missing_columns"].items()]),
        ),
        ("Infinite values", f"{columns['infinite']:,}"),
    ]
    return [tag("dl", *(part for k, v in facts if v for part in (tag("dt", k), tag("dd", v))))]


def _options(found: Mapping[str, Any]) -> Safe:
    head = [
        ("Way to judge", ""),
        ("Judgements", "per query"),
        ("Cost", "per query"),
        ("Queries", "that the budget covers"),
        ("Pairs", "with different labels, per query"),
        ("pNoise", "against the common truth"),
        ("Floor", "pNoise of a judge without error"),
        ("Signal left", "1 - 2 pNoise"),
        ("Effective pairs", "all pairs x signal left squared"),
        ("Remark", ""),
    ]
    rows: list[list[Td | str]] = [
        [
            o["name"],
            number(o["judgements"], ",.0f"),
            number(o["query_cost"], ",.2f"),
            number(float(o["queries"]), ",.0f"),
            number(o["pairs"], ",.0f"),
            number(o["pnoise"], ".3f"),
            number(o["floor"], ".3f"),
            number(o["signal_left"], ".0%"),
            number(o["effective_pairs"], ",.0f"),
            "recommended" if o["name"] == found["recommended"] else o["problem"],
        ]
        for o in found["options"]
    ]
    kinds = ["chosen" if o["name"] == found["recommended"] else "" for o in found["options"]]
    scales = {o["grades"]: o["scale"] for o in found["options"] if o["grades"]}
    merged = "; ".join(f"{grades} grades stand for {scale}" for grades, scale in sorted(scales.items()))
    return joined(
        [
            table(head, rows, caption="Ways to buy labels, the best first", row_kinds=kinds),
            tag("p", f"Grades of the truth on each scale: {merged}.", class_="hint"),
        ]
    )


def _changes(found: Mapping[str, Any]) -> list[object]:
    def listed(changes: Sequence[Mapping[str, Any]], first: str, caption: str) -> Safe | None:
        if not changes:
            return None
        head = [(first, ""), ("Then take", ""), ("Signal left", ""), ("Effective pairs", "")]
        rows = [
            [
                c["what"],
                Td(c["recommended"], kind="" if c["changed"] else "again"),
                number(c["signal_left"], ".0%"),
                number(c["effective_pairs"], ",.0f"),
            ]
            for c in changes
        ]
        return table(head, rows, caption=caption)

    return [
        listed(found["changes"], "If", "One thing otherwise; grey: the recommendation stays"),
        listed(
            found["by_error"],
            "Error per step",
            "Along the judges' error rate; grey: the recommendation stays",
        ),
    ]


def _some(numbers: Sequence[int]) -> str:
    return ", ".join(str(n) for n in numbers[:12]) + (", …" if len(numbers) > 12 else "")


def _names(names: Sequence[str]) -> str:
    if not names:
        return "none"
    return f"{len(names):,}: " + ", ".join(names[:12]) + (", …" if len(names) > 12 else "")


def _plain(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.4g}"
