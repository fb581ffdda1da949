import numpy as np
import pytest

from cleanrank.issues._text_kernels import K1, LAMBDA, MU, B
from cleanrank.issues.text_features import places_in_query, text_features, words_of

QUERIES = ["red apple pie", "thai people"]
TEXTS = ["Apple pie, a red one.", "pie of apples: pie", "nothing here", "Thai flag", "Thai people daily", ""]
INDPTR = np.array([0, 3, 6])


@pytest.fixture(scope="module")
def found():
    return text_features(QUERIES, TEXTS, INDPTR)


def test_words_are_lower_case_runs_of_letters_and_digits_without_a_plural_s():
    assert words_of("Ponies' class: 3_apples in ÉTÉS") == ["pony", "class", "3", "apple", "in", "été"]


def naive(query, text, collection):
    """BM25 and language models by their formulas, one word at a time."""
    words = [words_of(each) for each in collection]
    every = [word for each in words for word in each]
    n, mean = len(words_of(text)), len(every) / len([each for each in words if each])
    N = len([each for each in words if each])
    bm25, dirichlet, jelinek, asked = 0.0, 0.0, 0.0, list(dict.fromkeys(words_of(query)))
    for word in asked:
        tf = words_of(text).count(word)
        df, share = sum(word in each for each in words), max(every.count(word), 0.5) / len(every)
        if tf:
            bm25 += np.log1p((N - df + 0.5) / (df + 0.5)) * tf * (K1 + 1) / (tf + K1 * (1 - B + B * n / mean))
            dirichlet += np.log(1 + tf / (MU * share))
            jelinek += np.log(1 + (1 - LAMBDA) / LAMBDA * tf / n / share)
    return bm25, dirichlet / len(asked) + np.log(MU / (MU + n)), jelinek / len(asked)


@pytest.mark.parametrize("row", range(5))
def test_scores_follow_their_formulas(found, row):
    wanted = naive(QUERIES[row // 3], TEXTS[row], TEXTS)
    for name, value in zip(("bm25", "lm_dirichlet", "lm_jm"), wanted, strict=True):
        assert found[name][row] == pytest.approx(value), name


def test_coverage_positions_and_windows(found):
    np.testing.assert_allclose(found["coverage"][:5], [1, 2 / 3, 0, 1 / 2, 1])
    # "apple pie" stands side by side in the first two texts, "red apple" does not but is near in the first.
    np.testing.assert_allclose(found["bigrams"][:5], [1 / 2, 1 / 2, 0, 0, 1])
    np.testing.assert_allclose(found["near"][:5], [1, 1 / 2, 0, 0, 1])
    # apple pie a red: four words hold three; "pie of apple" or "apple pie" hold two in two.
    np.testing.assert_allclose(found["window"][:5], [3 / 4, 1, 0, 1, 1])
    np.testing.assert_allclose(found["first"][:5], [0, 0, 1, 0, 0])
    np.testing.assert_allclose(found["distinct"][:2], [1, 3 / 4])


def test_pairs_without_a_text_have_no_measures(found):
    assert all(np.isnan(column[5]) for column in found.values())
    assert not any(np.isnan(column[:5]).any() for column in found.values())


def test_feedback_is_the_cosine_to_the_other_best_texts():
    texts = ["red apple tart", "red apple tart", "green cloud", "red rain"]
    found = text_features(["red apple"], texts, np.array([0, 4]))
    assert found["feedback"][0] == pytest.approx(found["feedback"][1])
    assert found["feedback"][0] > found["feedback"][3] > found["feedback"][2] == pytest.approx(0, abs=1e-9)


def test_the_rest_of_a_collection_counts_for_how_rare_words_are():
    alone = text_features(["red apple"], ["red", "apple"], np.array([0, 2]))
    beside = text_features(["red apple"], ["red", "apple"], np.array([0, 2]), beside=["red car", "red bus"])
    assert alone["bm25"][0] == pytest.approx(alone["bm25"][1])
    assert beside["bm25"][0] < beside["bm25"][1]


def test_threads_change_nothing():
    one, two = (text_features(QUERIES, TEXTS, INDPTR, n_jobs=n) for n in (1, 2))
    for name, column in one.items():
        np.testing.assert_array_equal(column, two[name])


def test_places_in_a_query_share_ties_and_leave_out_what_is_missing():
    values = np.array([2.0, 1.0, 1.0, np.nan, 5.0])
    np.testing.assert_array_equal(
        places_in_query(values, np.array([0, 4, 5])), [1.0, 0.25, 0.25, np.nan, 0.5]
    )


def test_long_queries_keep_their_rarest_words():
    query = " ".join(f"w{number}" for number in range(80))
    found = text_features([query], [query, "w0"], np.array([0, 2]))
    assert found["coverage"][0] == 1.0
