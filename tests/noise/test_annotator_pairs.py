"""pNoise of annotators against a loop over all pairs, the floors of finer scales, and who is dropped."""

import statistics
from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.labeling.tasks import TopKTask, ask, label_judge
from cleanrank.noise.annotator_pairs import annotator_pairs, filter_annotators, reference_grades
from cleanrank.noise.judgement_table import read_judgements
from cleanrank.planning.judges import top_k_floor


def crowd(seed, rates, queries=12, documents=8, known=0.0, lowest=0, seen=0.8):
    """A long table: people who guess at their rate, some documents each, true grades of some documents."""
    rng = np.random.default_rng(seed)
    n = queries * documents
    truth = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    parts = []
    for name, rate in rates.items():
        said = np.where(rng.random(n) < rate, rng.integers(0, 3, n), truth)
        keys = {"query": np.arange(n) // documents, "doc": np.arange(n) % documents}
        frame = pd.DataFrame({**keys, "annotator": name, "grade": said + lowest})
        parts.append(frame.assign(truth=truth + lowest)[rng.random(n) < seen])
    table = pd.concat(parts)
    hidden = rng.random(n) >= known
    return table.assign(
        truth=table["truth"].astype("Int64").mask(hidden[table["query"] * documents + table["doc"]])
    )


def by_loop(table, reference):
    """Name -> query -> (correct, inverse, new-come), pair by pair."""
    counts = {}
    for (name, query), rows in table.groupby(["annotator", "query"]):
        said = [(reference(name, query, row.doc), row.grade) for row in rows.itertuples()]
        for (r, g), (s, h) in combinations([pair for pair in said if pair[0] is not None], 2):
            if g != h:
                kind = 2 if r == s else int((r > s) != (g > h))
                counts.setdefault(name, {}).setdefault(query, [0, 0, 0])[kind] += 1
    return counts


def majority(table):
    votes = {
        key: rows.set_index("annotator")["grade"].to_dict() for key, rows in table.groupby(["query", "doc"])
    }

    def reference(name, query, doc):
        others = Counter(grade for who, grade in votes[query, doc].items() if who != name).most_common()
        clear = others and (len(others) == 1 or others[0][1] > others[1][1])
        return others[0][0] if clear else None

    return reference


def wrong_orders(table, reference):
    """Name -> share of the pairs of different reference grades in the wrong order, ties one half."""
    wrong = {}
    for (name, query), rows in table.groupby(["annotator", "query"]):
        said = [(reference(name, query, row.doc), row.grade) for row in rows.itertuples()]
        for (r, g), (s, h) in combinations([pair for pair in said if pair[0] is not None], 2):
            if r != s:
                wrong.setdefault(name, []).append(0.5 if g == h else float((r > s) != (g > h)))
    return {name: np.mean(each) for name, each in wrong.items()}


RATES = {"ann": 0.1, "bob": 0.3, "cy": 0.5, "dee": 1.0}


@pytest.mark.parametrize("lowest", [0, 1])
@pytest.mark.parametrize("against", ["gold", "majority", "both"])
def test_pairs_are_those_of_a_loop(against, lowest):
    table = crowd(3, RATES, known=0.5, lowest=lowest)
    truth = {(row.query, row.doc): row.truth for row in table.itertuples() if row.truth is not pd.NA}
    others = majority(table)
    rules = {
        "gold": lambda name, query, doc: truth.get((query, doc)),
        "majority": others,
        "both": lambda name, query, doc: truth.get((query, doc), others(name, query, doc)),
    }
    expected = by_loop(table, rules[against])
    people = annotator_pairs(read_judgements(table), against=against, draws=10)
    assert {each.name for each in people} == set(RATES)
    orders = wrong_orders(table, rules[against])
    for each in people:
        assert each.wrong_order == pytest.approx(orders[each.name])
        counts = np.array(list(expected[each.name].values()))
        assert each.queries == len(counts)
        assert each.pairs == counts.sum()
        assert each.pnoise == pytest.approx((counts[:, 1].sum() + counts[:, 2].sum() / 2) / counts.sum())
        assert each.floor == 0
        assert each.corrected == each.pnoise
        assert each.gold_items == sum(
            (row.query, row.doc) in truth for row in table[table["annotator"] == each.name].itertuples()
        )
    assert [each.corrected for each in people] == sorted((each.corrected for each in people), reverse=True)


def test_gold_alone_where_there_is_enough_of_it():
    few, many = (read_judgements(crowd(5, RATES, known=share)) for share in (0.05, 0.9))
    assert (reference_grades(few) == reference_grades(few, "both")).all()
    assert (reference_grades(many) == reference_grades(many, "gold")).all()
    assert (reference_grades(many) < 0).any()
    assert (reference_grades(few, "majority") != reference_grades(few, "both")).any()


def test_intervals_are_those_of_resampled_queries():
    table = crowd(7, RATES, queries=30, known=1.0)
    judged = read_judgements(table)
    truth = {(row.query, row.doc): row.truth for row in table.itertuples()}
    counts = by_loop(table, lambda name, query, doc: truth[query, doc])
    rng = np.random.default_rng(0)
    for each in annotator_pairs(judged, draws=4000, level=0.9):
        own = np.array(list(counts[each.name].values()))
        drawn = own[rng.integers(0, len(own), (4000, len(own)))].sum(axis=1)
        values = (drawn[:, 1] + drawn[:, 2] / 2) / drawn.sum(axis=1)
        # 1.699: Student's t of 29 degrees of freedom
        ends = [statistics.NormalDist().cdf(side * 1.699 * (30 / 29) ** 0.5) for side in (-1, 1)]
        assert each.pnoise_interval == pytest.approx(np.quantile(values, ends), abs=0.01)
    again, other = annotator_pairs(judged, seed=0), annotator_pairs(judged, seed=1)
    assert again == annotator_pairs(judged, seed=0)
    assert again != other


@pytest.mark.parametrize("relevant", [1, 2, 5, 10])
def test_the_floor_of_a_perfect_ranking_of_the_best_ten(relevant):
    rows = []
    for query in range(6):
        grades = np.random.default_rng(query).permutation((np.arange(50) < relevant).astype(int))
        task = ask(TopKTask(50, k=10, ties=False), label_judge(grades, ties=False, seed=query))
        ranks = np.zeros(50, dtype=int)
        ranks[list(task.best)] = np.arange(10, 0, -1)
        rows += [(query, d, "perfect", ranks[d], grades[d]) for d in range(50)]
        rows += [(query, d, "graded", grades[d], grades[d]) for d in range(50)]
    judged = read_judgements(pd.DataFrame(rows, columns=["query", "doc", "annotator", "grade", "truth"]))
    perfect, graded = annotator_pairs(judged, against="gold")
    if perfect.name == "graded":
        perfect, graded = graded, perfect
    assert perfect.pnoise == pytest.approx(top_k_floor(50, 10, relevant))
    assert perfect.floor == pytest.approx(perfect.pnoise)
    assert perfect.corrected == pytest.approx(0)
    assert perfect.excess == pytest.approx(0)
    assert (graded.pnoise, graded.floor) == (0, 0)


def test_a_finer_scale_is_not_held_against_people_and_guessing_stays_a_half():
    rng = np.random.default_rng(2)
    n = 2000
    fine = rng.choice(5, n)
    coarse = (fine > 2).astype(int)
    said = {"coarse": coarse, "fine": fine, "guesses": rng.permutation(fine)}
    table = {"query": np.arange(n) // 20, "doc": np.arange(n), "truth": coarse, **said}
    people = {each.name: each for each in annotator_pairs(read_judgements(table))}
    assert people["fine"].pnoise > 0.2
    assert people["fine"].corrected == pytest.approx(0, abs=1e-12)
    assert people["coarse"].corrected == 0
    assert people["guesses"].corrected == pytest.approx(0.5, abs=0.03)
    assert people["guesses"].wrong_order == pytest.approx(0.5, abs=0.03)
    assert people["fine"].wrong_order == people["coarse"].wrong_order == 0
    assert people["guesses"].excess < 0.3  # why thresholds apply to the corrected value


def test_who_is_dropped_and_why():
    people = annotator_pairs(read_judgements(crowd(1, RATES, queries=40, known=1.0)))
    filtered = filter_annotators(people, above=0.4)
    assert filtered.kept == ("ann", "bob", "cy")
    (why,) = filtered.dropped.values()
    assert why.endswith("is above 0.4")
    assert filter_annotators(people, above=0.5).dropped == {}
    best = filter_annotators(people, keep=2)
    assert best.kept == ("ann", "bob")
    assert list(best.dropped) == ["cy", "dee"]
    assert filter_annotators(people, keep=9).dropped == {}


def test_few_queries_or_no_pairs_give_no_interval_and_drop_nobody():
    table = crowd(1, {"ann": 0.0, "bob": 1.0}, queries=4, known=1.0)
    table.loc[table["annotator"] == "ann", "grade"] = 1
    people = annotator_pairs(read_judgements(table), against="gold")
    bob, ann = people
    assert bob.pairs > 0
    assert np.isnan(bob.pnoise_interval).all()
    assert np.isnan(ann.pnoise)
    assert ann.pairs == 0
    assert filter_annotators(people, above=0.0).dropped == {}
    assert "no pair tells" in filter_annotators(people, keep=1).dropped["ann"]


def test_who_has_no_interval_comes_last_and_is_the_first_to_go():
    table = crowd(1, {**RATES, "new": 0.0, "odd": 1.0}, queries=40, known=1.0)
    few = table["annotator"].isin(["new", "odd"]) & (table["query"] >= 4)
    people = annotator_pairs(read_judgements(table[~few]))
    assert [each.name for each in people] == ["dee", "cy", "bob", "ann", "odd", "new"]
    assert [each.is_unsure for each in people] == [False] * 4 + [True] * 2
    assert people[-1].corrected == 0
    assert filter_annotators(people, keep=4).kept == ("ann", "bob", "cy", "dee")
    assert filter_annotators(people, keep=5).dropped.keys() == {"odd"}


def test_wrong_calls_say_what_is_wrong():
    items = read_judgements({"item": [1, 2], "ann": [0, 1], "bob": [0, 1]})
    with pytest.raises(InvalidInputError, match=r"needs the query of every item; got none. Give the columns"):
        annotator_pairs(items)
    with pytest.raises(InvalidInputError, match="needs items whose true grade is known"):
        reference_grades(items, "gold")
    with pytest.raises(UnknownNameError, match="unknown reference of annotators 'truth'"):
        reference_grades(items, "truth")
    with pytest.raises(InvalidInputError, match="needs either above or keep; got neither"):
        filter_annotators([])
    with pytest.raises(InvalidInputError, match="needs either above or keep; got both"):
        filter_annotators([], above=0.4, keep=0)
    with pytest.raises(InvalidInputError, match="needs either above or keep; got both"):
        filter_annotators([], above=0.4, keep=1)
