"""What the compiled codecs write and refuse, on small messages whose bytes can be checked by eye."""

from typing import Any

import pytest

from ottla.model.uuid import Uuid
from ottla.wire.codec import decode, decode_from, encode, encode_pieces, encode_struct
from ottla.wire.compiling.decoder import smallest_size
from ottla.wire.declare import Records, i8, i16, i32, i64, message, replace, struct, u16, u32, wire
from ottla.wire.encoded_items import as_array
from ottla.wire.error_code import ErrorCode
from ottla.wire.errors import MalformedBytes, Unencodable
from ottla.wire.layout import empty


@struct
class Item:
    """A part."""

    name: str = wire("0+")
    number: i16 = wire("0+")


@message(versions="0-3", flexible="2+")
class Sample:
    """v1 adds a count that matters and a note that does not; v2 is flexible; v3 has tagged fields."""

    items: tuple[Item, ...] | None = wire("0+", nullable="1+")
    number_of_tries: i32 = wire("1+", default=0)
    note: str | None = wire("1+", default=None, ignorable=True)
    codes: tuple[i32, ...] = wire("0+", default=())
    extra: Item | None = wire("3+", default=None, tag=0, ignorable=True)
    label: str = wire("3+", default="none", tag=3, ignorable=True)


SAMPLE = Sample(items=(Item(name="a", number=1), Item(name="é", number=-1)), codes=(7,))


@message(versions="0", flexible="0+")
class Numbers:
    """All kinds of fixed size."""

    flag: bool = wire("0+", default=False)
    tiny: i8 = wire("0+", default=0)
    small: i16 = wire("0+", default=0)
    port: u16 = wire("0+", default=0)
    middle: i32 = wire("0+", default=0)
    count_seen: u32 = wire("0+", default=0)
    large: i64 = wire("0+", default=0)
    topic_id: Uuid = wire("0+", default=Uuid(bytes(16)))
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)


@message(versions="0-1", flexible="1+")
class Carrier:
    """Something with records in it."""

    topic: str = wire("0+")
    records: Records | None = wire("0+")
    blob: bytes = wire("0+", default=b"")


@message(versions="0", flexible="0+")
class Nested:
    """A struct that may be null, in line and not in a tag."""

    item: Item | None = wire("0+")


def test_plain_form() -> None:
    expected = "00000002" + "000161" + "0001" + "0002c3a9" + "ffff" + "00000001" + "00000007"
    assert encode(SAMPLE, 0).hex() == expected
    assert decode(Sample, bytes.fromhex(expected), 0) == SAMPLE


def test_compact_form() -> None:
    expected = "03026100010003c3a9ffff000000000000020000000700"
    assert encode(SAMPLE, 2).hex() == expected
    assert decode(Sample, bytes.fromhex(expected), 2) == SAMPLE


def test_null_array() -> None:
    nothing = replace(SAMPLE, items=None)
    assert encode(nothing, 1).hex() == "ffffffff" + "00000000" + "ffff" + "00000001" + "00000007"
    assert encode(nothing, 2).hex() == "00" + "00000000" + "00" + "02" + "00000007" + "00"
    assert decode(Sample, encode(nothing, 2), 2) == nothing


def test_tagged_fields_are_left_out_at_their_default_and_written_in_order() -> None:
    assert encode(replace(SAMPLE, items=(), codes=()), 3).hex() == "01" + "00000000" + "00" + "01" + "00"
    both = replace(SAMPLE, items=(), codes=(), label="x", extra=Item(name="", number=5))
    extra = "00" + "05" + "01" + "01" + "0005" + "00"
    label = "03" + "02" + "0278"
    assert encode(both, 3).hex() == "01" + "00000000" + "00" + "01" + "02" + extra + label
    assert decode(Sample, encode(both, 3), 3) == both


def test_an_equal_but_different_object_counts_as_default_too() -> None:
    label = "".join(("no", "ne"))
    assert encode(replace(SAMPLE, label=label), 3) == encode(SAMPLE, 3)


def test_nullable_struct_in_line_has_a_byte_before_it() -> None:
    assert encode(Nested(item=None), 0).hex() == "ff" + "00"
    assert encode(Nested(item=Item(name="", number=2)), 0).hex() == "01" + "01" + "0002" + "00" + "00"
    assert decode(Nested, b"\xff\x00", 0) == Nested(item=None)


def test_a_set_field_that_the_version_lacks_is_refused() -> None:
    # Kafka raises UnsupportedVersionException here: dropping it could change what is asked for.
    with pytest.raises(Unencodable, match="number_of_tries is set, but version 0 has no such field"):
        encode(replace(SAMPLE, number_of_tries=3), 0)


def test_an_ignorable_field_that_the_version_lacks_is_dropped() -> None:
    assert encode(replace(SAMPLE, note="hello", label="x"), 0) == encode(SAMPLE, 0)


def test_null_is_refused_where_the_version_has_none() -> None:
    with pytest.raises(Unencodable, match=r"Sample\.items is None, which version 0 does not allow"):
        encode(replace(SAMPLE, items=None), 0)
    with pytest.raises(MalformedBytes, match="items is null, which this version does not allow"):
        decode(Sample, bytes.fromhex("ffffffff00000000"), 0)


@pytest.mark.parametrize("version", [-1, 4, 99])
def test_a_version_that_does_not_exist_is_refused(version: int) -> None:
    with pytest.raises(Unencodable, match=f"Sample has no version {version}: it has 0-3"):
        encode(SAMPLE, version)
    with pytest.raises(MalformedBytes, match=f"Sample has no version {version}: it has 0-3"):
        decode(Sample, b"", version)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tiny", 128), ("small", -32769), ("port", -1), ("port", 65536), ("middle", 1 << 31),
        ("count_seen", 1 << 32), ("large", 1 << 63), ("middle", "1"), ("middle", None), ("middle", 1.5),
    ],
)  # fmt: skip
def test_a_number_that_does_not_fit_is_refused(field: str, value: Any) -> None:
    with pytest.raises(Unencodable, match=rf"Numbers\.{field} is {value!r}, which "):
        encode(replace(empty(Numbers), **{field: value}), 0)


def test_numbers_at_their_limits_survive() -> None:
    low = Numbers(tiny=-128, small=-32768, port=0, middle=-(1 << 31), count_seen=0, large=-(1 << 63))
    high = Numbers(
        flag=True, tiny=127, small=32767, port=65535, middle=(1 << 31) - 1, count_seen=(1 << 32) - 1,
        large=(1 << 63) - 1, topic_id=Uuid(b"\xff" * 16), error_code=ErrorCode.CORRUPT_MESSAGE,
    )  # fmt: skip
    for numbers in (low, high):
        assert decode(Numbers, encode(numbers, 0), 0) == numbers


@message(versions="0-1", flexible="1+")
class Refusal:
    """An answer with a sentence."""

    error_message: str | None = wire("0+")
    number: i16 = wire("0+")


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("character", ["x", "é", "\U0001f600"])
def test_an_error_message_that_is_too_long_is_cut(version: int, character: str) -> None:
    """It may quote what a client has sent twice. An answer that cannot be written closes the connection."""
    long = f"no: {character * 40_000}"
    read = decode(Refusal, encode(Refusal(error_message=long, number=7), version), version)
    assert read.error_message is not None
    assert read.error_message.endswith("...")
    assert long.startswith(read.error_message.removesuffix("..."))
    assert (32760 < len(read.error_message.encode()) <= 32767, read.number) == (True, 7)
    whole = Refusal(error_message="x" * 32767, number=7)
    assert decode(Refusal, encode(whole, version), version) == whole


@pytest.mark.parametrize("version", [0, 2])
def test_a_string_has_at_most_32767_bytes(version: int) -> None:
    longest = replace(SAMPLE, items=(Item(name="x" * 32767, number=0),))
    assert decode(Sample, encode(longest, version), version) == longest
    with pytest.raises(Unencodable, match="32768 bytes"):
        encode(replace(SAMPLE, items=(Item(name="x" * 32768, number=0),)), version)


def test_a_compact_string_that_is_too_long_is_refused() -> None:
    length = b"\x81\x80\x02"  # 32769, which is 32768 and one
    with pytest.raises(MalformedBytes, match="name announces 32768 bytes"):
        decode(Sample, b"\x02" + length + bytes(40_000), 2)


@pytest.mark.parametrize("text", ["\ud800", b"bytes", None, 5])
def test_what_is_no_text_is_refused(text: Any) -> None:
    with pytest.raises(Unencodable, match=r"Sample\.items\[0\]\.name is "):
        encode(replace(SAMPLE, items=(Item(name=text, number=0),)), 2)


def test_what_is_no_struct_is_refused() -> None:
    wrong: Any = ("a", 1, 2)
    with pytest.raises(Unencodable, match=r"Sample\.items\[0\] is .*, not a Item"):
        encode(replace(SAMPLE, items=(wrong,)), 2)


@pytest.mark.parametrize("version", range(4))
def test_every_cut_is_noticed(version: int) -> None:
    data = encode(
        replace(SAMPLE, note="x" if version else None, label="y" if version > 2 else "none"), version
    )
    for size in range(len(data)):
        with pytest.raises(MalformedBytes):
            decode(Sample, data[:size], version)


def test_bytes_after_the_message_are_refused_by_decode_but_not_by_decode_from() -> None:
    data = encode(SAMPLE, 2) + b"more"
    with pytest.raises(MalformedBytes, match="4 bytes are left over"):
        decode(Sample, data, 2)
    assert decode_from(Sample, data, 2) == (SAMPLE, len(data) - 4)


def test_decoding_starts_where_it_is_told() -> None:
    data = b"head" + encode(SAMPLE, 2)
    for readable in (data, bytearray(data), memoryview(data)):
        assert decode_from(Sample, readable, 2, 4) == (SAMPLE, len(data))


@pytest.mark.parametrize("count", ["7fffffff", "00000005"])
def test_a_count_that_cannot_be_true_is_refused_before_anything_is_made(count: str) -> None:
    with pytest.raises(MalformedBytes, match="elements are announced, 8 bytes are left"):
        decode(Sample, bytes.fromhex(count) + bytes(8), 0)


def test_a_count_of_integers_that_cannot_be_true_is_refused() -> None:
    with pytest.raises(MalformedBytes, match="1000 elements are announced, 4 bytes are left"):
        decode(Sample, bytes.fromhex("00000000" + "000003e8") + bytes(4), 0)


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(MalformedBytes, match="utf-8"):
        decode(Sample, bytes.fromhex("00000001" + "0001ff" + "0001" + "00000000"), 0)


class TestTags:
    """Tagged fields of Sample v3, whose own are 0 and 3. Before them come no items, no tries, no codes."""

    START = "01" + "00000000" + "00" + "01"

    def read(self, tags: str) -> Sample:
        return decode(Sample, bytes.fromhex(self.START + tags), 3)

    def test_unknown_tags_are_skipped(self) -> None:
        assert self.read("03" + "0102aabb" + "03020278" + "8001" + "00").label == "x"

    def test_null_in_a_tag_is_a_zero(self) -> None:
        assert self.read("01" + "000100").extra is None

    @pytest.mark.parametrize(
        "tags",
        [
            pytest.param("02" + "03020278" + "03020278", id="repeated"),
            pytest.param("02" + "03020278" + "000100", id="out of order"),
            pytest.param("01" + "03030278", id="cut short"),
            pytest.param("01" + "0303027800", id="longer than its content"),
            pytest.param("01" + "03010278", id="shorter than its content"),
            pytest.param("02" + "0100" + "0100", id="unknown and repeated"),
            pytest.param("01" + "01ffffffff07", id="announces two gigabytes"),
        ],
    )
    def test_spoilt_tags_are_refused(self, tags: str) -> None:
        with pytest.raises(MalformedBytes):
            self.read(tags)

    def test_more_than_64_tags_are_refused(self) -> None:
        many = b"".join(bytes((tag, 0)) for tag in range(4, 68))
        self.read("40" + many.hex())
        with pytest.raises(MalformedBytes, match="65 tagged fields are announced"):
            self.read("41" + many.hex() + "4500")

    def test_structs_without_tags_of_their_own_are_as_strict(self) -> None:
        start = "02" + "0261" + "0001"
        rest = "00000000" + "00" + "01" + "00"
        assert decode(Sample, bytes.fromhex(start + "010100" + rest), 2).codes == ()
        for tags in ("0201000100", "0102", "41", "ff01"):
            with pytest.raises(MalformedBytes):
                decode(Sample, bytes.fromhex(start + tags + rest), 2)


def test_records_are_handed_on_without_a_copy() -> None:
    records = memoryview(b"batches")
    pieces = encode_pieces(Carrier(topic="t", records=records), 1)
    assert any(piece is records for piece in pieces)
    data = bytearray(encode(Carrier(topic="t", records=records, blob=b"b"), 1))
    carrier = decode(Carrier, data, 1)
    assert isinstance(carrier.records, memoryview)
    assert carrier.records.obj is data
    assert carrier.blob == b"b"
    assert type(carrier.blob) is bytes


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("size", [None, 0, 1, 126, 127, 128, 16_383, 16_384, 2_097_152])
def test_lengths_of_records_survive(version: int, size: int | None) -> None:
    records = None if size is None else memoryview(bytes(size))
    carrier = Carrier(topic="t" * 127, records=records)
    assert decode(Carrier, encode(carrier, version), version) == carrier


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 126, 127, 128, 20_000])
def test_arrays_of_integers_survive(version: int, count: int) -> None:
    sample = replace(SAMPLE, codes=tuple(range(-5, count - 5)))
    assert decode(Sample, encode(sample, version), version) == sample


def test_varints_longer_than_needed_are_read() -> None:
    # Nobody writes them, but Kafka reads them.
    assert decode(Sample, bytes.fromhex("8100" + "00000000" + "8000" + "818000" + "00"), 2).items == ()


def test_smallest_size_bounds_a_count() -> None:
    assert smallest_size(Item, 0, flexible=False) == 4
    assert smallest_size(Item, 2, flexible=True) == 4
    assert smallest_size(Numbers, 0, flexible=True) == 1 + 1 + 1 + 2 + 2 + 4 + 4 + 8 + 16 + 2
    assert smallest_size(Nested, 0, flexible=True) == 2


@pytest.mark.parametrize("version", range(4))
def test_items_that_are_encoded_already_stand_for_an_array(version: int) -> None:
    assert SAMPLE.items is not None
    items = b"".join(encode_struct(item, Sample, version) for item in SAMPLE.items)

    assert encode(replace(SAMPLE, items=as_array(2, items)), version) == encode(SAMPLE, version)


def test_a_struct_that_cannot_be_written_says_which_kind_it_is() -> None:
    with pytest.raises(Unencodable, match="Item in version 1"):
        encode_struct(Item(name="a", number=1 << 20), Sample, 1)
