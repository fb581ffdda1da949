import numpy as np
import pandas as pd
import pytest

from cleanrank.data.events import Events, read_events
from cleanrank.data.protocols import prepare_clicks
from cleanrank.data.vocabulary import Vocabulary
from cleanrank.errors import InvalidInputError


def log_of(n, seed=0, *, texts=False):
    rng = np.random.default_rng(seed)
    log = pd.DataFrame({"user": rng.integers(40, size=n), "item": rng.zipf(1.3, size=n) % 90})
    log["category"] = np.array(["\u00e4", "b", "", "\u6f22"])[log["item"] % 4]
    if texts:
        log["item"] = "item " + log["item"].astype(str)
    return log.assign(time=np.arange(n), age=log["user"] % 5)


def read(log):
    return read_events(log, item_fields=["category"], user_fields=["age"])


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("options", [{}, {"rare": 5}, {"protocol": "ubr"}])
def test_a_log_coded_by_the_tables_of_its_own_preparation_has_the_same_codes(texts, options):
    events = read(log_of(900, texts=texts))
    train = prepare_clicks(events, **options).train
    for kind, ids in (("user", events.user_ids), ("item", events.item_ids)):
        codes = train.vocabulary.codes(events, kind)
        numbers = {tuple(each) for each in codes.tolist()}
        assert {tuple(each) for each in getattr(train, kind).tolist()} <= numbers
        # A code leads back to its id.
        known = getattr(train.vocabulary, kind)[kind]
        assert all(known[code - 1] == ids[place] for place, code in enumerate(codes[:, 0]) if code)
    clicks = train.select(train.y == 1)
    of_user = dict(zip(events.user_ids, train.vocabulary.codes(events, "user"), strict=True))
    assert all(
        (of_user[events.user_ids[n]] == code).all() for n, code in zip(clicks.users, clicks.user, strict=True)
    )


def test_ids_of_a_later_log_keep_their_codes_and_new_ones_have_none():
    vocabulary = prepare_clicks(read(log_of(900))).train.vocabulary
    known = vocabulary.item["item"]
    later = pd.DataFrame(
        {"user": [1, 999], "item": [known[3], 5000], "category": ["b", "new"], "time": [1, 2], "age": 1}
    )
    events = read(later)
    assert vocabulary.codes(events, "item").tolist() == [
        [4, 1 + list(vocabulary.item["category"]).index("b")],
        [0, 0],
    ]
    assert vocabulary.codes(events, "user")[1].tolist() == [0, 1 + list(vocabulary.user["age"]).index(1)]
    # The number 7 and the text "7" are one id.
    worded = read(later.astype({"item": str}))
    assert sorted(vocabulary.codes(worded, "item")[:, 0].tolist()) == [0, 4]
    named = Vocabulary(user=vocabulary.user, item={**vocabulary.item, "item": np.sort(known.astype(str))})
    place = named.item["item"].tolist().index(str(known[3]))
    assert named.codes(events, "item")[0, 0] == place + 1


def test_a_log_without_known_items_or_with_other_fields_is_refused():
    vocabulary = prepare_clicks(read(log_of(900))).train.vocabulary
    strange = log_of(50).assign(item=lambda log: log["item"] + 10**6)
    with pytest.raises(InvalidInputError, match="events must have items of the training log; got none of"):
        vocabulary.codes(read(strange), "item")
    with pytest.raises(InvalidInputError, match=r"item fields of the training log \(category\); got none"):
        vocabulary.codes(read_events(log_of(50)), "item")


def test_fingerprints_differ_where_a_single_id_does():
    tables = {
        "user": {"user": np.array([1, 5])},
        "item": {"item": np.array(["a", "bc"]), "kind": np.array([2])},
    }
    first = Vocabulary(**tables)
    assert first.fingerprint == Vocabulary(**tables).fingerprint
    for changed in (
        Vocabulary(user={"user": np.array([1, 6])}, item=tables["item"]),
        Vocabulary(user=tables["user"], item={**tables["item"], "item": np.array(["ab", "c"])}),
        Vocabulary(user=tables["user"], item={"item": tables["item"]["item"], "sort": np.array([2])}),
    ):
        assert changed.fingerprint != first.fingerprint


def test_arrays_give_the_tables_back():
    vocabulary = prepare_clicks(read(log_of(900, texts=True))).train.vocabulary
    fields = {"user": ["user", "age"], "item": ["item", "category"]}
    again = Vocabulary.of_arrays(vocabulary.arrays(), fields)
    assert again.fingerprint == vocabulary.fingerprint
    assert again.item["category"].tolist() == vocabulary.item["category"].tolist()
    for name, damaged in (
        ("user/user", vocabulary.arrays()["user/user"][::-1]),
        ("item/item/ends", vocabulary.arrays()["item/item/ends"][:-1]),
    ):
        with pytest.raises(ValueError, match=name.removesuffix("/ends")):
            Vocabulary.of_arrays({**vocabulary.arrays(), name: damaged}, fields)


def test_codes_that_say_not_what_they_stand_for_stand_for_themselves():
    events = Events(
        np.array([0, 0, 1]),
        np.array([0, 1, 0]),
        np.arange(2),
        np.arange(2),
        item_fields={"f": np.array([3, 1])},
    )
    vocabulary = Vocabulary(user={"user": np.array([0])}, item={"item": np.array([1]), "f": np.array([1, 3])})
    assert vocabulary.codes(events, "item").tolist() == [[0, 2], [1, 1]]
