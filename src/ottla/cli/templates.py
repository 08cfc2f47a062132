"""How `ottla consume` prints a record: by name (text, value, json), or by a template as kcat has them.

%t topic   %p partition   %o offset   %T timestamp in ms   %k key   %s value   %h headers
%K and %S  size of key and value in bytes, -1 for none      %%  a percent sign    \\n \\t \\0  as in C
"""

import json
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import click


class Printable(NamedTuple):
    """A record that was read."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


Printer = Callable[[Printable], bytes]

_ESCAPES: Final = {"\\n": "\n", "\\t": "\t", "\\0": "\0", "\\r": "\r", "\\\\": "\\"}
_PARTS: Final[dict[str, Printer]] = {
    "t": lambda record: record.topic.encode(),
    "p": lambda record: b"%d" % record.partition,
    "o": lambda record: b"%d" % record.offset,
    "T": lambda record: b"%d" % record.timestamp_ms,
    "k": lambda record: record.key or b"",
    "s": lambda record: record.value or b"",
    "K": lambda record: b"%d" % (-1 if record.key is None else len(record.key)),
    "S": lambda record: b"%d" % (-1 if record.value is None else len(record.value)),
    "h": lambda record: b",".join(name.encode() + b"=" + (value or b"") for name, value in record.headers),
    "%": lambda _: b"%",
}


def printer_for(form: str, template: str | None) -> Printer:
    """Return the function that makes of a record what is printed."""
    if template is not None:
        return _by_template(template)
    return {"text": _as_text, "value": _as_value, "json": _as_json}[form]


def _as_value(record: Printable) -> bytes:
    return (record.value or b"") + b"\n"


def _as_text(record: Printable) -> bytes:
    key = b"" if record.key is None else record.key + b"\t"
    return key + (b"(null)" if record.value is None else record.value) + b"\n"


def _as_json(record: Printable) -> bytes:
    fields: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [[name, _text(value)] for name, value in record.headers],
    }
    return json.dumps(fields).encode() + b"\n"


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode("utf-8", "replace")


def _by_template(template: str) -> Printer:
    for escape, character in _ESCAPES.items():
        template = template.replace(escape, character)
    pieces: list[Printer] = []
    for literal, name in re.findall(r"([^%]+)|%(.?)", template):
        if literal:
            pieces.append(_constant(literal.encode()))
        elif name in _PARTS:
            pieces.append(_PARTS[name])
        else:
            known = " ".join(f"%{part}" for part in _PARTS)
            raise click.BadParameter(f"there is no %{name}; there are: {known}", param_hint="-f")
    return lambda record: b"".join(piece(record) for piece in pieces)


def _constant(text: bytes) -> Printer:
    return lambda _: text
