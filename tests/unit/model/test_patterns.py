"""Regular expressions of strangers."""

import pytest

from ottla.model.patterns import InvalidPattern, compile_pattern


def test_what_python_would_try_for_ever_is_matched_in_linear_time() -> None:
    assert compile_pattern("(a+)+b").fullmatch("a" * 10_000) is None


@pytest.mark.parametrize("text", [r"(a)\1", "(?!x)a", "(", "a{1,1000}" * 6, r"\pL" * 101, "\ud800"])
def test_what_is_none_or_takes_too_much_is_refused(text: str) -> None:
    with pytest.raises(InvalidPattern):
        compile_pattern(text)
