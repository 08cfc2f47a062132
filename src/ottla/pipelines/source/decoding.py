"""How a source decodes values where it reads them, so that no other process has to.

It is said in an option, as JSON: a source is pickled, and its options are texts. A row then has two columns
more: what was read, and why it could not be. The value itself is left out unless it could not be read.
"""

import json
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ottla.pipelines.columns.json_values import JsonColumns
from ottla.pipelines.columns.misfits import decode_rows

DECODED: Final = "_decoded"
FAULT: Final = "_fault"


class JsonDecoding(NamedTuple):
    """What is allowed, the zone of times that name none, and what is wrong with a value that is null."""

    allowed: tuple[str, ...]
    zone: str
    tombstone_fault: str | None

    def to_text(self, columns: str) -> str:
        """Return it as an option, with the columns as Spark has them in JSON."""
        return json.dumps({**self._asdict(), "columns": json.loads(columns)})


def parse_decoding(text: str) -> JsonDecoding:
    """Read an option."""
    content = json.loads(text)
    return JsonDecoding(tuple(content["allowed"]), content["zone"], content["tombstone_fault"])


def decode_json(kind: Any, decoding: JsonDecoding, values: Any) -> Any:
    """Return a struct of what was read, and of why it could not be. Raises InvalidSchema for the type."""
    return decode_rows(kind, json_columns(kind, decoding).row, values, decoding.tombstone_fault)


@cache
def json_columns(kind: Any, decoding: JsonDecoding) -> JsonColumns:
    """Return what decodes JSON. A worker makes it once."""
    return JsonColumns(kind, decoding.allowed, decoding.zone)


def make_decode(schema: Any, text: str | None) -> Callable[[Any], list[Any]] | None:
    """Return what makes the last columns of rows, and the value, from values. None: nothing is decoded."""
    if text is None:
        return None
    decoding = parse_decoding(text)
    kind = schema.field(DECODED).type

    def decode(values: Any) -> list[Any]:
        found = decode_json(kind, decoding, values)
        fault = found.field("fault")
        unread = pc.if_else(fault.is_valid(), values, pa.scalar(None, values.type))
        return [unread, found.field("value"), fault]

    return decode
