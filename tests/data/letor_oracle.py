"""A slow LETOR reader, written from the grammar in cleanrank.data.letor alone; the fast one's oracle."""

import re
from dataclasses import dataclass

import numpy as np

NUMBER = re.compile(rb"([+-]?)(?:(\d+)(?:\.(\d*))?|\.(\d+))(?:[eE]([+-]?\d+))?")
NAN = re.compile(rb"[+-]?[nN][aA][nN]")
BLANKS = b" \t"


class Refused(Exception):
    def __init__(self, line):
        super().__init__(line)
        self.line = line


@dataclass
class Naive:
    y: list
    qids: list
    cells: list  # one {column: float32, not 0} per row
    docs: list
    comments: list
    width: int


def naive_read(raw, *, zero_based="auto", n_features=None):
    """All rows in file order; raises Refused with the number of the first bad line."""
    if raw.startswith(b"\xef\xbb\xbf"):
        raw = raw[3:]
    rows, base = [], None
    lines = raw.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for number, line in enumerate(lines, 1):
        row = _row(line[:-1] if line.endswith(b"\r") else line, number, zero_based)
        # Until a 0 is seen, an index as high as n_features may be the last column.
        limit = 2**31 if n_features is None else n_features - (zero_based is True)
        if row is not None and any(index > limit for index in row[2]):
            raise Refused(number)
        if row is not None:
            rows.append((number, row))
    if not rows:
        raise Refused(None)
    has_zero = any(index == 0 for _, row in rows for index in row[2])
    base = 0 if zero_based is True or (zero_based == "auto" and has_zero) else 1
    highest = n_features - 1 + base if n_features is not None else None
    for number, (_, _, cells, _, _) in rows:
        if highest is not None and any(index > highest for index in cells):
            raise Refused(number)
    most = max((index for _, row in rows for index in row[2]), default=base - 1)
    return Naive(
        y=[row[0] for _, row in rows],
        qids=[row[1] for _, row in rows],
        cells=[{i - base: v for i, v in row[2].items() if v != 0} for _, row in rows],
        docs=[row[3] for _, row in rows],
        comments=[row[4] for _, row in rows],
        width=n_features if n_features is not None else most + 1 - base,
    )


def _row(line, number, zero_based):
    body, hash_, comment = line.partition(b"#")
    tokens = [t for t in re.split(rb"[ \t]+", body) if t]
    if not tokens:
        return None
    y = _grade(tokens[0], number)
    if len(tokens) < 2 or not tokens[1].startswith(b"qid:"):
        raise Refused(number)
    qid = _id(tokens[1][4:], number)
    if qid == "":
        raise Refused(number)
    cells = {}
    for token in tokens[2:]:
        if not re.fullmatch(rb"\d+:[^:]+", token):
            raise Refused(number)
        index, _, text = token.partition(b":")
        index = int(index) if len(index.lstrip(b"0")) < 12 else 10**12
        if index > 2**31 - 2 or index in cells or (index == 0 and zero_based is False):
            raise Refused(number)
        cells[index] = _value(text, number)
    doc = rest = ""
    if hash_:
        found = re.match(rb"[ \t]*docid[ \t]*=(.*)", comment, re.DOTALL)
        words = re.split(rb"[ \t]+", (found[1] if found else comment).lstrip(BLANKS))
        doc = _id(words[0], number)
        text = (found[1] if found else comment).lstrip(BLANKS)
        rest = text[len(words[0]) :].strip(BLANKS).decode("utf-8", "replace")
    return y, qid, cells, doc, rest


def _grade(text, number):
    found = NUMBER.fullmatch(text)
    if not found:
        raise Refused(number)
    sign, whole, fraction, bare, exponent = (group or b"" for group in found.groups())
    digits = (whole + fraction + bare).lstrip(b"0")
    if not digits:
        return 0
    power = int(exponent[:30] or 0) - len(fraction + bare)
    stripped = digits.rstrip(b"0")
    power += len(digits) - len(stripped)
    if sign == b"-" or power < 0 or power + len(stripped) > 6:
        raise Refused(number)
    grade = int(stripped) * 10**power
    if grade > 65_535:
        raise Refused(number)
    return grade


def _value(text, number):
    if NAN.fullmatch(text):
        return np.float32(np.nan)
    if not NUMBER.fullmatch(text):
        raise Refused(number)
    with np.errstate(over="ignore"):
        value = np.float32(float(text))
    if np.isinf(value):
        raise Refused(number)
    return value


def _id(text, number):
    try:
        found = text.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused(number) from None
    if len(text) > 1024 or any(ord(c) < 32 or ord(c) == 127 for c in found):
        raise Refused(number)
    return found


def grouped(naive):
    """(order, ids): rows query by query, queries by first appearance, ids int or str as documented."""
    whole = all(re.fullmatch(r"-?[1-9]\d*|0", q) and -(2**63) <= int(q) < 2**63 for q in naive.qids)
    first = list(dict.fromkeys(naive.qids))
    order = [row for q in first for row, mine in enumerate(naive.qids) if mine == q]
    return order, [int(q) for q in first] if whole else first
