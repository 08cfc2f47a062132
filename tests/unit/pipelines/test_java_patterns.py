"""Patterns in Java's syntax find the topics that Java would find."""

import pytest

from ottla.pipelines.source.java_patterns import UnknownPattern, compile_pattern

TOPICS = ("payments", "Payments-1", "payments.eu", "p_2", "42", "a+b")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (r"\p{Alpha}++", {"payments"}),
        (r"\p{L}+-\p{Digit}", {"Payments-1"}),
        (r"[\p{Lower}\p{Punct}]+", {"payments", "payments.eu"}),
        (r"\pN+", {"42"}),
        (r"\P{Upper}+", {"payments", "payments.eu", "p_2", "42", "a+b"}),
        (r"\Qa+b\E", {"a+b"}),
        (r"\Qpay\Ements(?<rest>\..*)?", {"payments", "payments.eu"}),
        (r"(?i)PAY.*?\z", {"payments", "Payments-1", "payments.eu"}),
        (r"(?<a>p)ayments|[^a-z]+", {"payments", "42"}),
        (r"[]4]2", {"42"}),
        (r"\w+&&|a\+b", {"a+b"}),
        ("pay.*", {"payments", "payments.eu"}),
    ],
)
def test_a_pattern_finds_what_java_finds(pattern: str, found: set[str]) -> None:
    assert {name for name in TOPICS if compile_pattern(pattern).fullmatch(name)} == found


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("(", "unterminated"),
        (r"\p{Klingon}", "a class that is not known, 'Klingon'"),
        ("[a-z&&[^b]]", "an intersection of classes"),
        ("[a[b]]", "a class within a class"),
        (r"[\P{Lower}]", "write the characters that are meant"),
    ],
)
def test_what_python_has_not_is_refused_with_what_to_do(pattern: str, sentence: str) -> None:
    with pytest.raises(UnknownPattern, match=sentence):
        compile_pattern(pattern)
