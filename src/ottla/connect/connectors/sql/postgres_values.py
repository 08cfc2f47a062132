"""Values of PostgreSQL, from the text that the server shows.

Rows that are there, changes in the log, and rows of a query come as the same text, since they are read in
sessions with the same settings. So a value has one form, wherever it is read. Types without a counterpart
stay that text: arrays, ranges, `timetz`, intervals and others.
"""

import datetime
import re
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final, NoReturn

from ottla.connect.data.schema import (
    BOOLEAN,
    BYTES,
    DATE,
    DATE_SCHEMA,
    DECIMAL,
    FLOAT64,
    INT32,
    INT64,
    TIME,
    TIME_SCHEMA,
    TIMESTAMP,
    TIMESTAMP_SCHEMA,
    Schema,
    Type,
    decimal_schema,
)
from ottla.connect.data.schema import STRING as TEXT
from ottla.connect.errors import DataError

SESSION: Final = (
    "SET TIME ZONE 'UTC'",
    "SET DateStyle = 'ISO'",
    "SET IntervalStyle = 'postgres'",
    "SET bytea_output = 'hex'",
    "SET extra_float_digits = 3",
)
"""What a session is set to, so that the text of a value does not depend on the server's configuration."""

BOOL_OID, BYTEA_OID, INT8_OID, INT2_OID, INT4_OID = 16, 17, 20, 21, 23
FLOAT4_OID, FLOAT8_OID, DATE_OID, TIME_OID, TIMESTAMP_OID = 700, 701, 1082, 1083, 1114
TIMESTAMPTZ_OID, NUMERIC_OID = 1184, 1700
_SCHEMAS: Final = {
    BOOL_OID: BOOLEAN,
    BYTEA_OID: BYTES,
    INT2_OID: Schema(Type.INT16),
    INT4_OID: INT32,
    INT8_OID: INT64,
    FLOAT4_OID: Schema(Type.FLOAT32),
    FLOAT8_OID: FLOAT64,
    DATE_OID: DATE_SCHEMA,
    TIME_OID: TIME_SCHEMA,
    TIMESTAMP_OID: TIMESTAMP_SCHEMA,
    TIMESTAMPTZ_OID: TIMESTAMP_SCHEMA,
}
# PostgreSQL keeps the scale of a number in the lower half of the modifier, four above zero.
MODIFIER_BASE: Final = 4
_SCALE_MASK: Final = 0x7FF
_SCALE_MAX: Final = 1000

_DEBEZIUM: Final = "io.debezium.time."
_DAYS, _MILLIS, _MICROS = f"{_DEBEZIUM}Date", f"{_DEBEZIUM}Time", f"{_DEBEZIUM}MicroTime"
_STAMP_MILLIS, _STAMP_MICROS = f"{_DEBEZIUM}Timestamp", f"{_DEBEZIUM}MicroTimestamp"
_ZONED: Final = f"{_DEBEZIUM}ZonedTimestamp"
_MILLI_DIGITS: Final = 3
_MICRO_DIGITS: Final = 6
_TYPED_ZONED: Final = Schema(Type.STRING, name=_ZONED, version=1)

_CLOCK: Final = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:\.(?P<fraction>\d{1,6}))?"
_CALENDAR: Final = r"(?P<year>\d{4,})-(?P<month>\d\d)-(?P<day>\d\d)"
_TIME_TEXT: Final = re.compile(_CLOCK)
_DATE_TEXT: Final = re.compile(rf"{_CALENDAR}(?P<bc> BC)?")
_STAMP_TEXT: Final = re.compile(rf"{_CALENDAR} {_CLOCK}(?:\+00)?(?P<bc> BC)?")
_DAY_US: Final = 86_400_000_000


class Precision(StrEnum):
    """How times are written, by Debezium's names."""

    ADAPTIVE = "adaptive"
    """As numbers with the precision of the column: milliseconds or microseconds."""
    MICROSECONDS = "adaptive_time_microseconds"
    """The same, with times of a day always in microseconds."""
    CONNECT = "connect"
    """As Connect's own types, in milliseconds."""


class Decimals(StrEnum):
    """How decimals are written, by Debezium's names."""

    PRECISE = "precise"
    """As Connect's own type, or as text if the column has no scale."""
    DOUBLE = "double"
    STRING = "string"


def schema_of(
    oid: int,
    modifier: int,
    precision: Precision = Precision.CONNECT,
    decimals: Decimals = Decimals.PRECISE,
) -> Schema:
    """Return the schema of a type of PostgreSQL."""
    if oid == NUMERIC_OID and decimals is not Decimals.PRECISE:
        return FLOAT64 if decimals is Decimals.DOUBLE else TEXT
    if oid == NUMERIC_OID and modifier >= MODIFIER_BASE:
        scale = (modifier - MODIFIER_BASE) & _SCALE_MASK
        # From version 15 on a scale may be negative. Such numbers are whole ones.
        return decimal_schema(scale if scale <= _SCALE_MAX else 0)
    if precision is not Precision.CONNECT:
        is_short = 0 <= modifier <= _MILLI_DIGITS
        match oid:
            case 1082:
                return Schema(Type.INT32, name=_DAYS, version=1)
            case 1083 if is_short and precision is Precision.ADAPTIVE:
                return Schema(Type.INT32, name=_MILLIS, version=1)
            case 1083:
                return Schema(Type.INT64, name=_MICROS, version=1)
            case 1114:
                return Schema(Type.INT64, name=_STAMP_MILLIS if is_short else _STAMP_MICROS, version=1)
            case 1184:
                return _TYPED_ZONED
    # Numbers without a scale can have any number of digits, which only text keeps.
    return _SCHEMAS.get(oid, TEXT)


def from_text(schema: Schema, text: str) -> Any:
    """Read a value as PostgreSQL writes it. Raises DataError for one that the schema cannot have."""
    match schema.name:
        case name if name == DECIMAL:
            number = Decimal(text)
            return number if number.is_finite() else _refuse(text, "a decimal has digits")
        case name if name in (DATE, _DAYS):
            days = _days(_matched(_DATE_TEXT, text))
            return days if name == _DAYS else _in_calendar(text, days * _DAY_US).date()
        case name if name in (TIME, _MILLIS, _MICROS):
            return _time_of_day(schema, text)
        case name if name in (TIMESTAMP, _STAMP_MILLIS, _STAMP_MICROS, _ZONED):
            return _timestamp(schema, text)
    match schema.type:
        case Type.BOOLEAN:
            return text == "t"
        case Type.INT16 | Type.INT32 | Type.INT64:
            return int(text)
        case Type.FLOAT32 | Type.FLOAT64:
            return float(text)
        case Type.BYTES:
            return bytes.fromhex(text.removeprefix("\\x"))
    return text


def _time_of_day(schema: Schema, text: str) -> Any:
    micros = _micros(_matched(_TIME_TEXT, text))
    if schema.name == _MILLIS:
        return micros // 1000
    if schema.name == _MICROS:
        return micros
    if micros >= _DAY_US:
        _refuse(text, "a time of Connect ends before 24:00")
    return (datetime.datetime.min + datetime.timedelta(microseconds=micros)).time()


def _timestamp(schema: Schema, text: str) -> Any:
    found = _matched(_STAMP_TEXT, text)
    micros = _days(found) * _DAY_US + _micros(found)
    if schema.name == _STAMP_MILLIS:
        return micros // 1000
    if schema.name == _STAMP_MICROS:
        return micros
    when = _in_calendar(text, micros)
    if schema.name == _ZONED:
        return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ").zfill(len("2000-01-01T00:00:00.000000Z"))
    return when


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    return _refuse(text, "it is not one day or time") if found is None else found


def _micros(found: re.Match[str]) -> int:
    seconds = (int(found["hour"]) * 60 + int(found["minute"])) * 60 + int(found["second"])
    return seconds * 1_000_000 + int((found["fraction"] or "").ljust(_MICRO_DIGITS, "0"))


def _days(found: re.Match[str]) -> int:
    """Return the days since 1970 of a date, also of one that Python's calendar does not have."""
    year = 1 - int(found["year"]) if found["bc"] else int(found["year"])
    # The calendar repeats itself every 400 years, which have 146,097 days.
    cycles, within = divmod(year, 400)
    day = datetime.date(2000 + within, int(found["month"]), int(found["day"]))
    return day.toordinal() - datetime.date(1970, 1, 1).toordinal() + (cycles - 5) * 146_097


def _in_calendar(text: str, micros: int) -> datetime.datetime:
    try:
        return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=micros)
    except OverflowError:
        return _refuse(text, "only the years 1 to 9999 are possible")


def _refuse(text: str, reason: str) -> NoReturn:
    raise DataError(f"{text!r} cannot be converted: {reason}")
