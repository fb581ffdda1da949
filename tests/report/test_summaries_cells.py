import pytest

from cleanrank.errors import InvalidInputError
from cleanrank.report.summaries import (
    Level,
    all_cells,
    by_cell,
    fold_and_seed,
    identity,
    plainly_clean,
)

from .grids import record


def test_levels_sort_by_kind_and_rate():
    levels = [Level("uniform", 0.2), Level(), Level("uniform", 0.1)]
    assert [v.label for v in sorted(levels)] == ["clean", "uniform 0.1", "uniform 0.2"]


@pytest.mark.parametrize(
    ("cell", "level"),
    [
        ({}, Level()),
        ({"noise": "none", "rate": 0.4}, Level()),  # no noise has no rate
        ({"noise": "pairs", "rate": None}, Level("pairs", 0.0)),
        ({"noise": "pairs", "rate": 0.3}, Level("pairs", 0.3)),
    ],
)
def test_level_of_a_cell(cell, level):
    assert identity({"dataset": "d", "method": "m", **cell})[1] == level


def test_a_cell_without_a_method_is_refused():
    with pytest.raises(InvalidInputError, match="'method'"):
        identity({"dataset": "d"})


def test_of_one_key_the_last_record_counts():
    first = record(values={"map": [0.1]}, status="failed")
    again = record(values={"map": [0.9]})
    assert list(by_cell([first, again]).values()) == [again]


def test_two_keys_for_one_cell_are_refused():
    with pytest.raises(InvalidInputError, match="different labels"):
        by_cell([record(key="a"), record(key="b")])


def test_without_a_plan_the_records_span_the_grid():
    found = by_cell(
        [
            record(fold=1, method="a"),
            record(fold=2, method="a"),
            record(fold=1, method="a", noise="uniform", rate=0.1),
            record(fold=1, method="b", dataset="other"),
        ]
    )
    cells = all_cells(found, None)
    assert len(cells) == 5
    assert set(cells) - set(found) == {("d", Level("uniform", 0.1), "2", "a", "0")}


def test_a_plan_decides_what_is_missing():
    found = by_cell([record(fold=1)])
    asked = [record(fold=1).cell, record(fold=7, method="never ran").cell]
    assert [c[2] for c in all_cells(found, asked)] == ["1", "7"]


def test_folds_sort_as_numbers():
    cells = [("d", Level(), fold, "m", "0") for fold in ("10", "9", "all", "1")]
    assert [c[2] for c in sorted(cells, key=fold_and_seed)] == ["1", "9", "10", "all"]


def test_rate_0_of_the_only_kind_of_noise_is_clean():
    found = by_cell([record(noise="uniform", rate=r) for r in (0.0, 0.1)])
    cells, records = plainly_clean(all_cells(found, None), found)
    assert [c[1].label for c in cells] == ["clean", "uniform 0.1"]
    assert list(records) == cells


@pytest.mark.parametrize("other", ["none", "pairs"])
def test_beside_other_kinds_rate_0_keeps_its_name(other):
    found = by_cell([record(noise=n, rate=0.0) for n in ("uniform", other)])
    cells, records = plainly_clean(all_cells(found, None), found)
    assert len(records) == 2
    assert {c[1].noise for c in cells} == {"uniform", other}
