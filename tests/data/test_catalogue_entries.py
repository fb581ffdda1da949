import re

import pytest

from cleanrank.data.catalogue import CATALOGUE, FORMS

WANTED = {
    "mq2007", "mq2008", "ohsumed", "td2003", "td2004", "np2003", "np2004", "hp2003", "hp2004", "mslr-web10k",
    "mslr-web30k", "yahoo-ltrc-1", "yahoo-ltrc-2", "istella", "istella-s", "istella-x", "20-newsgroups",
    "movielens-100k", "taobao", "tmall", "alipay", "mslr-sample", "dl19", "dl20",
}  # fmt: skip


def facts_of(name, **where):
    part, fold = where.get("part", "all"), where.get("fold")
    return {f.what: f.value for f in CATALOGUE[name].facts if (f.part, f.fold) == (part, fold)}


def test_all_sets_are_there_under_their_own_names():
    assert set(CATALOGUE) == WANTED
    assert all(entry.name == name for name, entry in CATALOGUE.items())


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=str)
def test_every_entry_says_where_how_and_on_what_terms(entry):
    assert entry.title
    assert re.match(r"https?://", entry.page)
    assert not re.search(r"pypi|conda|npmjs", entry.page + entry.how_to_get)
    assert entry.how_to_get.endswith(".")
    assert entry.terms
    assert entry.folders
    assert all(fact.source and fact.value > 0 for fact in entry.facts)
    keys = [(f.part, f.fold, f.what) for f in entry.facts]
    assert len(set(keys)) == len(keys)


def plain(text):
    return re.sub(r"[^a-z0-9]", "", text.lower())


def test_no_spelling_means_two_sets():
    spelt = {}
    for name, entry in CATALOGUE.items():
        for each in {plain(word) for word in (name, *entry.aliases)}:
            assert spelt.setdefault(each, name) == name


@pytest.mark.parametrize("name", [n for n, e in CATALOGUE.items() if any("grade" in f.what for f in e.facts)])
def test_published_label_counts_sum_to_the_documents(name):
    facts = facts_of(name)
    assert sum(v for k, v in facts.items() if k.startswith("grade")) == facts["documents"]


def published_parts():
    """(name, what, figures of the parts of its first fold) where all are published."""
    for name, entry in CATALOGUE.items():
        fold = 1 if len(entry.folds) > 1 else None
        for what in ("queries", "documents"):
            parts = [facts_of(name, part=p, fold=fold).get(what) for p in entry.files if p != "all"]
            if parts and None not in parts:
                yield name, what, parts


@pytest.mark.parametrize(("name", "what", "parts"), list(published_parts()))
def test_published_parts_sum_to_the_whole(name, what, parts):
    assert len(parts) > 1
    assert sum(parts) == facts_of(name)[what]


def test_label_counts_known_to_be_misprinted_are_not_held_against_anybody():
    for name in ("mslr-web30k", "istella-x"):
        assert not any("grade" in what for what in facts_of(name))
        assert any("probably" in note for note in CATALOGUE[name].notes)


def test_figures_that_papers_give():
    assert facts_of("mslr-web10k") == {"queries": 10_000, "documents": 1_200_192, "features": 136}
    assert facts_of("td2003") == {"queries": 50, "documents": 49_058, "features": 64}
    assert facts_of("istella-x") == {"queries": 10_000, "documents": 26_791_447, "features": 220}
    assert facts_of("yahoo-ltrc-1")["documents"] == 709_877
    assert facts_of("yahoo-ltrc-2", part="test") == {"queries": 3_798, "documents": 103_174}


def test_forms_belong_to_known_folders():
    folders = {folder for entry in CATALOGUE.values() for folder in entry.folders}
    assert set(FORMS) <= folders
