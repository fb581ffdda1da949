import pytest

from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.experiments.strict import Table, fits


def table(**values):
    return Table(values, "r.toml: data[1]", ["name", "folds", "rate", "on"])


def test_an_unknown_key_gives_its_place_and_the_closest():
    with pytest.raises(
        UnknownNameError, match=r"r\.toml: data\[1\]: unknown key 'fold'. Did you mean 'folds'"
    ):
        table(fold=1)


@pytest.mark.parametrize(
    ("value", "kind", "ok"),
    [
        (1, int, True),
        (1, float, True),
        (1.5, float, True),
        (1.0, int, False),
        (True, int, False),
        (True, float, False),
        (float("nan"), float, False),
        (float("inf"), float, False),
        (True, bool, True),
        (1, bool, False),
        ("1", int, False),
        ("a", str, True),
        ([1], list, True),
        ({}, dict, True),
    ],
)
def test_types_are_strict(value, kind, ok):
    assert fits(value, kind) is ok


def test_values_come_out_as_their_type():
    found = table(name="x", rate=1, folds=[1, 2])
    assert found.get("name", str) == "x"
    assert isinstance(found.get("rate", float), float)
    assert found.many("folds", int) == (1, 2)
    assert found.get("on", str, None) is None
    assert found.many("on", str, ("train",)) == ("train",)


@pytest.mark.parametrize(
    ("values", "take", "message"),
    [
        ({}, lambda t: t.get("name", str), r"r\.toml: data\[1\]\.name must be given \(text\); got nothing"),
        ({"name": 3}, lambda t: t.get("name", str), r"data\[1\]\.name must be text; got 3"),
        ({"folds": 1}, lambda t: t.many("folds", int), r"folds must be a list; got 1"),
        ({"folds": [1, "2"]}, lambda t: t.many("folds", int), r"folds\[1\] must be a whole number; got '2'"),
        ({"folds": []}, lambda t: t.many("folds", int), r"folds must list at least one"),
        ({"folds": [1, 1]}, lambda t: t.many("folds", int), r"folds must not repeat an entry; got 1"),
    ],
)
def test_mistakes_name_the_place_the_rule_and_the_value(values, take, message):
    with pytest.raises(InvalidInputError, match=message):
        take(table(**values))


def test_unknown_names_say_where():
    with pytest.raises(
        UnknownNameError, match=r"data\[1\]\.name: unknown colour 'gren'. Did you mean 'green'"
    ):
        table(name="gren").among("name", "colour", ["red", "green"])
