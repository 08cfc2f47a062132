"""Points in time as people type them."""

import re
import time
from datetime import datetime
from typing import Final

import click

TIME_MS_MAX: Final = (1 << 63) - 1
"""Timestamps of records are 64 bits, with a sign."""
_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGO: Final = re.compile(r"([0-9]+)([smhdw])")
_NUMBER: Final = re.compile(r"[0-9]+")


def parse_time_ms(text: str, option: str) -> int:
    """Read a time: `2026-01-31T12:00` (local unless it has a zone), `2h` ago, or milliseconds since 1970."""
    time_ms = _time_ms(text)
    if time_ms is None:
        raise click.BadParameter(
            f"{text!r} is not a time: write 2026-01-31T12:00, or 2h for two hours ago", param_hint=option
        )
    if not 0 <= time_ms <= TIME_MS_MAX:
        bound = "begin in 1970" if time_ms < 0 else "have 64 bits of milliseconds"
        raise click.BadParameter(
            f"{text!r} is out of range: timestamps of records {bound}", param_hint=option
        )
    return time_ms


def _time_ms(text: str) -> int | None:
    if _NUMBER.fullmatch(text):
        return int(text)
    if (ago := _AGO.fullmatch(text)) is not None:
        return int(time.time() * 1000) - int(ago[1]) * _UNITS_S[ago[2]] * 1000
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except OverflowError:
        return -1
    except ValueError:
        return None
