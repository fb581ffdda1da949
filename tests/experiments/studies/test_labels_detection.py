import dataclasses

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

import cleanrank as cr
from cleanrank.data.split import Splits
from cleanrank.errors import CleanrankError
from cleanrank.experiments.studies import STUDIES, StudyTask, labels
from cleanrank.issues.table import LabelIssues
from cleanrank.noise.corrupt import corrupt
from cleanrank.noise.profiles import uniform
from tests.experiments.studies.test_studies import made

PROFILE = uniform(0.2, 3)
TREES = {"start": 5, "end": 10, "params": {"min_data_in_leaf": 5}}


@pytest.fixture(scope="module")
def asked():
    splits = Splits(made(1), made(2), made(3))
    train = corrupt(splits.train, PROFILE, seed=1).data
    return StudyTask(splits, train, splits.validation, PROFILE, {}, "ndcg@10", seed=3)


def ask(asked, **params):
    return dataclasses.replace(asked, params={**STUDIES["detection"].params, **params})


def planted(monkeypatch, doubt, issues=None):
    """A detector that says what the test wants it to."""

    def find(data, method, *, seed, **options):
        chosen = doubt(data) > 0.5 if issues is None else issues(data)
        return LabelIssues.of(data, doubt=doubt(data), is_label_issue=chosen)

    monkeypatch.setattr(labels, "find_label_issues", find)


def test_the_measures_of_the_study_are_those_that_are_computed():
    nothing = np.zeros(made(1).n_docs)
    issues = LabelIssues.of(made(1), doubt=nothing, is_label_issue=nothing > 0)
    assert list(STUDIES["detection"].measures) == list(labels.agreement(issues, nothing > 0))


def test_a_perfect_detector_has_precision_and_recall_1(asked, monkeypatch):
    wrong = asked.clean.train.y != asked.train.y
    planted(monkeypatch, lambda data: wrong.astype(float))
    found = STUDIES["detection"].run(ask(asked)).means
    for name in ("average precision", "average precision within grades", "precision", "recall"):
        assert found[name] == 1
    assert found["base rate"] == found["issues"] == wrong.mean()


def test_figures_pool_rows_and_agree_with_scikit_learn(asked, monkeypatch):
    rng = np.random.default_rng(0)
    doubt = np.round(rng.random(asked.train.n_docs), 1)
    planted(monkeypatch, lambda data: doubt)
    found = STUDIES["detection"].run(ask(asked))
    wrong, y = asked.clean.train.y != asked.train.y, asked.train.y
    assert found.means["average precision"] == pytest.approx(average_precision_score(wrong, doubt))
    within = [average_precision_score(wrong[y == g], doubt[y == g]) for g in range(3)]
    base = [wrong[y == g].mean() for g in range(3)]
    weights = [wrong[y == g].sum() for g in range(3)]
    assert found.means["average precision within grades"] == pytest.approx(
        np.average(within, weights=weights)
    )
    assert found.means["base rate within grades"] == pytest.approx(np.average(base, weights=weights))
    first = slice(0, asked.train.indptr[1])
    assert found.values["average precision"][0] == pytest.approx(
        average_precision_score(wrong[first], doubt[first])
    )
    assert found.values["base rate"][0] == wrong[first].mean()
    assert found.values["recall"].shape == (asked.train.n_queries,)


def test_one_grade_alone_is_what_quality_says_of_it(asked):
    table = cr.find_label_issues(asked.train, "sour", seed=3, **TREES)
    wrong = asked.clean.train.y != asked.train.y
    found = STUDIES["detection"].run(ask(asked, options=TREES, grade=2)).means
    wanted = table.quality(wrong)["grade 2"]
    for name in ("base rate", "precision", "recall", "average precision"):
        assert found[name] == pytest.approx(wanted[name.replace(" ", "_")], nan_ok=True)
    assert found["average precision within grades"] == found["average precision"]


def test_without_noise_nothing_can_be_found(asked):
    clean = dataclasses.replace(asked, train=asked.clean.train)
    found = STUDIES["detection"].run(ask(clean, detector="isolation")).means
    assert np.isnan(found["average precision"])
    assert np.isnan(found["recall"])
    assert found["base rate"] == found["precision"] == 0


def test_last_sour_can_be_given_validation_data(asked, monkeypatch):
    seen = {}

    def find(data, method, *, seed, **options):
        seen.update(options, method=method)
        return LabelIssues.of(
            data, doubt=np.zeros(data.n_docs), is_label_issue=np.zeros(data.n_docs, dtype=bool)
        )

    monkeypatch.setattr(labels, "find_label_issues", find)
    STUDIES["detection"].run(
        ask(asked, detector="last-sour", options={"end": 9}, given=["validation", "noise"])
    )
    assert seen == {
        "method": "last-sour",
        "end": 9,
        "validation": asked.validation,
        "noise": asked.profile,
    }


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"detector": "soor"}, "detector 'soor'. Did you mean 'sour'"),
        ({"options": {"strat": 1}}, "Did you mean 'start'"),
        ({"given": ["truth"]}, "unknown detector input 'truth'. Known: validation, noise"),
    ],
)
def test_unknown_names_are_told(asked, wrong, words):
    with pytest.raises(CleanrankError, match=words.replace(".", r"\.")):
        STUDIES["detection"].run(ask(asked, **wrong))


def test_noise_may_be_estimated_from_rows_that_are_judged_again(asked, monkeypatch):
    seen = {}

    def find(data, method, *, seed, noise):
        seen[method] = noise
        return LabelIssues.of(data, doubt=np.zeros(data.n_docs), is_label_issue=np.zeros(data.n_docs, bool))

    monkeypatch.setattr(labels, "find_label_issues", find)
    STUDIES["detection"].run(ask(asked, detector="told", given=["noise"]))
    STUDIES["detection"].run(ask(asked, detector="judged", given=["noise:60"]))
    assert seen["told"] is asked.profile
    assert (seen["judged"].method, seen["judged"].n) == ("gold", 60)
    with pytest.raises(CleanrankError, match="given must read noise:100 or gold:100"):
        STUDIES["detection"].run(ask(asked, given=["validation:3"]))


def test_rows_that_a_detector_was_given_as_gold_are_not_counted_as_found(asked, monkeypatch):
    seen = {}

    def find(data, method, *, seed, gold):
        rows, truth, *_ = seen["gold"] = gold
        place = np.searchsorted(data.row_ids, rows)
        assert (truth == asked.clean.train.y[place]).all()
        doubt = np.zeros(data.n_docs)
        doubt[place] = truth != data.y[place]  # knows what it was told and nothing else
        return LabelIssues.of(data, doubt=doubt, is_label_issue=doubt > 0)

    monkeypatch.setattr(labels, "find_label_issues", find)
    means = STUDIES["detection"].run(ask(asked, detector="judged", given=["gold:60"])).means
    left = ~np.isin(asked.train.row_ids, seen["gold"][0])
    assert len(seen["gold"][0]) == 60
    wrong = asked.clean.train.y != asked.train.y
    assert means["base rate"] == pytest.approx(wrong[left].mean())
    assert means["average precision"] == pytest.approx(wrong[left].mean())
    assert means["recall"] == 0
