"""The answer that refuses a request, for any API in any version, without serving it.

Kafka has no common shape for errors: some answers have one code, most have one for each topic, partition or
group that was asked for. So the answer is drawn from the request: an array of the answer gets an element for
each element of the request's array, fields of the same name are copied, and every error code is set.
"""

from typing import Any, Final

from ottla.wire.error_code import ErrorCode
from ottla.wire.layout import Field, layout_of

MESSAGE: Final = "refused on purpose"

_SAME_THING: Final = {"partition_index": "partition"}
"""Names under which a request knows what its answer calls otherwise."""


def refusal_of(response: type[Any], request: Any, version: int, error: ErrorCode) -> Any:
    """Return the answer of type `response` that says `error` to everything that `request` asks for."""
    values = [_value_of(field, request, version, error) for field in layout_of(response)]
    return tuple.__new__(response, values)


def _value_of(field: Field, asked: Any, version: int, error: ErrorCode) -> Any:
    if version not in field.versions:
        return field.default
    if field.kind == "error_code" and not field.is_array:
        return error
    if field.name == "error_message":
        return MESSAGE
    if field.is_array and field.struct is not None:
        if not _has_error(field.struct, version):
            return field.default
        return tuple(
            _element(field.struct, element, version, error) for element in _asked_for(field, asked, version)
        )
    if field.kind == "records" and version not in field.nullable:
        return b""
    return _copied(field, asked)


def _element(struct: type[Any], asked: Any, version: int, error: ErrorCode) -> Any:
    """Return the part of an answer that refuses one thing, which is named by a struct or by its mere name."""
    if hasattr(asked, "__wire_fields__"):
        return refusal_of(struct, asked, version, error)
    values = []
    is_named = False
    for field in layout_of(struct):
        names_it = isinstance(field.default, type(asked)) and field.kind != "error_code" and not is_named
        if names_it and version in field.versions:
            values.append(asked)
            is_named = True
        else:
            values.append(_value_of(field, None, version, error))
    return tuple.__new__(struct, values)


def _asked_for(field: Field, asked: Any, version: int) -> tuple[Any, ...]:
    """Return the elements of the request's array that an array of the answer goes with."""
    if asked is None:
        return ()
    arrays = {
        other.name: getattr(asked, other.name)
        for other in layout_of(type(asked))
        if other.is_array and version in other.versions
    }
    found = arrays.get(field.name) or next((array for array in arrays.values() if array), ())
    return tuple(found)


def _has_error(struct: type[Any], version: int) -> bool:
    return any(
        version in field.versions
        and (field.kind == "error_code" or (field.struct is not None and _has_error(field.struct, version)))
        for field in layout_of(struct)
    )


def _copied(field: Field, asked: Any) -> Any:
    for name in (field.name, _SAME_THING.get(field.name, "")):
        value = getattr(asked, name, None) if name else None
        if isinstance(value, type(field.default)):
            return value
    return field.default
