"""Write records: one from a form, which may begin as a copy of another, or many from JSON lines or CSV."""

from typing import Final

from starlette.responses import Response

from ottla.console.looks.records import find_partitions, read_one
from ottla.console.looks.sending import (
    NewRecord,
    UnreadableInput,
    Written,
    encoded,
    read_headers,
    read_many,
    send_all,
)
from ottla.console.looks.values import as_text
from ottla.console.serving.call import Call
from ottla.model.ids import TopicPartition
from ottla.model.shown import harmless
from ottla.records.json_records import encode_bytes
from ottla.satellite.errors import HttpError

_PREVIEW: Final = 5
_EDITED_BYTES_MAX: Final = 1 << 20
_EMPTY: Final = dict.fromkeys(
    ("key", "value", "headers", "key_encoding", "value_encoding", "key_null", "value_null", "to", "left_out"),
    "",
)


async def produce_form(call: Call) -> Response:
    """Show the form, empty or filled with a record that is there."""
    fields: dict[str, str] = {}
    partition, offset = call.number("partition"), call.number("offset")
    if partition is not None and offset is not None:
        fields |= await _copied(call, TopicPartition(call.path["topic"], partition), offset)
    return await _form(call, fields)


async def _copied(call: Call, where: TopicPartition, offset: int) -> dict[str, str]:
    found = await read_one(call.visit.access.cluster, where, offset)
    if found is None:
        raise HttpError(404, f"{where} has no record at offset {offset} any more")
    if found.size > _EDITED_BYTES_MAX:
        raise HttpError(413, f"a record of more than {_EDITED_BYTES_MAX >> 20} MiB is not edited in a page")
    fields = {}
    for name, data in (("key", found.key), ("value", found.value)):
        text = _typeable(data or b"")
        fields[name] = encode_bytes(data or b"", "base64") if text is None else text
        fields[f"{name}_encoding"] = "base64" if text is None else "text"
        if data is None:
            fields[f"{name}_null"] = "1"
    headers = [(name, _typeable(value or b"")) for name, value in found.headers]
    kept = [f"{name}: {text}" for name, text in headers if text is not None and "\n" not in text]
    left_out = len(headers) - len(kept)
    return {**fields, "headers": "\n".join(kept), "left_out": str(left_out) if left_out else ""}


def _typeable(data: bytes) -> str | None:
    """Return bytes as a field of a form gives them back, or None if it would change them."""
    text = as_text(data)
    return text if text is not None and "\r" not in text and harmless(text) == text else None


async def _form(
    call: Call,
    fields: dict[str, str],
    *,
    reason: str | None = None,
    written: list[Written] | None = None,
    many: list[NewRecord] | None = None,
    many_text: str = "",
    many_form: str = "jsonl",
) -> Response:
    name = call.path["topic"]
    numbers = await find_partitions(call.visit.access.cluster, name, ())
    return call.page(
        "produce.html",
        400 if reason else 200,
        place="topics",
        tab="produce",
        topic=name,
        numbers=numbers,
        fields={**_EMPTY, **fields},
        reason=reason,
        written=written,
        many=None if many is None else many[:_PREVIEW],
        many_count=len(many or ()),
        many_text=many_text,
        many_form=many_form,
    )


async def produce_one(call: Call) -> Response:
    """Write the record of the form, and say where it is."""
    fields = {name: call.field(name) for name in _EMPTY}
    try:
        record = NewRecord(
            None if fields["key_null"] else encoded(fields["key"], fields["key_encoding"] or "text"),
            None if fields["value_null"] else encoded(fields["value"], fields["value_encoding"] or "text"),
            read_headers(fields["headers"]),
            int(fields["to"]) if fields["to"].isdecimal() else None,
        )
    except UnreadableInput as error:
        return await _form(call, fields, reason=str(error))
    written = await send_all(call.visit.properties, call.path["topic"], [record])
    return await _form(call, fields, written=written)


async def produce_many(call: Call) -> Response:
    """Show what would be written, and write it when that was seen."""
    text, form = call.field("records").replace("\r\n", "\n"), call.field("form") or "jsonl"
    try:
        records = read_many(text, form)
    except UnreadableInput as error:
        return await _form(call, {}, reason=str(error), many_text=text, many_form=form)
    if call.field("sure") != str(len(records)):
        return await _form(call, {}, many=records, many_text=text, many_form=form)
    written = await send_all(call.visit.properties, call.path["topic"], records)
    return await _form(call, {}, written=written)
