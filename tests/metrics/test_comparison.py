import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError, InvalidInputError
from cleanrank.metrics.comparison import compare
from cleanrank.metrics.evaluation import evaluate
from cleanrank.metrics.significance import bootstrap_interval, fisher_test, holm, paired_t_test


def test_a_comparison_is_made_of_the_single_figures(data, scores):
    measures = ["ndcg@10", "map:skip"]
    found = compare(scores, data, measures, baseline="b", seed=5, permutations=2000)
    alone = {name: evaluate(s, data, measures) for name, s in scores.items()}
    assert found.systems == ("a", "b", "c")
    p = {}
    for s, name in enumerate(found.systems):
        for m, text in enumerate(measures):
            assert found.means[s, m] == pytest.approx(alone[name].means[text])
            if name == "b":
                assert np.isnan(found.p_values[s, m])
                continue
            change = alone[name][text] - alone["b"][text]
            p[s, m] = fisher_test(alone[name][text], alone["b"][text], 2000, seed=5)
            assert found.p_values[s, m] == p[s, m]
            assert found.differences[s, m] == pytest.approx(np.nanmean(change))
            assert (found.low[s, m], found.high[s, m]) == pytest.approx(bootstrap_interval(change, seed=5))
            counts = [(change > 0).sum(), (change == 0).sum(), (change < 0).sum()]
            assert [found.wins[s, m], found.ties[s, m], found.losses[s, m]] == counts
    assert [found.corrected[key] for key in p] == pytest.approx(holm(list(p.values())).tolist())
    assert "baseline" in repr(found)
    assert len(found.rows()) == 6


def test_other_tests_and_corrections(data, scores):
    found = compare(scores, data, "ndcg@10", test="t", alternative="less", correction=None)
    assert found.baseline == "a"
    assert found.corrected is None
    values = {name: found.evaluations[name]["ndcg@10"] for name in scores}
    assert found.p_values[1, 0] == paired_t_test(values["b"], values["a"], "less")
    assert found.rows()[1]["p_corrected"] is None


def test_the_pooled_difference_is_tested_on_pair_sums(data, scores):
    found = compare({k: scores[k] for k in "ac"}, data, "auc:pooled", permutations=5000)
    a, c = (found.evaluations[k] for k in "ac")
    w = a.weights[0]
    assert found.differences[1, 0] == pytest.approx(c.means["auc:pooled"] - a.means["auc:pooled"])
    assert found.p_values[1, 0] == fisher_test(c["auc:pooled"] * w, a["auc:pooled"] * w, 5000)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"baseline": "z"}, "unknown system 'z'"),
        ({"test": "wilcoxon"}, "unknown test"),
        ({"alternative": "both"}, "unknown alternative"),
        ({"correction": "bonferroni"}, "unknown correction"),
        ({"measures": []}, "at least one measure"),
        ({"level": 2.0}, "level"),
    ],
)
def test_bad_comparisons_are_refused(data, scores, options, words):
    with pytest.raises(CleanrankError, match=words):
        compare(scores, data, **options)


def test_one_system_is_not_a_comparison(data, scores):
    with pytest.raises(InvalidInputError, match="at least two"):
        compare({"a": scores["a"]}, data)


def test_a_measure_that_one_system_leaves_undefined_is_refused(data, scores):
    with pytest.raises(InvalidInputError, match="tau:empty=zero"):
        compare({"a": scores["a"], "flat": np.zeros(200)}, data, "tau")
    compare({"a": scores["a"], "flat": np.zeros(200)}, data, "tau:empty=zero", permutations=100)


def test_systems_must_be_named(data, scores):
    for systems in (list(scores.values()), {1: scores["a"], 2: scores["b"]}):
        with pytest.raises(InvalidInputError, match="must map names"):
            compare(systems, data)


def test_whole_numbers_of_numpy_are_whole_numbers(data, scores):
    plain = compare(scores, data, permutations=1000, seed=3)
    other = compare(scores, data, permutations=1e3, seed=np.int64(3))
    np.testing.assert_array_equal(plain.p_values, other.p_values)
    for seed in (None, "3", 3.5):
        with pytest.raises(InvalidInputError, match="seed must be an integer"):
            compare(scores, data, seed=seed)


def test_measures_may_come_from_a_generator(data, scores):
    found = compare(scores, data, (name for name in ("ndcg@10", "mrr")), permutations=100)
    assert [str(m) for m in found.measures] == ["ndcg@10", "mrr"]
    assert found.means.shape == (3, 2)


def test_pooled_differences_are_weighed_in_the_test_too(data):
    """Queries of many pairs count for more: the p-value is not that of the plain values."""
    rng = np.random.default_rng(4)
    lengths = np.array([3, 40, 5, 30, 4, 50, 6, 20, 12, 30])
    y = rng.integers(0, 3, lengths.sum())
    uneven = cr.from_arrays(np.ones((len(y), 1)), y, group=lengths)
    systems = {name: y + rng.normal(0, spread, len(y)) for name, spread in (("a", 3.0), ("b", 3.5))}
    found = compare(systems, uneven, "auc:pooled", permutations=5000)
    a, b = (found.evaluations[name]["auc:pooled"] for name in "ab")
    w = found.evaluations["a"].weights[0]
    plain, weighed = fisher_test(b, a, 5000), fisher_test(b * w, a * w, 5000)
    assert found.p_values[1, 0] == weighed
    assert abs(plain - weighed) > 0.01


def test_measures_of_trec_runs_are_looked_up_as_trec_has_them(tmp_path):
    (tmp_path / "qrels.txt").write_text("1 0 a 2\n1 0 b 0\n2 0 a 0\n2 0 c 1\n")
    (tmp_path / "up").write_text("1 Q0 a 1 3 t\n2 Q0 c 1 3 t\n")
    (tmp_path / "down").write_text("1 Q0 b 1 3 t\n2 Q0 a 1 3 t\n")
    runs = {name: cr.read_run(tmp_path / name) for name in ("up", "down")}
    found = compare(runs, cr.read_qrels(tmp_path / "qrels.txt"), ["ndcg@10"], permutations=10)
    assert all(each.convention == "trec" for each in found.evaluations.values())
    assert found.evaluations["up"]["ndcg@10"].tolist() == [1.0, 1.0]


def test_queries_may_be_named_by_row_or_counted(data, scores):
    ids, order = np.repeat(np.arange(data.n_queries), data.lengths), {"order": "input"}
    by_id = compare(scores, data.X, ["map"], y=data.y, qid=ids, permutations=10, **order)
    by_size = compare(scores, data.X, ["map"], y=data.y, group=data.lengths, permutations=10, **order)
    np.testing.assert_array_equal(by_id.means, by_size.means)
    np.testing.assert_allclose(by_id.means, compare(scores, data, ["map"], permutations=10).means)
