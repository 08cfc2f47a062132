"""Values that columns cannot hold, and why: the field, and what stands in it."""

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from ottla.schemas.errors import UnreadableValue

REASON_CHARACTERS_MAX: Final = 500
TOMBSTONE_FAULT: Final = (
    "the value is null, a tombstone: declare the topic with tombstones='dropped' or tombstones='column' to "
    "keep it out of the dead letters"
)


class Misfit(ValueError):
    """A value that does not fit. `why` goes on where the name of the field ends."""

    def __init__(self, why: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(why)
        self.why = why
        self.path = path

    def within(self, step: str | int) -> "Misfit":
        """Return this misfit as that of what contains the field."""
        return Misfit(self.why, (step, *self.path))

    def __str__(self) -> str:
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return f"field {where.removeprefix('.')!r} {self.why}" if where else f"the value {self.why}"


def decode_rows(
    kind: Any, decode: Callable[[bytes], Any], values: Any, tombstone_fault: str | None = None
) -> Any:
    """Decode a column of bytes: a struct of the values, and for each that does not fit the reason.

    A value that is null is null, and its reason is the one given.
    """
    rows: list[Any] = []
    faults: list[str | None] = []
    for value in values.to_pylist():
        row, fault = None, tombstone_fault
        if value is not None:
            try:
                row, fault = decode(value), None
            except MISFITS as error:
                fault = reason_of(error)
        rows.append(row)
        faults.append(fault)
    return pa.StructArray.from_arrays(
        [_column(kind, rows, faults), pa.array(faults, pa.string())], ["value", "fault"]
    )


def _column(kind: Any, rows: list[Any], faults: list[str | None]) -> Any:
    try:
        return pa.array(rows, kind)
    except MISFITS:
        # One of them does not fit: find out which.
        for place, row in enumerate(rows):
            try:
                pa.array([row], kind)
            except MISFITS as error:
                rows[place], faults[place] = None, reason_of(error, kind, row)
    return pa.array(rows, kind)


def reason_of(error: BaseException, kind: Any = None, row: Any = None) -> str:
    """Return why a value does not fit, in words, and where in it if that can be found out."""
    if kind is not None and isinstance(row, dict):
        for field in kind:
            try:
                pa.array([row.get(field.name)], field.type)
            except MISFITS as found:
                return _shortened(
                    f"field {field.name!r} is {row[field.name]!r:.80}, which is no {field.type}: {found}"
                )
    text = str(error) or type(error).__name__
    return _shortened(text if isinstance(error, Misfit) else f"the value cannot be read: {text}")


def _shortened(text: str) -> str:
    # It becomes a header, and lone surrogates have no bytes.
    text = " ".join(text.split()).encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= REASON_CHARACTERS_MAX else f"{text[:REASON_CHARACTERS_MAX]}..."


MISFITS: Final = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    EOFError,
    AttributeError,
    OverflowError,
    ArithmeticError,
    RecursionError,
    UnreadableValue,
    pa.ArrowException,
)
