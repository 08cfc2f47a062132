"""The words of a .proto file."""

import re
from typing import Final, NamedTuple

from ottla.schemas.errors import InvalidSchema

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<word>\.?[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)
    |(?P<number>\.?[0-9][0-9A-Za-z_.]*(?:(?<=[eE])[+-][0-9]+)?)
    |(?P<sign>[{}\[\]()<>;:,=+\-/])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)", re.DOTALL)
_LETTERS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Token(NamedTuple):
    """A word, a text in quotes (unquoted here), a number or a sign, and its line."""

    kind: str
    text: str
    line: int


def split_tokens(source: str) -> list[Token]:
    """Split a file into its tokens. Raises InvalidSchema."""
    tokens = []
    position, line = 0, 1
    while position < len(source):
        found = _TOKEN.match(source, position)
        if found is None:
            raise InvalidSchema(f"Syntax error in line {line}: {source[position]!r} is not expected")
        kind = found.lastgroup or ""
        if kind != "space":
            text = found.group()
            tokens.append(Token(kind, unescape(text[1:-1]) if kind == "text" else text, line))
        line += source.count("\n", position, found.end())
        position = found.end()
    tokens.append(Token("end", "", line))
    return tokens


def unescape(text: str) -> str:
    """Replace what a backslash begins."""

    def one(found: re.Match[str]) -> str:
        code = found.group(1)
        if code[0] in "xuU" and len(code) > 1:
            return chr(int(code[1:], 16))
        if code[0] in "01234567":
            return chr(int(code, 8) & 0xFF)
        return _LETTERS.get(code, code)

    return _ESCAPE.sub(one, text)
