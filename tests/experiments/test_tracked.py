"""Results that travel: what `runs export` writes is read back and fits the recipe."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from cleanrank.errors import BadFileError, MissingDataError
from cleanrank.experiments import tracked
from cleanrank.experiments.cells import expand, key_of
from cleanrank.experiments.document import markdown_page
from cleanrank.experiments.driver import left_out, reproduce
from cleanrank.experiments.recipe import Data, known_recipes, read_recipe
from cleanrank.experiments.results import Result, export, pack
from cleanrank.experiments.store import Store
from cleanrank.experiments.tracked import aligned, read_results, recall, to_travel, tracked_records
from cleanrank.report.summaries import summarise
from cleanrank.types import RunRecord


@pytest.fixture
def recipe(small_recipe):
    """A grid on data of files, which need not be on this machine."""
    recipe = read_recipe(small_recipe)
    return replace(recipe, data=(Data("mq2008", "MQ2008", (1, 2)),))


@pytest.fixture
def records(recipe):
    """A made-up result for every cell, as if the data's files had been hashed elsewhere."""
    rng = np.random.default_rng(3)
    made = []
    for cell in expand(recipe, lambda *data: f"elsewhere {data}"):
        values = {m: rng.random(7) for m in recipe.measures}
        means = {m: math.fsum(v) / 7 for m, v in values.items()}
        made.append(
            RunRecord(
                cell.key, recipe.name, cell.inputs, "done", values, means, np.arange(7),
                {"trees": 3}, versions={"numpy": "2"}, started_at="2026-01-01",
            )
        )  # fmt: skip
    return made


@pytest.mark.parametrize("values", [False, True])
def test_what_was_exported_is_read_back(tmp_path, records, values):
    export(records, tmp_path / "r.parquet", values=values)
    back = {r.key: r for r in read_results(tmp_path / "r.parquet")}
    assert set(back) == {r.key for r in records}
    for record in records:
        there = back[record.key]
        assert (there.cell, there.chosen, there.versions) == (record.cell, record.chosen, record.versions)
        for measure, mean in record.means.items():
            per_query = record.values[measure]
            assert there.means[measure] == pytest.approx(mean, rel=1e-6)
            assert there.query_se[measure] == pytest.approx(per_query.std(ddof=1) / math.sqrt(7))
            assert there.n_queries[measure] == 7
            if values:
                np.testing.assert_allclose(there.values[measure], per_query, rtol=1e-6)
            else:
                assert not there.values


def test_means_alone_give_the_same_means_and_almost_the_same_errors(tmp_path, records):
    export(records, tmp_path / "r.parquet")
    whole, alone = summarise(records), summarise(read_results(tmp_path / "r.parquet"))
    assert len(whole.rows) == len(alone.rows)
    for row in whole.rows:
        other = alone.find(row.dataset, row.level, row.method, row.measure)
        assert other.mean == pytest.approx(row.mean)
        assert other.n_queries == row.n_queries
        assert other.seed_sd == pytest.approx(row.seed_sd) if row.seed_sd is not None else not other.seed_sd
        assert other.low < other.mean < other.high


def test_a_recipe_recalls_results_whose_data_are_not_here(tmp_path, recipe, records):
    # the labels of a recipe may change after it ran
    renamed = [replace(r, cell={**r.cell, "method": "another label"}) for r in records]
    path = tmp_path / f"{recipe.name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    export(renamed, path)
    known = recall(recipe, folder=tmp_path)
    assert len(known.records) == len(known.cells) == len(records)
    assert {r.cell["method"] for r in known.records} == {m.label for m in recipe.methods}
    assert known.tracked == {r.key for r in records}
    for cell, record in zip(known.cells, known.records, strict=True):
        assert {**record.cell, "identity": ""} == {**cell.inputs, "identity": ""}


def test_results_of_another_version_do_not_count(tmp_path, recipe, records):
    path = tmp_path / f"{recipe.name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    export([replace(r, cell={**r.cell, "version": 99}) for r in records], path)
    assert recall(recipe, folder=tmp_path).records == ()


def test_a_failure_here_is_shown_where_no_result_travelled(tmp_path, recipe, records):
    path = tmp_path / f"{recipe.name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    export(records[:3], path)
    with Store(tmp_path / "runs.sqlite") as store:
        for r in (records[0], records[3]):
            store.add(r.key, recipe.name, r.cell, pack(Result("failed", error="late")))
        known = recall(recipe, store, tmp_path)
    assert [r.status for r in known.records] == ["done", "done", "done", "failed"]
    assert [r.key for r in known.records] == [r.key for r in records[:4]]


def of_version(records, version):
    """Records as an earlier version of their method would have left them."""
    cells = [{**r.cell, "version": version} for r in records]
    return [replace(r, cell=cell, key=key_of(cell)) for r, cell in zip(records, cells, strict=True)]


def test_results_of_an_earlier_version_stand_in_only_where_they_are_asked_for(tmp_path, recipe, records):
    path = tmp_path / f"{recipe.name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    earlier = of_version(records, 0)
    export([*earlier, *records[:3]], path)
    assert [r.key for r in recall(recipe, folder=tmp_path).records] == [r.key for r in records[:3]]
    known = recall(recipe, folder=tmp_path, older=True)
    assert [r.key for r in known.records] == [r.key for r in (*records[:3], *earlier[3:])]
    assert [r.cell["version"] for r in known.records[2:4]] == [records[2].cell["version"], 0]
    assert known.older == {r.key for r in earlier[3:]}


@pytest.fixture
def store_of(tmp_path, recipe):
    """A function that makes a store of some records."""

    def made(records):
        store = Store(tmp_path / "runs.sqlite")
        for r in records:
            result = Result("done", r.values, r.means, r.query_ids.tolist(), r.chosen, "", r.versions)
            store.add(r.key, recipe.name, r.cell, pack(result))
        return store

    return made


def test_a_file_that_travels_keeps_what_the_store_does_not_have(
    tmp_path, recipe, small_recipe, records, store_of, monkeypatch
):
    path = tmp_path / "there.parquet"
    gone = replace(records[0], cell={**records[0].cell, "seed": 99})
    old = of_version(records, 0)[5:8]
    export([*records[:2], *old, gone], path, values=True)
    there = read_results(path)
    again = replace(records[1], means=dict.fromkeys(recipe.measures, 0.5), values={})
    monkeypatch.setattr(tracked, "known_recipes", lambda: {recipe.name: small_recipe})
    monkeypatch.setattr(tracked, "read_recipe", lambda _: recipe)
    with store_of([again, *records[3:6]]) as store:
        merged = to_travel(recipe.name, store, there)
        alone = to_travel(recipe.name, store)
    place = {r.key[: tracked.SHORT]: n for n, r in enumerate(records)}
    # 2 was never there; of 5 the store has today's version, of 6 and 7 not; nothing asks for `gone`
    assert [place.get(r.key) for r in merged] == [0, 1, 3, 4, 5, None, None]
    assert [r.key for r in merged[-2:]] == [r.key[: tracked.SHORT] for r in old[1:]]
    assert merged[1].means == again.means
    assert [place[r.key] for r in alone] == [1, 3, 4, 5]
    export(merged, path, values=True)
    first = path.read_bytes()
    with store_of([]) as store:
        export(to_travel(recipe.name, store, read_results(path)), path, values=True)
    assert path.read_bytes() == first


def test_of_a_recipe_that_is_gone_all_results_travel(recipe, records, store_of):
    with store_of(records[:2]) as store:
        merged = to_travel(recipe.name, store, records[1:4])
    assert [r.key for r in merged] == [r.key[: tracked.SHORT] for r in (*records[1:4], records[0])]


def test_no_file_means_no_results(tmp_path):
    assert tracked_records("a/b", tmp_path) == []


def test_names_of_queries_are_dropped_only_where_origins_mix(records):
    assert all(r.query_ids is not None for r in aligned(records, ()))
    assert all(r.query_ids is None for r in aligned(records, {records[0].key}))


def test_a_damaged_or_foreign_file_is_refused_by_name(tmp_path, records):
    path = tmp_path / "r.parquet"
    export(records, path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(
        BadFileError, match=r"r\.parquet must be a table that .*export` wrote; got .*Write it again"
    ):
        read_results(path)
    pd.DataFrame({"a": [1]}).to_parquet(path)
    with pytest.raises(BadFileError, match=r"without the columns recipe, key.*Write it again"):
        read_results(path)
    export(records, path)
    pd.read_parquet(path).assign(params="{").to_parquet(path)
    with pytest.raises(BadFileError, match=r"r\.parquet must be a table that `cleanrank runs export` wrote"):
        read_results(path)


def test_reproduce_does_not_compute_what_travelled_unless_asked(tmp_path, small_recipe, monkeypatch):
    first = reproduce(small_recipe, store=tmp_path / "one.sqlite", jobs=1, only=["method=chance"])
    folder = tmp_path / "results"
    path = folder / f"{first.recipe.name}.parquet"
    path.parent.mkdir(parents=True)
    export(first.records, path, values=True)
    monkeypatch.setattr(tracked, "tracked_results", lambda: folder)
    options = {"jobs": 1, "only": ["method=chance"]}
    again = reproduce(small_recipe, store=tmp_path / "two.sqlite", **options)
    assert (again.tally.done, again.tally.stored) == (0, len(first.cells))
    for row, other in zip(first.summary.rows, again.summary.rows, strict=True):
        assert other.mean == pytest.approx(row.mean, abs=1e-7)
        assert other.query_se == pytest.approx(row.query_se, rel=1e-4)
    fresh = reproduce(small_recipe, store=tmp_path / "two.sqlite", recompute=True, **options)
    assert (fresh.tally.done, fresh.tally.stored) == (len(first.cells), 0)


def test_reproduce_shows_what_travelled_where_the_data_are_not_here(tmp_path, recipe, records, monkeypatch):
    monkeypatch.setenv("CLEANRANK_DATA", str(tmp_path))
    monkeypatch.setattr(tracked, "tracked_results", lambda: tmp_path)
    path = tmp_path / f"{recipe.name}.parquet"
    path.parent.mkdir(parents=True)
    export(records[1:], path, measures=recipe.show)
    absent = replace(recipe, data=(*recipe.data, Data("td2003", "TD2003", (1,))))
    run = reproduce(absent, store=tmp_path / "runs.sqlite", jobs=1)
    assert (run.tally.stored, run.tally.done, len(run.cells)) == (len(records) - 1, 0, len(records))
    assert [r.key for r in run.records] == [c.key for c in run.cells[1:]]
    assert [r.means[recipe.show[0]] for r in run.records] == pytest.approx(
        [r.means[recipe.show[0]] for r in records[1:]]
    )
    incomplete = {(row.level.label, row.method) for row in run.summary.rows if row.state != "complete"}
    assert incomplete == {(run.summary.levels[0].label, records[0].cell["method"])}
    n = len(records)
    words = f"Not on this machine, so shown as computed elsewhere: MQ2008 ({n - 1} of {n} cells)."
    assert left_out(run) == f"Left out, because not on the machine that ran this: TD2003. {words}"
    assert words in markdown_page(run)
    with pytest.raises(MissingDataError, match="td2003 is not on this machine"):
        reproduce(absent, store=tmp_path / "runs.sqlite", jobs=1, only=["dataset=td2003"])
    with pytest.raises(MissingDataError, match="mq2008 is not on this machine"):
        reproduce(recipe, store=tmp_path / "runs.sqlite", jobs=1, recompute=True)


@pytest.mark.parametrize("name", ["ctr/table3", "haddad/figure2-newsgroups", "judges/coverage", "niu/ties"])
def test_results_that_come_with_cleanrank_make_a_page_without_any_data(tmp_path, name, monkeypatch):
    monkeypatch.setenv("CLEANRANK_DATA", str(tmp_path))
    run = reproduce(name, store=tmp_path / "runs.sqlite", jobs=1)
    assert len(run.records) == sum(r.status == "done" for r in tracked_records(name))
    assert "Not on this machine, so shown as computed elsewhere" in markdown_page(run)


def size_of_values(file):
    parts = pq.ParquetFile(file).metadata.to_dict()["row_groups"]
    columns = [column for part in parts for column in part["columns"]]
    return sum(c["total_compressed_size"] for c in columns if c["path_in_schema"].startswith("values"))


def test_results_that_come_with_cleanrank_are_small_and_fit_their_recipes():
    files = sorted(tracked.tracked_results().rglob("*.parquet"))
    assert sum(file.stat().st_size for file in files) <= 8_000_000
    assert sum(map(size_of_values, files)) <= 5_000_000
    known = known_recipes()
    names = [file.relative_to(tracked.tracked_results()).with_suffix("").as_posix() for file in files]
    assert set(names) <= set(known)


def test_noise_of_training_labels_comes_back_to_where_it_was_noted(tmp_path, records):
    noted = [replace(r, chosen={"trees": 2, "train_dnoise": 0.125}) for r in records]
    export(noted, tmp_path / "r.parquet")
    assert all(r.chosen == noted[0].chosen for r in read_results(tmp_path / "r.parquet"))
