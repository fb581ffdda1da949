"""TREC runs are measured as trec_eval measures them; pytrec_eval is the oracle."""

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.data.trec import join_runs
from cleanrank.errors import BadFileError, InvalidInputError
from cleanrank.metrics.measure import as_measures
from cleanrank.types import Run

pytrec_eval = pytest.importorskip("pytrec_eval")

CUTOFFS = (1, 2, 3, 5, 7, 10, 25, 100, 1000)
FAMILIES = ("ndcg_cut", "map_cut", "P", "recall", "success")
PLAIN = ("ndcg", "map", "recip_rank", "Rprec", "bpref")
NAMES = [*PLAIN, *(f"{family}_{k}" for family in FAMILIES for k in CUTOFFS)]
MEASURES = as_measures(NAMES, "trec")


def random_collection(seed):
    """Judgements and runs as nested dictionaries: unjudged, missing and negative documents, ties."""
    rng = np.random.default_rng(seed)
    docs = [f"d{i}" if rng.random() < 0.8 else f"Ж{i}" for i in range(int(rng.integers(3, 60)))]
    topics = [f"{t}" for t in range(int(rng.integers(1, 8)))]

    def some(share):
        return rng.choice(docs, size=max(1, int(share * len(docs))), replace=False).tolist()

    lowest = -1 if rng.random() < 0.3 else 0
    qrels = {
        t: {d: int(g) for d, g in zip(some(rng.random()), rng.integers(lowest, 4, 99), strict=False)}
        for t in topics
    }
    for docs_of_topic in qrels.values():
        # pytrec_eval never returns where all grades are negative.
        first = next(iter(docs_of_topic))
        docs_of_topic[first] = max(docs_of_topic[first], 0)
    # Few different scores tie; those a hair apart tie as 32-bit floats alone.
    levels = rng.normal(size=int(rng.integers(1, 20))) * 10.0 ** rng.integers(-3, 8)
    runs = {
        name: {
            t: {
                d: float(levels[rng.integers(len(levels))] * (1 + 1e-10 * rng.integers(2)))
                for d in some(rng.random())
            }
            for t in [*topics, "unjudged"]
            if rng.random() < 0.9 or t == "0"
        }
        for name in ("a", "b", "c")
    }
    return qrels, runs


def write(folder, qrels, runs):
    lines = [f"{t} 0 {d} {g}\n" for t, docs in qrels.items() for d, g in docs.items()]
    (folder / "qrels").write_text("".join(lines))
    for name, run in runs.items():
        lines = [f"{t} Q0 {d} 0 {s!r} {name}\n" for t, docs in run.items() for d, s in docs.items()]
        (folder / name).write_text("".join(lines))


def expected(qrels, run, names):
    """(names, topics): what pytrec_eval says, 0 for topics that the run lacks."""
    cuts = ",".join(map(str, CUTOFFS))
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {*PLAIN, *(f"{family}.{cuts}" for family in FAMILIES)})
    theirs = evaluator.evaluate(run)
    return np.array([[theirs[t][name] if t in theirs else 0.0 for t in qrels] for name in names])


def test_figures_are_those_of_trec_eval_at_every_cutoff_whatever_else_is_compared(tmp_path):
    for seed in range(200):
        qrels, runs = random_collection(seed)
        write(tmp_path, qrels, runs)
        judgements = cr.read_qrels(tmp_path / "qrels")
        read = [cr.read_run(tmp_path / name) for name in runs]
        joined = join_runs(judgements, read)
        assert joined.data.query_ids.tolist() == judgements.query_ids.tolist() == list(qrels)
        for run, scores in zip(runs.values(), joined.scores, strict=True):
            values = cr.evaluate(scores, joined.data, MEASURES).by_query
            np.testing.assert_allclose(
                values, expected(qrels, run, NAMES), rtol=0, atol=1e-9, err_msg=f"{seed}"
            )
        alone = cr.evaluate(read[-1], judgements, NAMES)
        np.testing.assert_array_equal(alone.by_query, values)
        assert alone.measures == MEASURES


def test_only_topics_that_every_run_has_on_demand(tmp_path):
    qrels, runs = next(c for c in map(random_collection, range(99)) if len(c[0]) > 3 and "1" in c[1]["a"])
    runs["a"].pop("0")
    write(tmp_path, qrels, runs)
    judgements, read = cr.read_qrels(tmp_path / "qrels"), [cr.read_run(tmp_path / name) for name in runs]
    joined = join_runs(judgements, read, topics="shared")
    kept = [t for t in qrels if all(t in run for run in runs.values())]
    assert joined.data.query_ids.tolist() == kept
    assert set(joined.left_out) == set(qrels) - set(kept)
    values = cr.evaluate(joined.scores[1], joined.data, MEASURES).by_query
    np.testing.assert_allclose(
        values, expected({t: qrels[t] for t in kept}, runs["b"], NAMES), rtol=0, atol=1e-9
    )


def deep_collection(seed=0):
    """60 topics with 80 judged of 300 documents, and a run of 100 documents each."""
    rng = np.random.default_rng(seed)
    qrels, run = {}, {}
    for topic in range(60):
        true = rng.choice([0, 0, 0, 1, 2], 300)
        judged = rng.choice(300, 80, replace=False)
        score = true + rng.normal(scale=1.5, size=300)
        qrels[f"{topic}"] = {f"d{d:03d}": int(true[d]) for d in judged}
        run[f"{topic}"] = {f"d{d:03d}": float(score[d]) for d in np.argsort(-score)[:100]}
    return qrels, run


def test_a_shallow_run_and_a_run_of_nothing_judged_get_what_they_found(tmp_path):
    """Finding A1: the first 20 of 100 documents, and one unjudged document a topic."""
    qrels, run = deep_collection()
    shallow = {t: dict(sorted(docs.items(), key=lambda x: -x[1])[:20]) for t, docs in run.items()}
    nothing = {t: {"unknown": 1.0} for t in run}
    write(tmp_path, qrels, {"deep": run, "shallow": shallow, "nothing": nothing})
    judgements = cr.read_qrels(tmp_path / "qrels")
    read = {name: cr.read_run(tmp_path / name) for name in ("deep", "shallow", "nothing")}
    names = ["recall_100", "map", "ndcg_cut_100", "recip_rank"]
    together = cr.compare(read, judgements, names)
    for s, system in enumerate((run, shallow, nothing)):
        np.testing.assert_allclose(together.means[s], expected(qrels, system, names).mean(axis=1), atol=1e-9)
    recall = together.means[:, 0]
    assert recall[1] < 0.5 < recall[0] < 1
    assert together.means[2].tolist() == [0, 0, 0, 0]


def test_measures_of_other_conventions_find_nothing_either(tmp_path):
    write(tmp_path, {"1": {"a": 2, "b": 1, "c": 0}}, {"run": {"1": {"c": 3.0, "a": 2.0, "x": 1.0}}})
    judgements, run = cr.read_qrels(tmp_path / "qrels"), cr.read_run(tmp_path / "run")
    result = cr.evaluate(
        run, judgements, ["ndcg:lightgbm", "recall:lightgbm", "precision:lightgbm", "map", "err:skip"]
    )
    gain, ideal = 3 / np.log2(3), 3 + 1 / np.log2(3)
    stop = 3 / 16 / 2
    np.testing.assert_allclose(result.by_query[:, 0], [gain / ideal, 1 / 2, 1 / 3, 1 / 4, stop], atol=1e-12)
    assert result["map"] is not None
    assert "map" in result
    for name in ("auc", "pairacc", "tau"):
        with pytest.raises(
            InvalidInputError, match=r"score for every document; got 1 of 4 documents not retrieved"
        ):
            cr.evaluate(run, judgements, name)


def test_documents_that_come_twice_are_refused(tmp_path):
    write(tmp_path, {"1": {"a": 1}}, {})
    (tmp_path / "run").write_text("1 Q0 a 1 2 x\n2 Q0 a 1 2 x\n1 Q0 a 2 1 x\n")
    with pytest.raises(BadFileError, match="'1 a' of line 1 again"):
        cr.read_run(tmp_path / "run")


def test_ties_by_document_id_need_no_run():
    data = cr.from_arrays(np.zeros((3, 1)), [1, 0, 0], qid=[7, 7, 7], doc_ids=["b", "a", "c"])
    assert cr.evaluate([1.0, 1.0, 1.0], data, ["mrr:trec", "mrr"]).by_query[:, 0].tolist() == [0.5, 1.0]
    assert cr.evaluate([1.0, 1.0 + 1e-12, 0.0], data, "mrr:trec").by_query[0, 0] == 1.0
    plain = cr.from_arrays(np.zeros((2, 1)), [1, 0], qid=[7, 7])
    assert cr.evaluate([1.0, 1.0], plain, "mrr:trec").by_query[0, 0] == 0.5


def test_masked_scores_stand_for_documents_not_retrieved():
    data = cr.from_arrays(np.zeros((3, 1)), [1, 0, 2], qid=[7, 7, 7])
    scores = np.ma.masked_array([np.nan, 2.0, 1.0], mask=[True, False, False])
    result = cr.evaluate(scores, data, ["recall", "mrr", "ndcg@1:linear"])
    assert result.by_query[:, 0].tolist() == [0.5, 0.5, 0.0]
    with pytest.raises(InvalidInputError, match="finite; got nan at row 2"):
        cr.evaluate(np.ma.masked_array([0.0, 2.0, np.nan], mask=[True, False, False]), data)
    with pytest.raises(InvalidInputError, match=r"finite; got -inf at row 0"):
        cr.evaluate([-np.inf, 2.0, 1.0], data)
    none, nowhere = np.zeros(0, dtype="U1"), np.zeros(0, dtype=np.int64)
    run = Run(none, none, nowhere, nowhere, np.zeros(0))
    with pytest.raises(InvalidInputError, match="all be TREC runs or all be numbers"):
        cr.compare({"a": run, "b": [1, 2, 3]}, data)
