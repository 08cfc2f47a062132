"""Durations and sizes as people type and read them: `1h`, `7d`, `10GB`, `1.4 MB`.

Kafka's configs are plain numbers, and their names say of what: `retention.ms`, `segment.bytes`. So `1h` is
translated for a config whose name ends in `ms`, and `10GB` for one that ends in `bytes`. Everything else
stays as it was typed, and the cluster says whether it is right.
"""

import re
from typing import Final

_MS: Final = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
_BYTES: Final = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
}
_UNITS_OF_PARTS: Final = {"ms": _MS, "bytes": _BYTES}
_QUANTITY: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([a-zA-Z]+)")
_DURATIONS: Final = ((86_400, "d"), (3600, "h"), (60, "min"))


def config_value(key: str, value: str) -> str:
    """Return the value of a config as Kafka takes it."""
    parts = key.split(".")
    units = _UNITS_OF_PARTS.get(parts[-1], _BYTES if "bytes" in parts else None)
    found = _QUANTITY.fullmatch(value.strip())
    if units is None or found is None or found[2].lower() not in units:
        return value
    whole, _, part = found[1].partition(".")
    unit = units[found[2].lower()]
    return str(int(whole) * unit + int(part or 0) * unit // 10 ** len(part))


def config_values(assignments: dict[str, str]) -> dict[str, str]:
    """Return configs as Kafka takes them."""
    return {key: config_value(key, value) for key, value in assignments.items()}


def bytes_text(count: int) -> str:
    """Return a size for people."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"


def seconds_text(seconds: float) -> str:
    """Return a duration for people."""
    for unit_s, unit in _DURATIONS:
        if abs(seconds) >= 2 * unit_s:
            return f"{seconds / unit_s:,.1f} {unit}"
    return f"{seconds:.1f} s"
