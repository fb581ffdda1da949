"""Tables, picture and page of what answers have changed: every figure from a step made by hand."""

from dataclasses import replace

import pytest

import cleanrank as cr
from cleanrank.judges.evaluation import Estimate, JudgedEvaluation
from cleanrank.labeling.loop import ProjectProgress, Step
from cleanrank.labeling.progress import LabelProgress
from cleanrank.labeling.records import Batch
from cleanrank.labeling.system_progress import Systems
from cleanrank.report.progress_tables import left_panel, progress_page, steps_table, systems_table

KNOWN = LabelProgress(
    rows=1000,
    judged=1200,
    wrong=30,
    before=Estimate(0.2, 0.15, 0.25),
    after=Estimate(0.17, 0.12, 0.22),
    won_back=Estimate(0.15, 0.1, 0.2),
    pairs_before=Estimate(0.1, 0.05, 0.15),
    pairs_after=Estimate(0.08, 0.04, 0.12),
    pairs_won_back=Estimate(0.2, 0.1, 0.3),
)
JUDGED_ONLY = LabelProgress(rows=1000, judged=50, wrong=20)


def step(number, labels=KNOWN, *, systems=None, purpose="gold", **counts):
    batch = Batch(number, f"Batch {number}", "grade", purpose, {}, 1, True)
    return Step(batch, **({"n_units": 10, "n_judged": 10} | counts), labels=labels, systems=systems)


def systems(*names):
    one = JudgedEvaluation(
        mean=0.5,
        low=0.45,
        high=0.55,
        system="",
        measure="ndcg@10",
        gold_only=Estimate(0.52, 0.4, 0.64),
        judge_only=0.625,
        level=0.95,
        target="these queries",
        design="documents",
        n_queries=20,
        n_gold=1500,
        effective_gold=2000.0,
    )
    return Systems("ndcg@10", 10, 40, {name: replace(one, system=name) for name in names}, wanted=0.05)


def page(*steps, n_labels=1000):
    return progress_page(ProjectProgress("data.csv", n_labels, False, steps))


def headings(shown):
    return [section["heading"] for _, section in shown.values["named"]]


def words(shown, heading):
    """What stands under a heading, as text."""
    (parts,) = (each["parts"] for _, each in shown.values["named"] if each["heading"] == heading)
    return "\n".join(part if isinstance(part, str) else str(getattr(part, "texts", "")) for part in parts)


def test_every_step_is_a_row_and_what_is_not_known_is_a_dash():
    table = steps_table([step(1, JUDGED_ONLY), step(2), step(3, None)])
    assert table.texts == [
        ["1. Batch 1", "50", "20", "–", "–", "–", "–", "–"],
        [
            "2. Batch 2",
            "1,200",
            "30",
            "20.0% [15.0%, 25.0%]",
            "17.0% [12.0%, 22.0%]",
            "15.0% [10.0%, 20.0%]",
            "10.0% [5.0%, 15.0%]",
            "8.0% [4.0%, 12.0%]",
        ],
        ["3. Batch 3", "–", "–", "–", "–", "–", "–", "–"],
    ]
    assert set(table.head[1:]) == set(table.explained)


def test_systems_have_a_row_after_every_evaluation_batch_and_no_other():
    known = systems("bm25", "new")
    table = systems_table([step(1), step(2, systems=known, purpose="evaluation"), step(3, systems=known)])
    assert table.texts == [
        ["2. Batch 2", name, "1,500", "0.625", "0.500 [0.450, 0.550]", "0.520 [0.400, 0.640]"]
        for name in ("bm25", "new")
    ]
    assert set(table.head[2:]) == set(table.explained)


def test_the_picture_needs_two_batches_that_tell():
    assert left_panel([step(1)]) is None
    assert left_panel([step(1, JUDGED_ONLY), step(2)]) is None
    panel = left_panel([step(1), step(2)])
    assert [(p.method, p.mean, p.low, p.high) for p in panel.points[:2]] == [
        ("1. Batch 1", 0.2, 0.15, 0.25),
        ("1. Batch 1", 0.17, 0.12, 0.22),
    ]
    assert "17.0% left after 1. Batch 1, 17.0% after 2. Batch 2" in panel.description


@pytest.mark.parametrize(
    ("n_labels", "said"), [(1000, "1,000 documents came with a label"), (0, "came without labels")]
)
def test_without_answers_the_page_says_what_it_would_need(n_labels, said):
    shown = page(n_labels=n_labels)
    assert headings(shown) == ["Nothing yet"]
    assert said in words(shown, "Nothing yet")


def test_without_a_random_sample_the_share_of_wrong_labels_is_not_told():
    shown = page(step(1, JUDGED_ONLY))
    assert "only a random sample tells" in words(shown, "Labels")
    assert shown.values["figures"] == [("20", "of 50 judged labels were wrong")]
    assert "Random sample" in words(shown, "Worth asking for next")


def test_figures_stand_first_with_intervals_and_what_they_are_worth():
    shown = page(step(1, systems=systems("bm25"), purpose="evaluation"), step(2))
    assert [value for value, _ in shown.values["figures"]] == [
        "20.0% [15.0%, 25.0%]",
        "17.0% [12.0%, 22.0%]",
        "15.0% [10.0%, 20.0%]",
    ]
    assert "20.0% [10.0%, 30.0%]" in words(shown, "What that is worth to a ranker")
    assert "Systems" not in headings(page(step(1), step(2)))


def test_verdicts_and_proposals_are_those_of_the_progress():
    progress = ProjectProgress("data.csv", 1000, False, (step(1, n_judged=4),))
    shown = progress_page(progress)
    for note in progress.notes():
        assert note in words(shown, "When to stop")
    for each in progress.proposals():
        assert each.why in words(shown, "Worth asking for next")
    assert "4 of 10" in words(shown, "When to stop")


def test_a_sample_gives_the_matrix_and_whether_to_go_on():
    truth = cr.make_ranking(30, 3, docs_per_query=10, seed=1)
    given = cr.corrupt(truth, rate=0.2, seed=2).data
    sample = cr.sample_gold(given, 60, seed=3)
    noise = cr.estimate_noise(given, gold=(sample.row_ids, truth.y[sample.rows]))
    shown = page(step(1, replace(KNOWN, noise=noise)))
    assert f"{noise.matrix[0, 0]:.2f} [" in words(shown, "Which grades are given to which")
    assert "measuring the noise" in words(shown, "When to stop")
