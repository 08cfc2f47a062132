"""Templates: everything that comes out of them is escaped, and shows what is invisible.

Names, keys, values and errors may be a stranger's. Markup in them is escaped by Jinja; characters that turn
text around, hide in it or are orders to a terminal are shown as escapes, wherever they come from.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ottla.console.serving.files import static_files
from ottla.model.shown import harmless, one_line

_BYTES: Final = ("B", "kB", "MB", "GB", "TB", "PB")
_UNKNOWN: Final = "\u2013"
_FIRST_MS: Final = -62_135_596_800_000
_LAST_MS: Final = 253_402_300_799_999


@cache
def environment() -> Environment:
    """Return the templates."""
    made = Environment(
        loader=PackageLoader("ottla.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
        auto_reload=False,
    )
    made.filters |= {
        "bytes": bytes_text,
        "count": count_text,
        "line": lambda text: one_line(str(text)),
        "moment": moment,
        "seconds": seconds_text,
        "quoted": lambda text: quote(str(text), safe=""),
        "shell": shell_word,
    }
    made.globals |= {"static": lambda name: static_files()[name].address, "query": query_text}
    return made


def render(template: str, values: Mapping[str, Any]) -> str:
    """Return a page."""
    return environment().get_template(template).render(values)


def _finalized(value: Any) -> Any:
    if isinstance(value, Markup):
        return value
    if value is None:
        return ""
    return harmless(value) if isinstance(value, str) else value


def bytes_text(size: int | None) -> str:
    """Return a size for people."""
    if size is None:
        return _UNKNOWN
    amount, unit = float(size), 0
    while amount >= 1000 and unit < len(_BYTES) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{size} B" if unit == 0 else f"{amount:.1f} {_BYTES[unit]}"


def count_text(number: int | None) -> str:
    """Return a number with its thousands apart, exactly."""
    return _UNKNOWN if number is None else f"{number:,}"


def seconds_text(seconds: float | None) -> str:
    """Return a duration for people."""
    if seconds is None:
        return _UNKNOWN
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for limit, divisor, unit in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / divisor:.{1 if divisor == 1 else 0}f} {unit}"
    return f"{seconds / 86_400:,.0f} d"


def iso_time(milliseconds: int) -> str | None:
    """Return a time as ISO 8601 in UTC, or None for one that no calendar has."""
    if not _FIRST_MS <= milliseconds <= _LAST_MS:
        return None
    whole = datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{milliseconds % 1000:03}Z"


def moment(milliseconds: int | None) -> Markup:
    """Return a time as an element that a script can show in the visitor's zone. The zone is written."""
    if milliseconds is None or milliseconds < 0:
        return Markup('<span class="quiet">no time</span>')
    iso = iso_time(milliseconds)
    if iso is None:
        return Markup("<span>{} ms</span>").format(milliseconds)
    shown = iso.replace("T", " ").replace("Z", " UTC")
    return Markup('<time datetime="{}">{}</time>').format(iso, shown)


def shell_word(text: str) -> str:
    """Return a word of a command as it is typed."""
    import shlex

    return shlex.quote(text)


def query_text(given: Mapping[str, Any], **changes: Any) -> Markup:
    """Return a query with some parameters changed; what is empty is left out."""
    merged = {**given, **changes}
    kept = {name: value for name, value in merged.items() if value not in ("", None, False)}
    return Markup("?") + escape(urlencode(kept)) if kept else Markup("?")


def encode_json(value: Any) -> bytes:
    """Return rows as the commands print them."""
    return json.dumps(value, indent=2, default=str).encode(errors="backslashreplace")
