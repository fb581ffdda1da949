import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cleanrank.errors import CleanrankError
from cleanrank.ragged import indptr_of
from cleanrank.rankers.neural.inputs import batch_of, bucket_of, bucketed, chunks, filled_batch, offsets_of
from tests.oracles import pad

sizes = st.lists(st.integers(0, 40), min_size=1, max_size=60)


@given(sizes, st.integers(1, 9), st.integers(0, 99), st.sampled_from([50, 5000, 1 << 24]))
def test_every_query_with_documents_is_in_one_batch(lengths, most, seed, pairs):
    lengths = np.array(lengths)
    found = bucketed(lengths, most, np.random.default_rng(seed), most_pairs=pairs)
    assert sorted(np.concatenate([*found, []]).astype(int).tolist()) == np.flatnonzero(lengths).tolist()
    for batch in found:
        assert 1 <= len(batch) <= most
        assert len(batch) == 1 or len(batch) * lengths[batch].max() ** 2 <= pairs


def test_batches_hold_queries_of_like_length():
    lengths = np.random.default_rng(0).integers(1, 300, 2000)
    found = bucketed(lengths, 64, np.random.default_rng(1))
    padded = sum(len(b) * lengths[b].max() for b in found)
    assert padded < 1.2 * lengths.sum()
    shuffled = np.random.default_rng(1).permutation(2000)
    naive = sum(64 * lengths[shuffled[k : k + 64]].max() for k in range(0, 1984, 64))
    assert naive > 1.8 * lengths.sum()


def test_batches_change_from_epoch_to_epoch_and_repeat_with_the_seed():
    lengths = np.random.default_rng(0).integers(90, 120, 200)
    first, again, other = (bucketed(lengths, 20, np.random.default_rng(s)) for s in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    together = [{frozenset((a, b)) for x in found for a in x for b in x if a < b} for found in (first, other)]
    assert len(together[0] & together[1]) < 0.5 * len(together[0])
    assert [len(x) for x in first] == [20] * 10


@given(sizes, st.integers(0, 99))
def test_a_batch_pads_as_groups_do(lengths, seed):
    rng = np.random.default_rng(seed)
    indptr = indptr_of(lengths)
    queries = rng.permutation(len(lengths))[: rng.integers(1, len(lengths) + 1)]
    batch = batch_of(indptr, queries)
    values = rng.normal(size=indptr[-1])
    padded = np.zeros(batch.shape).ravel()
    padded[batch.places.numpy()] = values[batch.rows.numpy()]
    rows = np.concatenate([np.arange(indptr[q], indptr[q + 1]) for q in queries])
    wanted, mask = pad(values[rows], indptr_of(np.array(lengths)[queries]))
    np.testing.assert_array_equal(padded.reshape(batch.shape), wanted)
    np.testing.assert_array_equal(batch.rows, rows)
    assert mask.sum() == len(batch.rows)


@given(sizes, st.integers(1, 50))
def test_chunks_are_all_queries_in_order(lengths, documents):
    indptr = indptr_of(lengths)
    found = list(chunks(indptr, documents))
    assert np.concatenate(found).tolist() == list(range(len(lengths)))
    for part in found:
        assert len(part) == 1 or sum(lengths[q] for q in part) <= documents


def test_a_batch_has_at_least_one_query():
    with pytest.raises(CleanrankError, match="batch_queries must be an integer >= 1"):
        bucketed(np.array([1]), 0, np.random.default_rng(0))


@given(sizes, st.integers(0, 99))
def test_a_batch_that_is_filled_up_pads_the_same_values(lengths, seed):
    rng = np.random.default_rng(seed)
    lengths = np.array([*lengths, 3])
    indptr = indptr_of(lengths)
    queries = rng.permutation(len(lengths))[: rng.integers(1, len(lengths) + 1)]
    plain, bucket = batch_of(indptr, queries), bucket_of(lengths[queries])
    offsets = torch.from_numpy(offsets_of(indptr, queries, bucket))
    filled = filled_batch(offsets, bucket, int(indptr[-1]))
    values = torch.from_numpy(rng.normal(size=indptr[-1]))
    padded = filled.pad(values[filled.rows])
    n, longest = plain.shape
    assert filled.shape == padded.shape == (bucket.lists, bucket.longest)
    assert torch.equal(padded[:n, :longest], plain.pad(values[plain.rows]))
    assert torch.equal(filled.mask[:n, :longest], plain.mask)
    assert filled.mask.sum() == plain.mask.sum()
    assert not padded[~filled.mask].any()


def test_buckets_are_few_and_waste_little():
    """From one document to a hundred thousand."""
    found = {n: bucket_of(np.array([n])).documents for n in range(1, 100_000, 7)}
    assert all(n <= size <= n * 9 / 8 + 1 for n, size in found.items())
    assert len(set(found.values())) < 8 * 17
