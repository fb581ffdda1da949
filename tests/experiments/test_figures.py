"""The files of published figures: complete, each figure once, and every mapping names what there is."""

import hashlib
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from cleanrank.errors import CleanrankError
from cleanrank.experiments.figures import Figure, all_figures, read_figures
from cleanrank.experiments.recipe import Recipe, find_recipe, read_recipe

COUNTS = {
    ("Marcuzzi et al. (2022)", "Tab. 2"): 57,
    ("Marcuzzi et al. (2022)", "Tab. 3"): 36,
    ("Marcuzzi et al. (2022)", "Tab. 4"): 92,
    ("Marcuzzi et al. (2022)", "Tab. 5"): 42,
    ("Marcuzzi et al. (2022)", "Tab. 6"): 19,
    ("Wu et al. (2022)", "Tab. 1"): 78,
    ("Wu et al. (2022)", "Tab. 2"): 64,
    ("Wu et al. (2022)", "Tab. 3"): 25,
    ("Wu et al. (2022)", "Tab. 4"): 12,
    ("Wu et al. (2022)", "Tab. 5"): 10,
    ("Wu et al. (2022)", "Tab. 6"): 64,
    ("Wu et al. (2022)", "Tab. 7"): 12,
    ("Wu et al. (2022)", "text"): 2,
    ("Niu et al. (2015)", "Tab. 1"): 15,
    ("Niu et al. (2014)", "Tab. 2"): 12,
    ("Niu et al. (2015)", "text"): 13,
    ("Haddad (2022)", "Fig. 1"): 6,
    ("Haddad (2022)", "Fig. 2"): 4,
    ("LETOR 3.0", "baselines"): 48,
    ("LETOR 4.0", "baselines"): 4,
}
# Of what the papers print, so that nobody changes a figure by the way; the mappings to recipes may change.
PRINTED = "2a7b70ae7064a8c105892d7c54a7efb3e0fd8cbf75541e7007d84242315c8a40"

read = cache(lambda name: read_recipe(find_recipe(name)))


def test_every_figure_of_every_table_is_there_once():
    assert Counter((f.source, f.table) for f in all_figures()) == COUNTS
    assert len({f.name for f in all_figures()}) == sum(COUNTS.values()) == 615


def test_the_papers_figures_stay_as_printed():
    printed = sorted([*f.name, f.expected, json.dumps(f.facts, sort_keys=True)] for f in all_figures())
    assert hashlib.sha256(json.dumps(printed).encode()).hexdigest() == PRINTED


def _lacks(figure: Figure, recipe: Recipe) -> list[str]:
    """What a mapping names that its recipe does not have."""
    folds = {fold for data in recipe.data if data.label == figure.dataset for fold in data.folds}
    levels = {(noise.profile, rate) for noise in recipe.noise for rate in noise.rates}
    clean = not figure.rate and (figure.rate == 0 or figure.noise is None)
    names = [
        (figure.dataset, {data.label for data in recipe.data}),
        *([] if figure.checks else [(figure.method, {method.label for method in recipe.methods})]),
        *([] if figure.checks else [(figure.measure, set(recipe.measures))]),
        *([] if clean or figure.checks else [((figure.noise, figure.rate), levels)]),
        *([] if figure.fold is None else [(figure.fold, folds)]),
    ]
    for check in figure.checks:
        for part in ({}, check.than):
            values = {n: getattr(check, n) or getattr(figure, n) for n in ("dataset", "method", "measure")}
            values |= {name: value for name, value in part.items() if name in values}
            names += [
                (values["dataset"], {data.label for data in recipe.data}),
                (values["method"], {method.label for method in recipe.methods}),
                (values["measure"], set(recipe.measures)),
            ]
    return [f"{name!r} of {recipe.name}" for name, known in names if name not in known]


def _mapped(figure: Figure) -> bool:
    return bool(figure.recipe) and (bool(figure.checks) or not isinstance(figure.value, str))


def test_every_mapping_names_a_recipe_a_data_set_a_method_and_a_measure():
    asked = [f for f in all_figures() if _mapped(f)]
    asked += [f.on(other) for f in all_figures() for other in f.stand_in]
    problems = [(f.name, lack) for f in asked for lack in _lacks(f, read(f.recipe))]
    assert not problems[:5]
    assert len(asked) > 400


def test_every_reference_is_a_row_of_the_same_table():
    rows = {(f.source, f.table, f.row) for f in all_figures()}
    assert all((f.source, f.table, f.reference) in rows for f in all_figures() if f.reference)


def test_every_erratum_is_one_of_the_page():
    page = (Path(__file__).parents[2] / "docs" / "errata.md").read_text(encoding="utf-8")
    errata = {f.erratum for f in all_figures() if f.erratum}
    assert errata <= set(re.findall(r"^### ([A-Z]\d+) ", page, re.M))


def test_numbers_reach_the_page_of_their_recipe():
    recipe = read("sour/table3-mslr-10")
    by_method = {f.method: f.value for f in recipe.published}
    assert (by_method["SOUR"], by_method["Peer-lambda-LGBM"]) == (0.5304, 0.5248)


def test_a_copy_with_other_labels_keeps_the_figures_that_fit(tmp_path):
    folder = tmp_path / "recipes" / "sour"
    folder.mkdir(parents=True)
    text = find_recipe("sour/table3-mslr-10").read_text(encoding="utf-8")
    (folder / "table3-mslr-10.toml").write_text(text.replace('label = "last-SOUR"', 'label = "last"'))
    copy = read_recipe(folder / "table3-mslr-10.toml")
    assert {f.method for f in copy.published} == {
        f.method for f in read("sour/table3-mslr-10").published if f.method != "last-SOUR"
    }


GROUP = """
[[group]]
source = "A"
table = "Tab. 1"
column = "NDCG"
recipe = "r"
dataset = "d"
measure = "ndcg"
figures = [{ row = "x", value = 0.5 }, { row = "y", value = 0.25, decimals = 2, relation = ">" }]
[[group.stand_in]]
recipe = "s"
dataset = "e"
methods = { x = "our x" }
why = "smaller"
"""


def test_figures_share_the_fields_of_their_group(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(GROUP)
    x, y = read_figures(path)
    assert (x.method, x.expected, y.expected, y.column) == ("x", "0.5000", ">0.25", "NDCG")
    there = x.on(x.stand_in[0])
    assert (there.recipe, there.dataset, there.method, there.measure, there.why) == (
        "s",
        "e",
        "our x",
        "ndcg",
        "smaller",
    )
    assert y.on(y.stand_in[0]).method == "y"
    assert x.published is not None
    assert x.published.source == "A, Tab. 1"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("decimals = 2", "digits = 2", "a.toml: group[0].figures[1]: unknown key 'digits'"),
        ("value = 0.25, ", "", "a.toml: group[0].figures[1].value must be given"),
        ('row = "y"', 'row = "x"', "must differ in source, table, row or column"),
        ('relation = ">"', 'relation = "more"', "a.toml: group[0].figures[1].relation"),
        ("value = 0.25", "value = [1]", "a.toml: group[0].figures[1].value must be"),
        ("[[group]]", "[[group", "a.toml must be valid TOML"),
    ],
)
def test_errors_name_the_file_the_group_and_the_key(tmp_path, old, new, words):
    path = tmp_path / "a.toml"
    path.write_text(GROUP.replace(old, new))
    with pytest.raises(CleanrankError) as caught:
        read_figures(path)
    assert words in str(caught.value)
