import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

import cleanrank as cr
from cleanrank.diagnosis import Diagnosis, diagnose
from cleanrank.errors import InvalidInputError, UnknownNameError

from .sets import plain, repeated


def test_the_same_data_give_the_same_diagnosis_whatever_their_order_and_form():
    data = repeated(rows=150)
    first = diagnose(data)
    sparse = cr.from_arrays(scipy.sparse.csr_matrix(np.asarray(data.X)), data.y, qid=data.qid)
    assert diagnose(sparse) == first
    order = np.random.default_rng(0).permutation(data.n_docs)
    shuffled = diagnose(cr.from_arrays(np.asarray(data.X)[order], data.y[order], qid=data.qid[order]))
    assert shuffled.grades.documents == first.grades.documents
    assert shuffled.duplicates.within.least_wrong == first.duplicates.within.least_wrong
    assert shuffled.curves[0].pnoise == pytest.approx(first.curves[0].pnoise)


def test_data_stay_untouched():
    """Even sparse rows with a column stored twice and out of order."""
    stored = scipy.sparse.csr_matrix(
        (np.array([1.0, 2.0, 3.0], dtype=np.float32), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2)
    )
    stored = scipy.sparse.vstack([stored, stored, stored]).tocsr()
    stored.data[1] = 0.0
    data = cr.from_arrays(stored, [0, 1, 0], qid=[1, 1, 2])
    values, columns = data.X.data.tolist(), data.X.indices.tolist()
    found = diagnose(data)
    assert found.duplicates.across.contradicting_rows == 2
    assert (data.X.data.tolist(), data.X.indices.tolist()) == (values, columns)


def test_json_holds_everything_and_no_nan():
    found = diagnose(plain(), name="x")
    plainly = json.loads(found.to_json())
    assert plainly == json.loads(json.dumps(found.to_dict()))
    assert plainly["curves"][0]["pnoise"] == list(found.curves[0].pnoise)
    assert set(plainly) == set(Diagnosis.__dataclass_fields__)
    one = diagnose(cr.from_arrays([[1.0], [np.nan]], [0, 0], qid=[1, 1]))
    assert json.loads(one.to_json())["curves"] == []


def test_rates_and_profiles_are_the_callers():
    found = diagnose(plain(), rates=(0.3, 0.0), profiles=("adjacent", "power"), rate=0.15, turning_point=0.2)
    assert [c.profile for c in found.curves] == ["adjacent", "power"]
    assert found.curves[0].rates == (0.0, 0.15, 0.3)
    assert found.curves[0].limits.at == 0.2
    assert found.at(0.15) == found.curves[0].pnoise[1]
    assert found.known[0].profile == "adjacent"
    assert found.curves[0].pnoise[0] == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rates": ()}, "rates must name at least one"),
        ({"rates": (0.1, 1.2)}, "rates must be a number >= 0 and <= 1"),
        ({"new_weight": 2}, "new_weight must be a number >= 0 and <= 1"),
        ({"turning_point": 0.7}, "turning_point must be a number > 0 and <= 0.5"),
        ({"rate": -0.1}, "rates must be a number >= 0 and <= 1"),
    ],
)
def test_bad_arguments_are_refused(options, words):
    with pytest.raises(InvalidInputError, match=words):
        diagnose(plain(), **options)
    with pytest.raises(UnknownNameError, match="Did you mean 'uniform'"):
        diagnose(plain(), profiles=["uniforme"])


def test_a_large_set_is_read_in_bounded_memory():
    """Beyond the data themselves: 8 bytes of hash, 8 of first row, up to 32 of table a row, and blocks."""
    import tracemalloc

    rng = np.random.default_rng(0)
    rows = 200_000
    X = rng.normal(size=(rows, 40)).astype(np.float32)
    data = cr.from_arrays(X, rng.integers(0, 3, rows), group=np.full(rows // 100, 100))
    diagnose(plain())  # compiles
    tracemalloc.start()
    diagnose(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60 * 2**20 + 100 * rows


@pytest.mark.data
def test_real_data_show_what_is_known_of_them(data_root):
    found = diagnose(cr.read_letor(data_root / "MQ2008" / "Fold1" / "train.txt", cache=False))
    assert (found.queries, found.documents, found.features) == (471, 9630, 46)
    assert found.idle.queries == 132
    assert found.duplicates.within.groups == 31
    assert found.duplicates.within.least_wrong == 1
    assert found.at(0.1, overall=True) == pytest.approx(0.179, abs=1e-3)
    assert found.at(0.1) == pytest.approx(0.228, abs=1e-3)
    assert len(found.columns.constant) == 6


@pytest.mark.parametrize("grades", [1, 2, 3, 5])
def test_queries_of_one_document_are_described(grades, tmp_path):
    rng = np.random.default_rng(0)
    data = cr.from_arrays(rng.normal(size=(60, 3)), rng.integers(0, grades, 60), qid=np.arange(60))
    report = diagnose(data)
    assert report.merges == report.curves == ()
    assert "nothing can be learnt here" in repr(report)
    assert report.to_html(tmp_path / "report.html").exists()


def test_a_wrong_join_is_asked_about_with_figures():
    data = cr.make_ranking(60, 6, docs_per_query=15, seed=0)
    for seed, order in enumerate((np.arange(data.n_docs), np.random.default_rng(0).permutation(data.n_docs))):
        report = diagnose(replace(data, X=data.X[order]))
        (advice,) = (each for each in report.advice if each.topic == "features")
        assert advice.kind == ("fine", "act")[seed]
        assert ("is the join right?" in advice.text) == bool(seed)
        for value in (report.signal.auc, report.signal.low, report.signal.high):
            assert f"{value:.1%}" in advice.text
        assert report.to_dict()["signal"]["auc"] == report.signal.auc
    assert diagnose(data.select_queries([0])).signal is None


def test_an_order_of_rows_that_tells_the_grades_is_named():
    data = cr.make_ranking(60, 4, docs_per_query=15, seed=0)
    by_grade = np.argsort(-data.y, kind="stable")

    def in_order(rows):
        return cr.from_arrays(data.X[rows], data.y[rows], qid=data.qid[rows])

    sorted_rows = in_order(by_grade)
    for rows, word in ((by_grade, "stands first in 100.0%"), (by_grade[::-1], "stands last in 100.0%")):
        report = diagnose(in_order(rows))
        (advice,) = (each for each in report.advice if each.topic == "row order")
        assert word in advice.text
        assert "ties=average" in advice.text
    assert diagnose(sorted_rows).row_order.auc == 1.0
    ranked = cr.evaluate(
        np.zeros(data.n_docs), sorted_rows, ["ndcg@10", "ndcg@10:ties=average"], order="data"
    ).means
    assert ranked["ndcg@10"] == 1.0 > ranked["ndcg@10:ties=average"]
    assert not [each for each in diagnose(data).advice if each.topic == "row order"]
