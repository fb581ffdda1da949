"""Runs from frames without a look at every cell, where their columns are plain: texts and finite numbers."""

from typing import Any

import numpy as np

from cleanrank.types import Run


def plain_run(frame: Any, name: str) -> Run | None:
    """The run of a pandas frame with texts in qid and docid and numbers in score; None for any other.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"qid": ["q", "q"], "docid": ["a", "b"], "score": [2.0, 1.0]})
    >>> plain_run(frame, "new").doc_ids.tolist()
    ['a', 'b']
    """
    import pyarrow as pa

    if not type(frame).__module__.startswith("pandas") or not {"qid", "docid", "score"} <= {*frame.columns}:
        return None
    scores = np.asarray(frame["score"])
    if scores.dtype.kind not in "fiu" or not len(scores) or not np.isfinite(scores).all():
        return None
    ids, codes = [], []
    for heading in ("qid", "docid"):
        try:
            column = pa.array(frame[heading])
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # cells of several kinds
            return None
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if column.null_count or not (
            pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        ):
            return None
        encoded = column.dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        if any(text != text.strip() for text in texts):
            return None
        ids.append(np.array(texts, dtype=str))
        codes.append(encoded.indices.to_numpy().astype(np.int64))
    keys = np.sort(codes[0] * len(ids[1]) + codes[1])
    if (keys[1:] == keys[:-1]).any():
        return None
    return Run(ids[0], ids[1], codes[0], codes[1], scores.astype(np.float64), name)
