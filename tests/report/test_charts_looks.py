import itertools
import re

from cleanrank.report.charts import BASELINE, LOOKS, asset, looks
from cleanrank.report.images import colours


def luminance(colour):
    """Relative luminance of the WCAG."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    bright, dim = sorted((luminance(a), luminance(b)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def dark():
    """The variables of the dark block of the style sheet."""
    return dict(re.findall(r"--([\w-]+): (#\w+)", asset("report.css").split("}")[1]))


def test_every_line_can_be_seen_on_its_paper():
    for look in (BASELINE, *LOOKS):
        name = f"c{look.colour}"
        assert contrast(colours()[name], colours()["paper"]) >= 3
        assert contrast(dark()[name], dark()["paper"]) >= 3


def test_light_and_dark_have_the_same_variables():
    assert set(dark()) == set(colours())


def test_shapes_tell_looks_apart_without_colour():
    for a, b in itertools.combinations((BASELINE, *LOOKS), 2):
        assert a.shape != b.shape
        assert a.colour != b.colour


def test_a_method_keeps_its_look_whatever_the_baseline_is_called():
    assert looks(["x", "y", "z"], "x") == {"x": BASELINE, "y": LOOKS[0], "z": LOOKS[1]}
    assert looks(["x", "y"]) == {"x": LOOKS[0], "y": LOOKS[1]}


def test_many_series_keep_looks_of_their_own():
    many = looks([str(i) for i in range(40)])
    assert len({(k.colour, k.shape) for k in many.values()}) == 40
    assert all(many[str(i)] == LOOKS[i] for i in range(len(LOOKS)))
