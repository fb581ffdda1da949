"""What must hold for every detector and for the table that all of them return."""

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.issues.find import DETECTORS, options_of
from cleanrank.issues.table import LabelIssues


@pytest.fixture(scope="module")
def corrupted():
    return cr.corrupt(cr.make_ranking(40, 6, docs_per_query=25, seed=0), rate=0.2, seed=1)


@pytest.fixture(scope="module")
def log(corrupted):
    clean = corrupted.data.with_labels(corrupted.true_labels)
    return cr.simulate_clicks(clean, sessions=20, seed=2)


@pytest.fixture
def quick(corrupted, log):
    """A detector's options for small data, with what it cannot do without."""
    wanted = {
        "start": 4, "end": 8, "params": {"num_leaves": 7, "min_data_in_leaf": 5}, "folds": 2, "rounds": 10,
        "noise": corrupted.profile, "clicks": log, "n_estimators": 20,
    }  # fmt: skip

    def options(name):
        known = options_of(name)
        chosen = {key: value for key, value in wanted.items() if key in known}
        if name in ("sour", "last-sour"):
            chosen.pop("folds", None)
        if name == "posterior":
            chosen.pop("rounds", None)
        return chosen

    return options


@pytest.mark.parametrize("name", DETECTORS)
def test_a_table_has_a_row_per_document_and_doubts_between_0_and_1(corrupted, quick, name):
    data = corrupted.data
    before = data.y.copy()
    found = cr.find_label_issues(data, name, **quick(name))
    np.testing.assert_array_equal(found.row_id, data.row_ids)
    np.testing.assert_array_equal(found.query_id, data.qid)
    np.testing.assert_array_equal(found.given_label, data.y)
    assert ((found.doubt >= 0) & (found.doubt <= 1)).all()
    assert found.reasons
    np.testing.assert_array_equal(data.y, before)


@pytest.mark.parametrize("name", DETECTORS)
def test_the_same_seed_gives_the_same_bits(corrupted, quick, name):
    one, two = (cr.find_label_issues(corrupted.data, name, seed=5, **quick(name)) for _ in range(2))
    assert one.doubt.tobytes() == two.doubt.tobytes()
    assert one.is_label_issue.tobytes() == two.is_label_issue.tobytes()


@pytest.mark.parametrize("name", [name for name in DETECTORS if "kind" in options_of(name)])
def test_kinds_doubt_only_labels_of_their_kind(corrupted, quick, name):
    for kind in ("neg", "pos"):
        found = cr.find_label_issues(corrupted.data, name, kind=kind, **quick(name))
        of_kind = (found.given_label == 0) == (kind == "neg")
        assert not found.is_label_issue[~of_kind].any()
        assert not found.doubt[~of_kind].any()


@pytest.mark.parametrize("name", DETECTORS)
def test_what_is_found_can_be_cleaned_and_measured_after_a_shuffle(corrupted, quick, name):
    found = cr.find_label_issues(corrupted.data, name, **quick(name))
    shuffled = found.select(np.random.default_rng(0).permutation(len(found)))
    np.testing.assert_equal(shuffled.quality(corrupted), found.quality(corrupted))
    if found.caution and not found.n_issues:
        with pytest.raises(cr.CleanrankError, match="must rest on features that tell something"):
            cr.clean(corrupted.data, shuffled)
        return
    left = cr.clean(corrupted.data, shuffled).data
    assert left.n_docs == corrupted.data.n_docs - found.n_issues


@pytest.mark.parametrize("name", [name for name in DETECTORS if "fit_predict" in options_of(name)])
def test_a_model_that_knows_the_truth_makes_a_perfect_detector_after_a_shuffle(corrupted, quick, name):
    data = corrupted.data
    truth = dict(zip(data.row_ids.tolist(), corrupted.true_labels.tolist(), strict=True))

    def oracle(train, rows):
        return 0.96 * np.eye(5)[[truth[i] for i in rows.row_ids.tolist()]] + 0.008

    options = {**quick(name), "fit_predict": oracle}
    options.pop("params", None)
    found = cr.find_label_issues(data, name, **options)
    shuffled = found.select(np.random.default_rng(0).permutation(len(found)))
    assert shuffled.average_precision(corrupted) == 1.0
    assert all(v == 1.0 for v in shuffled.average_precision_by_grade(corrupted).values() if not np.isnan(v))


@pytest.mark.parametrize("name", [name for name in DETECTORS if name not in ("clicks", "by-grade")])
def test_a_detector_of_shuffled_rows_has_the_base_rate_within_each_grade(corrupted, quick, name):
    # Errors drawn anew have nothing to do with the labels that were looked at; grades keep their base rates.
    found = cr.find_label_issues(corrupted.data, name, **quick(name))
    rng = np.random.default_rng(0)
    rows = found.given_label == 0
    wrong = np.array([rng.random(rows.sum()) < 0.2 for _ in range(100)])
    part = found.select(rows)
    got = np.mean([part.average_precision(each) - each.mean() for each in wrong])
    assert got == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize("name", DETECTORS)
def test_suggestions_differ_from_the_given_grade_only_for_issues(corrupted, quick, name):
    found = cr.find_label_issues(corrupted.data, name, **quick(name))
    assert (found.suggested_label[~found.is_label_issue] == found.given_label[~found.is_label_issue]).all()


@pytest.mark.parametrize("name", DETECTORS)
def test_every_detector_says_why_in_words(corrupted, quick, name):
    found = cr.find_label_issues(corrupted.data, name, **quick(name))
    worst = corrupted.data.row_ids[found.doubt.argmax()]
    (told,) = found.explain(corrupted.data, rows=[worst])
    assert told.why.startswith(f"graded {told.given_label}")
    spoken = set(told.reasons) - {"rank", "neighbours"}
    assert spoken or name == "contradictions"


def test_a_perfect_oracle_has_precision_and_recall_1_after_a_shuffle(corrupted):
    oracle = LabelIssues.of(
        corrupted.data, doubt=corrupted.changed.astype(float), is_label_issue=corrupted.changed
    )
    shuffled = oracle.select(np.random.default_rng(0).permutation(len(oracle)))
    for line in shuffled.quality(corrupted).values():
        assert line["precision"] == line["recall"] == line["average_precision"] == 1.0
    cleaned = cr.clean(corrupted.data, shuffled)
    left = np.isin(corrupted.data.row_ids, cleaned.data.row_ids)
    np.testing.assert_array_equal(cleaned.data.y, corrupted.true_labels[left])


def test_a_random_detector_has_the_base_rate(corrupted):
    precisions, averages = [], []
    for seed in range(200):
        doubt = np.random.default_rng(seed).random(corrupted.data.n_docs)
        found = LabelIssues.of(corrupted.data, doubt=doubt, is_label_issue=doubt > 0.7)
        precisions.append(found.precision(corrupted))
        averages.append(found.average_precision(corrupted))
    assert np.mean(precisions) == pytest.approx(corrupted.rate, abs=0.01)
    assert np.mean(averages) == pytest.approx(corrupted.rate, abs=0.02)


def test_a_constant_doubt_has_the_base_rate_exactly(corrupted):
    found = LabelIssues.of(
        corrupted.data, doubt=np.full(corrupted.data.n_docs, 0.5), is_label_issue=corrupted.changed
    )
    assert found.average_precision(corrupted) == pytest.approx(corrupted.rate)
