"""What a declared class looks like on the wire: its annotations resolved to kinds, its defaults filled in.

The kinds are Kafka's type names (`int32`, `string`, ...), `error_code` (an int16 with a name), or a struct.
"""

import types
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.declare import REQUIRED, fields_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.versions import NO_VERSIONS, Versions

_KIND_OF_CLASS: dict[Any, str] = {
    bool: "bool",
    str: "string",
    bytes: "bytes",
    Uuid: "uuid",
    ErrorCode: "error_code",
}
_ZERO_OF_KIND: dict[str, Any] = {
    "bool": False,
    "string": "",
    "bytes": b"",
    "uuid": ZERO_UUID,
    "error_code": ErrorCode.NONE,
    "float64": 0.0,
    "records": None,
}


class Field(NamedTuple):
    """One field, ready for the codec compiler."""

    name: str
    kind: str
    """Kafka's type name, or `struct`; of the elements when the field is an array."""
    struct: type[Any] | None
    is_array: bool
    versions: Versions
    nullable: Versions
    default: Any
    tag: int | None
    tagged: Versions
    ignorable: bool
    never_compact: bool


_LAYOUTS: dict[type[Any], tuple[Field, ...]] = {}


def layout_of(cls: type[Any]) -> tuple[Field, ...]:
    """Return the fields of a message or struct in the order they travel."""
    layout = _LAYOUTS.get(cls)
    if layout is None:
        layout = _LAYOUTS[cls] = tuple(_resolve(cls, name) for name in fields_of(cls))
    return layout


def empty(cls: type[Any]) -> Any:
    """Return the message or struct whose every field is at its default."""
    return tuple.__new__(cls, [field.default for field in layout_of(cls)])


def _resolve(cls: type[Any], name: str) -> Field:
    declared = fields_of(cls)[name]
    annotation, may_be_none = _without_none(cls.__annotations__[name])
    is_array = get_origin(annotation) is tuple
    if is_array:
        annotation = get_args(annotation)[0]
    kind, struct = _kind_of(annotation)
    nullable = declared.nullable or (declared.versions if may_be_none else NO_VERSIONS)
    default = declared.default
    if default is REQUIRED:
        default = () if is_array else _zero(kind, struct)
    return Field(
        name, kind, struct, is_array, declared.versions, nullable, default,
        declared.tag, declared.tagged, declared.ignorable, declared.never_compact,
    )  # fmt: skip


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) not in (Union, types.UnionType):
        return annotation, False
    members = [member for member in get_args(annotation) if member is not types.NoneType]
    assert len(members) == 1, f"{annotation} has more than one type beside None"
    return members[0], True


def _kind_of(annotation: Any) -> tuple[str, type[Any] | None]:
    if get_origin(annotation) is Annotated:
        return get_args(annotation)[1], None
    if hasattr(annotation, "__wire_fields__"):
        return "struct", annotation
    return _KIND_OF_CLASS[annotation], None


def _zero(kind: str, struct: type[Any] | None) -> Any:
    if struct is not None:
        return empty(struct)
    return _ZERO_OF_KIND.get(kind, 0)
