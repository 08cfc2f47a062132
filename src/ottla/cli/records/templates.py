"""How `ottla consume` prints a record: by name (text, value, json), or by a template as kcat has them.

%t topic   %p partition   %o offset   %T timestamp in ms   %k key   %s value   %h headers
%K and %S  size of key and value in bytes, -1 for none      %R  size of the value as four bytes
%%  a percent sign       \\n \\t \\r \\0 \\\\ \\x41  as in C

In braces a part may have a format:
%{s:hex} %{k:base64}     bytes in hex or base64, of key, value and headers
%{T:iso} %{T:utc}        a time as 2026-01-31T12:00:00.000+01:00, here or in UTC
%{T:s}                   seconds since 1970
%{T:%d.%m.%Y %H:%M}      a time as strftime writes it
"""

import json
import re
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import click

from ottla.records.json_records import PLAIN, encode_bytes, tell, tell_header


class Printable(NamedTuple):
    """A record that was read."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Style(NamedTuple):
    """What varies in all forms. Text has a tab behind a key, if there is one, unless a delimiter is given."""

    key_delimiter: bytes | None = None
    delimiter: bytes = b"\n"
    null: bytes | None = None
    """Printed for a key or value that is none. Without it, text has `(null)` for values, all else nothing."""
    key_format: str = PLAIN
    value_format: str = PLAIN


Printer = Callable[[Printable], bytes]
Part = Callable[[Printable], Any]

_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES: Final = {"n": b"\n", "t": b"\t", "0": b"\0", "r": b"\r", "\\": b"\\"}
_PIECE: Final = re.compile(
    r"(?P<literal>[^%]+)|%(?:\{(?P<part>.):(?P<format>[^}]*)\}|(?P<alone>.?))", re.DOTALL
)
_PARTS: Final[dict[str, Part]] = {
    "t": lambda record: record.topic.encode(),
    "p": lambda record: b"%d" % record.partition,
    "o": lambda record: b"%d" % record.offset,
    "T": lambda record: b"%d" % record.timestamp_ms,
    "k": lambda record: record.key,
    "s": lambda record: record.value,
    "K": lambda record: b"%d" % _size(record.key),
    "S": lambda record: b"%d" % _size(record.value),
    "R": lambda record: struct.pack(">i", _size(record.value)),
    "h": lambda record: b",".join(name.encode() + b"=" + (value or b"") for name, value in record.headers),
    "%": lambda _: b"%",
}


def printer_for(form: str, template: str | None, style: Style = Style()) -> Printer:  # noqa: B008 - it is frozen
    """Return the function that makes of a record what is printed."""
    if template is not None:
        return _by_template(template, style)
    return {"text": _as_text, "value": _as_value, "json": _as_json}[form](style)


def unescape(text: str) -> bytes:
    """Read escapes as in C. An unknown one stays as it is."""
    pieces: list[bytes] = []
    end = 0
    for found in _ESCAPE.finditer(text):
        pieces.append(_raw(text[end : found.start()]))
        end = found.end()
        name = found[1]
        if len(name) > 1:
            pieces.append(bytes.fromhex(name[1:]))
        else:
            pieces.append(_ESCAPES.get(name, _raw(found[0])))
    return b"".join([*pieces, _raw(text[end:])])


def _raw(text: str) -> bytes:
    # As the shell gave it: bytes that are no text come as surrogates.
    return text.encode("utf-8", "surrogateescape")


def _as_value(style: Style) -> Printer:
    null = style.null or b""
    return lambda record: _shown(record.value, style.value_format, null) + style.delimiter


def _as_text(style: Style) -> Printer:
    null = style.null or b"(null)"

    def print_text(record: Printable) -> bytes:
        key = b""
        if style.key_delimiter is not None:
            key = _shown(record.key, style.key_format, style.null or b"") + style.key_delimiter
        elif record.key is not None:
            key = _shown(record.key, style.key_format, b"") + b"\t"
        return key + _shown(record.value, style.value_format, null) + style.delimiter

    return print_text


def _as_json(style: Style) -> Printer:
    def print_json(record: Printable) -> bytes:
        key, key_encoding = tell(record.key, style.key_format)
        value, value_encoding = tell(record.value, style.value_format)
        fields: dict[str, Any] = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp_ms": record.timestamp_ms,
            "key": key,
            "value": value,
            "headers": [tell_header(*header) for header in record.headers],
        }
        if key_encoding is not None:
            fields["key_encoding"] = key_encoding
        if value_encoding is not None:
            fields["value_encoding"] = value_encoding
        return json.dumps(fields).encode() + style.delimiter

    return print_json


def _by_template(template: str, style: Style) -> Printer:
    pieces: list[Printer] = []
    for found in _PIECE.finditer(template):
        if found["literal"]:
            pieces.append(_constant(unescape(found["literal"])))
        elif found["part"]:
            pieces.append(_with_format(found["part"], found["format"], style))
        else:
            pieces.append(_part(found["alone"], style))
    return lambda record: b"".join(piece(record) for piece in pieces)


def _part(name: str, style: Style) -> Printer:
    part = _PARTS.get(name)
    if part is None:
        known = " ".join(f"%{known}" for known in _PARTS)
        raise click.BadParameter(f"unknown part %{name}; use one of: {known}", param_hint="-f")
    form = {"k": style.key_format, "s": style.value_format}.get(name, PLAIN)
    return lambda record: _shown(part(record), form, style.null or b"")


def _with_format(name: str, form: str, style: Style) -> Printer:
    if name == "T" and form:
        return _time_printer(form)
    if name in ("k", "s", "h") and form in ("hex", "base64"):
        if name == "h":
            return lambda record: b",".join(
                header.encode() + b"=" + _shown(value, form, b"") for header, value in record.headers
            )
        return lambda record: _shown(_PARTS[name](record), form, style.null or b"")
    raise click.BadParameter(
        f"unknown format %{{{name}:{form}}}; keys, values and headers take hex and base64; T takes iso, utc, "
        "s and any strftime format",
        param_hint="-f",
    )


def _time_printer(form: str) -> Printer:
    def shown(record: Printable) -> bytes:
        if form == "s":
            return b"%d" % (record.timestamp_ms // 1000)
        try:
            moment = datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)
            if form == "utc":
                return moment.isoformat(timespec="milliseconds").encode()
            moment = moment.astimezone()
        except (ValueError, OverflowError, OSError):
            # A producer may write any number, and no calendar has a day for some.
            return b"%d" % record.timestamp_ms
        return (
            moment.isoformat(timespec="milliseconds") if form == "iso" else moment.strftime(form)
        ).encode()

    return shown


def _shown(content: bytes | None, form: str, null: bytes) -> bytes:
    if content is None:
        return null
    return content if form == PLAIN else encode_bytes(content, form).encode()


def _size(content: bytes | None) -> int:
    return -1 if content is None else len(content)


def _constant(text: bytes) -> Printer:
    return lambda _: text
