"""The words for a bad line of a LETOR file: where it is, what was found, what was expected, what to do."""

import re

from cleanrank.data import parse
from cleanrank.data.parse import Rules, Tally
from cleanrank.data.texts import Text
from cleanrank.errors import BadFileError, error_text

FORM = "A row is: label qid:ID 1:value 2:value ... # comment."
LONGEST = 60


def bad_line(text: Text, tally: Tally, rules: Rules) -> BadFileError:
    """The error for the line at which a kernel stopped."""
    token = _token(text, tally.error_at)
    if tally.error == parse.REPEATED:
        token = _second(text, tally.error_at)
    subject, rule, remedy = WORDINGS[tally.error](token, rules)
    return _error(text, tally.error_line, subject, rule, token, remedy)


def bad_value(text: Text, at: int) -> BadFileError:
    """The error for a value at ``at`` that float32 cannot hold."""
    token = _token(text, at)
    subject, rule, remedy = _value(token, None)
    return _error(text, at, subject, rule, token, remedy)


def _error(text: Text, at: int, subject: str, rule: str, token: str, remedy: str) -> BadFileError:
    line = text.line_of(at)
    shown = repr(token if len(token) <= LONGEST else token[:LONGEST] + "...")
    if "\0" in token:
        remedy = "NUL bytes: is it binary or UTF-16? Save it as UTF-8 text."
    words = error_text(subject, rule, shown, at=f"line {line} of {text.path}", remedy=remedy)
    return BadFileError(words, text.path, line)


def _token(text: Text, at: int) -> str:
    found = text.raw[at : min(text.line_end(at), at + 2 * parse.MAX_ID)]
    return re.split(rb"[ \t#]|\r$", found, maxsplit=1)[0].decode("utf-8", "backslashreplace")


def _label(token: str, rules: Rules | None) -> tuple[str, str, str]:
    try:
        value = float(token.replace("_", "?"))
    except ValueError:
        return "the label", "must be a number", FORM
    if value != value or value in (float("inf"), float("-inf")):
        return "the label", "must be finite", "Drop or impute it first."
    if value < 0:
        return "the label", "must not be negative", "Shift or clip the grades first."
    if value > parse.MAX_GRADE:
        return (
            "the label",
            f"must be a grade up to {parse.MAX_GRADE}",
            "Real-valued relevance goes into gains=.",
        )
    return "the label", "must be a whole grade", "Real-valued relevance goes into gains= of from_arrays."


def _qid(token: str, rules: Rules | None) -> tuple[str, str, str]:
    if not token.startswith("qid:"):
        return "the row", "must name its query after the label, as the first row does", FORM
    return "the query id", f"must be 1 to {parse.MAX_ID} bytes of UTF-8 without control characters", FORM


def _feature(token: str, rules: Rules | None) -> tuple[str, str, str]:
    if token.startswith("qid:"):
        return "qid", "must come once, right after the label, in every row or in none", FORM
    return "a feature", "must be index:value, with blanks between features", FORM


def _index(token: str, rules: Rules | None) -> tuple[str, str, str]:
    index = int(token.split(":")[0][:20])
    if rules is not None and index < rules.least_index:
        return "the feature index", "must start from 1 (zero_based=False)", "Read with zero_based=True."
    if rules is not None and rules.most_index < parse.MAX_INDEX:
        return (
            "the feature index",
            f"must not exceed {rules.most_index} (n_features)",
            "Raise n_features or leave it out.",
        )
    return "the feature index", f"must not exceed {parse.MAX_INDEX}", "Renumber the features."


def _value(token: str, rules: Rules | None) -> tuple[str, str, str]:
    try:
        float(token.split(":", 1)[1].replace("_", "?"))
    except ValueError:
        return "a feature value", "must be a number or nan", FORM
    return "a feature value", "must be finite in float32", "Write nan where a value is missing, or rescale."


def _second(text: Text, at: int) -> str:
    """The first ``index:value`` of a line whose index came before."""
    seen = set()
    for token in re.split(rb"[ \t]+", text.raw[at : text.line_end(at)].split(b"#")[0].strip(b" \t\r")):
        index = int(token.split(b":")[0] or 0)
        if index in seen:
            return token.decode()
        seen.add(index)
    return ""


def _repeated(token: str, rules: Rules | None) -> tuple[str, str, str]:
    return "a feature", "must come once in a row", "Keep one of its values."


def _doc_id(token: str, rules: Rules | None) -> tuple[str, str, str]:
    rule = f"must be at most {parse.MAX_ID} bytes of UTF-8 without control characters"
    return "the document id (first word of the comment)", rule, "Shorten or re-encode it."


WORDINGS = {
    parse.BAD_LABEL: _label,
    parse.BAD_QID: _qid,
    parse.BAD_FEATURE: _feature,
    parse.BAD_INDEX: _index,
    parse.BAD_VALUE: _value,
    parse.REPEATED: _repeated,
    parse.BAD_DOC_ID: _doc_id,
}
