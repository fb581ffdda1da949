"""Draws noisy against clean values of losses and measures, as Fig. 1 of Haddad (2022) does.

python examples/haddad_figure1.py [OUT.svg] [DRAWS]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from cleanrank.theory import order_table

PAIRS = ["sym-ranknet:macro", "sym-ranknet:micro"]
SHOWN = ["zero_one", "logistic", "hinge", *PAIRS, "dcg@10", "ndcg@10", "map"]


def panel(axes, row, colour):
    line = np.polyfit(row.clean, row.noisy, 1)
    ends = np.array([row.clean.min(), row.clean.max()])
    axes.plot(ends, np.polyval(line, ends), color="0.7", linewidth=1, zorder=1)
    axes.scatter(row.clean, row.noisy, s=7, color=colour, alpha=0.8, linewidths=0, zorder=2)
    axes.set_title(f"{row.name}\n{row.verdict}, slope {row.slope:.2f}, tau {row.tau:.3f}", fontsize=8)
    axes.tick_params(labelsize=6)


def main(out="haddad-figure1.svg", draws=200):
    figure, grid = plt.subplots(4, 4, figsize=(10, 9.5))
    for rows, scorers, colour in ((grid[:2], "even", "#00796b"), (grid[2:], "tilted", "#b23c17")):
        table = order_table(SHOWN, 0.9, scorers=scorers, draws=draws, seed=1)
        for axes, name in zip(rows.ravel(), SHOWN, strict=True):
            panel(axes, table[name], colour)
        rows[0, 0].set_ylabel(f"{scorers} scorers: noisy", fontsize=8)
        rows[1, 0].set_xlabel("clean", fontsize=8)
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None} if out.endswith(".svg") else None)


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
