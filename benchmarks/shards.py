"""Making folders of shards: against `cat` of the same bytes, and against reading the same text into memory.

    python benchmarks/shards.py [--queries 112] [--repeats 7]

Data of the shape of Istella (220 features, about 2,680 documents a query) in a temporary folder: arrays in
memory, Parquet as pyarrow writes it (packed) and plain, and LETOR text. `cat` writes as many bytes of
features from one file to another. All of it lies in the page cache; benchmarks/sizes.py has larger files.
"""

import argparse
import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet
from timing import interleaved, write_result

from cleanrank.data.frames import to_frame
from cleanrank.data.letor import read_letor, write_letor
from cleanrank.data.shard_sources import of_letor
from cleanrank.data.shards import convert, write_shards
from cleanrank.data.synthetic import make_ranking
from cleanrank.data.tables import source_of_shards, write_data

GOALS = {
    "speed_of_cat_from_arrays": 0.6,
    "speed_of_cat_from_plain_parquet": 0.6,
    "speed_of_reader_from_text": 1.0,
}


def fresh(make, folder):
    """Runs a conversion into a folder that is not there."""
    shutil.rmtree(folder, ignore_errors=True)
    make(folder)


def from_parquet(folder, kind):
    """Converts the Parquet file of a kind."""
    source = source_of_shards(folder / f"{kind}.parquet", None, {})
    fresh(lambda to: convert(source, to), folder / kind)


def cat(file, target):
    """Copies a file as the shell does."""
    target.unlink(missing_ok=True)
    subprocess.run(f"cat {file} > {target}", shell=True, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=112)
    parser.add_argument("--repeats", type=int, default=7)
    given = parser.parse_args()
    data = make_ranking(given.queries, shape="istella", seed=0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "X.npy", data.X)
        write_data(data, folder / "packed.parquet")
        plain = {"use_dictionary": False, "compression": "none"}
        pyarrow.parquet.write_table(to_frame(data, "arrow"), folder / "plain.parquet", **plain)
        write_letor(data, folder / "train.txt")
        size = (folder / "train.txt").stat().st_size
        binary = interleaved(
            {
                "cat": lambda: cat(folder / "X.npy", folder / "copy"),
                "arrays": lambda: fresh(lambda to: write_shards(data, to), folder / "a"),
                "pyarrow": lambda: pyarrow.parquet.read_table(folder / "packed.parquet"),
                **{kind: partial(from_parquet, folder, kind) for kind in ("packed", "plain")},
            },
            repeats=given.repeats,
        )
        text = interleaved(
            {
                "reader": lambda: read_letor(folder / "train.txt", cache=False, dense=True),
                "shards": lambda: fresh(lambda to: convert(of_letor(folder / "train.txt"), to), folder / "t"),
            },
            repeats=given.repeats,
        )
    found = {
        "documents": data.n_docs,
        "bytes_of_features": int(data.X.nbytes),
        "bytes_of_text": size,
        "binary": binary.summary(),
        "text": text.summary(),
        "speed_of_cat_from_arrays": round(binary.ratio("cat", "arrays"), 2),
        "speed_of_cat_from_plain_parquet": round(binary.ratio("cat", "plain"), 2),
        "speed_of_pyarrow_from_packed_parquet": round(binary.ratio("pyarrow", "packed"), 2),
        "speed_of_reader_from_text": round(text.ratio("reader", "shards"), 2),
        "goals": GOALS,
    }
    write_result("shards", found)


if __name__ == "__main__":
    main()
