import numpy as np
import pytest

import cleanrank as cr
from cleanrank.data.split import Splits
from cleanrank.errors import CleanrankError
from cleanrank.experiments.cells import SAMPLES, derived_splits, needed_counts
from cleanrank.noise.scales import DERIVED
from tests.oracles import same_data


def made(seed, relevant=(8, 3, 9, 20, 12)):
    """Queries of 40 documents; ``relevant`` of each have grade 1."""
    y = np.concatenate([np.repeat([1, 0], [r, 40 - r]) for r in relevant])
    X = np.random.default_rng(seed).normal(size=(len(y), 3))
    return cr.from_arrays(X, y, group=[40] * len(relevant))


@pytest.fixture(scope="module")
def splits():
    return Splits(made(1), made(2), made(3))


def per_query(data):
    return [
        np.bincount(data.y[a:b], minlength=2).tolist()
        for a, b in zip(data.indptr, data.indptr[1:], strict=False)
    ]


@pytest.mark.parametrize(("name", "counts"), [("TD2003P1", [8, 8]), ("TD2003P7", [14, 2])])
def test_samples_have_the_wanted_counts_and_test_data_stay(splits, name, counts):
    found = derived_splits(splits, name, 1)
    assert per_query(found.train) == [counts] * 4
    assert per_query(found.validation) == [counts] * 4
    assert found.test is splits.test


def test_siblings_share_their_queries(splits):
    one, seven = (derived_splits(splits, name, 1).train for name in ("TD2003P1", "TD2003P7"))
    assert one.query_ids.tolist() == seven.query_ids.tolist()
    # the query with 3 relevant documents could serve P7 alone
    assert splits.train.query_ids[1] not in seven.query_ids


def test_five_samples_by_seed(splits):
    samples = [derived_splits(splits, "TD2003P1", seed).train for seed in range(1, 12)]
    rows = {tuple(s.row_ids.tolist()) for s in samples}
    assert len(rows) == SAMPLES
    assert same_data(samples[0], samples[5])


def test_merged_grades_leave_documents_and_test_grades_alone():
    y = np.tile([0, 1, 2], 5)
    data = cr.from_arrays(np.zeros((15, 1)), y, group=[15])
    found = derived_splits(Splits(data, data, data), "OHSUMED2G", 0)
    assert found.train.y.tolist() == [0, 1, 1] * 5
    assert found.validation.n_grades == 2
    assert found.test.y.tolist() == y.tolist()
    assert (found.train.row_ids == data.row_ids).all()


def test_what_a_family_needs():
    assert needed_counts("MSLR2GP50") == needed_counts("MSLR2GP5") == (100, 17)
    assert [name for name in DERIVED if needed_counts(name) is None] == ["OHSUMED2G", "MSLR2G"]


def test_no_query_that_serves_is_an_error():
    poor = made(1, relevant=(3, 4))
    with pytest.raises(CleanrankError, match="14 of grade 0 \\+ 8 of grade 1 documents"):
        derived_splits(Splits(poor, poor, poor), "TD2003P7", 0)


def test_an_unknown_set_lists_the_known(splits):
    with pytest.raises(CleanrankError, match="unknown derived set 'TD2003P2'"):
        derived_splits(splits, "TD2003P2", 0)
