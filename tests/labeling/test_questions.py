import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanrank.errors import InvalidInputError
from cleanrank.labeling.questions import Question


@given(st.lists(st.integers(0, 99), min_size=1, max_size=2))
def test_a_key_says_the_question(documents):
    question = Question(tuple(documents))
    assert Question.of(question.key) == question


@pytest.mark.parametrize("key", ["", "-1", "a", "1;2", "1,", "²"])
def test_a_key_that_is_none_is_refused(key):
    with pytest.raises(InvalidInputError, match="the key of a question must be positions"):
        Question.of(key)
