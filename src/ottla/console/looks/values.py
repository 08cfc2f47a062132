"""Bytes of records as people read them: JSON as it was written, text, or hexadecimal.

Numbers are never converted: JSON is laid out again token by token, so 9007199254740993 and 1.10 stay what
they are. Nothing here fails on any bytes.
"""

import re
from typing import Final, NamedTuple

SHOWN_BYTES_MAX: Final = 64 * 1024
"""More of a value is loaded only on demand."""
PREVIEW_CHARACTERS: Final = 240
_INDENT: Final = "  "
_DEPTH_MAX: Final = 200
_TOKEN: Final = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\\x00-\x1f]|\\.)*")|(?P<word>-?[0-9][0-9.eE+-]*|true|false|null)|(?P<mark>[\[\]{},:]))\s*'
)
_HEX_ROW: Final = 16


class Shown(NamedTuple):
    """A key or a value for people."""

    kind: str
    """json, text, binary, empty or null."""
    text: str
    size: int
    is_cut: bool


def preview(data: bytes | None) -> Shown:
    """Return a value in one line of bounded length."""
    if data is None:
        return Shown("null", "", 0, False)
    if not data:
        return Shown("empty", "", 0, False)
    head = data[: PREVIEW_CHARACTERS * 4]
    text = as_text(head, is_part=len(data) > len(head))
    if text is None:
        return Shown("binary", head[:60].hex(" "), len(data), len(data) > 60)
    line = " ".join(text.split())
    kind = "json" if line[:1] in ("{", "[") else "text"
    is_cut = len(line) > PREVIEW_CHARACTERS or len(data) > len(head)
    return Shown(kind, line[:PREVIEW_CHARACTERS], len(data), is_cut)


def pretty(data: bytes | None, limit: int = SHOWN_BYTES_MAX) -> Shown:
    """Return a value laid out, up to a number of bytes."""
    if data is None:
        return Shown("null", "", 0, False)
    if not data:
        return Shown("empty", "", 0, False)
    head, is_cut = data[:limit], len(data) > limit
    text = as_text(head, is_part=is_cut)
    if text is None:
        return Shown("binary", as_hex(head[: limit // 4]), len(data), len(data) > limit // 4)
    laid_out = None if is_cut else pretty_json(text)
    if laid_out is not None:
        return Shown("json", laid_out, len(data), False)
    return Shown("text", text, len(data), is_cut)


def as_text(data: bytes, *, is_part: bool = False) -> str | None:
    """Return bytes as text if they are UTF-8 with few control characters, otherwise None.

    With `is_part` the last character may be cut.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if not is_part or error.start < len(data) - 4:
            return None
        text = data[: error.start].decode()
    controls = sum(character < " " and character not in "\t\r\n\x1b" for character in text)
    return None if controls * 20 > len(text) else text


def pretty_json(text: str) -> str | None:
    """Return JSON with a member a line, all tokens as they were written. None if it is not JSON."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    out: list[str] = []
    stack: list[str] = []
    position, before = 0, ""
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or (before and not stack):
            return None
        part = match["string"] or match["word"] or match["mark"]
        if part in ("{", "["):
            stack.append("}" if part == "{" else "]")
            if len(stack) > _DEPTH_MAX:
                return None
            out.append(part)
        elif part in ("}", "]"):
            if not stack or stack.pop() != part:
                return None
            out.append(part if before in ("{", "[") else f"\n{_INDENT * len(stack)}{part}")
        elif part == ",":
            out.append(",")
        elif part == ":":
            out.append(": ")
        else:
            out.append(part)
        following = _next_character(text, match.end())
        if part == "," or (part in ("{", "[") and following not in ("}", "]")):
            out.append("\n" + _INDENT * len(stack))
        position, before = match.end(), part
    return None if stack else "".join(out)


def _next_character(text: str, position: int) -> str:
    return text[position : position + 1]


def as_hex(data: bytes) -> str:
    """Return rows of sixteen bytes, with their places and what they are as text."""
    rows = []
    for first in range(0, len(data), _HEX_ROW):
        row = data[first : first + _HEX_ROW]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "·" for byte in row)
        rows.append(f"{first:08x}  {row[:8].hex(' '):<23}  {row[8:].hex(' '):<23}  {shown}")
    return "\n".join(rows)
