"""The page of the demo: one data set from its noise to what was won back, made from plain values alone."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cleanrank.report.article import Section, drawn, write_article
from cleanrank.report.curves import picture
from cleanrank.report.page import Safe, Td, number, table, tag
from cleanrank.report.sections import command_block
from cleanrank.report.vega import CONFIG

STYLE = ".why{max-width:70ch}td.wrong{color:var(--bad)}\n"


def write_story(found: Mapping[str, Any], path: str | os.PathLike[str]) -> Path:
    """Writes the page of a demo; the same values give the same bytes."""
    pictures = [_quality(found), _finding(found), _reliability(found)]
    sections: list[Section] = [
        ("data", "The data and their noise", _data(found)),
        ("issues", "Which labels are wrong", _issues(found, pictures)),
        ("rankers", "What was won back", _rankers(found, pictures)),
        ("again", "The same again", [command_block(found["command"]), _steps(found)]),
    ]
    lede = (
        f"{found['queries']['train']:,} training queries · {found['documents']['train']:,} documents · "
        f"{found['features']:,} features · {found['rate']:.0%} of the labels changed at random · synthetic "
        "data"
    )
    return write_article(
        path,
        "Label noise, from finding it to surviving it",
        lede,
        _key_figures(found),
        sections,
        pictures,
        style=STYLE,
    )


def _key_figures(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    best = found["detectors"][0]
    means = {s["name"]: s["mean"] for s in found["systems"]}
    lost = means[found["ceiling"]] - means[found["baseline"]]
    figures = [
        (f"{found['pnoise']:.1%}", "of training pairs are wrong"),
        (
            f"{best['average_precision']:.2f}",
            f"average precision of finding them (chance {found['rate']:.2f})",
        ),
        (f"{lost:.3f}".lstrip("0"), "NDCG@10 lost to the noise"),
    ]
    if found["recovered"] is not None:
        figures.append((f"{found['recovered']:.0%}", f"of it won back with {found['best']}"))
    return figures


def _data(found: Mapping[str, Any]) -> list[object]:
    words = (
        f"A made-up set in the shape of web search. Of {found['documents']['train']:,} training labels "
        f"{found['changed']:,} were changed: each keeps its grade with probability {1 - found['rate']:g}, "
        "else any other grade is as likely. Validation labels are as noisy; test labels are clean, so "
        "every figure below can be checked against the truth."
    )
    pairs = (
        f"These errors make {found['pnoise']:.1%} of all pairs of training documents wrong, and leave "
        f"{found['signal_left']:.0%} of the signal that AUC sees. The closed form, which needs the rate "
        f"and the shares of the grades alone, says {found['pnoise_expected']:.1%}."
    )
    gold = found["gold"]
    judged = (
        f"{gold['rows']} training rows, stratified by grade, were judged again (here: looked up). They put "
        f"the rate of wrong labels at {gold['rate']:.1%}, with a 95 % interval from {gold['low']:.1%} to "
        f"{gold['high']:.1%}."
    )
    return [tag("p", words), tag("p", pairs), tag("p", judged), _grades(found)]


def _grades(found: Mapping[str, Any]) -> Safe:
    head = [
        ("Grade", ""),
        ("True", "training documents that truly have it"),
        ("Given", "training documents labelled so"),
        ("Wrong", "share of the given ones that truly have another"),
    ]
    rows: list[list[Td | str]] = [
        [str(g["grade"]), number(g["true"], ",.0f"), number(g["given"], ",.0f"), number(g["wrong"], ".1%")]
        for g in found["grades"]
    ]
    return table(head, rows, caption="Grades before and after; rare grades are wrong more often")


def _issues(found: Mapping[str, Any], pictures: Sequence[Mapping[str, Any]]) -> list[object]:
    head = [
        ("Detector", ""),
        ("Issues", "labels it would act on"),
        ("Precision", "share of these that are wrong"),
        ("Recall", "share of the wrong ones among them"),
        ("Average precision", "over all rows, by doubt"),
        ("Within grades", "average precision among rows of one given grade, averaged over wrong rows"),
    ]
    rows: list[list[Td | str]] = [
        [
            d["name"],
            number(float(d["issues"]), ",.0f"),
            number(d["precision"], ".3f"),
            number(d["recall"], ".3f"),
            number(d["average_precision"], ".3f"),
            number(d["within_grades"], ".3f"),
        ]
        for d in found["detectors"]
    ]
    words = (
        f"A detector that guesses has an average precision of {found['rate']:.2f}. One that looks at "
        "nothing but the given grade does better than that, because rare grades are wrong more often: "
        "compare with its row."
    )
    return [
        tag("p", words, class_="hint"),
        table(head, rows, caption="Detectors against the truth"),
        *drawn(pictures, "finding", "reliability"),
        _worst(found),
    ]


def _worst(found: Mapping[str, Any]) -> Safe:
    head = [("Query", ""), ("Row", ""), ("Given", ""), ("Truth", ""), ("Doubt", ""), ("Why", "")]
    rows: list[list[Td | str]] = [
        [
            str(w["query"]),
            number(float(w["row"]), ".0f"),
            number(float(w["given"]), ".0f"),
            number(float(w["truth"]), ".0f", kind="wrong" if w["given"] != w["truth"] else ""),
            number(w["doubt"], ".3f"),
            Td(tag("span", w["why"], class_="why")),
        ]
        for w in found["worst"]
    ]
    return table(head, rows, caption="The most doubted labels, in words that a judge can check", headed=2)


def _rankers(found: Mapping[str, Any], pictures: Sequence[Mapping[str, Any]]) -> list[object]:
    head = [
        ("Trained on", ""),
        ("NDCG@10", "mean over test queries, clean labels"),
        ("Difference", f"from {found['baseline']}"),
        ("95 % interval", "bootstrap over test queries"),
        ("p", "Fisher's randomisation test, two-sided, Holm over the rows"),
        ("Recovered", "share of the loss that is won back"),
    ]
    rows: list[list[Td | str]] = [
        [
            s["name"],
            number(s["mean"]),
            number(s["difference"], "+.4f"),
            _interval(s["low"], s["high"]),
            number(s["p"], ".2g"),
            number(s["recovered"], ".0%"),
        ]
        for s in found["systems"]
    ]
    words = (
        "All rankers are LightGBM forests with the same parameters, stopped early on the same noisy "
        "validation labels. One draw of the noise and one split are an example, not evidence: the report "
        "card in the manual repeats this over data sets, kinds of noise and seeds. More than all can be won "
        "back: expected gains are smoother than grades, which are themselves a noisy reading of utility here."
    )
    return [tag("p", words, class_="hint"), *drawn(pictures, "quality"), table(head, rows, caption="Rankers")]


def _interval(low: float | None, high: float | None) -> Td:
    if low is None or high is None:
        return Td("–", None, "num none")
    return Td(f"{low:+.4f} to {high:+.4f}".replace("-", "−"), low, "num")


def _steps(found: Mapping[str, Any]) -> Safe:
    head = [("Step", ""), ("Seconds", "")]
    rows: list[list[Td | str]] = [[s["step"], number(s["seconds"], ".1f")] for s in found["steps"]]
    total = sum(s["seconds"] for s in found["steps"])
    shown = table(head, rows, caption="What took how long")
    return tag("details", tag("summary", f"It took {total:,.0f} seconds"), shown)


def _quality(found: Mapping[str, Any]) -> dict[str, Any]:
    rows = [
        {
            "name": s["name"],
            "mean": s["mean"],
            "low": s["mean_low"],
            "high": s["mean_high"],
            "shown": f"{s['mean']:.4f}",
            "kind": "end" if s["name"] in (found["baseline"], found["ceiling"]) else "method",
        }
        for s in found["systems"]
    ]
    names = [r["name"] for r in rows]
    y = {
        "field": "name",
        "type": "nominal",
        "sort": names,
        "title": None,
        "axis": {"domain": False, "ticks": False, "labelLimit": 260, "labelColor": "var(--ink)"},
    }
    x = {
        "type": "quantitative",
        "title": "NDCG@10",
        "scale": {"zero": False, "padding": 12},
        "axis": {"tickCount": 6, "domain": False},
    }
    colour = {"condition": {"test": "datum.kind == 'end'", "value": "var(--c0)"}, "value": "var(--c1)"}
    tooltip = [{"field": "name", "title": "Trained on"}, {"field": "shown", "title": "NDCG@10"}]
    spec = {
        "width": "container",
        "height": 30 * len(rows),
        "padding": {"left": 40, "right": 14, "top": 4, "bottom": 4},
        "config": CONFIG,
        "data": {"values": rows},
        "encoding": {"y": y},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "color": colour},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                "encoding": {"x": {**x, "field": "mean"}, "color": colour, "tooltip": tooltip},
            },
        ],
    }
    words = "NDCG@10 on clean test labels. " + " ".join(f"{r['name']}: {r['shown']}." for r in rows)
    return picture(
        "quality", "NDCG@10 on clean test labels, with 95 % intervals over queries", words, spec, wide=True
    )


def _finding(found: Mapping[str, Any]) -> dict[str, Any]:
    rows = [
        {"line": d["name"], "recall": r, "precision": p}
        for d in found["detectors"]
        for r, p in zip(d["curve"]["recall"], d["curve"]["precision"], strict=True)
    ]
    lines = [d["name"] for d in found["detectors"]]
    legend = {"orient": "top", "title": None, "columns": 2, "labelColor": "var(--ink)", "labelLimit": 240}
    domain = {"domain": lines}
    colours = [f"var(--c{1 + i % 7})" for i in range(len(lines))]
    dashes = [[1, 0], [6, 2], [2, 2], [8, 2, 2, 2], [4, 1, 1, 1], [10, 3]]
    spec = {
        "width": "container",
        "height": 270,
        "config": CONFIG,
        "data": {"values": rows},
        "mark": {"type": "line", "strokeWidth": 2, "tooltip": False},
        "encoding": {
            "x": {
                "field": "recall",
                "type": "quantitative",
                "title": "share of the wrong labels found",
                "axis": {"format": ".0%", "grid": False, "tickCount": 5},
                "scale": {"domain": [0, 1]},
            },
            "y": {
                "field": "precision",
                "type": "quantitative",
                "title": "share of the found labels that are wrong",
                "axis": {"format": ".0%", "tickCount": 5, "domain": False},
                "scale": {"domain": [0, 1]},
            },
            "order": {"field": "recall"},
            "color": {
                "field": "line",
                "type": "nominal",
                "scale": {**domain, "range": colours},
                "legend": legend,
            },
            "strokeDash": {
                "field": "line",
                "type": "nominal",
                "scale": {**domain, "range": [dashes[i % len(dashes)] for i in range(len(lines))]},
                "legend": legend,
            },
        },
    }
    words = "Precision over recall. " + " ".join(
        f"{d['name']}: average precision {d['average_precision']:.2f}." for d in found["detectors"]
    )
    return picture("finding", "Finding wrong labels: precision over recall", words, spec)


def _reliability(found: Mapping[str, Any]) -> dict[str, Any]:
    rows = [{**b, "shown": f"{b['rows']:,}"} for b in found["reliability"] if b["rows"]]
    both = {"scale": {"domain": [0, 1]}, "type": "quantitative"}
    x = {
        **both,
        "field": "said",
        "title": "doubt",
        "axis": {"format": ".0%", "grid": False, "tickCount": 5},
    }
    y = {
        **both,
        "field": "wrong",
        "title": "share that is wrong",
        "axis": {"format": ".0%", "tickCount": 5, "domain": False},
    }
    ideal = {
        "data": {"values": [{"said": 0, "wrong": 0}, {"said": 1, "wrong": 1}]},
        "mark": {"type": "line", "strokeDash": [3, 3], "color": "var(--muted)", "tooltip": False},
        "encoding": {"x": x, "y": y},
    }
    tooltip = [
        {"field": "said", "title": "Mean doubt", "format": ".1%"},
        {"field": "wrong", "title": "Wrong", "format": ".1%"},
        {"field": "shown", "title": "Rows"},
    ]
    points = {
        "data": {"values": rows},
        "mark": {"type": "line", "point": {"filled": True, "size": 60}, "color": "var(--c1)"},
        "encoding": {"x": x, "y": y, "tooltip": tooltip},
    }
    spec = {"width": "container", "height": 270, "config": CONFIG, "layer": [ideal, points]}
    words = "Share of wrong labels by doubt. " + " ".join(
        f"Doubt {r['said']:.0%}: {r['wrong']:.0%} of {r['shown']}." for r in rows
    )
    return picture("reliability", f"Doubt against the truth ({found['detectors'][0]['name']})", words, spec)
