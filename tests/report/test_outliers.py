import numpy as np
import pytest

from cleanrank.checks import CleanrankError
from cleanrank.report.outliers import plot_outlier_history
from cleanrank.report.plots import save_figure

SHARES = np.array([[0.05, 0.1, np.nan], [0.9, 1.0, 0.95]])


def test_the_picture_holds_the_table_and_names_bands_and_trees():
    axes = plot_outlier_history(SHARES, [40, 2], first=51, last=80, title="t").axes[0]
    np.testing.assert_array_equal(np.ma.filled(axes.images[0].get_array(), np.nan), SHARES)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0%–50% (40)", "50%–100% (2)"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["51–60", "61–70", "71–80"]


def test_the_same_table_gives_the_same_bytes(tmp_path):
    for name in ("a.png", "b.png"):
        save_figure(plot_outlier_history(SHARES, [40, 2], last=30), tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_sizes_of_other_bands_are_refused():
    with pytest.raises(CleanrankError, match="one number per band"):
        plot_outlier_history(SHARES, [1, 2, 3])
