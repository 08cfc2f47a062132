"""Names under which one broker config can be set besides its own.

A time can be given in several units; the finest that is given counts. And what belongs to one listener only
is written `listener.name.<listener>.<config>` and falls back on `<config>`.
"""

import re
from typing import Final

_TIMES: Final = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_TIME_SYNONYMS: Final = {name: names for names in _TIMES for name in names} | {
    # One way only: a request for the scheduler's own interval does not mean the flush interval.
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
}
_LISTENER_CONFIG: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")
# These are set for each mechanism of a listener, `listener.name.<listener>.<mechanism>.<config>`.
_MECHANISM_CONFIGS: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)


def find_listener_base(name: str) -> str | None:
    """Return the config that a listener's own `name` overrides, or None if it belongs to no listener."""
    match = _LISTENER_CONFIG.fullmatch(name)
    return match[1] if match else None


def time_synonyms(name: str) -> tuple[str, ...]:
    """Return the names, finest unit first, that set the same thing as `name`, which is one of them."""
    return _TIME_SYNONYMS.get(name, (name,))


def broker_synonyms(name: str) -> tuple[str, ...]:
    """Return every name that can set what `name` sets, the most special first."""
    base = find_listener_base(name)
    if base is None:
        return time_synonyms(name)
    return (name, next((config for config in _MECHANISM_CONFIGS if base.endswith(config)), base))
