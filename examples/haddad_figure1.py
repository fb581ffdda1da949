"""Draws noisy against clean values of losses and measures, as Fig. 1 of Haddad (2022) does.

python examples/haddad_figure1.py [OUT.svg] [DRAWS]
"""

import sys

import numpy as np

from cleanrank.report.charts import save_picture
from cleanrank.report.panels import Panel, Point
from cleanrank.theory import order_table

PAIRS = ["sym-ranknet:macro", "sym-ranknet:micro"]
SHOWN = ["zero_one", "logistic", "hinge", *PAIRS, "dcg@10", "ndcg@10", "map"]


def panel(row, scorers):
    line = np.polyfit(row.clean, row.noisy, 1)
    ends = [float(row.clean.min()), float(row.clean.max())]
    points = tuple(Point(scorers, float(x), float(y)) for x, y in zip(row.clean, row.noisy, strict=True))
    fit = tuple(Point(scorers, x, float(np.polyval(line, x))) for x in ends)
    title = f"{row.name}\n{row.verdict}, slope {row.slope:.2f}, tau {row.tau:.3f}"
    xs = tuple(sorted({p.x for p in (*points, *fit)}))
    titles = {"title": title, "measure": "noisy", "x_title": "clean"}
    return Panel("traces", (scorers,), xs, points, lines=fit, **titles, x_domain=tuple(ends))


def main(out="haddad-figure1.svg", draws=200):
    panels = []
    for scorers in ("even", "tilted"):
        table = order_table(SHOWN, 0.9, scorers=scorers, draws=draws, seed=1)
        panels += [panel(table[name], f"{scorers} scorers") for name in SHOWN]
    print(save_picture(panels, out, width=220))


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
