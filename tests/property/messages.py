"""Hypothesis makes values for any declared message in any version, from the declaration alone.

Only fields that the version carries get a value; the others stay at their default. Lengths lean towards the
places where an encoding changes: 127 and 128 bytes (one byte of varint or two), 16 and 17 integers (what the
compilers unroll or not).
"""

import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ottla.model.uuid import Uuid
from ottla.wire.declare import spec_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.layout import Field, layout_of


def examples(count: int) -> settings:
    """Return the settings of a test that draws whole messages: some are large, so nothing is timed."""
    rounds = 4 if os.environ.get("EXAMPLES") == "new" else 1
    return settings(
        max_examples=rounds * count, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )


Override = Callable[[Field], SearchStrategy[Any] | None]


def _no_override(_field: Field) -> None:
    return None


def _integers(bits: int, signed: bool = True) -> SearchStrategy[int]:
    low = -(1 << bits - 1) if signed else 0
    return st.integers(low, low + (1 << bits) - 1)


def _long(unit: Any) -> SearchStrategy[Any]:
    return st.sampled_from([unit * count for count in (126, 127, 128, 16_383, 16_384)])


_TEXT = st.one_of(
    st.text(max_size=6), st.text(max_size=6), _long("x"), _long("\N{SNOWMAN}").map(lambda text: text[:9000])
)
_BYTES = st.one_of(st.binary(max_size=6), st.binary(max_size=6), _long(b"\x80"))
_VALUES: dict[str, SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": _integers(8),
    "int16": _integers(16),
    "int32": _integers(32),
    "int64": _integers(64),
    "uint16": _integers(16, signed=False),
    "uint32": _integers(32, signed=False),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "uuid": st.binary(min_size=16, max_size=16).map(Uuid),
    "error_code": st.sampled_from(ErrorCode),
    "string": _TEXT,
    "bytes": _BYTES,
    "records": _BYTES.map(memoryview),
}


def message_values(cls: type[Any], version: int, override: Override = _no_override) -> SearchStrategy[Any]:
    """Return a strategy that makes messages which `version` can carry.

    `override` may give another strategy for a field: its elements, if it is an array.
    """
    assert version in spec_of(cls).versions, f"{cls.__name__} has no version {version}"
    return _struct_values(cls, version, override)


_STRUCT_VALUES: dict[tuple[type[Any], int, Override], SearchStrategy[Any]] = {}


def _struct_values(cls: type[Any], version: int, override: Override) -> SearchStrategy[Any]:
    # Hypothesis takes its time to prepare a strategy: keeping them makes these tests a third faster.
    strategy = _STRUCT_VALUES.get((cls, version, override))
    if strategy is None:
        fields = st.tuples(*(_field_values(field, version, override) for field in layout_of(cls)))
        strategy = fields.map(lambda values: tuple.__new__(cls, values))
        _STRUCT_VALUES[cls, version, override] = strategy
    return strategy


def _field_values(field: Field, version: int, override: Override) -> SearchStrategy[Any]:
    if version not in field.versions:
        return st.just(field.default)
    values = override(field)
    if values is None and field.struct is not None:
        values = _struct_values(field.struct, version, override)
    elif values is None:
        values = _VALUES[field.kind]
    if field.is_array:
        values = _arrays(field, values)
    choices = [values]
    if version in field.nullable:
        choices.append(st.none())
    if version in field.tagged:
        # A tagged field at its default is left out: that must happen often enough to be seen.
        choices.append(st.just(field.default))
    return st.one_of(choices)


def _arrays(field: Field, values: SearchStrategy[Any]) -> SearchStrategy[Any]:
    arrays = st.lists(values, max_size=2).map(tuple)
    if field.struct is None:
        long = st.tuples(values, st.sampled_from((15, 16, 17, 126, 127, 128)))
        return st.one_of(arrays, arrays, long.map(lambda pair: (pair[0],) * pair[1]))
    return arrays
