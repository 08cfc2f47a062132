"""Annotations become kinds, and what has no default gets its type's zero."""

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.coordinator_records.consumer_group import (
    ClassicMemberMetadata,
    ConsumerGroupMemberMetadataValue,
)
from ottla.wire.declare import Records, f64, i8, i32, i64, message, struct, u16, wire
from ottla.wire.error_code import ErrorCode
from ottla.wire.layout import empty, layout_of
from ottla.wire.versions import NO_VERSIONS, parse_versions


@struct
class Inner:
    """One number."""

    number: i64 = wire("0+", default=5)


@message(versions="0-2", flexible="1+")
class Everything:
    """A field of every kind."""

    flag: bool = wire("0+")
    tiny: i8 = wire("0+")
    port: u16 = wire("0+")
    share: f64 = wire("0+")
    text: str = wire("0+")
    blob: bytes = wire("0+")
    topic_id: Uuid = wire("0+")
    error_code: ErrorCode = wire("0+")
    records: Records | None = wire("0+")
    inner: Inner = wire("0+")
    numbers: tuple[i32, ...] = wire("0+")
    inners: tuple[Inner, ...] | None = wire("0+", nullable="1+")
    maybe: Inner | None = wire("0+", default=None)


def test_kinds_are_kafkas_type_names() -> None:
    assert [field.kind for field in layout_of(Everything)] == [
        "bool", "int8", "uint16", "float64", "string", "bytes", "uuid", "error_code", "records",
        "struct", "int32", "struct", "struct",
    ]  # fmt: skip


def test_arrays_and_structs_are_told_from_plain_fields() -> None:
    layout = {field.name: field for field in layout_of(Everything)}
    assert {name for name, field in layout.items() if field.is_array} == {"numbers", "inners"}
    assert {name for name, field in layout.items() if field.struct is Inner} == {"inner", "inners", "maybe"}


def test_none_in_the_annotation_makes_nullable_in_all_versions_unless_told_otherwise() -> None:
    layout = {field.name: field for field in layout_of(Everything)}
    assert layout["maybe"].nullable == layout["maybe"].versions
    assert layout["inners"].nullable == parse_versions("1+")
    assert layout["text"].nullable == NO_VERSIONS


def test_zero_stands_in_where_no_default_is_declared() -> None:
    assert tuple(empty(Everything)) == (
        False, 0, 0, 0.0, "", b"", ZERO_UUID, ErrorCode.NONE, None, Inner(number=5), (), (), None,
    )  # fmt: skip


def test_a_default_that_is_null_in_json_means_the_empty_struct() -> None:
    # Kafka's generator takes the text "null" for null, but JSON's null for no default at all.
    (field,) = (f for f in layout_of(ConsumerGroupMemberMetadataValue) if f.name == "classic_member_metadata")
    assert field.default == empty(ClassicMemberMetadata)


def test_layout_is_resolved_once() -> None:
    assert layout_of(Everything) is layout_of(Everything)
