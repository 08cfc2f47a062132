"""Keys go to the partitions to which Java sends them."""

import pytest

from ottla.coordination.runtime.key_partition import java_string_hash, partition_of_key


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -2147483648),
        ("The quick brown fox jumps over the lazy dog", -609428141),
        ("grüße", 98768023),
        ("😀", 1772899),
    ],
)
def test_hash_is_that_of_java(text: str, expected: int) -> None:
    assert java_string_hash(text) == expected


@pytest.mark.parametrize(
    ("key", "count", "expected"),
    [("hello", 50, 22), ("polygenelubricants", 50, 0), ("a", 7, 6), ("", 50, 0)],
)
def test_partition_is_the_absolute_hash_modulo_the_count(key: str, count: int, expected: int) -> None:
    assert partition_of_key(key, count) == expected
