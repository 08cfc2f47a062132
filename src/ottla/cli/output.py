"""What commands print: tables for people, JSON for programs, both from the same rows.

A row is a mapping from column to value. Columns are in snake case: JSON keeps them as they are, a table has
them in capitals with spaces. None is `null` in JSON and `-` in a table.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, Final, Self

import click

from ottla.cli.failure import Failure

Row = Mapping[str, Any]

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def progress(length: int, label: str) -> Any:
    """Return a progress bar for long work, as a context manager. Only people see it, on stderr."""
    return click.progressbar(length=length, label=label, file=sys.stderr, hidden=not sys.stderr.isatty())


_COUNT_EVERY_S: Final = 0.5


class Tally:
    """Counts long work of unknown length, on one line of stderr that is gone when it is done.

    Only people see it, and only if it takes longer than a moment.
    """

    def __init__(
        self, label: str, stream: IO[str] | None = None, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._label = label
        self._stream = stream or sys.stderr
        self._now_s = now_s
        self._due_s = now_s() + _COUNT_EVERY_S if self._stream.isatty() else float("inf")
        self._width = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc_info: object) -> None:
        if self._width:
            self._write(f"\r{' ' * self._width}\r")

    def show(self, count: int) -> None:
        """Take note of how much is done, and show it now and then."""
        now_s = self._now_s()
        if now_s >= self._due_s:
            self._due_s = now_s + _COUNT_EVERY_S
            line = f"{count:,} {self._label}"
            self._width = max(self._width, len(line))
            self._write(f"\r{line}")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def say(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text. Names in it may be a stranger's, so nothing in it moves the cursor or the like."""
    # Only what is printed needs it: help comes without.
    from ottla.model.shown import harmless

    click.echo(harmless(text), err=err, nl=nl)


def show_rows(rows: Sequence[Row], as_json: bool, nothing: str) -> None:
    """Print rows, or the sentence `nothing` to people when there are none."""
    if as_json:
        say(_json(list(rows), indent=2))
    elif not rows:
        say(nothing, err=True)
    else:
        say(format_table(rows))


def show_one(facts: Row, as_json: bool) -> None:
    """Print one thing: a fact a line."""
    if as_json:
        say(_json(facts, indent=2))
        return
    width = max(map(len, facts)) + 2
    for name, value in facts.items():
        say(f"{name.replace('_', ' ') + ':':<{width}}{_text(value)}")


def show_done(sentence: str, as_json: bool, **facts: Any) -> None:
    """Print what was done: a sentence to people, facts to programs."""
    if as_json:
        say(_json(facts))
    else:
        say(sentence)


def confirm(question: str, yes: bool) -> None:
    """Ask before something is lost. A program that cannot be asked has to say --yes."""
    if yes:
        return
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        say(err=True)
        raise Failure(
            "nothing was done, because the question was not answered; add --yes to skip it"
        ) from None
    if not agreed:
        raise Failure("nothing was done")


def format_table(rows: Sequence[Row]) -> str:
    """Return rows as lines of aligned columns, numbers to the right."""
    columns = list(rows[0])
    cells = [[_text(row[column]) for column in columns] for row in rows]
    titles = [column.replace("_", " ").upper() for column in columns]
    widths = [max(map(len, values)) for values in zip(titles, *cells, strict=True)]
    is_number = [
        all(isinstance(row[column], int | float) or row[column] is None for row in rows) for column in columns
    ]
    return "\n".join(
        "  ".join(
            f"{cell:>{width}}" if number else f"{cell:<{width}}"
            for cell, width, number in zip(line, widths, is_number, strict=True)
        ).rstrip()
        for line in [titles, *cells]
    )


def _json(value: Any, indent: int | None = None) -> str:
    # People do without it, and without the 2 ms of its import.
    import json

    return json.dumps(value, indent=indent, default=str)


def _text(value: Any) -> str:
    from ottla.model.shown import one_line

    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.1f}"
    if isinstance(value, list | tuple):
        return one_line(",".join(map(str, value))) or "-"
    return one_line(str(value))
