"""Bytes for people: laid out without being changed, whatever they are."""

import json
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.console.looks.places import UnreadablePlace, decode_offsets, encode_offsets, parse_time
from ottla.console.looks.values import SHOWN_BYTES_MAX, as_hex, pretty, pretty_json, preview

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)
DAY_MS = 86_400_000


@given(JSON)
def test_json_is_laid_out_and_stays_what_it_is(value: object) -> None:
    text = json.dumps(value)
    shown = pretty_json(text)
    if isinstance(value, dict | list):
        assert shown is not None
        assert json.loads(shown) == value
    else:
        assert shown is None


def test_numbers_stay_as_they_were_written() -> None:
    text = '{"a":9007199254740993,"b":1.10,"c":-0.0,"d":1E400,"a":[]}'
    assert pretty_json(text) == (
        '{\n  "a": 9007199254740993,\n  "b": 1.10,\n  "c": -0.0,\n  "d": 1E400,\n  "a": []\n}'
    )


@pytest.mark.parametrize("text", ["{", "[1,2", "}", '{"a"', "[" * 300 + "]" * 300, "{} {}", "nope", "[1}"])
def test_what_is_not_json_is_left_alone(text: str) -> None:
    assert pretty_json(text) is None


@given(st.binary(max_size=2000))
def test_any_bytes_can_be_shown(data: bytes) -> None:
    for shown in (preview(data), pretty(data)):
        assert shown.size == len(data)
        shown.text.encode()
    assert len(as_hex(data).splitlines()) == -(-len(data) // 16)


def test_a_large_value_is_cut_in_a_bounded_way() -> None:
    data = b'{"a": "' + b"x" * 10_000_000 + b'"}'
    shown = pretty(data)
    assert shown.is_cut
    assert shown.size == len(data)
    assert len(shown.text) == SHOWN_BYTES_MAX
    assert preview(data).is_cut


def test_a_character_that_the_cut_has_split_does_not_make_text_binary() -> None:
    data = "é".encode() * SHOWN_BYTES_MAX
    assert pretty(data[1:]).kind == "binary"
    assert pretty(b"x" + data).kind == "text"


@given(st.dictionaries(st.integers(0, 10_000), st.integers(0, 1 << 62), max_size=200))
def test_places_come_back_from_an_address(offsets: dict[int, int]) -> None:
    assert decode_offsets(encode_offsets(offsets)) == offsets


@given(st.text(max_size=60))
def test_any_address_is_a_place_or_a_sentence(text: str) -> None:
    reading: tuple[Callable[[str], object], ...] = (decode_offsets, lambda given: parse_time(given, 0))
    for read in reading:
        with suppress(UnreadablePlace):
            read(text)


def test_times_are_read_as_people_write_them() -> None:
    assert parse_time("2h", 10_000_000) == 2_800_000
    assert parse_time("1970-01-02", 0) == DAY_MS
    assert parse_time("1970-01-02T01:00+01:00", 0) == DAY_MS
    assert parse_time("1790000000000", 0) == 1_790_000_000_000
