import json

import pytest
from benchmarks.cards.strategies import (
    AUTO,
    CLEAN,
    MEASURE,
    NOISES,
    NOISY,
    Cell,
    cells_of,
    compare,
    comparison_table,
    read_store,
    run_cell,
    verdict,
)

STRATEGIES = (AUTO, "one", "other")
TINY = {"shape": "mslr", "n_queries": 40, "n_features": 4, "docs_per_query": 8.0, "test_queries": 20}


def invented(seeds, share):
    """Losses of .1 and .2 in turn; ``share`` has the shares of a noise's methods."""
    values = {}
    for seed in seeds:
        values[Cell("none", 0.0, CLEAN, seed)] = 0.8
        loss = 0.1 if seed % 2 else 0.2
        for noise, rate in NOISES:
            for method in (NOISY, *STRATEGIES):
                won = 0.0 if method == NOISY else share(noise, method)
                values[Cell(noise, rate, method, seed)] = 0.8 - loss + won * loss
    return values


def share(noise, method):
    if method == AUTO:
        return 0.6
    return 0.9 if (noise == "missed") == (method == "other") else 0.3


def test_shares_the_best_and_the_distance_to_it():
    comparison = compare(invented(range(1, 5), share), STRATEGIES)
    assert comparison.seeds == (1, 2, 3, 4)
    assert [s.best for s in comparison.settings] == ["one", "one", "other"]
    for setting in comparison.settings:
        assert setting.loss.value == pytest.approx(0.15)
        assert 0.099 < setting.loss.low < 0.15 < setting.loss.high < 0.201
        assert setting.shares[AUTO].value == pytest.approx(0.6)
        assert setting.below.value == pytest.approx(setting.below.low) == pytest.approx(0.3)
        assert setting.means[NOISY] == pytest.approx(0.65)
    assert comparison.below.value == pytest.approx(0.3)
    assert "auto is 0.30 [0.30, 0.30] of the loss below the best" in verdict(comparison)
    assert verdict(comparison).endswith("Losses below 0.02: none.")
    shown = comparison_table(comparison).markdown()
    assert "| share: one | 0.90 [0.90, 0.90] | 0.90 [0.90, 0.90] | 0.30 [0.30, 0.30] |" in shown
    assert json.loads(json.dumps(comparison.to_json()))["below"]["value"] == comparison.below.value


def test_seeds_that_are_not_whole_are_left_out():
    values = invented(range(1, 4), share)
    del values[Cell("missed", 0.6, AUTO, 2)]
    assert compare(values, STRATEGIES).seeds == (1, 3)
    del values[Cell("none", 0.0, CLEAN, 1)]
    assert compare(values, STRATEGIES) is None


def test_a_store_is_read_back_without_other_data_and_cut_lines(tmp_path):
    store = tmp_path / "store.jsonl"
    assert read_store(store, TINY) == {}
    cells = cells_of(STRATEGIES, [1])
    assert len(cells) == len(set(cells)) == 1 + len(NOISES) * 4
    lines = [
        {"noise": c.noise, "rate": c.rate, "method": c.method, "seed": 1, "data": TINY, MEASURE: 0.5}
        for c in cells
    ]
    other = {**lines[0], "data": {**TINY, "n_queries": 50}, "seed": 7}
    store.write_text("\n".join([*map(json.dumps, lines), json.dumps(other), '{"noise": "mis']))
    assert set(read_store(store, TINY)) == set(cells)


@pytest.mark.parametrize("method", [CLEAN, NOISY])
def test_a_cell_runs_and_repeats(method):
    cell = Cell("none", 0.0, method, 1) if method == CLEAN else Cell("missed", 0.6, method, 1)
    first, second = (run_cell(cell, TINY, {"n_estimators": 5}) for _ in range(2))
    assert 0 < first[MEASURE] == second[MEASURE] < 1
    assert json.loads(json.dumps(first))["method"] == method
