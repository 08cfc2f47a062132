"""Records of a topic: the list, newest first, and one record."""

import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from starlette.responses import Response

from ottla.client.fetching import IsolationLevel
from ottla.console.looks.decoding import Decoded
from ottla.console.looks.exporting import record_row
from ottla.console.looks.places import UnreadablePlace, decode_offsets, encode_offsets, parse_time
from ottla.console.looks.records import Listed, RecordPage, StoredRecord, read_newest, read_one
from ottla.console.looks.values import SHOWN_BYTES_MAX, Shown, as_hex, pretty, preview
from ottla.console.serving.call import Call, json_answer
from ottla.model.ids import TopicPartition
from ottla.records.attributes import TimestampType
from ottla.satellite.errors import HttpError

_FORMS: Final = ("pretty", "raw", "hex")
_HEADERS_SHOWN: Final = 200
_HEX_BYTES_MAX: Final = SHOWN_BYTES_MAX // 4
_AT_ONCE_MAX: Final = 500


class RecordLine(NamedTuple):
    """A record in the list."""

    record: StoredRecord
    is_late: bool
    key: Shown
    value: Shown
    decoded_key: Decoded
    decoded_value: Decoded


async def records(call: Call) -> Response:
    """Show a page of the list."""
    name = call.path["topic"]
    page = await _read_page(call, name)
    return call.page(
        "records.html",
        place="topics",
        tab="records",
        topic=name,
        page=page,
        lines=await record_lines(call, page.rows),
        older=encode_offsets(page.before) if page.has_older else None,
        total=sum(page.ends[number] - start for number, start in page.starts.items() if number in page.ends),
        now_ms=now_ms(),
        params=dict(call.query),
    )


async def _read_page(call: Call, name: str) -> RecordPage:
    try:
        before = decode_offsets(call.text("before"))
        at = call.text("at")
        before_ms = parse_time(at, now_ms()) if at else None
    except UnreadablePlace as error:
        raise HttpError(400, str(error)) from error
    partition, offset = call.number("partition"), call.number("offset")
    if offset is not None:
        if partition is None:
            raise HttpError(400, "an offset is one of a partition: choose it, too")
        before = {partition: offset + 1}
    committed = call.flag("committed")
    return await read_newest(
        call.visit.access.cluster,
        name,
        partitions=() if partition is None else (partition,),
        before=before,
        before_ms=before_ms,
        isolation=IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED,
        count=min(max(call.number("count", 50) or 50, 1), _AT_ONCE_MAX),
    )


def now_ms() -> int:
    """Return the time."""
    return int(time.time() * 1000)


async def record_lines(call: Call, rows: Sequence[Listed]) -> list[RecordLine]:
    """Return records as lists show them."""
    found = [listed.record for listed in rows]
    keys, values = await decode_records(call, found)
    return [
        RecordLine(
            listed.record,
            listed.is_late,
            preview(_encoded(key, listed.record.key)),
            preview(_encoded(value, listed.record.value)),
            key,
            value,
        )
        for listed, key, value in zip(rows, keys, values, strict=True)
    ]


async def decode_records(call: Call, found: Sequence[StoredRecord]) -> tuple[list[Decoded], list[Decoded]]:
    """Decode keys and values of records, as far as a registry knows them."""
    keys = await call.visit.decoding.decode_all([(item.key, item.headers, True) for item in found])
    values = await call.visit.decoding.decode_all([(item.value, item.headers, False) for item in found])
    return keys, values


def _encoded(decoded: Decoded, data: bytes | None) -> bytes | None:
    return data if decoded.text is None else decoded.text.encode(errors="backslashreplace")


async def record(call: Call) -> Response:
    """Show one record: pretty, raw or as hexadecimal."""
    found = await _one(call)
    form = call.text("as") or "pretty"
    if form not in _FORMS:
        raise HttpError(400, f"a record is shown as one of {', '.join(_FORMS)}")
    (decoded_key,), (decoded_value,) = await decode_records(call, [found])
    return call.page(
        "record.html",
        place="topics",
        tab="records",
        topic=found.where.topic,
        record=found,
        form=form,
        forms=_FORMS,
        key=_shown(found.key, decoded_key, form),
        value=_shown(found.value, decoded_value, form),
        decoded_key=decoded_key,
        decoded_value=decoded_value,
        headers=[(name, preview(value)) for name, value in found.headers[:_HEADERS_SHOWN]],
        headers_left=max(0, len(found.headers) - _HEADERS_SHOWN),
        by_broker=found.timestamp_type is TimestampType.LOG_APPEND_TIME,
    )


async def _one(call: Call) -> StoredRecord:
    where = TopicPartition(call.path["topic"], _number(call.path["partition"]))
    offset = _number(call.path["offset"])
    found = await read_one(call.visit.access.cluster, where, offset)
    if found is None:
        raise HttpError(
            404,
            f"{where} has no record at offset {offset}: it was deleted or compacted, is the marker of a "
            "transaction, or is not written yet",
        )
    return found


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 19:
        raise HttpError(404, f"{text[:40]!r} is not a number of a partition or an offset")
    return int(text)


def _shown(data: bytes | None, decoded: Decoded, form: str) -> Shown:
    if data is None or not data:
        return pretty(data)
    if form == "hex":
        return Shown("hex", as_hex(data[:_HEX_BYTES_MAX]), len(data), len(data) > _HEX_BYTES_MAX)
    if form == "raw":
        text = data[:SHOWN_BYTES_MAX].decode(errors="backslashreplace")
        return Shown("raw", text, len(data), len(data) > SHOWN_BYTES_MAX)
    return pretty(_encoded(decoded, data))._replace(size=len(data))


async def record_bytes(call: Call) -> Response:
    """Give a key or a value as a file: no browser shows it as a page."""
    found = await _one(call)
    part = call.path["part"]
    if part not in ("key", "value"):
        raise HttpError(404, "a record has a key and a value")
    data = found.key if part == "key" else found.value
    file_name = f"{found.where.topic}-{found.where.partition}-{found.offset}.{part}"
    return Response(
        data or b"",
        media_type="application/octet-stream",
        headers={"content-disposition": f'attachment; filename="{file_name}"'},
    )


async def record_rows(call: Call) -> Response:
    """Answer with a page of records as `ottla consume --json` prints each, newest first."""
    page = await _read_page(call, call.path["topic"])
    return json_answer(
        {
            "records": [record_row(listed.record) for listed in page.rows],
            "before": encode_offsets(page.before) if page.has_older else None,
            "troubles": dict(page.troubles),
        }
    )
