import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleanrank.errors import InvalidInputError
from cleanrank.issues.table import LabelIssues
from cleanrank.labeling.review import about_issues, feature_places, ranking_around


@pytest.fixture(scope="module")
def issues(toy):
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(3), size=toy.n_docs)
    wrong = p[np.arange(toy.n_docs), toy.y] < 0.2
    reasons = {f"p_true_{g}": p[:, g] for g in range(3)} | {"expected_grade": p @ np.arange(3)}
    doubt = 1 - p[np.arange(toy.n_docs), toy.y]
    return LabelIssues.of(
        toy, doubt=doubt, is_label_issue=wrong, suggested_label=p.argmax(axis=1), reasons=reasons
    )


def test_what_is_kept_about_issues_belongs_to_their_rows_and_queries(toy, issues):
    shuffled = issues.select(np.random.default_rng(0).permutation(len(issues)))  # tables come in any order
    places = shuffled.worst_rows(25)
    records = about_issues(shuffled, toy, places)
    json.dumps(records)
    assert len(records) == 25
    for place, record in zip(places, records, strict=True):
        row = int(np.flatnonzero(toy.row_ids == shuffled.row_id[place])[0])
        assert record["doubt"] == pytest.approx(shuffled.doubt[place], abs=1e-4)
        assert record["suggested_label"] == shuffled.suggested_label[place]
        assert record["why"].startswith(f"graded {toy.y[row]}, ")
        of_query = toy.qid == toy.qid[row]
        assert {int(r) for r in record["scores"]} == set(toy.row_ids[of_query].tolist())
        expected = {
            str(r): s for r, s in zip(issues.row_id.tolist(), issues.reasons["expected_grade"], strict=True)
        }
        assert record["scores"] == pytest.approx({r: expected[r] for r in record["scores"]}, abs=1e-4)
        assert sum(record["probabilities"]) == pytest.approx(1, abs=1e-3)


def test_detectors_without_a_ranking_give_none(toy):
    plain = LabelIssues.of(toy, doubt=np.linspace(0, 1, 480), is_label_issue=np.arange(480) > 470)
    (record,) = about_issues(plain, toy, [475])
    assert record.keys() == {"doubt", "suggested_label", "why"}
    assert about_issues(plain, toy, []) == []


@given(
    scores=st.lists(st.integers(0, 4) | st.just(float("nan")), min_size=1, max_size=30),
    place=st.integers(0, 29),
    around=st.integers(0, 5),
)
def test_the_ranking_around_a_document_is_a_part_of_the_sorted_list(scores, place, around):
    position = place % len(scores)
    shown = ranking_around(scores, position, around)
    whole = sorted(
        range(len(scores)),
        key=lambda i: (scores[i] != scores[i], 0 if scores[i] != scores[i] else -scores[i], i),
    )
    own = whole.index(position)
    assert [(whole[r - 1], r) for r, _ in shown] == [(p, r) for r, p in shown]
    ranks = [r - 1 for r, _ in shown]
    assert ranks == sorted(i for i in range(len(scores)) if i < around or abs(i - own) <= around)


@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 20), around=st.sampled_from([1.0, 1e6, 1e-6]))
def test_places_of_features_are_what_counting_gives(seed, n, around):
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(size=(n, 5)) * 2) * around
    values[rng.random((n, 5)) < 0.2] = np.nan
    values[:, 4] = 3.0
    labels = [None if rng.random() < 0.2 else int(rng.integers(0, 3)) for _ in range(n)]
    own = int(rng.integers(n))
    places = feature_places(values, own, labels)
    varied = [c for c in range(5) if len(set(values[~np.isnan(values[:, c]), c])) > 1]
    assert sorted(each.name for each in places) == [f"feature {c + 1}" for c in varied]
    assert [each.distance for each in places] == sorted((each.distance for each in places), reverse=True)
    for each in places:
        column = values[:, int(each.name.split()[1]) - 1].tolist()
        present = [v for v in column if v == v]
        assert (each.low, each.high, sum(each.counts)) == (min(present), max(present), len(present))
        rest = [(v, g) for i, (v, g) in enumerate(zip(column, labels, strict=True)) if i != own and v == v]
        if column[own] != column[own]:
            assert (each.value, each.at, each.below) == (None, None, None)
            assert each.words.endswith("missing")
        elif rest:
            below = sum((v < column[own]) + (v == column[own]) / 2 for v, _ in rest) / len(rest)
            assert each.below == pytest.approx(below)
            assert each.low + each.at * (each.high - each.low) == pytest.approx(
                column[own], rel=1e-9, abs=1e-12
            )
        medians = {
            g: (np.median([v for v, h in rest if h == g]) - each.low) / (each.high - each.low)
            for g in {g for _, g in rest} - {None}
        }
        assert dict(each.by_grade) == pytest.approx(medians)


def test_the_documents_own_grade_does_not_enter_the_places():
    """So that blind mode may show them."""
    values = np.random.default_rng(1).normal(size=(12, 4))
    labels = [0, 1, 2] * 4
    first, *more = (feature_places(values, 5, [*labels[:5], own, *labels[6:]]) for own in (0, 1, 2, None))
    assert all(each == first for each in more)


def test_wrong_shapes_are_refused():
    with pytest.raises(InvalidInputError, match=r"a row 2; got shape \(2, 1\)"):
        feature_places([[1.0], [2.0]], 2)
    with pytest.raises(InvalidInputError, match=r"as many as there are features \(1\)"):
        feature_places([[1.0], [2.0]], 0, names=["a", "b"])
