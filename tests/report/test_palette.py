import itertools

from cleanrank.report.palette import BASELINE, LOOKS, looks, many_looks


def luminance(colour):
    """Relative luminance of the WCAG."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    bright, dim = sorted((luminance(a), luminance(b)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def test_every_line_can_be_seen_on_its_paper():
    for look in (BASELINE, *LOOKS):
        assert contrast(look.light, "#ffffff") >= 3
        assert contrast(look.dark, "#14171c") >= 3


def test_markers_and_dashes_tell_looks_apart_without_colour():
    for a, b in itertools.combinations((BASELINE, *LOOKS), 2):
        assert a.marker != b.marker
        assert a.shape != b.shape


def test_a_method_keeps_its_look_whatever_the_baseline_is_called():
    assert looks(["x", "y", "z"], "x") == {"x": BASELINE, "y": LOOKS[0], "z": LOOKS[1]}
    assert looks(["x", "y"]) == {"x": LOOKS[0], "y": LOOKS[1]}


def test_more_methods_than_looks():
    assert len(looks([str(i) for i in range(20)])) == 20


def test_many_series_keep_looks_of_their_own():
    found = many_looks([str(i) for i in range(40)])
    assert len({(k.light, k.marker) for k in found.values()}) == 40
    assert all(found[str(i)] == LOOKS[i] for i in range(len(LOOKS)))
