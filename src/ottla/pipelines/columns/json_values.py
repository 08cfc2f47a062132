"""JSON values as columns of Arrow, exactly: what a column cannot hold as it was written does not fit.

Spark's own `from_json` rounds `1.005` to two places, makes Infinity of `1e400`, cuts times after the
millionth of a second, and does not look at what stands behind a value. Here such a value does not fit, and
the reason names the field and what was written in it.

Numbers keep the text that they were written with until their column is known. Only a `float` and a `double`
take the nearest number that they can hold: that is what they are.
"""

import base64
import binascii
import datetime
import json
import math
import re
import zoneinfo
from collections.abc import Callable, Collection
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ottla.pipelines.columns.misfits import Misfit
from ottla.schemas.errors import InvalidSchema

EXTRA: Final = "extra"
MISSING: Final = "missing"
NANOSECONDS: Final = "nanoseconds"

BESIDE_VALUES: Final = frozenset({"_key", "_topic", "_partition", "_offset", "_timestamp", "_timestampType"})
"""What an input has beside the fields of its schema. A pipeline that lets whole rows through writes them."""

_NON_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_FLOAT_MAX: Final = 3.4028235677973366e38
"""Where a float ends: half a step beyond its largest number."""
_SECONDS_MAX: Final = 253_402_300_799
"""The last second of the year 9999. What is larger counts milliseconds, and nobody has said so."""
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_LOCAL_EPOCH: Final = datetime.datetime(1970, 1, 1)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)
_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:\.(\d+))?)?(Z|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII
)
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)

Convert = Callable[[Any], Any]


class _Real(str):
    """A number with a fraction or an exponent, as it was written."""

    __slots__ = ()


class JsonTerms(NamedTuple):
    """What is allowed, and the zone of times that name none."""

    allowed: frozenset[str] = frozenset()
    zone: str = "UTC"


def _no_constant(name: str) -> Any:
    raise Misfit(f"has {name}, which is no JSON: write it as a text, in quotes")


_decoder: Final = json.JSONDecoder(parse_float=_Real, parse_constant=_no_constant)


class JsonColumns:
    """Decodes JSON objects into structs of one type.

    Raises InvalidSchema for a type that JSON has no exact form of.
    """

    def __init__(self, kind: Any, allowed: Collection[str] = (), zone: str = "UTC") -> None:
        self.type = kind
        terms = JsonTerms(frozenset(allowed), zone)
        # The pipeline that wrote a value may have let whole rows through: what was beside them is no field.
        self._convert = (
            _fields(kind, terms, BESIDE_VALUES) if pa.types.is_struct(kind) else _converter(kind, terms)
        )

    def row(self, value: bytes) -> Any:
        """Return a value as Arrow takes it. Raises Misfit."""
        if not value:
            raise Misfit("is empty")
        try:
            return self._convert(_decoder.decode(value.decode()))
        except json.JSONDecodeError as error:
            raise Misfit(_syntax(error)) from None
        except UnicodeDecodeError as error:
            raise Misfit(f"is not UTF-8 at byte {error.start}") from None
        except RecursionError:
            raise Misfit("is nested too deeply") from None
        except Misfit:
            raise
        except ValueError as error:
            # Python refuses to read integers of thousands of digits.
            raise Misfit(f"has a number that cannot be read: {error}") from None


def _syntax(error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data":
        return f"has text behind its JSON, from character {error.pos} on: {shown(error.doc[error.pos :])}"
    return f"is not JSON at character {error.pos}: {shown(error.doc[error.pos : error.pos + 40])}"


def shown(value: Any) -> str:
    """Return a value for a sentence, shortened."""
    text = as_text(value) if not isinstance(value, str) or isinstance(value, _Real) else json.dumps(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."


_SHOWN_MAX: Final = 80


def as_text(value: Any) -> str:
    """Return JSON as text, with numbers as they were written."""
    if type(value) is _Real:
        return str(value)
    if type(value) is dict:
        return "{" + ",".join(f"{_quoted(key)}:{as_text(item)}" for key, item in value.items()) + "}"
    if type(value) is list:
        return "[" + ",".join(map(as_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _converter(kind: Any, terms: JsonTerms) -> Convert:
    if pa.types.is_struct(kind):
        return _fields(kind, terms)
    if pa.types.is_list(kind):
        return _items(_nullable(kind.value_field, terms))
    if pa.types.is_map(kind):
        if not pa.types.is_string(kind.key_type):
            raise InvalidSchema(f"the keys of a map in JSON are strings, not {kind.key_type}")
        return _entries(_nullable(kind.item_field, terms))
    if pa.types.is_decimal(kind):
        return _decimal(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return _time(kind, terms)
    if pa.types.is_integer(kind):
        return _integer(kind)
    for is_kind, convert in _SIMPLE:
        if is_kind(kind):
            return convert
    raise InvalidSchema(f"JSON has no exact form for {kind}: declare the field as string")


def _nullable(field: Any, terms: JsonTerms) -> Convert:
    convert = _converter(field.type, terms)
    if field.nullable:
        return lambda value: None if value is None else convert(value)

    def refuse_null(value: Any) -> Any:
        if value is None:
            raise Misfit("is null, and the schema says NOT NULL")
        return convert(value)

    return refuse_null


def _fields(kind: Any, terms: JsonTerms, ignored: frozenset[str] = frozenset()) -> Convert:
    fields = [kind.field(place) for place in range(kind.num_fields)]
    converters = [(field.name, _nullable(field, terms)) for field in fields]
    optional = {field.name for field in fields if field.nullable} if MISSING in terms.allowed else set()
    takes_extra = EXTRA in terms.allowed
    known = {field.name for field in fields} | ignored

    def convert_fields(value: Any) -> Any:
        if type(value) is not dict:
            raise Misfit(f"is {shown(value)}, and not an object")
        name = ""
        row = {}
        try:
            for name, convert in converters:
                row[name] = convert(value[name])
        except KeyError:
            if name not in optional:
                raise Misfit("is missing", (name,)) from None
            # Slowly: this value lacks a field that it may lack.
            row = convert_fields({**dict.fromkeys(optional - value.keys()), **value})
        except Misfit as misfit:
            raise misfit.within(name) from None
        if len(value) > len(converters) or (optional and not takes_extra):
            extra = next((key for key in value if key not in known), None)
            if extra is not None and not takes_extra:
                raise Misfit(f"is {shown(value[extra])}, and the schema has no such field", (extra,))
        return row

    return convert_fields


def _items(convert: Convert) -> Convert:
    def convert_items(value: Any) -> Any:
        if type(value) is not list:
            raise Misfit(f"is {shown(value)}, and not an array")
        row: list[Any] = []
        try:
            # `extend` keeps what came before an item that does not fit, so the length is its place.
            row.extend(convert(item) for item in value)
        except Misfit as misfit:
            raise misfit.within(len(row)) from None
        return row

    return convert_items


def _entries(convert: Convert) -> Convert:
    def convert_entries(value: Any) -> Any:
        if type(value) is not dict:
            raise Misfit(f"is {shown(value)}, and not an object")
        key = ""
        row = []
        try:
            for key, item in value.items():
                row.append((key, convert(item)))
        except Misfit as misfit:
            raise misfit.within(key) from None
        return row

    return convert_entries


def _text(value: Any) -> str:
    return value if type(value) is str else as_text(value)


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise Misfit(f"is {shown(value)}, and neither true nor false")
    return value


def _bytes(value: Any) -> bytes:
    try:
        if type(value) is str:
            return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        pass
    raise Misfit(f"is {shown(value)}, and not bytes in base64")


def _double(value: Any) -> float:
    if type(value) is _Real or type(value) is int:
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if not math.isinf(found):
            return found
        raise Misfit(f"is {shown(value)}, which is too large for a double")
    if type(value) is str and value in _NON_NUMBERS:
        return _NON_NUMBERS[value]
    raise Misfit(f"is {shown(value)}, and not a number")


def _float(value: Any) -> float:
    found = _double(value)
    if _FLOAT_MAX <= abs(found) < math.inf:
        raise Misfit(f"is {shown(value)}, which is too large for a float")
    return found


def _integer(kind: Any) -> Convert:
    bits = kind.bit_width
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1

    def convert_integer(value: Any) -> int:
        found = value if type(value) is int else _whole(value)
        if not low <= found <= high:
            raise Misfit(f"is {shown(value)}, which does not fit an integer of {bits} bits")
        return found

    return convert_integer


def _whole(value: Any) -> int:
    """Return a number that is written with a fraction of nothing, such as 12.0."""
    if type(value) is not _Real:
        raise Misfit(f"is {shown(value)}, and not a whole number")
    found = Decimal(value)
    # What is larger is no integer of 64 bits, and would be written out in all its digits.
    if found.adjusted() > _INTEGER_DIGITS_MAX or found != found.to_integral_value():
        raise Misfit(f"is {shown(value)}, and not a whole number")
    return int(found)


_INTEGER_DIGITS_MAX: Final = 20


def _decimal(precision: int, scale: int) -> Convert:
    context = Context(prec=precision, traps=[Inexact, InvalidOperation])
    unit = Decimal(1).scaleb(-scale)

    def convert_decimal(value: Any) -> Decimal:
        is_number = type(value) in (_Real, int) or (type(value) is str and _NUMBER.fullmatch(value))
        if not is_number:
            raise Misfit(f"is {shown(value)}, and not a number")
        try:
            return Decimal(value).quantize(unit, context=context)
        except DecimalException:
            raise Misfit(
                f"is {shown(value)}, which does not fit decimal({precision},{scale}) without rounding"
            ) from None

    return convert_decimal


def _date(value: Any) -> datetime.date:
    try:
        if type(value) is str and _DATE.fullmatch(value):
            return datetime.date.fromisoformat(value)
    except ValueError:
        pass
    raise Misfit(f"is {shown(value)}, and not a date such as 2026-01-31")


def _time(kind: Any, terms: JsonTerms) -> Convert:
    """Return what reads times as microseconds since 1970, as Arrow has them."""
    is_local = kind.tz is None
    zone = datetime.UTC if terms.zone == "UTC" else zoneinfo.ZoneInfo(terms.zone)
    cuts = NANOSECONDS in terms.allowed

    def convert_time(value: Any) -> int:
        if type(value) is int and not is_local:
            if abs(value) > _SECONDS_MAX:
                raise Misfit(f"is {value}, and a time that is a number counts seconds: write it as ISO 8601")
            return value * 1_000_000
        found = _TIME.fullmatch(value) if type(value) is str else None
        if found is None:
            raise Misfit(f"is {shown(value)}, and not a time such as 2026-01-31T12:00:00.123456Z")
        date, minutes, seconds, fraction, offset = found.groups()
        fraction = fraction or ""
        if not cuts and fraction[6:].strip("0"):
            raise Misfit(f"is {shown(value)}, which has more digits than the six of a microsecond")
        if is_local and offset:
            raise Misfit(f"is {shown(value)}, which names a zone, and the column has none")
        try:
            moment = datetime.datetime.fromisoformat(
                f"{date}T{minutes or '00:00'}:{seconds or '00'}.{fraction[:6]:0<6}{offset or ''}"
            )
            if is_local:
                return (moment - _LOCAL_EPOCH) // _MICROSECOND
            moment = moment if offset else moment.replace(tzinfo=zone)
            return (moment - _EPOCH) // _MICROSECOND
        except ValueError as error:
            raise Misfit(f"is {shown(value)}, and not a time: {error}") from None

    return convert_time


_SIMPLE: Final[tuple[tuple[Callable[[Any], bool], Convert], ...]] = (
    (pa.types.is_string, _text),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_float64, _double),
    (pa.types.is_float32, _float),
    (pa.types.is_date32, _date),
    (pa.types.is_binary, _bytes),
)
