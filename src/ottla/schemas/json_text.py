"""JSON as Confluent's registry prints it: compact, in the order it came, numbers as Java writes them."""

import json
from typing import Any

from ottla.schemas.errors import InvalidSchema

# Java switches to an exponent outside of this range, Python much later.
_PLAIN_FROM = 1e-3
_PLAIN_BELOW = 1e7
_DEPTH_MAX = 500


def parse_json(text: str) -> Any:
    """Read JSON. Raises InvalidSchema."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(f"it is not JSON: {error}") from error


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not a number in JSON")


def compact(value: Any) -> str:
    """Write JSON without white space."""
    parts: list[str] = []
    _write(value, parts, 0)
    return "".join(parts)


def sorted_keys(value: Any) -> Any:
    """Return the same value with the keys of all objects sorted."""
    if isinstance(value, dict):
        return {key: sorted_keys(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [sorted_keys(item) for item in value]
    return value


def _write(value: Any, parts: list[str], depth: int) -> None:
    if depth > _DEPTH_MAX:
        raise InvalidSchema(f"it is nested deeper than {_DEPTH_MAX} levels")
    if isinstance(value, dict):
        parts.append("{")
        for place, (key, item) in enumerate(value.items()):
            parts.append("," if place else "")
            parts.append(json.dumps(key, ensure_ascii=False))
            parts.append(":")
            _write(item, parts, depth + 1)
        parts.append("}")
    elif isinstance(value, list | tuple):
        parts.append("[")
        for place, item in enumerate(value):
            parts.append("," if place else "")
            _write(item, parts, depth + 1)
        parts.append("]")
    elif isinstance(value, float):
        parts.append(_double(value))
    else:
        parts.append(json.dumps(value, ensure_ascii=False))


def _double(value: float) -> str:
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return repr(value)
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        mantissa, _, exponent = f"{value:.17e}".partition("e")
        mantissa = _shortest_mantissa(value, int(exponent))
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}E{int(exponent)}"


def _shortest_mantissa(value: float, exponent: int) -> str:
    for digits in range(1, 18):
        text = f"{value:.{digits}e}"
        if float(text) == value:
            return text.partition("e")[0]
    return f"{value / 10**exponent!r}"
