"""What must hold for every detector and for the table that all of them return."""

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.doubt.table import DoubtTable
from cleanrank.pipelines.issues import DETECTORS, options_of


@pytest.fixture(scope="module")
def corrupted():
    return cr.corrupt(cr.make_ranking(40, 6, docs_per_query=25, seed=0), rate=0.2, seed=1)


def quick(name):
    wanted = {"start": 4, "end": 8, "params": {"num_leaves": 7, "min_data_in_leaf": 5}}
    return {key: value for key, value in wanted.items() if key in options_of(name)}


@pytest.mark.parametrize("name", DETECTORS)
def test_a_table_has_a_row_per_document_and_doubts_between_0_and_1(corrupted, name):
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
def test_the_same_seed_gives_the_same_bits(corrupted, name):
    one, two = (cr.find_label_issues(corrupted.data, name, seed=5, **quick(name)) for _ in range(2))
    assert one.doubt.tobytes() == two.doubt.tobytes()
    assert one.is_label_issue.tobytes() == two.is_label_issue.tobytes()


@pytest.mark.parametrize("name", DETECTORS)
def test_kinds_doubt_only_labels_of_their_kind(corrupted, name):
    for kind in ("neg", "pos"):
        found = cr.find_label_issues(corrupted.data, name, kind=kind, **quick(name))
        of_kind = (found.given_label == 0) == (kind == "neg")
        assert not found.is_label_issue[~of_kind].any()
        assert not found.doubt[~of_kind].any()


@pytest.mark.parametrize("name", DETECTORS)
def test_what_is_found_can_be_cleaned_and_measured_after_a_shuffle(corrupted, name):
    found = cr.find_label_issues(corrupted.data, name, **quick(name))
    shuffled = found.select(np.random.default_rng(0).permutation(len(found)))
    assert shuffled.quality(corrupted) == found.quality(corrupted)
    left = cr.clean(corrupted.data, shuffled).data
    assert left.n_docs == corrupted.data.n_docs - found.n_issues


def test_a_perfect_oracle_has_precision_and_recall_1_after_a_shuffle(corrupted):
    oracle = DoubtTable.of(
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
        found = DoubtTable.of(corrupted.data, doubt=doubt, is_label_issue=doubt > 0.7)
        precisions.append(found.precision(corrupted))
        averages.append(found.average_precision(corrupted))
    assert np.mean(precisions) == pytest.approx(corrupted.rate, abs=0.01)
    assert np.mean(averages) == pytest.approx(corrupted.rate, abs=0.02)


def test_a_constant_doubt_has_the_base_rate_exactly(corrupted):
    found = DoubtTable.of(
        corrupted.data, doubt=np.full(corrupted.data.n_docs, 0.5), is_label_issue=corrupted.changed
    )
    assert found.average_precision(corrupted) == pytest.approx(corrupted.rate)
