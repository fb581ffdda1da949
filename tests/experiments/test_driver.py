import dataclasses

import pytest

from cleanrank.errors import InvalidInputError, MissingDataError, UnknownNameError
from cleanrank.experiments.document import markdown_page
from cleanrank.experiments.driver import reproduce, write_run_report
from cleanrank.experiments.recipe import read_recipe
from tests.experiments.toys import write_small


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The small recipe, run once: (recipe file, store, what came of it)."""
    folder = tmp_path_factory.mktemp("ran")
    path = write_small(folder)
    return path, folder / "runs.sqlite", reproduce(path, store=folder / "runs.sqlite", jobs=2)


def test_records_come_in_the_order_of_the_cells(ran):
    _, _, found = ran
    assert [r.key for r in found.records] == [c.key for c in found.cells]
    assert all(
        r.cell == c.inputs and r.recipe == "toys/small"
        for r, c in zip(found.records, found.cells, strict=True)
    )
    assert found.failed == ()
    assert set(found.records[0].means) == {"ndcg@10", "map:letor"}


def test_what_is_stored_serves_other_recipes_under_their_labels(ran):
    path, store, _ = ran
    recipe = read_recipe(path)
    renamed = dataclasses.replace(recipe.methods[1], label="dice")
    other = dataclasses.replace(recipe, name="zoo", methods=(renamed,))  # not the first by name
    found = reproduce(other, store=store, only=["fold=2", "rate=0.3"])
    assert (found.tally.stored, found.tally.done) == (2, 0)
    assert [(r.recipe, r.cell["method"]) for r in found.records] == [("zoo", "dice")] * 2


def test_measures_that_no_result_has_are_not_shown(ran):
    _, _, found = ran
    known = list(found.recipe.show)
    assert {row.measure for row in found.summarise([*known, "ndcg@3"]).rows} == set(known)
    with pytest.raises(UnknownNameError, match="unknown measure 'ndcg@3'"):
        found.summarise(["ndcg@3"])


def test_quick_and_only_are_parts_of_the_whole(ran):
    path, store, whole = ran
    quick = reproduce(path, store=store, quick=True)
    assert (quick.tally.total, quick.tally.done) == (4, 0)
    assert {c.key for c in quick.cells} < {c.key for c in whole.cells}
    assert quick.command == "cleanrank reproduce recipes/toys/small.toml --quick"
    part = reproduce(path, store=store, only=["method=norm on"])
    assert part.command == "cleanrank reproduce recipes/toys/small.toml --only 'method=norm on'"
    with pytest.raises(InvalidInputError, match="must leave at least one cell"):
        reproduce(path, store=store, only=["seed=1", "seed=2"])


def test_data_sets_that_are_absent_are_left_out_with_a_note(ran, tmp_path, monkeypatch):
    path, store, whole = ran
    monkeypatch.setenv("CLEANRANK_DATA", str(tmp_path))
    more = tmp_path / "more.toml"
    td2003 = '[[data]]\nname = "td2003"\nlabel = "TD2003"\n\n[[noise]]'
    more.write_text(path.read_text().replace("[[noise]]", td2003))
    found = reproduce(more, store=store)
    assert [c.key for c in found.cells] == [c.key for c in whole.cells]
    assert found.tally.done == 0
    assert list(found.absent) == ["TD2003"]
    assert "td2003 is not on this machine. Looked for" in found.absent["TD2003"]
    assert "because not on the machine that ran this: TD2003." in markdown_page(found)
    assert "because not on" not in markdown_page(whole)
    with pytest.raises(MissingDataError, match="td2003 is not on this machine"):
        reproduce(more, store=store, only=["dataset=td2003"])


def test_a_failing_cell_fails_alone(ran, tmp_path):
    path, _, _ = ran
    bad = tmp_path / "bad.toml"
    bad.write_text(path.read_text().replace("rounds = 5", "rounds = 5, num_leaves = 1"))
    found = reproduce(bad, store=tmp_path / "runs.sqlite", only=["seed=1"], jobs=2)
    assert (found.tally.done, found.tally.failed) == (4, 4)
    assert {r.cell["method"] for r in found.failed} == {"norm on"}
    assert all(r.means == {} and "num_leaves" in r.error for r in found.failed)


def test_the_report_names_the_recipe(ran, tmp_path):
    _, _, found = ran
    write_run_report(found, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "A small grid" in text
    assert "cleanrank reproduce recipes/toys/small.toml" in text
