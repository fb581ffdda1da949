"""Verdicts: what a judge is good enough for, by the thresholds that are named."""

import numpy as np
import pytest

import cleanrank as cr
from tests.judges.test_report import MATRIX, collection


def answers(report):
    return {verdict.question: verdict.answer for verdict in report.verdicts}


@pytest.mark.parametrize(("share", "expected"), [(1.0, "yes"), (0.55, "with care"), (0.0, "no")])
def test_training_needs_pairs_that_are_right(share, expected):
    guess = np.full((4, 4), 0.25)
    gold, judge, _ = collection(matrix=share * np.eye(4) + (1 - share) * guess)
    assert answers(cr.judge_report(gold, judge))["train on"] == expected


def test_without_systems_their_order_is_not_checked_and_leniency_speaks_of_levels():
    gold, judge, _ = collection(matrix=MATRIX)
    assert answers(cr.judge_report(gold, judge))["order systems"] == "not checked"
    lenient = judge.assign(grade=np.minimum(gold.grade + 1, 3))
    assert answers(cr.judge_report(gold, lenient))["report levels"] == "no"


def test_few_systems_or_queries_give_no_verdict_on_order():
    gold, judge, runs = collection()
    two = {name: runs[name] for name in ("s0", "s1")}
    report = cr.judge_report(gold, judge, two)
    assert answers(report)["order systems"] == "not checked"
    assert "are the least" in next(v.evidence for v in report.verdicts if v.question == "order systems")
