"""Records that a visitor writes: one from a form, or many from lines of JSON or CSV.

All of them are read and checked before the first is sent.
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.client.producer import Producer
from ottla.records.codec import Headers
from ottla.records.json_records import ENCODINGS, PLAIN, check_fields, decode_bytes, told, told_header

MANY_MAX: Final = 100_000
_CSV_FIELDS: Final = ("key", "value", "partition", "timestamp_ms")


class UnreadableInput(ValueError):
    """What was typed in or uploaded is not what it should be."""


class NewRecord(NamedTuple):
    """A record that is to be written."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class Written(NamedTuple):
    """Where a record is now."""

    partition: int
    offset: int


def encoded(text: str, encoding: str) -> bytes:
    """Return the bytes that a field of a form stands for. Raises UnreadableInput."""
    if encoding not in ENCODINGS:
        raise UnreadableInput(f"{encoding[:20]!r} is not one of {', '.join(ENCODINGS)}")
    if encoding == PLAIN:
        # Browsers send ends of lines as two characters.
        return text.replace("\r\n", "\n").encode(errors="surrogateescape")
    try:
        return decode_bytes("".join(text.split()), encoding)
    except ValueError as error:
        raise UnreadableInput(str(error)) from error


def read_headers(text: str) -> Headers:
    """Read headers, one in a line: `name: value`. Raises UnreadableInput."""
    headers = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, colon, value = line.partition(":")
        if not colon:
            raise UnreadableInput(f"line {number} of the headers is not `name: value`")
        headers.append((name.strip(), value.strip().encode()))
    return tuple(headers)


def read_many(text: str, form: str) -> list[NewRecord]:
    """Read records from JSON lines, as `ottla consume --json` prints them, or from CSV with a head.

    Raises UnreadableInput, with the line.
    """
    records: list[NewRecord] = []
    text = text.replace("\r\n", "\n")
    rows = _csv_rows(text) if form == "csv" else _json_rows(text)
    for number, row in rows:
        try:
            records.append(_record(row))
        except (ValueError, TypeError) as error:
            raise UnreadableInput(f"line {number}: {error}") from error
        if len(records) > MANY_MAX:
            raise UnreadableInput(f"these are more than {MANY_MAX:,} records: use `ottla produce`")
    if not records:
        raise UnreadableInput("there is no record in it")
    return records


def _json_rows(text: str) -> Any:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                row = json.loads(line)
                check_fields(row)
            except ValueError as error:
                raise UnreadableInput(f"line {number}: {error}") from error
            yield number, row


def _csv_rows(text: str) -> Any:
    reader = csv.DictReader(io.StringIO(text))
    unknown = [name for name in reader.fieldnames or () if name not in _CSV_FIELDS]
    if unknown or "value" not in (reader.fieldnames or ()):
        raise UnreadableInput(
            f"the first line must name the columns: value, and any of {', '.join(_CSV_FIELDS)}"
            + (f"; there is no {unknown[0]!r}" if unknown else "")
        )
    for row in reader:
        numbers: dict[str, int] = {}
        for name in ("partition", "timestamp_ms"):
            if row.get(name):
                if not row[name].isdecimal():
                    raise UnreadableInput(f"line {reader.line_num}: {row[name][:20]!r} is no {name}")
                numbers[name] = int(row[name])
        yield reader.line_num, {"key": row.get("key") or None, "value": row["value"], **numbers}


def _record(row: Mapping[str, Any]) -> NewRecord:
    partition, timestamp_ms = row.get("partition"), row.get("timestamp_ms")
    for number in (partition, timestamp_ms):
        if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 0):
            raise ValueError(f"{number!r} is not a number of 0 or more")
    return NewRecord(
        told(row.get("key"), row.get("key_encoding")),
        told(row["value"], row.get("value_encoding")),
        tuple(told_header(item) for item in row.get("headers") or ()),
        partition,
        timestamp_ms,
    )


async def send_all(properties: Mapping[str, Any], topic: str, records: Sequence[NewRecord]) -> list[Written]:
    """Write records, and return where they are. Raises ClientError: then some may have been written."""
    settings = {**properties, "acks": "all"}
    for name in ("default.api.timeout.ms", "socket.connection.setup.timeout.ms"):
        settings.pop(name, None)
    async with Producer(properties=settings) as producer:
        sent = [
            await producer.send(
                topic,
                record.value,
                key=record.key,
                partition=record.partition,
                timestamp_ms=record.timestamp_ms,
                headers=record.headers,
            )
            for record in records
        ]
        return [Written(found.partition, found.offset) for found in [await one for one in sent]]
