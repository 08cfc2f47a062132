"""Properties files are read and written as java.util.Properties does."""

import pytest

from ottla.model.properties import (
    MalformedProperties,
    Property,
    encode_properties,
    encode_settings,
    iter_properties,
)


def test_pairs_come_with_the_line_they_begin_in() -> None:
    text = b"# a comment\n\na=1\n! another\n  b : 2\nc 3\nd\n"
    assert list(iter_properties(text)) == [
        Property(3, "a", "1"),
        Property(5, "b", "2"),
        Property(6, "c", "3"),
        Property(7, "d", ""),
    ]


def test_a_continued_line_counts_as_the_line_it_begins_in() -> None:
    text = b"list=a,\\\n    b,\\\r\n    c\nnext=1\n"
    assert list(iter_properties(text)) == [Property(1, "list", "a,b,c"), Property(4, "next", "1")]


def test_a_comment_within_a_continued_line_is_no_comment() -> None:
    assert list(iter_properties(b"a=1\\\n#2\n")) == [Property(1, "a", "1#2")]


def test_a_file_may_end_within_a_continued_line() -> None:
    assert list(iter_properties(b"a=1\\")) == [Property(1, "a", "1")]


def test_escapes_are_undone() -> None:
    text = rb"""a\ key\==va\tlue
path=C:\\dir
umlaut=\u00fc
astral=\uD83D\uDE00
odd=\q
"""
    assert [(key, value) for _, key, value in iter_properties(text)] == [
        ("a key=", "va\tlue"),
        ("path", "C:\\dir"),
        ("umlaut", "ü"),
        ("astral", "\N{GRINNING FACE}"),
        ("odd", "q"),
    ]


def test_an_even_number_of_backslashes_does_not_continue_a_line() -> None:
    assert [value for *_, value in iter_properties(b"a=x\\\\\nb=y\n")] == ["x\\", "y"]


def test_bytes_are_latin_1() -> None:
    assert next(iter_properties(b"a=\xfc")).value == "ü"


def test_a_malformed_code_unit_says_its_line() -> None:
    with pytest.raises(MalformedProperties, match="line 2"):
        list(iter_properties(b"a=1\nb=\\u12\n"))


def test_a_line_of_only_a_backslash_says_nothing() -> None:
    assert list(iter_properties(b"\\\n\na=1\n")) == [Property(3, "a", "1")]


def test_what_is_written_is_read_back() -> None:
    pairs = {"a key": " leading", "=:#!": "tab\tnew\nline\\", "ü": "\N{GRINNING FACE}", "empty": ""}
    assert {key: value for _, key, value in iter_properties(encode_properties(pairs))} == pairs


def test_settings_for_people_are_read_back() -> None:
    pem = "-----BEGIN PRIVATE KEY-----\nMIIE+/=\n-----END PRIVATE KEY-----\n"
    settings = {"ssl.keystore.key": pem, "listeners": "A://h:1", "b": " \\x # !", "c": "ü\N{GRINNING FACE}"}
    written = encode_settings(settings, "Two lines\nof a remark.")
    assert {key: value for _, key, value in iter_properties(written)} == settings
    assert b"listeners=A://h:1\n" in written
    assert written.startswith(b"# Two lines\n# of a remark.\n")


def test_an_error_repeats_nothing_of_a_value() -> None:
    with pytest.raises(MalformedProperties) as caught:
        list(iter_properties(b"password=\\usecret\n"))
    assert "secr" not in str(caught.value)
