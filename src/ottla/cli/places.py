"""Where to begin and to end reading, as people type it: the words of `consume --offset`.

beginning   end   42 (an offset)   -10 (the last ten records of each partition)
@2h, s@2h   the first record that is not older     e@1h   leave out records from then on
"""

import re
from enum import Enum
from typing import Final, NamedTuple

import click

from ottla.cli.times import parse_time_ms

OFFSET_MAX: Final = (1 << 63) - 1
_NUMBER: Final = re.compile(r"-?[0-9]+")
_OPTION: Final = "--offset"


class Kind(Enum):
    """What identifies a place."""

    BEGINNING = "beginning"
    END = "end"
    OFFSET = "offset"
    LAST = "last records"
    TIME = "time"


class Place(NamedTuple):
    """Where to begin: an end of the log, an offset, a number of records before the end, or a time."""

    kind: Kind
    number: int = 0


class Range(NamedTuple):
    """From where to which time. None: nothing was said of it."""

    start: Place | None = None
    until_ms: int | None = None


def parse_range(words: tuple[str, ...]) -> Range:
    """Read all words that were given; at most one may say where to begin, and one where to end."""
    start: Place | None = None
    until_ms: int | None = None
    for word in words:
        if word.startswith("e@"):
            if until_ms is not None:
                raise click.BadParameter("only one end can be given", param_hint=_OPTION)
            until_ms = parse_time_ms(word[2:], _OPTION)
        else:
            if start is not None:
                raise click.BadParameter("only one beginning can be given", param_hint=_OPTION)
            start = _place(word)
    return Range(start, until_ms)


def _place(word: str) -> Place:
    if word in (Kind.BEGINNING.value, Kind.END.value):
        return Place(Kind(word))
    if word.startswith(("@", "s@")):
        return Place(Kind.TIME, parse_time_ms(word.removeprefix("s")[1:], _OPTION))
    if not _NUMBER.fullmatch(word):
        raise click.BadParameter(
            f"{word!r} is not a valid offset: use beginning, end, an offset, -N or @TIME", param_hint=_OPTION
        )
    if abs(int(word)) > OFFSET_MAX:
        raise click.BadParameter(
            f"{word} is too large for an offset: the largest is {OFFSET_MAX}", param_hint=_OPTION
        )
    return Place(Kind.LAST, -int(word)) if word.startswith("-") else Place(Kind.OFFSET, int(word))
