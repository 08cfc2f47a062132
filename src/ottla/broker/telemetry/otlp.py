"""Reading the metrics that a client pushes: OpenTelemetry's MetricsData, in Protobuf.

All kinds of metrics are read as numbers with a name and attributes. Kafka's clients send gauges and sums. A
distribution becomes several numbers, in the manner of Prometheus: `.count`, `.sum`, and `.bucket` for each
bound (`le`), with what is below it counted in. Of exponential histograms only count and sum are read.

The input may come from anybody, so what is kept is bounded by `SAMPLES_MAX`, and the time by `FIELDS_MAX`,
whatever a push has; and a push is bounded before it gets here. It is read by a worker, not on the loop.
"""

from collections.abc import Callable, Iterator
from itertools import accumulate, islice
from struct import Struct
from typing import Final, NamedTuple

SAMPLES_MAX: Final = 2_000
"""How many numbers of one push are read."""
FIELDS_MAX: Final = 100_000
"""How many fields a push may have: each takes time, however small it is."""
ATTRIBUTES_MAX: Final = 64
TEXT_BYTES_MAX: Final = 1_000
"""As much of a text is read. No series with such a text is kept."""

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


Attributes = tuple[tuple[str, str], ...]
_Number = tuple[str, Attributes, float]
"""What is added to the metric's name, and the number."""
_GAUGE, _SUM, _HISTOGRAM, _EXPONENTIAL_HISTOGRAM, _SUMMARY = 5, 7, 9, 10, 11


def read_metrics(data: bytes) -> list[Sample]:
    """Return the numbers of a push. Raises `MalformedMetrics`."""
    return _Reading().read(data)


class _Reading:
    """The reading of one push."""

    def __init__(self) -> None:
        self._fields_left = FIELDS_MAX

    def read(self, data: bytes) -> list[Sample]:
        samples: list[Sample] = []
        # MetricsData.resource_metrics = 1, ResourceMetrics.scope_metrics = 2, ScopeMetrics.metrics = 2
        for resource in self._messages(data, 1):
            for scope in self._messages(resource, 2):
                for metric in self._messages(scope, 2):
                    for sample in self._samples(metric):
                        if len(samples) == SAMPLES_MAX:
                            return samples
                        samples.append(sample)
        return samples

    def _samples(self, metric: bytes) -> Iterator[Sample]:
        # Metric: name = 1, and one of the kinds. They have data_points = 1, and where numbers add up
        # aggregation_temporality = 2.
        name, holder, kind = "", b"", _GAUGE
        for number, wire_type, value in self._fields(metric):
            if wire_type != _LENGTH or not isinstance(value, bytes):
                continue
            if number == 1:
                name = _text(value)
            elif number in _POINTS:
                holder, kind = value, number
        is_sum = kind in (_SUM, _HISTOGRAM, _EXPONENTIAL_HISTOGRAM)
        is_delta = is_sum and any(
            number == 2 and value == _DELTA for number, _, value in self._fields(holder)
        )
        for point in self._messages(holder, 1):
            for suffix, attributes, number_value in _POINTS[kind](self, point):
                yield Sample(name + suffix, attributes, number_value, is_sum, is_delta)

    def _number_point(self, point: bytes) -> Iterator[_Number]:
        # NumberDataPoint: as_double = 4, as_int = 6, attributes = 7
        for number, wire_type, value in self._fields(point):
            if wire_type == _FIXED64 and isinstance(value, bytes) and number in (4, 6):
                yield (
                    "",
                    self._attributes(point, 7),
                    float((_DOUBLE if number == 4 else _INT64).unpack(value)[0]),
                )
                return

    def _histogram_point(self, point: bytes) -> Iterator[_Number]:
        # HistogramDataPoint: count = 4, sum = 5, bucket_counts = 6, explicit_bounds = 7, attributes = 9
        attributes = self._attributes(point, 9)
        yield from self._count_and_sum(point, attributes)
        counts = [number for packed in self._messages(point, 6) for number in _unpacked(_INT64, packed)]
        bounds = [number for packed in self._messages(point, 7) for number in _unpacked(_DOUBLE, packed)]
        for bound, count in zip(bounds, accumulate(counts), strict=False):
            yield ".bucket", (*attributes, ("le", f"{bound:g}")), count

    def _exponential_point(self, point: bytes) -> Iterator[_Number]:
        # ExponentialHistogramDataPoint: attributes = 1, count = 4, sum = 5
        yield from self._count_and_sum(point, self._attributes(point, 1))

    def _summary_point(self, point: bytes) -> Iterator[_Number]:
        # SummaryDataPoint: count = 4, sum = 5, quantile_values = 6 (quantile = 1, value = 2), attributes = 7
        attributes = self._attributes(point, 7)
        yield from self._count_and_sum(point, attributes)
        for quantile in self._messages(point, 6):
            numbers = {
                number: _DOUBLE.unpack(value)[0]
                for number, wire_type, value in self._fields(quantile)
                if wire_type == _FIXED64 and isinstance(value, bytes)
            }
            yield "", (*attributes, ("quantile", f"{numbers.get(1, 0.0):g}")), numbers.get(2, 0.0)

    def _count_and_sum(self, point: bytes, attributes: Attributes) -> Iterator[_Number]:
        for number, wire_type, value in self._fields(point):
            if wire_type == _FIXED64 and isinstance(value, bytes):
                if number == 4:
                    yield ".count", attributes, float(_INT64.unpack(value)[0])
                elif number == 5:
                    yield ".sum", attributes, _DOUBLE.unpack(value)[0]

    def _attributes(self, point: bytes, wanted: int) -> Attributes:
        pairs = islice(self._messages(point, wanted), ATTRIBUTES_MAX + 1)
        found = tuple(sorted(self._attribute(pair) for pair in pairs))
        if len(found) > ATTRIBUTES_MAX:
            raise MalformedMetrics(f"a number has more than {ATTRIBUTES_MAX} attributes")
        return found

    def _attribute(self, pair: bytes) -> tuple[str, str]:
        # KeyValue: key = 1, value = 2. AnyValue: string_value = 1, bool_value = 2, int_value = 3.
        key = text = ""
        for number, _, value in self._fields(pair):
            if number == 1 and isinstance(value, bytes):
                key = _text(value)
            elif number == 2 and isinstance(value, bytes):
                for kind, _, held in self._fields(value):
                    text = _text(held) if isinstance(held, bytes) and kind == 1 else text
                    text = str(held) if isinstance(held, int) else text
        return key, text

    def _messages(self, data: bytes, wanted: int) -> Iterator[bytes]:
        for number, _, value in self._fields(data):
            if number == wanted and isinstance(value, bytes):
                yield value

    def _fields(self, data: bytes) -> Iterator[_Field]:
        position = 0
        while position < len(data):
            if self._fields_left == 0:
                raise MalformedMetrics(f"a push has more than {FIELDS_MAX} fields")
            self._fields_left -= 1
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


_POINTS: Final[dict[int, Callable[[_Reading, bytes], Iterator[_Number]]]] = {
    _GAUGE: _Reading._number_point,
    _SUM: _Reading._number_point,
    _HISTOGRAM: _Reading._histogram_point,
    _EXPONENTIAL_HISTOGRAM: _Reading._exponential_point,
    _SUMMARY: _Reading._summary_point,
}


def _unpacked(kind: Struct, packed: bytes) -> Iterator[float]:
    if len(packed) % kind.size:
        raise MalformedMetrics("a list of numbers is cut off")
    return (float(number) for (number,) in kind.iter_unpack(packed))


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
    if len(data) > TEXT_BYTES_MAX:
        # It is too long to be kept, and must not be copied for each number.
        data = data[:TEXT_BYTES_MAX].decode(errors="replace").encode()
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise MalformedMetrics("a text is not UTF-8") from None
