"""Rows of a later log; the rest of the module is tested with the protocols."""

import numpy as np
import pandas as pd

from cleanrank.data.events import read_events
from cleanrank.data.ordered import code_events
from cleanrank.data.protocols import prepare_clicks


def test_every_event_is_a_row_with_the_clicks_before_it():
    rng = np.random.default_rng(0)
    log = pd.DataFrame({"user": rng.integers(12, size=300), "item": rng.integers(25, size=300)})
    log["time"], log["did"] = rng.permutation(300), rng.choice(["pv", "show", "other"], 300)
    options = {"behaviour": "did", "clicks": ["pv"], "shown": ["show"]}
    vocabulary = prepare_clicks(read_events(log[log["did"] != "other"][::2], **options)).train.vocabulary
    rows = code_events(
        read_events(log, row_numbers=True, **options), vocabulary, history=4, context=("weekday",)
    )
    counted = log[log["did"] != "other"]
    events = read_events(log, row_numbers=True, **options)
    assert events.rows.tolist() == counted.index.tolist()
    code = {id_: number for number, id_ in enumerate(vocabulary.item["item"].tolist(), start=1)}
    assert rows.y.tolist() == (counted["did"] == "pv").astype(int).tolist()
    assert rows.item[:, 0].tolist() == [code.get(item, 0) for item in counted["item"]]
    assert rows.unknown["item"] == sum(item not in code for item in counted["item"])
    for row, (_, event) in enumerate(counted.iterrows()):
        mine = counted[
            (counted["user"] == event["user"]) & (counted["did"] == "pv") & (counted["time"] < event["time"])
        ]
        before = [code.get(item, 0) for item in mine.sort_values("time")["item"]][-4:]
        history = rows.history_of[row]
        assert rows.lengths[history] == len(before)
        assert rows.histories[history, : len(before), 0].tolist() == before
