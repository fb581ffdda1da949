from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from cleanrank.cli import main
from cleanrank.demo import BASELINE, CEILING, CLEANED, POSTERIOR, RATE, STEPS, run_demo

QUERIES = 40


@pytest.fixture(scope="module")
def told():
    return []


@pytest.fixture(scope="module")
def demo(told):
    return run_demo(QUERIES, seed=3, progress=lambda *tick: told.append(tick))


@pytest.fixture(scope="module")
def found(demo):
    return demo.to_dict()


def test_only_training_and_validation_labels_are_noisy(demo):
    noisy = demo.noisy
    assert np.array_equal(noisy.true_labels, demo.clean.train.y)
    assert abs(noisy.changed.mean() - RATE) < 0.04
    assert demo.comparison.evaluations[CEILING].query_ids.tolist() == demo.clean.test.query_ids.tolist()


def test_precision_and_recall_are_those_of_the_changed_labels(demo, found):
    table, wrong = demo.tables[POSTERIOR], demo.noisy.changed
    first = found["detectors"][0]
    hits = (table.is_label_issue & wrong).sum()
    assert first["precision"] == pytest.approx(hits / table.is_label_issue.sum())
    assert first["recall"] == pytest.approx(hits / wrong.sum())
    assert first["average_precision"] > 2 * wrong.mean()


def test_cleaning_replaces_grades_by_expected_gains(demo):
    p = [column for name, column in demo.tables[POSTERIOR].reasons.items() if name.startswith("p_true_")]
    expected = sum(share * (2.0**grade - 1) for grade, share in enumerate(p))
    np.testing.assert_allclose(demo.cleaned.data.gains, expected, rtol=1e-6)
    assert demo.noisy.data.gains is None
    assert np.array_equal(demo.cleaned.data.row_ids, demo.noisy.data.row_ids)


def test_recovered_shares_follow_from_the_means(demo, found):
    means = {s["name"]: s["mean"] for s in found["systems"]}
    lost = means[CEILING] - means[BASELINE]
    shares = {s["name"]: s["recovered"] for s in found["systems"]}
    assert lost > 0
    assert shares[CLEANED] == pytest.approx((means[CLEANED] - means[BASELINE]) / lost)
    assert shares[BASELINE] is None
    methods = {name: share for name, share in shares.items() if name not in (BASELINE, CEILING)}
    assert found["recovered"] == methods[found["best"]] == max(methods.values())


def test_nothing_is_recovered_where_the_noise_cost_nothing(demo):
    rows = demo.comparison.rows()
    means = {row["system"]: row["mean"] for row in rows if row["measure"] == "ndcg@10"}
    unharmed = [row | {"mean": means[CEILING]} if row["system"] == BASELINE else row for row in rows]
    comparison = SimpleNamespace(rows=lambda: unharmed, evaluations=demo.comparison.evaluations)
    unharmed_demo = replace(demo, comparison=comparison)
    assert unharmed_demo.recovered == {}
    values = unharmed_demo.to_dict()
    assert (values["best"], values["recovered"]) == (None, None)
    assert all(system["recovered"] is None for system in values["systems"])


def test_every_step_is_announced_and_timed(demo, told):
    names = list(dict.fromkeys(step for step, _, _ in told))
    assert names == list(demo.seconds)
    assert len(names) == STEPS
    assert all(done <= total for _, done, total in told)


def test_the_worst_rows_carry_the_truth_of_their_own_row(demo, found):
    place = {int(r): i for i, r in enumerate(demo.noisy.data.row_ids)}
    assert found["worst"]
    for row in found["worst"]:
        assert row["truth"] == demo.noisy.true_labels[place[row["row"]]]
        assert row["given"] == demo.noisy.data.y[place[row["row"]]]


def test_the_curve_of_a_detector_is_precision_at_the_first_row_that_reaches_a_recall(demo, found):
    for detector in found["detectors"]:
        order = np.argsort(-demo.tables[detector["name"]].doubt, kind="stable")
        hits = np.cumsum(demo.noisy.changed[order]).tolist()
        recall, precision = detector["curve"]["recall"], detector["curve"]["precision"]
        rows = [hits.index(round(share * hits[-1])) + 1 for share in recall]
        assert precision == pytest.approx([hits[n - 1] / n for n in rows])
        assert recall[-1] == 1.0
        assert max(np.diff([0.0, *recall])) < 1 / 59 + 1 / hits[-1]


def test_the_report_is_one_page(demo, found, tmp_path):
    text = demo.to_html(tmp_path / "demo.html").read_text()
    for system in found["systems"]:
        assert system["name"] in text
    assert found["command"] in text


def test_a_share_above_one_is_explained():
    assert main._recovered("X", 0.99).endswith("99% of the NDCG@10 lost to noise.")
    assert "beats one ranker that learns from clean labels" in main._recovered("X", 2.2)
