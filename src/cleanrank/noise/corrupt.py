"""Corrupts labels on purpose and keeps the truth, in memory and in files."""

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import cleanrank
from cleanrank.data.files import check_outputs, existing_file, file_sha256, written_whole
from cleanrank.data.inputs import Source
from cleanrank.data.spreadsheet import read_frame, write_frame
from cleanrank.errors import BadFileError, error_text, invalid
from cleanrank.noise.dependent import DEPENDENT, corrupt_rows
from cleanrank.noise.profiles import PROFILES, Corruption, NoiseProfile, draw_grades, make_profile
from cleanrank.noise.scales import check_few_grades
from cleanrank.ragged import match_rows
from cleanrank.stored import StoredFeatures
from cleanrank.types import FloatArray, IntArray, RankingData
from cleanrank.validation import one_of


def corrupt(
    data: Any,
    profile: Any = "uniform",
    rate: float | None = None,
    *,
    y: npt.ArrayLike | None = None,
    label: str | None = None,
    qid: Any = None,
    group: npt.ArrayLike | None = None,
    seed: int = 0,
    n_grades: int | None = None,
    spread: float = 0.0,
    options: Mapping[str, Any] | None = None,
) -> Corruption:
    """Draws every document's given grade, from the profile's matrix or by document or query.

    Args:
        data: clean data, which stay untouched: a RankingData, a frame with the columns ``label`` and ``qid``,
            or features with ``y``.
        profile: the name of a family (with ``rate``), or what ``NoiseProfile.of`` reads: a matrix, a
            NoiseProfile, "uniform:0.2". No matrix describes "hard-documents" (judges err on documents that
            look like another grade) and "lenient-queries" (every query has a lenient or a strict judge).
        rate: probability that a grade changes; of those two, its mean over documents.
        y: with features as ``data``, the grades.
        label: with a frame, its column of grades; "label" when not given.
        qid: with a frame, its column of query ids ("qid" when not given), else the query of every row.
        group: instead of ``qid``, documents per query.
        seed: same seed, same draws.
        n_grades: grades of the scale, when the highest does not occur in ``data``.
        spread: with a named profile, draws a rate for every query from a Beta distribution with mean ``rate``
            and variance ``spread`` * rate * (1 - rate); 0 gives all queries the same rate.
        options: further arguments of the family, such as ``{"rho": 0.3}``; with ``row_weights`` the
            proportions are those of ``data`` unless given.

    Returns:
        The noisy data with the true grades, the changed rows and the profile; of a frame, also as ``frame``.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((4, 1)), [0, 1, 0, 1], qid=[1, 1, 2, 2])
    >>> corrupt(data, rate=0.0).changed.tolist()
    [False, False, False, False]
    """
    source = Source.of(data, y, label=label, qid=qid, group=group)
    corruption = _corrupted(source.data, profile, rate, seed, n_grades, spread, options)
    return replace(corruption, source=source)


def _corrupted(
    data: RankingData, profile: Any, rate: float | None, seed: int, n_grades: int | None, spread: float,
    options: Mapping[str, Any] | None,
) -> Corruption:  # fmt: skip
    C = max(2, data.n_grades if n_grades is None else n_grades)
    if not isinstance(profile, str) or ":" in profile:
        if rate is not None or options or spread:
            raise invalid("rate, spread and options", "go with a named profile, not with a matrix")
        return NoiseProfile.of(profile, C).apply(data, seed)
    one_of("noise profile", profile, (*PROFILES, *DEPENDENT))
    check_few_grades(data)
    if profile in DEPENDENT:
        if spread or options:
            raise invalid("spread and options", f"do not go with {profile} noise", options or spread)
        return corrupt_rows(data, profile, rate, C, seed)
    options = dict(options or {})
    if "row_weights" in options or profile == "uneven":
        options.setdefault("proportions", np.bincount(data.y, minlength=C).tolist())
    if spread == 0:
        return make_profile(profile, rate, C, options).apply(data, seed)
    return _by_query(data, profile, rate, C, spread, seed, options)


def _by_query(
    data: RankingData,
    name: str,
    rate: float | None,
    n_grades: int,
    spread: float,
    seed: int,
    options: Mapping[str, Any],
) -> Corruption:
    """Rates of queries ~ Beta(m s, (1 - m) s) with mean m = rate and s = 1 / spread - 1."""
    if not 0 < spread < 1:
        raise invalid("spread", "must lie in [0, 1)", spread)
    if rate is None or not 0 < rate < 1:
        raise invalid("noise rate", "must lie strictly between 0 and 1 when it varies over queries", rate)
    rng, size = np.random.default_rng(seed), 1 / spread - 1
    rates = rng.beta(rate * size, (1 - rate) * size, size=data.n_queries)
    mean = make_profile(name, rate, n_grades, options)
    # Every family is linear in its rate, T(rate) = I + rate D, so rows with rates of their own need no matrix
    # of their own. The highest rate is the one that could break a rule (row rates above 1).
    make_profile(name, float(rates.max(initial=0.0)), n_grades, options)
    direction = (mean.matrix - np.eye(n_grades)) / rate
    still, moved = (np.cumsum(matrix, axis=1)[:, :-1] for matrix in (np.eye(n_grades), direction))
    row_rates = np.repeat(rates, data.lengths)

    def steps_of(rows: slice) -> FloatArray:
        steps: FloatArray = still[data.y[rows]] + row_rates[rows, None] * moved[data.y[rows]]
        # Rounding may leave the last step just below 1.
        steps[steps > 1 - 1e-12] = 1.0
        return steps

    given = draw_grades(steps_of, data.n_docs, rng)
    given = given if data.judged is None else np.where(data.judged, given, data.y)
    return Corruption(data.with_labels(given), data.y, given != data.y, mean, seed, rates)


TRUTHS = ("csv", "parquet")


def side_files(path: str | os.PathLike[str], truth: str = "csv") -> tuple[Path, Path]:
    """Where the record and the truth of a corrupted file lie.

    >>> [p.name for p in side_files("noisy.txt")]
    ['noisy.txt.noise.json', 'noisy.txt.truth.csv']
    """
    one_of("kind of truth file", truth, TRUTHS)
    out = Path(path)
    return out.with_name(f"{out.name}.noise.json"), out.with_name(f"{out.name}.truth.{truth}")


def write_corruption(
    corruption: Corruption,
    path: str | os.PathLike[str],
    *,
    source: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    truth: str = "csv",
    force: bool = False,
) -> dict[str, Any]:
    """Writes the noisy data (Parquet, CSV, LETOR or shards), the record and the truth; returns the record.

    Judgements without features (``read_qrels``) are written as TREC qrels, unless the suffix names a table.

    Args:
        corruption: from ``corrupt``.
        path: the file of the noisy data.
        source: the clean file, for its name and checksum.
        settings: how it was made: profile, rate, spread, options, n_grades; and columns, the options of
            ``read_data`` for the clean file: a noisy table has the same names of label, qid and doc_id.
        truth: "csv" or "parquet".
        force: overwrite existing files; the source is never overwritten.
    """
    from cleanrank.data.tables import check_data_output, names_of, write_data
    from cleanrank.data.trec import write_qrels

    out = Path(path)
    qrels = not corruption.data.n_features and corruption.data.doc_ids is not None
    names = names_of((settings or {}).get("columns") or {})
    record_file, truth_file = side_files(out, truth)
    if source is not None and out.exists() and out.samefile(source):
        raise invalid("output", "must differ from the clean file", repr(str(out)))
    X = corruption.data.X
    form = check_data_output(out, X.folder if isinstance(X, StoredFeatures) else out, [], force=force)
    check_outputs(record_file, truth_file, force=force)
    record = record_of(corruption, out.name, source, settings)
    # The data go last: while any part can still fail, nothing is in place.
    with written_whole(record_file) as record_part, written_whole(truth_file) as truth_part:
        record_part.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        write_frame(truth_frame(corruption), truth_part, f".{truth}")
        if qrels and out.suffix not in (".csv", ".tsv", ".parquet"):
            write_qrels(corruption.data, out)
        else:
            write_data(corruption.data, out, form=form, force=force, **names)
    return record


def truth_frame(corruption: Corruption) -> Any:
    """True and given grade of every row, as a pandas table."""
    import pandas as pd

    data = corruption.data
    return pd.DataFrame(
        {
            "row": np.arange(data.n_docs),
            "row_id": data.row_ids,
            "query_id": data.qid,
            **({} if data.n_features or data.doc_ids is None else {"doc_id": data.doc_ids}),
            "true_grade": corruption.true_labels,
            "given_grade": data.y,
        }
    )


def read_changed(path: str | os.PathLike[str], data: RankingData) -> npt.NDArray[np.bool_]:
    """Which rows of the data have a wrong grade by the truth file that ``write_corruption`` wrote."""
    file = existing_file(path)
    frame = read_frame(file)
    names = ("row_id", "true_grade", "given_grade")
    row_id, true, given = (_whole_numbers(frame, name, file) for name in names)
    place = match_rows(row_id, data.row_ids)
    if (place < 0).any():
        row = data.row_ids[np.argmax(place < 0)]
        raise invalid(file.name, "must have every row of the data", f"no row {row}")
    return np.asarray((true != given)[place])


def _whole_numbers(frame: Any, name: str, file: Path) -> IntArray:
    import pandas as pd

    one_of(f"column of {file.name}", name, frame.columns)
    numbers = pd.to_numeric(frame[name], errors="coerce").to_numpy(np.float64)
    bad = ~(np.abs(numbers) < 2**53) | (numbers != np.rint(numbers))
    if bad.any():
        row = int(np.argmax(bad))
        subject, value, at = f"{name} of {file.name}", repr(frame[name].iloc[row]), f"row {row}"
        raise BadFileError(error_text(subject, "must be whole numbers", value, at=at), str(file))
    return np.asarray(numbers.astype(np.int64))


def record_of(
    corruption: Corruption,
    output: str = "",
    source: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """All that is needed to make a corruption again, and what it did."""
    C = corruption.profile.n_grades
    counts = np.zeros((C, C), dtype=np.int64)
    np.add.at(counts, (corruption.true_labels, corruption.data.y), 1)
    settings = dict(settings or {})
    return {
        "cleanrank": cleanrank.__version__,
        "numpy": np.__version__,
        "input": None if source is None else Path(source).name,
        "input_sha256": None if source is None else file_sha256(source),
        "output": output,
        "name": corruption.profile.name,
        "matrix": corruption.profile.matrix.tolist(),
        "seed": corruption.seed,
        **settings,
        "documents": corruption.data.n_docs,
        "queries": corruption.data.n_queries,
        "changed": int(corruption.changed.sum()),
        "realised_rate": corruption.rate,
        "counts": counts.tolist(),
        "per_grade": [
            {"grade": g, "documents": int(row.sum()), "changed": int(row.sum() - row[g])}
            for g, row in enumerate(counts)
        ],
        "command": _command(corruption, output, source, settings),
    }


def _command(
    corruption: Corruption, output: str, source: str | os.PathLike[str] | None, settings: Mapping[str, Any]
) -> str | None:
    """The command line that makes the same file again."""
    if corruption.seed is None or source is None:
        return None
    from cleanrank.data.tables import column_options

    words = ["cleanrank", "corrupt", Path(source).name, *column_options(settings.get("columns") or {})]
    if settings.get("profile") is None:
        words += ["--matrix", f"{output}.noise.json"]
    else:
        words += ["--profile", settings["profile"]]
        for name in ("rate", "spread", "n_grades"):
            if settings.get(name) is not None:
                words += [f"--{name.replace('_', '-')}", repr(settings[name])]
        for name, value in (settings.get("options") or {}).items():
            words += ["--option", f"{name}={json.dumps(value)}"]
    return shlex.join([*words, "--seed", str(corruption.seed), "-o", output])
