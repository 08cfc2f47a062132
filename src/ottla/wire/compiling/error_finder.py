"""Finding the errors in a message, whatever its shape.

Kafka has no common shape for errors: some answers have one code, most have one for each topic, partition or
group. For each message and version a function is compiled that goes through the places where a code can be,
and through nothing else: an answer without an error costs a test for each of its parts. It is compiled once,
however many nodes and listeners there are in a process.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from ottla.wire.compiling.source import ELEMENTS_AT_ONCE, Source
from ottla.wire.error_code import ErrorCode
from ottla.wire.layout import Field, layout_of

ErrorFinder: TypeAlias = Callable[[Any, Callable[[ErrorCode], None]], None]
"""Calls the second with each error of the first, a message. `ErrorCode.NONE` is no error."""


_FINDERS: dict[tuple[type[Any], int, bool], Any] = {}


def compile_error_finder(message: type[Any], version: int, *, patient: bool = False) -> Any:
    """Return the function for one version of a message, or a generator that yields after some elements."""
    finder = _FINDERS.get((message, version, patient))
    if finder is None:
        finder = _FINDERS[message, version, patient] = _compile(message, version, patient)
    return finder


def _compile(message: type[Any], version: int, patient: bool) -> Any:
    source = Source({})
    if patient:
        source.line(f"left = {ELEMENTS_AT_ONCE}")
    _add_struct(source, message, version, "message", patient)
    if patient:
        # Whatever the message has, this makes the function a generator.
        source.line("return")
        source.line("yield")
    return source.function("find_errors(message, found)", f"errors of {message.__name__} v{version}")


def _add_struct(source: Source, struct: type[Any], version: int, name: str, patient: bool) -> None:
    for index, field in enumerate(layout_of(struct)):
        if not _has_errors(field, version):
            continue
        if field.struct is None:
            with source.block(f"if {name}[{index}]:"):
                source.line(f"found({name}[{index}])")
            continue
        value, part = source.name("value"), source.name("part")
        source.line(f"{value} = {name}[{index}]")
        # What is null, or encoded already, has no parts to look at.
        parts = f"{value} if type({value}) is tuple else ()"
        one = f"() if {value} is None else ({value},)"
        with source.block(f"for {part} in {parts if field.is_array else one}:"):
            if patient:
                source.count_element()
            _add_struct(source, field.struct, version, part, patient)


def _has_errors(field: Field, version: int) -> bool:
    if version not in field.versions:
        return False
    if field.struct is None:
        return field.kind == "error_code" and not field.is_array
    return any(_has_errors(inner, version) for inner in layout_of(field.struct))
