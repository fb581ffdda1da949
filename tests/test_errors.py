import pickle

import pytest

from cleanrank.errors import (
    BadFileError,
    CleanrankError,
    InvalidInputError,
    MissingDataError,
    MissingExtraError,
    UnknownNameError,
    error_text,
    invalid,
)


@pytest.mark.parametrize(
    ("error", "also"),
    [
        (InvalidInputError, ValueError),
        (BadFileError, InvalidInputError),
        (UnknownNameError, ValueError),
        (MissingExtraError, ImportError),
        (MissingDataError, FileNotFoundError),
    ],
)
def test_errors_are_caught_by_the_usual_names_and_by_ours(error, also):
    assert issubclass(error, also)
    assert issubclass(error, CleanrankError)
    assert str(error("said")) == "said"
    again = pickle.loads(pickle.dumps(error("said")))
    assert (type(again), str(again)) == (error, "said")


def test_bad_files_keep_their_place_between_processes():
    error = BadFileError("said", "a.txt", 7)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.path, again.line) == ("said", "a.txt", 7)
    assert (BadFileError("said").path, BadFileError("said").line) == ("", None)


def test_messages_name_subject_rule_value_place_and_remedy():
    assert error_text("x", "must be 1") == "x must be 1."
    assert error_text("x", "must be 1", None) == "x must be 1; got None."
    assert error_text("x", "must be 1", 2) == "x must be 1; got 2."
    assert error_text("x", "must be 1", 2, at="row 3") == "x must be 1; got 2 at row 3."
    assert error_text("x", "must be 1", 2, remedy="Do so.") == "x must be 1; got 2. Do so."
    with pytest.raises(InvalidInputError, match=r"^x must be 1; got 2 at row 3\. Do so\.$"):
        raise invalid("x", "must be 1", 2, at="row 3", remedy="Do so.")
