"""Protobuf messages as rows of the types that `schema_types.message_type` gives them.

How to read each field is found out once for a kind of message. A field that knows whether it is set, and is
not, is None.
"""

import datetime
from collections.abc import Callable
from typing import Any, Final

from ottla.pipelines.columns.misfits import Misfit

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_TIMESTAMP: Final = "google.protobuf.Timestamp"

Read = Callable[[Any], Any]


def row_reader(descriptor: Any, cuts_nanoseconds: bool = False) -> Callable[[Any], dict[str, Any]]:
    """Return what makes a row of a message. It raises Misfit."""
    readers = [(field, _read_field(field, cuts_nanoseconds)) for field in descriptor.fields]
    always = [(field.name, take) for field, take in readers if not field.has_presence]
    if_set = [(field.name, take) for field, take in readers if field.has_presence]

    def read(message: Any) -> dict[str, Any]:
        name = ""
        row = {}
        try:
            for name, take in always:
                row[name] = take(getattr(message, name))
            for name, take in if_set:
                row[name] = take(getattr(message, name)) if message.HasField(name) else None
        except Misfit as misfit:
            raise misfit.within(name) from None
        return row

    return read


def _read_field(field: Any, cuts: bool) -> Read:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        take_key = _read_key(entry.fields_by_name["key"])
        take_value = _read_single(entry.fields_by_name["value"], cuts)
        return lambda items: {take_key(key): take_value(items[key]) for key in items}
    take = _read_single(field, cuts)
    if field.is_repeated:
        return lambda items: [take(item) for item in items]
    return take


def _read_key(field: Any) -> Callable[[Any], str]:
    if field.cpp_type == field.CPPTYPE_BOOL:
        return lambda key: "true" if key else "false"
    return str


def _read_single(field: Any, cuts: bool) -> Read:
    if field.message_type is not None:
        if field.message_type.full_name == _TIMESTAMP:
            return _cut_time if cuts else _time
        return _read_nested(field.message_type, cuts)
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        # A number that only a newer schema names is what it is.
        return lambda number: names.get(number) or str(number)
    return _as_it_is


def _read_nested(descriptor: Any, cuts: bool) -> Read:
    """Made when it is first needed: a message may contain itself, though no columns can hold that."""
    found: list[Read] = []

    def read(message: Any) -> Any:
        if not found:
            found.append(row_reader(descriptor, cuts))
        return found[0](message)

    return read


def _time(message: Any) -> datetime.datetime:
    if message.nanos % 1000:
        raise Misfit(f"has {message.nanos} nanoseconds, and columns keep microseconds")
    return _cut_time(message)


def _cut_time(message: Any) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)


def _as_it_is(value: Any) -> Any:
    return value
