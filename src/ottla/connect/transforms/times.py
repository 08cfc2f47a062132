"""The transformation of times: between text, seconds, dates and Connect's own types."""

import datetime
from dataclasses import replace
from typing import Any, Final

from ottla.connect.configs.keys import Importance, Key, Kind, one_of
from ottla.connect.data.record import Record
from ottla.connect.data.schema import (
    DATE_SCHEMA,
    EPOCH,
    INT64,
    STRING,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    Field,
    Schema,
    from_ms,
    to_ms,
)
from ottla.connect.errors import DataError
from ottla.connect.plugins import Config, Plugin, PluginKind
from ottla.connect.transforms.java_dates import format_date, parse_date
from ottla.connect.transforms.sides import Side, on_key, on_value

_CLASS: Final = "org.apache.kafka.connect.transforms.TimestampConverter"
_NANOS: Final = {
    "seconds": 1_000_000_000,
    "milliseconds": 1_000_000,
    "microseconds": 1_000,
    "nanoseconds": 1,
}
_MS_NANOS: Final = _NANOS["milliseconds"]
_SCHEMAS: Final = {
    "string": STRING,
    "unix": INT64,
    "Date": DATE_SCHEMA,
    "Time": TIME_SCHEMA,
    "Timestamp": TIMESTAMP_SCHEMA,
}


class TimestampConverter:
    """Changes how a time is written, in one field or in the whole part."""

    def __init__(self, config: Config, side: Side) -> None:
        self._side = side
        self._field = config.get("field", "")
        self._target = config["target.type"]
        self._format = config.get("format", "")
        self._unit = config.get("unix.precision", "milliseconds")
        if self._target == "string" and not self._format:
            raise DataError(
                "TimestampConverter requires format option to be specified when using string timestamps"
            )

    def apply(self, record: Record) -> Record:
        """Return the record with the time in another form."""
        schema, value = self._side.get(record)
        if not self._field:
            return self._side.put(record, self._changed(schema), self._convert(value))
        if value is None:
            return record
        schema, fields = self._side.fields(record, "converting timestamp formats")
        cells = {name: self._convert(cell) if name == self._field else cell for name, cell in fields.items()}
        if schema is None:
            return self._side.put(record, None, cells)
        declared = tuple(
            Field(item.name, self._changed(item.schema) or item.schema) if item.name == self._field else item
            for item in schema.fields
        )
        return self._side.put(record, replace(schema, fields=declared), cells)

    def _changed(self, schema: Schema | None) -> Schema | None:
        return None if schema is None else replace(_SCHEMAS[self._target], is_optional=schema.is_optional)

    def _convert(self, value: Any) -> Any:
        if value is None:
            return None
        when = self._read(value)
        match self._target:
            case "string":
                return format_date(self._format, when)
            case "unix":
                return _scaled(to_ms(when), _MS_NANOS, _NANOS[self._unit])
            case "Date":
                return when.date()
            case "Time":
                return when.time()
        return when

    def _read(self, value: Any) -> datetime.datetime:
        if isinstance(value, datetime.datetime):
            return value
        if isinstance(value, datetime.date):
            return datetime.datetime.combine(value, datetime.time(), datetime.UTC)
        if isinstance(value, datetime.time):
            return datetime.datetime.combine(EPOCH.date(), value, datetime.UTC)
        if isinstance(value, int) and not isinstance(value, bool):
            return from_ms(_scaled(value, _NANOS[self._unit], _MS_NANOS))
        if isinstance(value, str) and self._format:
            return parse_date(self._format, value)
        raise DataError(f"{value!r} is not a time")


def _scaled(value: int, unit: int, other: int) -> int:
    """Return a number of one unit in another. What is left over goes, towards zero as in Java."""
    scaled = abs(value) * unit // other
    return scaled if value >= 0 else -scaled


_KEYS: Final = (
    Key("field", Kind.STRING, "The field with the time. Empty: the whole key or value.", ""),
    Key("target.type", Kind.STRING, "string, unix, Date, Time or Timestamp.", check=one_of(*_SCHEMAS)),
    Key(
        "format",
        Kind.STRING,
        "The pattern of text, as Java's SimpleDateFormat has it.",
        "",
        Importance.MEDIUM,
    ),
    Key(
        "unix.precision",
        Kind.STRING,
        "The unit of numbers.",
        "milliseconds",
        Importance.LOW,
        check=one_of(*_NANOS),
    ),
)
PLUGINS: Final = (
    Plugin(f"{_CLASS}$Key", PluginKind.TRANSFORMATION, on_key(TimestampConverter), _KEYS),
    Plugin(f"{_CLASS}$Value", PluginKind.TRANSFORMATION, on_value(TimestampConverter), _KEYS),
)
