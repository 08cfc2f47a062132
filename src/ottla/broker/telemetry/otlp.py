"""Reading the metrics that a client pushes: OpenTelemetry's MetricsData, in Protobuf.

All kinds of metrics are read as numbers with a name and attributes. Kafka's clients send gauges and sums. A
distribution becomes several numbers, in the manner of Prometheus: `.count`, `.sum`, and `.bucket` for each
bound (`le`), with what is below it counted in. Of exponential histograms only count and sum are read.

The input may come from anybody, so what is kept is bounded by `SAMPLES_MAX`, whatever a push has; and a push
is bounded before it gets here.
"""

from collections.abc import Callable, Iterator
from itertools import accumulate
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


Attributes = tuple[tuple[str, str], ...]
_Number = tuple[str, Attributes, float]
"""What is added to the metric's name, and the number."""


def _samples(metric: bytes) -> Iterator[Sample]:
    # Metric: name = 1, and one of the kinds. They have data_points = 1, and aggregation_temporality = 2 where
    # numbers add up.
    name, holder, kind = "", b"", _GAUGE
    for number, wire_type, value in _fields(metric):
        if wire_type != _LENGTH or not isinstance(value, bytes):
            continue
        if number == 1:
            name = _text(value)
        elif number in _POINTS:
            holder, kind = value, number
    is_sum = kind in (_SUM, _HISTOGRAM, _EXPONENTIAL_HISTOGRAM)
    is_delta = is_sum and any(number == 2 and value == _DELTA for number, _, value in _fields(holder))
    for point in _messages(holder, 1):
        for suffix, attributes, number_value in _POINTS[kind](point):
            yield Sample(name + suffix, attributes, number_value, is_sum, is_delta)


def _number_point(point: bytes) -> Iterator[_Number]:
    # NumberDataPoint: as_double = 4, as_int = 6, attributes = 7
    for number, wire_type, value in _fields(point):
        if wire_type == _FIXED64 and isinstance(value, bytes) and number in (4, 6):
            yield "", _attributes(point, 7), float((_DOUBLE if number == 4 else _INT64).unpack(value)[0])
            return


def _histogram_point(point: bytes) -> Iterator[_Number]:
    # HistogramDataPoint: count = 4, sum = 5, bucket_counts = 6, explicit_bounds = 7, attributes = 9
    attributes = _attributes(point, 9)
    yield from _count_and_sum(point, attributes)
    counts = [number for packed in _messages(point, 6) for number in _unpacked(_INT64, packed)]
    bounds = [number for packed in _messages(point, 7) for number in _unpacked(_DOUBLE, packed)]
    for bound, count in zip(bounds, accumulate(counts), strict=False):
        yield ".bucket", (*attributes, ("le", f"{bound:g}")), count


def _exponential_point(point: bytes) -> Iterator[_Number]:
    # ExponentialHistogramDataPoint: attributes = 1, count = 4, sum = 5
    yield from _count_and_sum(point, _attributes(point, 1))


def _summary_point(point: bytes) -> Iterator[_Number]:
    # SummaryDataPoint: count = 4, sum = 5, quantile_values = 6 (quantile = 1, value = 2), attributes = 7
    attributes = _attributes(point, 7)
    yield from _count_and_sum(point, attributes)
    for quantile in _messages(point, 6):
        numbers = {
            number: _DOUBLE.unpack(value)[0]
            for number, wire_type, value in _fields(quantile)
            if wire_type == _FIXED64 and isinstance(value, bytes)
        }
        yield "", (*attributes, ("quantile", f"{numbers.get(1, 0.0):g}")), numbers.get(2, 0.0)


def _count_and_sum(point: bytes, attributes: Attributes) -> Iterator[_Number]:
    for number, wire_type, value in _fields(point):
        if wire_type == _FIXED64 and isinstance(value, bytes):
            if number == 4:
                yield ".count", attributes, float(_INT64.unpack(value)[0])
            elif number == 5:
                yield ".sum", attributes, _DOUBLE.unpack(value)[0]


_GAUGE, _SUM, _HISTOGRAM, _EXPONENTIAL_HISTOGRAM, _SUMMARY = 5, 7, 9, 10, 11
_POINTS: Final[dict[int, Callable[[bytes], Iterator[_Number]]]] = {
    _GAUGE: _number_point,
    _SUM: _number_point,
    _HISTOGRAM: _histogram_point,
    _EXPONENTIAL_HISTOGRAM: _exponential_point,
    _SUMMARY: _summary_point,
}


def _unpacked(kind: Struct, packed: bytes) -> Iterator[float]:
    if len(packed) % kind.size:
        raise MalformedMetrics("a list of numbers is cut off")
    return (float(number) for (number,) in kind.iter_unpack(packed))


def _attributes(point: bytes, wanted: int) -> Attributes:
    return tuple(sorted(_attribute(pair) for pair in _messages(point, wanted)))


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
