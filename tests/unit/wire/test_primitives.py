"""Varints, which count and announce everything in flexible versions."""

import pytest

from ottla.wire.errors import MalformedBytes
from ottla.wire.primitives import read_uvarint, uvarint

CASES = [
    (0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (16_383, "ff7f"), (16_384, "808001"),
    (2_097_151, "ffff7f"), (2_097_152, "80808001"), (268_435_455, "ffffff7f"), (268_435_456, "8080808001"),
    ((1 << 31) - 1, "ffffffff07"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), CASES)
def test_varints_are_little_groups_first(value: int, text: str) -> None:
    assert uvarint(value).hex() == text
    assert read_uvarint(bytes.fromhex("aa" + text + "bb"), 1) == (value, 1 + len(text) // 2)


@pytest.mark.parametrize("text", ["ffffffff08", "ffffffff0f", "ffffffffff01", "8080808080"])
def test_a_varint_beyond_31_bits_is_refused(text: str) -> None:
    with pytest.raises(MalformedBytes, match="does not fit 31 bits"):
        read_uvarint(bytes.fromhex(text + "00"), 0)


@pytest.mark.parametrize("text", ["", "80", "8080", "80808080"])
def test_a_varint_that_is_cut_short_is_noticed(text: str) -> None:
    with pytest.raises(IndexError):
        read_uvarint(bytes.fromhex(text), 0)
