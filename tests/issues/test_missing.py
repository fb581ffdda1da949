import json
from dataclasses import replace

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.data.negatives import Mined, Negatives
from cleanrank.data.trec import read_qrels, write_qrels
from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.issues.features import systems_of
from cleanrank.issues.judged_evidence import PARTS, judged_evidence, rank_masses, text_vectors
from cleanrank.issues.missing import ToJudge, find_missing, with_candidates
from cleanrank.issues.table import average_precision

QUERIES, DOCS = 40, 30


@pytest.fixture(scope="module")
def collection():
    """Judgements, three runs of different quality, and the truth about every pair."""
    random = np.random.default_rng(0)
    truth, runs = {}, {"good": {}, "fair": {}, "poor": {}}
    for q in range(QUERIES):
        relevant = random.random(DOCS) < random.uniform(0.1, 0.5)
        truth[f"q{q}"] = {f"d{d}": int(relevant[d]) for d in range(DOCS)}
        for run, noise in zip(runs.values(), (0.6, 0.7, 2.0), strict=True):
            scores = relevant + noise * random.normal(size=DOCS)
            run[f"q{q}"] = {f"d{d}": float(scores[d]) for d in range(DOCS)}
    judged = {q: {d: g for d, g in grades.items() if random.random() < 0.6} for q, grades in truth.items()}
    return judged, runs, truth


def relevant_of(found, truth):
    pairs = zip(found.data.qid.tolist(), found.data.doc_ids.tolist(), strict=True)
    return np.array([truth[q][d] for q, d in pairs])


@pytest.fixture(scope="module")
def found(collection):
    judged, runs, _ = collection
    return find_missing(judged, runs=runs, unjudged="ignored")


def test_unjudged_pairs_are_ordered_better_than_by_the_best_run(collection, found):
    judged, runs, truth = collection
    labels, rows = relevant_of(found, truth), found.places()
    pairs = zip(found.data.qid[rows].tolist(), found.data.doc_ids[rows].tolist(), strict=True)
    best = average_precision(np.array([runs["good"][q][d] for q, d in pairs]), labels[rows] > 0)
    own = average_precision(-np.arange(len(rows), dtype=float), labels[rows] > 0)
    assert own > best > labels[rows].mean()
    assert len(found) == sum(len(truth[q]) - len(judged[q]) for q in truth)


def test_probabilities_of_pairs_left_out_at_random_are_right(collection, found):
    labels, rows = relevant_of(found, collection[2]), found.places()
    p = found.probability[rows]
    assert abs(p.mean() - labels[rows].mean()) < 0.04
    for low, high in ((0, 0.3), (0.3, 0.7), (0.7, 1)):
        inside = (p >= low) & (p < high)
        assert abs(p[inside].mean() - labels[rows][inside].mean()) < 0.1


def test_the_own_grade_is_not_in_the_evidence():
    random = np.random.default_rng(1)
    y = (random.random(600) < 0.3).astype(int)
    data = cr.from_arrays(np.zeros((600, 0)), y, qid=np.repeat(np.arange(20), 30))
    texts = [" ".join(map(str, random.choice(list("abcdef"), 3))) for _ in y]
    run = {q: dict(zip(range(30), random.random(30).tolist(), strict=True)) for q in range(20)}
    named = replace(data, doc_ids=np.tile(np.arange(30), 20).astype(str))
    options = {"vectors": text_vectors(texts), "masses": rank_masses(systems_of({"run": run}), named)}
    known = np.ones(600, dtype=bool)
    near = judged_evidence(named, y, known, **options)
    changed = y.copy()
    changed[7] = 1 - y[7]
    again = judged_evidence(named, changed, known, **options)
    part = np.random.default_rng(0).integers(PARTS, size=600)
    same = (part == part[7]) & (data.qid == data.qid[7])
    assert len(near) == 7
    for name in near:
        assert (near[name][same] == again[name][same]).all()
        if name not in ("judged:share", "judged:runs", "judged:scores"):  # these know the mean of the others
            assert (near[name][data.qid != data.qid[7]] == again[name][data.qid != data.qid[7]]).all()
        assert (near[name] != again[name]).any()


def test_hidden_positives_among_many_irrelevant_ones_need_the_unjudged_pairs(collection):
    # Nobody judged what is not relevant and low in the good run: judged pairs alone mislead.
    _, runs, truth = collection
    random = np.random.default_rng(2)
    judged, hidden = {}, set()
    for q, grades in truth.items():
        judged[q] = {d: g for d, g in grades.items() if g or runs["good"][q][d] > 0.5}
        hidden |= {(q, d) for d, g in judged[q].items() if g and random.random() < 0.3}
        judged[q] = {d: g for d, g in judged[q].items() if (q, d) not in hidden}
    precision = {}
    for unjudged in ("irrelevant", "ignored"):
        found = find_missing(judged, runs=runs, unjudged=unjudged)
        rows = found.places()
        pairs = zip(found.data.qid[rows].tolist(), found.data.doc_ids[rows].tolist(), strict=True)
        wanted = np.array([pair in hidden for pair in pairs])
        precision[unjudged] = average_precision(-np.arange(len(rows), dtype=float), wanted)
    assert precision["irrelevant"] > precision["ignored"]


def test_gold_rows_calibrate_and_are_not_open(collection):
    judged, runs, truth = collection
    few = {q: {d: g for d, g in each.items() if g or d < "d2"} for q, each in judged.items()}
    random = np.random.default_rng(3)
    gold = {
        (q, d): g for q, each in truth.items() for d, g in each.items()
        if d not in few[q] and random.random() < 0.3
    }  # fmt: skip
    without = find_missing(few, runs=runs)
    found = find_missing(few, runs=runs, gold=gold)
    assert (found.calibrated_on, found.n_calibration) == ("gold", len(gold))
    assert len(found) == len(without) - len(gold)
    labels = relevant_of(found, truth)
    rows = found.is_open
    assert abs(found.expected - labels[rows].sum()) < 0.35 * labels[rows].sum()
    assert abs(found.expected - labels[rows].sum()) < abs(
        without.probability[rows].sum() - labels[rows].sum()
    )


def test_a_plan_adds_up(found):
    p = np.sort(found.probability[found.is_open])[::-1]
    plan = found.plan((0.8,), threshold=0.5)
    n = int((p >= 0.5).sum())
    assert any(each.rows == n for each in plan)
    for each in plan:
        assert each == ToJudge(
            each.rows, each.rows / len(p), pytest.approx(p[each.rows - 1]),
            pytest.approx(p[: each.rows].sum()), pytest.approx(p[: each.rows].sum() / p.sum()),
            pytest.approx(p[: each.rows].mean()),
        )  # fmt: skip
    n = found.effort(0.8)
    assert p[:n].sum() >= 0.8 * p.sum() - 1e-6 > p[: n - 1].sum() - 1e-6


def test_a_plan_where_no_pair_is_expected_to_be_relevant(found):
    none = replace(found, probability=np.zeros(len(found.probability)))
    (step,) = none.plan((0.8,))
    assert (none.expected, step.rows, step.expected, step.found, step.each) == (0.0, 1, 0.0, 0.0, 0.0)


def test_the_pool_as_judgements_keeps_row_ids(found, tmp_path):
    write_qrels(found.pool, tmp_path / "pool.qrels")
    again = read_qrels(tmp_path / "pool.qrels")
    assert again.doc_ids.tolist() == found.pool.doc_ids.tolist()
    assert again.row_ids.tolist() == found.pool.row_ids.tolist()
    assert again.judged.tolist() == found.pool.judged.tolist()
    sheet = found.sheet(5)
    assert again.doc_ids[sheet.row_ids].tolist() == sheet.doc_ids.tolist()
    assert not again.judged[sheet.row_ids].any()


def test_candidates_come_from_runs_tables_and_negative_grades():
    judged = cr.from_arrays(np.zeros((1, 0)), [1], qid=["q"], doc_ids=["a"])
    texts = {"query_id": ["q", "other"], "doc_id": ["t", "x"], "text": ["one", "two"]}
    data = with_candidates(judged, {}, texts=texts, judges={"llm": {"q": {"j": 1}}})
    assert dict(zip(data.doc_ids.tolist(), data.judged.tolist(), strict=True)) == {
        "a": True, "t": False, "j": False
    }  # fmt: skip


def test_depth_cuts_the_runs(collection):
    judged, runs, _ = collection
    few = {q: dict(list(each.items())[:6]) for q, each in judged.items()}
    assert len(find_missing(few, runs=runs, depth=3)) < len(find_missing(few, runs=runs, depth=10))


def test_pairs_without_a_text_are_left_out():
    judged, texts = {}, {"query_id": [], "doc_id": [], "query": [], "text": []}
    for q in range(12):
        judged[f"q{q}"] = {"a": 1, "b": 0, "c": 0}
        for doc, text in (("a", f"w{q} x"), ("b", "y y"), ("c", "z"), ("d", f"w{q}")):
            for name, cell in zip(texts, (f"q{q}", doc, f"w{q}", text), strict=True):
                texts[name].append(cell)
    run = {q: {"a": 3.0, "d": 2.0, "e": 1.0} for q in judged}
    found = find_missing(judged, runs={"run": run}, texts=texts)
    assert (len(found), found.left_out, set(found.to_frame().doc_id)) == (12, 12, {"d"})
    assert found.to_frame().text.tolist()[0].startswith("w")


def test_texts_come_from_a_beir_folder(tmp_path):
    judged = {f"q{q}": {"a": 1, "b": 0} for q in range(12)}
    for name, ids in (("queries", judged), ("corpus", "abcx")):
        lines = [json.dumps({"_id": each, "text": f"words of {each}"}) for each in ids]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    run = {q: {"a": 3.0, "c": 2.0, "e": 1.0} for q in judged}
    found = find_missing(judged, runs={"run": run}, texts=tmp_path, folds=2)
    assert (len(found), found.left_out, set(found.to_frame().doc_id)) == (12, 12, {"c"})


def test_where_all_judged_pairs_are_relevant_their_number_does_not_tell_which_they_are():
    # Every query has one relevant pair or two: texts and runs that mean nothing must not order pairs.
    random = np.random.default_rng(6)
    judged = {f"q{q}": dict.fromkeys(["d0", "d1"][: 1 + q % 2], 1) for q in range(60)}
    run = {q: {f"d{d}": float(random.random()) for d in range(12)} for q in judged}
    rows = [(q, f"d{d}") for q in judged for d in range(12)]
    words = [" ".join(map(str, random.choice(list("abcdefgh"), 4))) for _ in rows]
    texts = {
        "query_id": [q for q, _ in rows],
        "doc_id": [d for _, d in rows],
        "text": words,
        "query": ["a b"] * 720,
    }
    found = find_missing(judged, runs={"run": run}, texts=texts)
    score, is_relevant = found.score, ~found.is_open
    assert average_precision(score, is_relevant) < 2 * is_relevant.mean()
    assert score[is_relevant].mean() == pytest.approx(score[~is_relevant].mean(), rel=0.3)


def test_mined_negatives_that_look_like_positives_come_first():
    random = np.random.default_rng(5)
    words = [f"w{n}" for n in range(300)]
    lines, false = [], set()
    for _ in range(60):
        topic = [str(w) for w in random.choice(words, 6, replace=False)]
        positives = tuple(
            " ".join([*random.permutation(topic)[:4], str(random.choice(words))]) for _ in range(2)
        )
        negatives = [" ".join(map(str, random.choice(words, 5, replace=False))) for _ in range(5)]
        negatives[0] = " ".join([*random.permutation(topic)[:4], "other"])
        false.add((" ".join(topic[:2]), negatives[0]))
        lines.append(Mined(" ".join(topic[:2]), positives, tuple(negatives)))
    found = find_missing(Negatives(tuple(lines), "lists").data)
    assert found.calibrated_on == "nothing"
    frame = found.to_frame(60)
    hits = [pair in false for pair in zip(frame["query"], frame.text, strict=True)]
    assert np.mean(hits) > 0.7


def test_wrong_input_is_refused(collection):
    judged, runs, _ = collection
    flipped = {q: {d: 1 - g for d, g in each.items()} for q, each in judged.items()}
    doc = next(d for d in runs["good"]["q0"] if d not in judged["q0"])
    with pytest.raises(InvalidInputError, match="unjudged pairs must be there"):
        find_missing(judged, judges={"llm": flipped})
    with pytest.raises(InvalidInputError, match="must hold pairs of grade 3 or more"):
        find_missing(judged, runs=runs, relevant=3)
    with pytest.raises(UnknownNameError, match="unjudged"):
        find_missing(judged, runs=runs, unjudged="no")
    positives = {q: {d: g for d, g in each.items() if g} for q, each in judged.items()}
    with pytest.raises(InvalidInputError, match="must be 'irrelevant'"):
        find_missing({q: each for q, each in positives.items() if each}, runs=runs, unjudged="ignored")
    with pytest.raises(InvalidInputError, match="all alike"):
        find_missing(judged, runs=runs, gold={("q0", doc): 1})


def test_it_is_said_where_the_evidence_tells_who_was_judged(collection):
    # Judged is what the good run has in its first third, and nothing else.
    _, runs, truth = collection
    pooled = {q: sorted(each, key=each.get, reverse=True)[: DOCS // 3] for q, each in runs["good"].items()}
    judged = {q: {d: truth[q][d] for d in docs} for q, docs in pooled.items()}
    found = find_missing(judged, runs={"good": runs["good"]})
    assert found.overlap < 0.5
    assert "say nothing" in found.statement
    assert "say nothing" not in find_missing(judged, runs=runs, unjudged="ignored").statement
