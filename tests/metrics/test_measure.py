import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanrank.errors import CleanrankError, UnknownNameError
from cleanrank.metrics.measure import (
    _ZERO_WHERE_EMPTY,
    ALIASES,
    CHOICES,
    CONVENTIONS,
    MEASURES,
    PARTS,
    Measure,
    as_measures,
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("ndcg@10", "ndcg@10"),
        (" NDCG@10 : LETOR ", "ndcg@10:letor"),
        ("ndcg@10:lightgbm", "ndcg@10"),
        ("ndcg@10:ties=worst:letor", "ndcg@10:letor:ties=worst"),
        ("ndcg@5:empty=skip", "ndcg@5:skip"),
        ("ndcg@5:gain=linear", "ndcg@5:linear"),
        ("ndcg@5:haddad", "ndcg@5:linear"),
        ("ndcg_cut_5", "ndcg@5:trec"),
        ("P_10", "precision@10:trec"),
        ("recip_rank", "mrr:trec"),
        ("map_cut_100", "map@100:trec"),
        ("recall_1000", "recall@1000:trec"),
        ("Rprec:trec", "rprec:trec"),
        ("hit@5", "success@5"),
        ("auc:trec", "auc"),
        ("ndcg@5:letor:short=cut", "ndcg@5:letor:short=cut"),
        ("map:haddad", "map"),
        ("ap", "map"),
        ("p@5", "precision@5"),
        ("r@10:skip", "recall@10:skip"),
        ("rr", "mrr"),
        ("mrr:letor", "mrr"),
        ("auc:letor", "auc"),
        ("auc:micro", "auc:micro"),
        ("auc:weighting=pooled:relevant=2", "auc:pooled:relevant=2"),
        ("pairacc:empty=zero", "pairacc:empty=zero"),
        ("err@10:max_grade=2", "err@10:max_grade=2"),
    ],
)
def test_text_becomes_canonical(text, canonical):
    assert str(Measure.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ndgc@10", "Did you mean 'ndcg'"),
        ("bleu", "Known: ndcg, dcg, map"),
        ("ndcg@0", "integer >= 1"),
        ("ndcg@-1", "integer >= 1"),
        ("ndcg@", "integer >= 1"),
        ("ndcg@1.5", "integer >= 1"),
        ("ndcg10", "ndcg@10:letor"),
        ("ndcg@10(letor)", "integer >= 1"),
        ("auc@5", "takes no cut-off"),
        ("ndcg@5:lettor", "Did you mean 'letor'"),
        ("ndcg@5:letor:skip", "one convention"),
        ("ndcg@5:ties=wurst", "Did you mean 'worst'"),
        ("ndcg@5:tie=worst", "Did you mean 'ties'"),
        ("ndcg@5:ties=worst:ties=worst", "given once"),
        ("ndcg@5:micro", "has no part 'weighting'"),
        ("map:gain=exp", "has no part 'gain'"),
        ("mrr:empty=one", "must be zero or skip"),
        ("auc:micro:empty=zero", "no meaning"),
        ("map:relevant=0", "integer >= 1"),
        ("map:relevant=two", "integer >= 1"),
        ("err:max_grade=99", "integer >= 1 and <= 60"),
        ("", "unknown measure ''"),
        ("ndcg@10:", "unknown convention or weighting ''"),
    ],
)
def test_a_bad_text_is_refused_with_a_hint(text, words):
    with pytest.raises(CleanrankError) as error:
        Measure.parse(text)
    assert words in str(error.value)


def test_unknown_names_have_their_own_error():
    with pytest.raises(UnknownNameError):
        Measure("nope")


@st.composite
def any_measure(draw):
    name = draw(st.sampled_from(sorted(MEASURES)))
    kind = MEASURES[name]
    parts = {}
    for part in kind.parts:
        values = st.integers(1, 40) if part not in CHOICES else st.sampled_from(CHOICES[part])
        value = draw(st.none() | values)
        if part == "empty" and name in _ZERO_WHERE_EMPTY and value == "one":
            value = "zero"
        parts[part] = value
    if parts.get("weighting") in ("micro", "pooled"):
        parts["empty"] = None
    cutoff = draw(st.none() | st.integers(1, 10**6)) if kind.cutoff else None
    return Measure(name, cutoff, **parts)


@given(any_measure())
def test_the_text_of_a_measure_means_that_measure(m):
    assert Measure.parse(str(m)) == m
    assert Measure.parse(str(m).upper()) == m
    assert hash(Measure.parse(str(m))) == hash(m)
    assert str(Measure.parse(str(m))) == str(m)


@given(
    st.text(max_size=30) | st.from_regex(r"[a-z]{1,7}(@[0-9]{1,3})?(:[a-z=0-9_]{0,12}){0,3}", fullmatch=True)
)
def test_any_text_is_read_or_refused_by_our_own_error(text):
    try:
        m = Measure.parse(text)
    except CleanrankError:
        return
    assert Measure.parse(str(m)) == m


def test_conventions_are_those_of_the_literature():
    assert CONVENTIONS == {
        "lightgbm": {"gain": "exp", "discount": "log2", "empty": "one", "short": "cut"},
        "skip": {"gain": "exp", "discount": "log2", "empty": "skip", "short": "cut"},
        "letor": {"gain": "exp", "discount": "letor", "empty": "zero", "short": "zero"},
        "linear": {"gain": "linear", "discount": "log2", "empty": "one", "short": "cut"},
        "trec": {"gain": "linear", "discount": "log2", "empty": "zero", "short": "cut", "ties": "doc_id"},
    }


def test_the_text_needs_as_few_words_as_possible():
    m = Measure("ndcg", 10, discount="letor", empty="zero", short="zero")
    assert str(m) == "ndcg@10:letor"


@pytest.mark.parametrize("name", MEASURES)
def test_parts_that_mean_nothing_are_none(name):
    m = Measure(name)
    for part in PARTS:
        assert (getattr(m, part) is not None) == (part in MEASURES[name].parts)


@pytest.mark.parametrize("name", MEASURES)
def test_the_description_names_every_part(name):
    m = Measure(name, 7 if MEASURES[name].cutoff else None)
    told = m.describe()
    words = {"gain": "gain", "discount": "discount", "empty": "a query", "short": "shorter", "ties": "tie",
             "weighting": "quer", "relevant": "relevant from", "max_grade": "highest grade"}  # fmt: skip
    assert told.startswith(f"{m}: ")
    for part in MEASURES[name].parts:
        assert words[part] in told
    assert ("cut-off 7" in told) == MEASURES[name].cutoff


def test_pairwise_ties_count_half_unless_said():
    assert "ties count half" in Measure("auc").describe()
    assert "ties keep the order of the rows" in Measure("ndcg").describe()


def test_aliases_lead_to_measures():
    assert {Measure.parse(alias).name for alias in ALIASES} <= set(MEASURES)


def test_one_or_many_texts_or_values():
    assert as_measures("map") == as_measures(["map"]) == as_measures(Measure("map")) == (Measure("map"),)
    with pytest.raises(CleanrankError, match="at least one"):
        as_measures([])
    with pytest.raises(CleanrankError, match="must be text or a Measure"):
        as_measures([10])


def test_whole_numbers_of_numpy_are_cut_offs():
    found = Measure("map", np.int64(10), relevant=np.int32(2))
    assert found == Measure("map", 10, relevant=2)
    assert type(found.cutoff) is int


def test_a_list_in_a_list_is_refused():
    with pytest.raises(CleanrankError, match="must be text or a Measure"):
        as_measures([["ndcg@10"]])
