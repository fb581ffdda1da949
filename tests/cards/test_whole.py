from benchmarks.cards.whole import ran_words, whole_part

from .test_recovery import MISSED, UNIFORM, cells

BOTH = {"noisy-trained": 0.5, "m": 0.6}


def block(fold, seed, methods=BOTH, **options):
    return cells(methods, folds=(fold,), seeds=(seed,), queries=5, **options)


def test_a_whole_grid_stays_whole():
    records = cells(BOTH, folds=(1, 2), seeds=(1, 2)) + cells(BOTH, level=MISSED, folds=(1,), seeds=(1,))
    part = whole_part(records)
    assert len(part.records) == len(records)
    assert part.left_out == 0
    assert ran_words(part.kept) == [
        ("A", "1, 2", "1, 2", "uniform 0.2"),
        ("A", "1", "1", "missed 0.3"),
    ]


def test_a_seed_that_was_begun_counts_only_where_that_leaves_more():
    first = [r for fold in (1, 2, 3) for r in block(fold, 1)]
    part = whole_part(first + block(1, 2))
    assert [(k.folds, k.seeds) for k in part.kept] == [(("1", "2", "3"), ("1",))]
    assert part.left_out == 2
    part = whole_part(first + block(1, 2) + block(2, 2))
    assert [(k.folds, k.seeds) for k in part.kept] == [(("1", "2"), ("1", "2"))]


def test_a_method_that_was_hardly_begun_does_not_keep_others_from_counting():
    records = [r for fold in (1, 2, 3) for r in block(fold, 1)] + block(1, 1, {"late": 0.7})
    part = whole_part(records)
    assert [(k.folds, k.seeds) for k in part.kept] == [(("1", "2", "3"), ("1",))]
    assert part.few == ("late",)
    assert (len(part.records), part.left_out) == (6, 1)


def test_data_sets_of_one_group_keep_the_same_folds():
    wide = [r for fold in (1, 2, 3) for r in block(fold, 1, dataset="x a")]
    narrow = [r for fold in (1, 2) for r in block(fold, 1, dataset="x b")]
    alone = [r for fold in (1, 2, 3) for r in block(fold, 1, dataset="y a")]
    part = whole_part(wide + narrow + alone, lambda name: name[0])
    assert [k.folds for k in part.kept] == [("1", "2"), ("1", "2"), ("1", "2", "3")]
    assert part.left_out == 2


def test_a_block_without_one_of_the_methods_does_not_count():
    records = block(1, 1) + block(2, 1, {"noisy-trained": 0.5}) + block(1, 1, {"m": 0.1}, level=MISSED)
    part = whole_part(records)
    assert [(k.place[1], k.folds) for k in part.kept] == [(UNIFORM, ("1",))]
    assert {r.cell["fold"] for r in part.records} == {1}
    assert part.left_out == 2
