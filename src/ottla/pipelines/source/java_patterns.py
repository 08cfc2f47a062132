"""Patterns in Java's syntax, as Python reads them. They are matched with names of topics, and nothing else.

Python knows most of that syntax, possessive quantifiers included. What it lacks are classes such as
`\\p{Alpha}`, quotations, and other spellings of a few things. The characters of topic names are ASCII
letters, digits, dots, underscores and dashes, so a class is a set of those.
"""

import re
from typing import Final

_LOWER: Final = "a-z"
_UPPER: Final = "A-Z"
_DIGIT: Final = "0-9"
_PUNCT: Final = r"._\-"
_ALL: Final = _LOWER + _UPPER + _DIGIT + _PUNCT
_NOTHING: Final = r"\x00"
_CLASSES: Final = {
    **dict.fromkeys(("Lower", "Ll", "IsLl", "javaLowerCase", "IsLowercase"), _LOWER),
    **dict.fromkeys(("Upper", "Lu", "IsLu", "javaUpperCase", "IsUppercase"), _UPPER),
    **dict.fromkeys(("Alpha", "L", "IsL", "IsAlphabetic", "IsLatin", "IsLetter"), _LOWER + _UPPER),
    **dict.fromkeys(("Digit", "N", "Nd", "IsN", "IsNd", "IsDigit"), _DIGIT),
    **dict.fromkeys(("XDigit", "IsHex_Digit"), "0-9a-fA-F"),
    "Alnum": _LOWER + _UPPER + _DIGIT,
    **dict.fromkeys(("Punct", "P", "IsP", "IsPunctuation"), _PUNCT),
    **dict.fromkeys(("ASCII", "Graph", "Print"), _ALL),
    **dict.fromkeys(("Blank", "Space", "Cntrl", "Z", "S"), _NOTHING),
}
_TOKEN: Final = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|$)"
    r"|\\(?P<sign>[pP])(?:\{(?P<name>\w+)\}|(?P<letter>\w))"
    r"|(?P<end>\\z)"
    r"|(?P<escape>\\.)"
    r"|(?P<group>\(\?<(?=[A-Za-z]))"
    r"|(?P<open>\[\^?\]?)"
    r"|(?P<close>\])"
    r"|(?P<both>&&)"
    r"|(?P<one>.)",
    re.DOTALL,
)


class UnknownPattern(ValueError):
    """A pattern that Java may know, and Python does not."""


def compile_pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern of Java's. Raises UnknownPattern with what is wrong."""
    try:
        return re.compile("".join(_translated(text)))
    except re.error as error:
        raise UnknownPattern(str(error)) from error


def _translated(text: str) -> list[str]:
    parts: list[str] = []
    depth = 0
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup
        if kind == "quoted":
            parts.append(re.escape(found["quoted"]))
        elif found["sign"]:
            parts.append(_class(found["name"] or found["letter"], found["sign"] == "P", depth > 0))
        elif kind == "end":
            parts.append(r"\Z")
        elif kind == "group":
            parts.append("(?P<")
        elif kind == "open" and depth:
            raise UnknownPattern("it has a class within a class: write one class with all its characters")
        elif kind == "both" and depth:
            raise UnknownPattern("it has an intersection of classes (&&): write one class")
        else:
            depth += (kind == "open") - (kind == "close" and depth > 0)
            parts.append(found[0])
    return parts


def _class(name: str, is_negative: bool, is_within: bool) -> str:
    known = _CLASSES.get(name)
    if known is None:
        raise UnknownPattern(f"it has a class that is not known, {name!r}")
    if is_within and is_negative:
        raise UnknownPattern(f"it has \\P{{{name}}} within a class: write the characters that are meant")
    return known if is_within else f"[{'^' if is_negative else ''}{known}]"
