import dataclasses

import numpy as np
import pytest

from cleanrank.experiments.cells import expand
from cleanrank.experiments.document import markdown_page
from cleanrank.experiments.driver import Reproduction, Tally
from cleanrank.experiments.recipe import read_recipe
from cleanrank.report.published import Published
from cleanrank.types import RunRecord
from tests.experiments.toys import RECIPE, write_small


@pytest.fixture
def found(small_recipe):
    recipe = read_recipe(small_recipe)
    cells = expand(recipe, lambda name, fold, options: "made up")
    rng = np.random.default_rng(1)
    records = []
    for cell in cells:
        values = {
            m: rng.random(6) * (0.5 if cell.inputs["method"] == "chance" else 1) for m in recipe.measures
        }
        means = {m: float(v.mean()) for m, v in values.items()}
        ids = np.arange(6)
        record = RunRecord(cell.key, recipe.name, cell.inputs, "done", values, means, ids, wall_seconds=30.0)
        records.append(record)
    return Reproduction(recipe, tuple(cells), tuple(records), Tally(16, done=16), recipe.command)


def test_the_page_holds_every_figure_and_its_conditions(found):
    text = markdown_page(found)
    assert text.startswith("# A small grid\n\n    cleanrank reproduce recipes/toys/small.toml\n")
    for rate in (0.0, 0.3):
        for method in ("norm on", "chance"):
            mine = [r for r in found.records if (r.cell["rate"], r.cell["method"]) == (rate, method)]
            assert f"| {np.mean([r.means['ndcg@10'] for r in mine]):.4f} " in text
    assert "## Convention letor: map:letor" in text
    assert "Noise: uniform, rates 0, 0.3, on the labels of train and validation data." in text
    assert "Cells: 16 of 16 done." in text
    assert "norm on: lambdarank (norm true, rounds 5," in text


def test_missing_cells_are_said(found):
    part = Reproduction(found.recipe, found.cells, found.records[1:], found.tally)
    assert "incomplete: 3 of 4 cells" in markdown_page(part)
    assert "15 of 16 done" in markdown_page(part)


def test_other_rankers_stand_apart(found):
    told = [
        Published("synthetic", m, k, v, "a table", context=True)
        for m, k, v in [("SVM", "ndcg@10", 0.5), ("SVM", "map:letor", 0.25), ("Boost", "map:letor", 0.75)]
    ]
    recipe = dataclasses.replace(found.recipe, published=tuple(told))
    text = markdown_page(dataclasses.replace(found, recipe=recipe))
    assert "| synthetic | SVM | 0.5000 | 0.2500 | a table |" in text
    assert "| synthetic | Boost | – | 0.7500 | a table |" in text
    assert "## Published figures\n" not in text


def test_published_figures_get_their_verdict(found):
    figure = Published("synthetic", "norm on", "ndcg@10", 0.999, "a table")
    recipe = dataclasses.replace(found.recipe, published=(figure,))
    text = markdown_page(dataclasses.replace(found, recipe=recipe))
    assert "| 0.999 |" in text.partition("## Published figures\n")[2]
    assert "differs" in text


def test_a_study_is_shown_in_its_own_words(tmp_path):
    study = '[[methods]]\nlabel = "labels"\nmethod = "label_noise"\n'
    text = RECIPE.split("[[methods]]")[0].replace('["ndcg@10", "map:letor"]', '["dnoise", "pnoise"]')
    path = write_small(tmp_path)
    path.write_text(text.replace('baseline = "norm on"\n', "") + study)
    recipe = read_recipe(path)
    cells = expand(recipe, lambda name, fold, options: "made up")
    records = [
        RunRecord(
            c.key,
            recipe.name,
            c.inputs,
            "done",
            v := {m: np.full(4, 0.25) for m in recipe.measures},
            {m: float(x.mean()) for m, x in v.items()},
            np.arange(4),
        )
        for c in cells
    ]
    page = markdown_page(Reproduction(recipe, tuple(cells), tuple(records), Tally(8, done=8), recipe.command))
    assert "## Measured: dnoise to pnoise" in page
    assert "dnoise: the share of training documents whose grade changed." in page
    assert "| 0.2500 " in page


def test_a_part_of_a_recipe_tells_of_that_part(found):
    part = [c for c in found.cells if (c.inputs["fold"], c.inputs["seed"]) == (2, 1)]
    records = tuple(r for r in found.records if r.key in {c.key for c in part})
    text = markdown_page(dataclasses.replace(found, cells=tuple(part), records=records))
    assert "Data: synthetic, folds 2." in text
    assert "Seeds: 1, averaged query by query" in text
    assert "Noise: uniform, rates 0, 0.3, on" in text


def test_the_noise_of_training_labels_is_told_and_explains_the_loss(found):
    two = []
    for cell, record in zip(found.cells, found.records, strict=True):
        for dataset, factor in (("a", 0.5), ("b", 1.5)):
            inputs = {**cell.inputs, "dataset": dataset}
            rate = inputs["rate"]
            chosen = {"train_dnoise": rate, "train_pnoise": rate * factor} if rate else {}
            cell_of = dataclasses.replace(cell, key=dataset + cell.key, inputs=inputs)
            values = {m: v * (1 - rate * factor) for m, v in record.values.items()}
            means = {m: float(v.mean()) for m, v in values.items()}
            record = dataclasses.replace(record, values=values, means=means)
            two.append((cell_of, dataclasses.replace(record, key=cell_of.key, cell=inputs, chosen=chosen)))
            if rate:
                more = {**inputs, "rate": 0.4}
                other = dataclasses.replace(cell, key="x" + cell_of.key, inputs=more)
                noted = {"train_dnoise": 0.4, "train_pnoise": 0.4 * factor}
                two.append((other, dataclasses.replace(record, key=other.key, cell=more, chosen=noted)))
    cells, records = zip(*two, strict=True)
    text = markdown_page(dataclasses.replace(found, cells=cells, records=records))
    assert "| a | uniform 0.3 | 0.3000 | 0.1500 | – | – |" in text
    assert "| norm on, ndcg@10 | 4 | 2 |" in text
    assert "Noise of the training labels" not in markdown_page(found)


def test_searched_words_are_listed_beside_numbers():
    from cleanrank.experiments.document import _settings

    assert "neg, pos" in _settings({"kind": ("neg", "pos"), "start": (0, 50)})


def test_options_of_options_are_listed_in_brackets():
    from cleanrank.experiments.document import _settings

    given = {"detector": "sour", "options": {"end": 9, "norm": True}, "given": [], "grade": -1}
    assert _settings(given) == "detector sour, options (end 9, norm true), grade -1"
