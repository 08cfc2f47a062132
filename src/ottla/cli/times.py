"""Points in time as people type them."""

import re
import time
from datetime import datetime
from typing import Final

import click

_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_AGO: Final = re.compile(r"(\d+)([smhd])")


def parse_time_ms(text: str, option: str) -> int:
    """Read a time: `2026-01-31T12:00` (local unless it has a zone), `2h` ago, or milliseconds since 1970."""
    if text.isdigit():
        return int(text)
    if (ago := _AGO.fullmatch(text)) is not None:
        return int(time.time() * 1000) - int(ago[1]) * _UNITS_S[ago[2]] * 1000
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is no time: write 2026-01-31T12:00, or 2h for two hours ago", param_hint=option
        ) from None
