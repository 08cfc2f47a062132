"""Java's properties format, by the examples of its specification."""

import pytest

from ottla.storage.file_errors import CorruptFile
from ottla.storage.log_dirs.properties import decode_properties, encode_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"Truth = Beauty", {"Truth": "Beauty"}),
        (b" Truth:Beauty", {"Truth": "Beauty"}),
        (b"Truth\t\t\t:Beauty", {"Truth": "Beauty"}),
        (b"Truth Beauty", {"Truth": "Beauty"}),
        (b"cheeses", {"cheeses": ""}),
        (b"fruits  apple, banana, \\\n    pear, \\\n    kiwi", {"fruits": "apple, banana, pear, kiwi"}),
        (b"\\:\\=  x", {":=": "x"}),
        (b"# a=b\n! c=d\n\n  \ne=f", {"e": "f"}),
        (b"a=b\r\nc=d\re=f", {"a": "b", "c": "d", "e": "f"}),
        (b"a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        (b"a=\\u00e9\\uD83D\\uDE00\\t!", {"a": "é😀\t!"}),
        (b"a==b", {"a": "=b"}),
        (b"a=1\na=2", {"a": "2"}),
        (b"a=b\\", {"a": "b"}),
    ],
)
def test_a_file_is_read_as_java_reads_it(text: bytes, expected: dict[str, str]) -> None:
    assert decode_properties(text) == expected


def test_whatever_is_written_is_read() -> None:
    properties = {"a b:c=d": " #é😀\n\\ x ", "": "", "!": "\t\r\f="}
    assert decode_properties(encode_properties(properties)) == properties


@pytest.mark.parametrize("text", [b"a=\\u12", b"a=\\u12g4", b"a=\\u"])
def test_a_malformed_code_unit_is_refused(text: bytes) -> None:
    with pytest.raises(CorruptFile, match="without four hexadecimal digits"):
        decode_properties(text)
