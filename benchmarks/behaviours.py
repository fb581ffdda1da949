"""Preparing a log of clicks: seconds and memory, against pandas' groupby-apply with a loop over targets.

    python benchmarks/behaviours.py [--events 10000000] [--pandas-events 50000 200000] [--repeats 3]
    python benchmarks/behaviours.py --large 100000000

The log has 100 events a user on average, few items with most of the clicks and times in no order. Both sides
start from the same pandas frame and make the same arrays: 20 behaviours and one negative per click, by the
sound protocol with all targets or at most ten of a user in each part, or by UBR's (three targets of a user).
pandas' version is what scripts of this kind do: sort, group by user, and a function for each group that walks
through its clicks. It is measured at sizes it can bear; its time at full size is its time per event at the
largest of them, times the events; UBR's is measured at full size too, in one run with ours. Memory is the
peak of a process of its own, above what it holds once the frame is made (of a file, before it is read).
``--large`` prepares one log of so many events, which is made chunk by chunk as Parquet, and adds it to the
results. Seconds are processor time, since both sides run on one thread and the machine may be busy with other
things; ``wall_s`` is what a clock saw, ``load`` how many processes ran or waited for its cores.
"""

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from timing import RESULTS, write_result

from cleanrank.data.events import read_events
from cleanrank.data.protocols import prepare_clicks

GOALS = {"times_faster_than_pandas": 10.0}
HISTORY = 20
VARIANTS = {
    "sound": {"rare": 1},
    "sound, ten targets": {"rare": 1, "targets": 10},
    "ubr": {"protocol": "ubr"},
}


def make_log(n, seed=0):
    """A frame of n events."""
    random = np.random.default_rng(seed)
    n_items = max(n // 20, 100)
    items = np.minimum(random.pareto(0.8, size=n) * 20, n_items - 1).astype(np.int64)
    frame = {
        "user": random.integers(n // 100, size=n) * 7 + 1,
        "item": random.permutation(n_items)[items] * 3 + 5,
        "time": random.integers(1_511_539_200, 1_512_316_800, size=n),
    }
    return pd.DataFrame({**frame, "category": frame["item"] % 1000})


def ours(log, variant):
    events = read_events(log, item_fields=["category"])
    return prepare_clicks(events, history=HISTORY, **VARIANTS[variant])


def with_pandas(log, variant, seed=0):
    """The same arrays: part, item codes, y, histories of codes and their lengths."""
    random = np.random.default_rng(seed)
    log = log.assign(item=pd.factorize(log["item"])[0] + 1, category=pd.factorize(log["category"])[0] + 1)
    category = log.drop_duplicates("item").set_index("item")["category"].to_dict()
    n_items = len(category)
    cuts = log["time"].quantile([0.8, 0.9], interpolation="higher").to_numpy()
    most = VARIANTS[variant].get("targets", len(log))

    def rows_of_target(part, item, negative, history):
        padding = [(0, 0)] * (HISTORY - len(history))
        codes = [(each, category[each]) for each in history] + padding
        return [
            (part, (item, category[item]), 1, codes, len(history)),
            (part, (negative, category[negative]), 0, codes, len(history)),
        ]

    def sound(group):
        items, seen, targets = group["item"].tolist(), set(), ([], [], [])
        for place, (item, moment) in enumerate(zip(items, group["time"].tolist(), strict=True)):
            if place and item not in seen:
                while (negative := int(random.random() * n_items) + 1) in seen or negative == item:
                    pass
                targets[int(moment >= cuts[0]) + int(moment >= cuts[1])].append((place, item, negative))
            seen.add(item)
        return [
            row
            for part, mine in enumerate(targets)
            for place, item, negative in mine[-most:]
            for row in rows_of_target(part, item, negative, items[max(place - HISTORY, 0) : place])
        ]

    def ubr(group):
        items, rows = group["item"].tolist(), []
        history = items[:-3]
        for part, item in enumerate(items[-3:] if history else []):
            own = random.random() < 0.5
            place = random.random() * (len(history) if own else n_items)
            negative = history[int(place)] if own else int(place) + 1
            rows += rows_of_target(part, item, negative, history[-HISTORY:])
        return rows

    groups = log.sort_values(["user", "time"], kind="stable").groupby("user", sort=False)
    rows = [row for rows in groups.apply(ubr if variant == "ubr" else sound) for row in rows]
    return [np.array(column, dtype=np.int32) for column in zip(*rows, strict=True)]


def check_rows(log, variant):
    """Raises unless both sides have the same rows in each part, up to the moments that cut them."""
    mine = [len(part) for part in ours(log, variant)]
    other = np.bincount(with_pandas(log, variant)[0], minlength=3).tolist()
    assert np.abs(np.subtract(mine, other)).max() <= 0.002 * sum(other), (variant, mine, other)


def processor_seconds(run):
    """Of one call; the collector runs before it and rests during it."""
    gc.collect()
    gc.disable()
    start = time.process_time()
    run()
    seconds = time.process_time() - start
    gc.enable()
    return seconds


MEASURED = """
import gc, json, sys, time
from pathlib import Path
sys.path.insert(0, {here!r})
from behaviours import make_log, ours
def kilobytes(name):
    return int(Path("/proc/self/status").read_text().split(name + ":")[1].split()[0])
ours(make_log(10_000), {variant!r})
log = {log}
gc.collect()
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
before, start, wall = kilobytes("VmRSS"), time.process_time(), time.perf_counter()
splits = ours(log, {variant!r})
seconds, wall, peak = time.process_time() - start, time.perf_counter() - wall, kilobytes("VmHWM")
names = ("user", "item", "context", "y", "history_of", "histories", "lengths", "users", "times")
arrays = {{id(array): array.nbytes for part in splits for array in (getattr(part, name) for name in names)}}
print(json.dumps(dict(seconds=round(seconds, 2), wall_s=round(wall, 2), peak_mb=(peak - before) // 1024,
                      rows_mb=sum(arrays.values()) >> 20, rows=sum(map(len, splits)))))
"""


def measured(log, variant):
    """Seconds of our preparation, peak megabytes above what was there, megabytes of the rows; log as code."""
    code = MEASURED.format(here=str(Path(__file__).parent), variant=variant, log=log)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def write_large_log(n, file, chunk=5_000_000, seed=0):
    """A Parquet file of n events like ``make_log``, never held as a whole."""
    n_items = n // 20
    places = np.random.default_rng(seed).permutation(n_items)
    writer = None
    for number, begin in enumerate(range(0, n, chunk)):
        size = min(chunk, n - begin)
        random = np.random.default_rng([seed, number])
        items = places[np.minimum(random.pareto(0.8, size=size) * 20, n_items - 1).astype(np.int64)] * 3 + 5
        columns = {
            "user": random.integers(n // 100, size=size) * 7 + 1,
            "item": items,
            "time": random.integers(1_511_539_200, 1_512_316_800, size=size),
            "category": items % 1000,
        }
        table = pa.table(columns)
        writer = writer or pyarrow.parquet.ParquetWriter(file, table.schema)
        writer.write_table(table)
    writer.close()


def from_parquet(n, variants):
    """Our preparation of a large file, by protocol."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/log.parquet"
        write_large_log(n, file)
        size = Path(file).stat().st_size >> 20
        return {variant: {"file_mb": size, **measured(repr(file), variant)} for variant in variants}


def load():
    """How busy the machine is: processes that run or wait, on average over a minute."""
    return round(os.getloadavg()[0], 1)


def from_csv(n, variant):
    """The same from a file, which is read in pieces."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/log.csv"
        pyarrow.csv.write_csv(pa.Table.from_pandas(make_log(n), preserve_index=False), file)
        return {"file_mb": Path(file).stat().st_size >> 20, **measured(repr(file), variant)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--pandas-events", type=int, nargs="+", default=[50_000, 200_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--large", type=int, help="prepare one log of so many events, and nothing else")
    arguments = parser.parse_args()
    if arguments.large:
        before = load()
        large = from_parquet(arguments.large, ("ubr", "sound, ten targets"))
        print(large, flush=True)
        stored = json.loads((RESULTS / "behaviours.json").read_text(encoding="utf-8"))
        kept = {name: value for name, value in stored.items() if name not in ("name", "machine")}
        kept.setdefault("large", {})[str(arguments.large)] = {"load": before, **large}
        write_result("behaviours", kept)
        return
    results = {}
    for variant in VARIANTS:
        check_rows(make_log(20_000), variant)
        sizes = {}
        for n in arguments.pandas_events:
            log = make_log(n)
            sides = {"ours": partial(ours, log, variant), "pandas": partial(with_pandas, log, variant)}
            rounds = [
                {name: processor_seconds(run) for name, run in sides.items()}
                for _ in range(arguments.repeats)
            ]
            medians = {name: round(statistics.median(each[name] for each in rounds), 4) for name in sides}
            ratio = statistics.median(each["pandas"] / each["ours"] for each in rounds)
            sizes[n] = {"medians_s": medians, "times_faster_than_pandas": round(ratio, 1)}
        full = {"load": load(), **measured(f"make_log({arguments.events})", variant)}
        if variant == "ubr":
            log = make_log(arguments.events)
            sides = {"ours": partial(ours, log, variant), "pandas": partial(with_pandas, log, variant)}
            seconds = {name: round(processor_seconds(run), 2) for name, run in sides.items()}
            ratio = round(seconds["pandas"] / seconds["ours"], 1)
            full |= {"in_one_run_s": seconds, "times_faster_in_one_run": ratio}
            del log, sides
        largest = max(sizes)
        pandas_seconds = sizes[largest]["medians_s"]["pandas"] / largest * arguments.events
        full["pandas_extrapolated_s"] = round(pandas_seconds)
        full["times_faster_than_pandas"] = round(pandas_seconds / full["seconds"], 1)
        results[variant] = {"by_size": sizes, "full": {"events": arguments.events, **full}}
        print(variant, results[variant], flush=True)
    stored = RESULTS / "behaviours.json"
    large = json.loads(stored.read_text(encoding="utf-8")).get("large", {}) if stored.is_file() else {}
    csv = {"events": arguments.events, **from_csv(arguments.events, "sound, ten targets")}
    print("from CSV", csv, flush=True)
    write_result(
        "behaviours", {"goals": GOALS, "variants": results, "from_csv, ten targets": csv, "large": large}
    )


if __name__ == "__main__":
    main()
