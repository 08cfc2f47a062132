"""Values of PostgreSQL, from the text that the server shows."""

import datetime
import re
from decimal import Decimal

import pytest

from ottla.connect.connectors.sql.postgres_values import (
    DATE_OID,
    NUMERIC_OID,
    TIME_OID,
    TIMESTAMP_OID,
    TIMESTAMPTZ_OID,
    Precision,
    from_text,
    schema_of,
)
from ottla.connect.data.schema import (
    BOOLEAN,
    BYTES,
    DATE_SCHEMA,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    Schema,
    decimal_schema,
)
from ottla.connect.errors import DataError

UTC = datetime.UTC
ADAPTIVE = Precision.ADAPTIVE


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (decimal_schema(2), "1.50", Decimal("1.50")),
        (DATE_SCHEMA, "2026-01-02", datetime.date(2026, 1, 2)),
        (DATE_SCHEMA, "0001-01-01", datetime.date.min),
        (DATE_SCHEMA, "9999-12-31", datetime.date.max),
        (TIME_SCHEMA, "01:02:03", datetime.time(1, 2, 3)),
        (TIME_SCHEMA, "23:59:59.5", datetime.time(23, 59, 59, 500_000)),
        (TIMESTAMP_SCHEMA, "2026-01-02 03:04:05", datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        (
            TIMESTAMP_SCHEMA,
            "2026-01-02 03:04:05.000001+00",
            datetime.datetime(2026, 1, 2, 3, 4, 5, 1, tzinfo=UTC),
        ),
        (BOOLEAN, "t", True),
        (BOOLEAN, "f", False),
        (INT32, "-7", -7),
        (INT64, "7", 7),
        (FLOAT64, "1.5", 1.5),
        (FLOAT64, "-Infinity", float("-inf")),
        (BYTES, "\\x00ff", b"\x00\xff"),
        (STRING, "{1,2,NULL}", "{1,2,NULL}"),
    ],
)
def test_values_are_read_as_postgresql_writes_them(schema: Schema, text: str, value: object) -> None:
    found = from_text(schema, text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("oid", "modifier", "text", "name", "value"),
    [
        (DATE_OID, -1, "1970-01-02", "Date", 1),
        (DATE_OID, -1, "0001-12-31 BC", "Date", -719_163),
        (DATE_OID, -1, "4713-01-01 BC", "Date", -2_440_550),
        (DATE_OID, -1, "10000-01-01", "Date", 2_932_897),
        (TIME_OID, -1, "00:00:01.000002", "MicroTime", 1_000_002),
        (TIME_OID, 3, "00:00:01.002", "Time", 1002),
        (TIME_OID, 4, "00:00:01.0002", "MicroTime", 1_000_200),
        (TIME_OID, -1, "24:00:00", "MicroTime", 86_400_000_000),
        (TIMESTAMP_OID, -1, "1970-01-01 00:00:01.000002", "MicroTimestamp", 1_000_002),
        (TIMESTAMP_OID, 3, "1970-01-01 00:00:01.002", "Timestamp", 1002),
        (TIMESTAMP_OID, 0, "1969-12-31 23:59:59", "Timestamp", -1000),
        (TIMESTAMP_OID, 6, "0044-03-15 00:00:00 BC", "MicroTimestamp", -63_517_824_000_000_000),
        (TIMESTAMPTZ_OID, -1, "2026-01-02 03:04:05.1+00", "ZonedTimestamp", "2026-01-02T03:04:05.100000Z"),
        (TIMESTAMPTZ_OID, 3, "0044-01-02 03:04:05+00", "ZonedTimestamp", "0044-01-02T03:04:05.000000Z"),
    ],
)
def test_times_keep_the_precision_of_their_column(
    oid: int, modifier: int, text: str, name: str, value: object
) -> None:
    schema = schema_of(oid, modifier, ADAPTIVE)
    assert schema.name == f"io.debezium.time.{name}"
    assert from_text(schema, text) == value


def test_times_of_a_day_may_always_have_microseconds() -> None:
    schema = schema_of(TIME_OID, 0, Precision.MICROSECONDS)
    assert (schema.name, from_text(schema, "00:00:01")) == ("io.debezium.time.MicroTime", 1_000_000)


@pytest.mark.parametrize(
    ("schema", "text", "reason"),
    [
        (TIMESTAMP_SCHEMA, "infinity", "not one day"),
        (TIMESTAMP_SCHEMA, "0044-03-15 00:00:00 BC", "the years 1 to 9999"),
        (TIMESTAMP_SCHEMA, "10000-01-01 00:00:00+00", "the years 1 to 9999"),
        (DATE_SCHEMA, "-infinity", "not one day"),
        (DATE_SCHEMA, "0001-01-01 BC", "the years 1 to 9999"),
        (TIME_SCHEMA, "24:00:00", "before 24:00"),
        (decimal_schema(2), "NaN", "has digits"),
        (schema_of(DATE_OID, -1, ADAPTIVE), "infinity", "not one day"),
        (schema_of(TIMESTAMP_OID, -1, ADAPTIVE), "infinity", "not one day"),
        (schema_of(TIMESTAMPTZ_OID, -1, ADAPTIVE), "-infinity", "not one day"),
    ],
)
def test_a_value_that_a_schema_cannot_have_is_refused(schema: Schema, text: str, reason: str) -> None:
    with pytest.raises(DataError, match=f"{re.escape(text)}' cannot be converted: .*{reason}"):
        from_text(schema, text)


@pytest.mark.parametrize(("modifier", "scale"), [(((8 << 16) | 2) + 4, 2), (((2 << 16) | 0x7FD) + 4, 0)])
def test_a_scale_below_zero_is_none(modifier: int, scale: int) -> None:
    assert schema_of(NUMERIC_OID, modifier) == decimal_schema(scale)
