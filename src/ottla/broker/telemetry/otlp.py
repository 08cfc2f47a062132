"""Reading the metrics that a client pushes: OpenTelemetry's MetricsData, in Protobuf.

Only what Kafka's clients send is read: gauges and sums with numbers, their names and attributes. Everything
else is passed over. The input may come from anybody, so what is kept is bounded by `SAMPLES_MAX`, whatever a
push has; and a push is bounded before it gets here.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

SAMPLES_MAX: Final = 2_000
"""How many numbers of one push are read."""

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_DOUBLE: Final = Struct("<d")
_INT64: Final = Struct("<q")
_DELTA: Final = 1
_VARINT_BYTES_MAX: Final = 10


class MalformedMetrics(ValueError):
    """These bytes are not what a client pushes."""


class Sample(NamedTuple):
    """One number of one metric."""

    name: str
    attributes: tuple[tuple[str, str], ...]
    value: float
    is_sum: bool
    is_delta: bool
    """Whether the number is what was added since the last push."""


Value = int | bytes
_Field = tuple[int, int, Value]
"""Number, wire type and value of a field."""


def read_metrics(data: bytes) -> list[Sample]:
    """Return the numbers of a push. Raises `MalformedMetrics`."""
    samples: list[Sample] = []
    # MetricsData.resource_metrics = 1, ResourceMetrics.scope_metrics = 2, ScopeMetrics.metrics = 2
    for resource in _messages(data, 1):
        for scope in _messages(resource, 2):
            for metric in _messages(scope, 2):
                for sample in _samples(metric):
                    if len(samples) == SAMPLES_MAX:
                        return samples
                    samples.append(sample)
    return samples


def _samples(metric: bytes) -> Iterator[Sample]:
    # Metric: name = 1, gauge = 5, sum = 7. Gauge and Sum: data_points = 1, Sum: aggregation_temporality = 2.
    name, holder, is_sum = "", b"", False
    for number, wire_type, value in _fields(metric):
        if wire_type != _LENGTH or not isinstance(value, bytes):
            continue
        if number == 1:
            name = _text(value)
        elif number in (5, 7):
            holder, is_sum = value, number == 7
    is_delta = is_sum and any(number == 2 and value == _DELTA for number, _, value in _fields(holder))
    for point in _messages(holder, 1):
        found = _point(point)
        if found is not None:
            yield Sample(name, *found, is_sum, is_delta)


def _point(point: bytes) -> tuple[tuple[tuple[str, str], ...], float] | None:
    # NumberDataPoint: as_double = 4, as_int = 6, attributes = 7
    attributes: list[tuple[str, str]] = []
    number_value: float | None = None
    for number, wire_type, value in _fields(point):
        if wire_type == _FIXED64 and isinstance(value, bytes):
            if number == 4:
                (number_value,) = _DOUBLE.unpack(value)
            elif number == 6:
                (number_value,) = _INT64.unpack(value)
        elif number == 7 and isinstance(value, bytes):
            attributes.append(_attribute(value))
    return None if number_value is None else (tuple(sorted(attributes)), float(number_value))


def _attribute(pair: bytes) -> tuple[str, str]:
    # KeyValue: key = 1, value = 2. AnyValue: string_value = 1, bool_value = 2, int_value = 3.
    key = text = ""
    for number, _, value in _fields(pair):
        if number == 1 and isinstance(value, bytes):
            key = _text(value)
        elif number == 2 and isinstance(value, bytes):
            for kind, _, held in _fields(value):
                text = _text(held) if isinstance(held, bytes) and kind == 1 else text
                text = str(held) if isinstance(held, int) else text
    return key, text


def _messages(data: bytes, wanted: int) -> Iterator[bytes]:
    for number, _, value in _fields(data):
        if number == wanted and isinstance(value, bytes):
            yield value


def _fields(data: bytes) -> Iterator[_Field]:
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        value: Value
        if wire_type == _VARINT:
            value, position = _varint(data, position)
        elif wire_type in (_FIXED64, _FIXED32, _LENGTH):
            if wire_type == _LENGTH:
                size, position = _varint(data, position)
            else:
                size = 8 if wire_type == _FIXED64 else 4
            if size > len(data) - position:
                raise MalformedMetrics("a field is longer than the message that has it")
            value = data[position : position + size]
            position += size
        else:
            raise MalformedMetrics(f"a field has the unknown type {wire_type}")
        yield number, wire_type, value


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for index in range(_VARINT_BYTES_MAX):
        if position >= len(data):
            break
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, position
    raise MalformedMetrics("a number does not end")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise MalformedMetrics("a text is not UTF-8") from None
