"""A record as a line of JSON: what `consume --json` prints and `produce --format json` takes.

    {"topic": "t", "partition": 0, "offset": 7, "timestamp_ms": 1, "key": null, "value": "v", "headers": []}

Bytes that are text (UTF-8) are shown as text. Others are shown in base64, and `key_encoding`,
`value_encoding` or a third item of the header say so: nothing is lost on the way, and what is text stays
readable.
"""

import base64
import binascii
from difflib import get_close_matches
from typing import Any, Final

PLAIN: Final = "text"
ENCODINGS: Final = ("text", "hex", "base64")
FIELDS: Final = (
    "topic",
    "partition",
    "offset",
    "timestamp_ms",
    "key",
    "key_encoding",
    "value",
    "value_encoding",
    "headers",
)


def check_fields(given: Any) -> None:
    """Raise ValueError if an object is no record: a field with a typo would be left out in silence."""
    if not isinstance(given, dict):
        raise ValueError("it is not an object")  # noqa: TRY004 - what is wrong is the text
    for name in given:
        if name not in FIELDS:
            near = get_close_matches(name, FIELDS, 1)
            meant = f"did you mean {near[0]!r}?" if near else f"it may have {', '.join(FIELDS)}"
            raise ValueError(f"there is no field {name!r}; {meant}")
    if "value" not in given:
        raise ValueError('it has no value; write "value": null if it is to delete what its key stands for')


def encode_bytes(content: bytes, encoding: str) -> str:
    """Write bytes in hex or base64."""
    return content.hex() if encoding == "hex" else base64.b64encode(content).decode()


def decode_bytes(text: str | bytes, encoding: str) -> bytes:
    """Read what `encode_bytes` wrote. Raises ValueError for anything else."""
    if encoding == "hex":
        return bytes.fromhex(text if isinstance(text, str) else text.decode("ascii"))
    if encoding == "base64":
        try:
            return base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise ValueError(f"{text!r} is not base64: {error}") from error
    raise ValueError(f"unknown encoding {encoding!r}: use one of {', '.join(ENCODINGS)}")


def tell(content: bytes | None, encoding: str = PLAIN) -> tuple[str | None, str | None]:
    """Return what stands in JSON for some bytes, and its encoding, None for text."""
    if content is None:
        return None, None
    if encoding == PLAIN:
        try:
            return content.decode(), None
        except UnicodeDecodeError:
            encoding = "base64"
    return encode_bytes(content, encoding), encoding


def told(value: Any, encoding: Any) -> bytes | None:
    """Return the bytes that something in JSON stands for. What is neither text nor null is its JSON."""
    import json

    if value is None:
        return None
    if encoding not in (None, PLAIN):
        if not isinstance(value, str):
            raise ValueError(f"a value encoded as {encoding} must be a string")
        return decode_bytes(value, encoding)
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


def tell_header(name: str, value: bytes | None) -> list[str | None]:
    """Return a header: name, value, and the encoding where it is not text."""
    text, encoding = tell(value)
    return [name, text] if encoding is None else [name, text, encoding]


def told_header(item: Any) -> tuple[str, bytes | None]:
    """Return the header that `tell_header` wrote."""
    if not isinstance(item, list) or not 2 <= len(item) <= 3 or not isinstance(item[0], str):
        raise ValueError('a header must be ["name", "value"]')
    return item[0], told(item[1], item[2] if len(item) == 3 else None)
