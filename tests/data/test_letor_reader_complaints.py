import pytest

from cleanrank.data.letor import read_letor
from cleanrank.errors import BadFileError


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"x qid:1 1:1", "the label must be a number; got 'x' at line 3 of "),
        (b"1_0 qid:1 1:1", "the label must be a number; got '1_0'"),
        (b"nan qid:1", "the label must be finite; got 'nan'"),
        (b"-1 qid:1", "the label must not be negative; got '-1'"),
        (b"1.5 qid:1", "the label must be a whole grade; got '1.5'"),
        (b"1e9 qid:1", "the label must be a grade up to 65535; got '1e9'"),
        (b"1 1:1", "the row must name its query after the label, as the first row does; got '1:1'"),
        (
            b"1 qid: 1:1",
            "the query id must be 1 to 1024 bytes of UTF-8 without control characters; got 'qid:'",
        ),
        (b"1 qid:1 qid:2", "qid must come once, right after the label"),
        (b"1 qid:1 1=2", "a feature must be index:value, with blanks between features; got '1=2'"),
        (b"1 qid:1 99999999999:1", "the feature index must not exceed 2147483646; got '99999999999:1'"),
        (b"1 qid:1 1:inf", "a feature value must be finite in float32; got '1:inf'"),
        (b"1 qid:1 1:-1e39", "a feature value must be finite in float32; got '1:-1e39'"),
        (b"1 qid:1 1:" + b"9" * 99, "a feature value must be finite in float32; got '1:9999"),
        (b"1 qid:1 1:a", "a feature value must be a number or nan; got '1:a'"),
        (b"1 qid:1 1:1 2:2 1:3", "a feature must come once in a row; got '1:3'"),
        (b"1 qid:1 #a\x01", "the document id (first word of the comment) must be at most 1024 bytes"),
        (b"1 qid:1 1:1\x00", "NUL bytes: is it binary or UTF-16?"),
        (b"1 qid:\xff\xfe", r"got 'qid:\\xff\\xfe'"),
        (b"1 qid:1 1:3.40282356779733661637539395458142568448e38", "must be finite in float32"),
    ],
)
def test_a_bad_line_is_told_with_place_value_and_rule(tmp_path, line, words):
    path = tmp_path / "a.txt"
    path.write_bytes(b"0 qid:1 1:1\n\n" + line + b"\n0 qid:1 1:1\n")
    with pytest.raises(BadFileError) as caught:
        read_letor(path, cache=False)
    assert words in str(caught.value)
    assert (caught.value.path, caught.value.line) == (str(path), 3)
    assert len(str(caught.value)) < 400 + len(str(path))


@pytest.mark.parametrize(
    ("options", "line", "words"),
    [
        ({"zero_based": False}, "0 qid:1 0:1", "must start from 1 (zero_based=False); got '0:1' at line 2"),
        ({"n_features": 3}, "0 qid:1 4:1", "must not exceed 3 (n_features); got '4:1' at line 2"),
        ({"n_features": 3, "zero_based": True}, "0 qid:1 3:1", "must not exceed 2 (n_features); got '3:1'"),
        ({"n_features": 3}, "0 qid:1 3:1 0:1", "must not exceed 2 (n_features); got '3:1' at line 2"),
    ],
)
def test_indices_that_the_options_forbid(tmp_path, options, line, words):
    (tmp_path / "a.txt").write_text(f"0 qid:1 1:1\n{line}\n")
    with pytest.raises(BadFileError) as caught:
        read_letor(tmp_path / "a.txt", cache=False, **options)
    assert words in str(caught.value)
