"""Regular expressions that members subscribe by: RE2's syntax, linear time (KIP-848).

An expression must match a topic's whole name. It is checked when a member brings it, and resolved against the
names of all topics soon after, in slices, so that a broker with 100,000 topics serves others meanwhile. All
expressions of a group are resolved together, so that a new topic costs one rebalance. They are resolved again

    when a member brought a new one, or a topic was created; but not within ten seconds of the last time
    when the last time is `group.consumer.regex.refresh.interval.ms` ago

Topics that are deleted need nothing: they count no longer, whatever matches them.

Deviation: an expression that compiles to more than `PROGRAM_BYTES_MAX`, or whose repetitions add up to more
than `REPETITIONS_MAX`, is refused. Kafka compiles it: 900 bytes of `a{1,1000}` took 18 seconds and 40 MB.
"""

import re
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import Any, Final

from ottla.coordination.group.consumer.group import ConsumerGroup, ResolvedRegex
from ottla.coordination.group.environment import Environment, sees_everything
from ottla.coordination.group.refusal import Refused
from ottla.wire.error_code import ErrorCode

REFRESH_INTERVAL_MIN_MS: Final = 10_000
NAMES_AT_ONCE: Final = 1_000
"""How many topic names are matched between two requests; one takes 3 to 5 us."""
STEPS_AT_ONCE: Final = 20_000
"""The same in instructions of all compiled expressions. At worst a long name takes 2 us for each of them."""
PROGRAM_BYTES_MAX: Final = 1 << 20
"""What a compiled expression may take in memory. `[a-z.]{1,200}-\\d+` takes 10 KB."""
REPETITIONS_MAX: Final = 5_000
"""What the counts of all repetitions may add up to: each is written out before anything is compiled."""
UNICODE_CLASSES_MAX: Final = 100
"""How many classes such as `\\pL` there may be: each takes 0.1 ms."""
_COUNT: Final = re.compile(r"\{\d+(,\d*)?\}")

Resolved = Callable[[dict[str, ResolvedRegex], int], None]
"""Called with what the expressions match, and the time."""


@lru_cache(maxsize=128)
def compile_regex(regex: str) -> Any:
    """Return the compiled expression. Raises `Refused`."""
    # Imported only here: few groups subscribe by expressions, and it takes 2.5 MB.
    import re2

    if _repetitions(regex) > REPETITIONS_MAX or regex.lower().count(r"\p") > UNICODE_CLASSES_MAX:
        message = (
            f"SubscribedTopicRegex has repetitions of more than {REPETITIONS_MAX} in all, "
            f"or more than {UNICODE_CLASSES_MAX} classes of characters."
        )
        raise Refused(ErrorCode.INVALID_REGULAR_EXPRESSION, message)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PROGRAM_BYTES_MAX
    try:
        return re2.compile(regex, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        message = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {text}."
        raise Refused(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from error


def _repetitions(regex: str) -> int:
    """Return what the counts of all repetitions add up to."""
    return sum(
        max((int(number) for number in re.findall(r"\d{1,9}", match.group())), default=0)
        for match in _COUNT.finditer(regex)
    )


def names_at_once(regexes: Collection[str]) -> int:
    """Return how many names are matched in a slice: fewer where there are many or large expressions."""
    steps: int = sum(compile_regex(regex).programsize for regex in regexes if _is_valid(regex))
    return max(1, min(NAMES_AT_ONCE, STEPS_AT_ONCE // max(steps, 1)))


def _is_valid(regex: str) -> bool:
    try:
        compile_regex(regex)
    except Refused:
        return False
    return True


def is_refresh_due(
    group: ConsumerGroup, subscribed: Collection[str], interval_ms: int, newest_version: int, now_ms: int
) -> bool:
    """Say whether the expressions of a group, `subscribed` from now on, are to be resolved.

    `newest_version` is that of the metadata which had a new topic last.
    """
    last = next(iter(group.resolved_regexes.values()), None)
    if last is None:
        return bool(subscribed)
    if now_ms <= last.timestamp_ms + REFRESH_INTERVAL_MIN_MS:
        return False
    return (
        any(regex not in group.resolved_regexes for regex in subscribed)
        or len(subscribed) != len(group.resolved_regexes)
        or last.version < newest_version
        or now_ms > last.timestamp_ms + interval_ms
    )


class Resolution:
    """Matching the names of all topics, slice by slice."""

    def __init__(
        self,
        regexes: Iterable[str],
        env: Environment,
        done: Resolved,
        sees: Callable[[str], bool] = sees_everything,
    ) -> None:
        """As in Kafka, the rights of the member count whose heartbeat made this necessary."""
        self._sees = sees
        self._env = env
        self._names: tuple[str, ...] = ()
        self._version = 0
        self._started_ms = 0
        self._position = 0
        self._at_once = NAMES_AT_ONCE
        self._matches: dict[str, list[str]] = {regex: [] for regex in sorted(regexes)}
        self._done = done

    def begin_soon(self, group_id: str) -> None:
        """Begin as soon as the node has nothing else to do."""
        self._soon(group_id, self._begin)

    def _soon(self, group_id: str, act: Callable[[str, int], None]) -> None:
        self._env.timers.schedule(timer_name(group_id), 0, lambda now_ms: act(group_id, now_ms))

    def _begin(self, group_id: str, now_ms: int) -> None:
        self._names, self._version = self._env.topics.names(), self._env.topics.version()
        self._started_ms = now_ms
        self._at_once = names_at_once(self._matches)
        self._go_on(group_id, now_ms)

    def _go_on(self, group_id: str, now_ms: int) -> None:
        names = self._names[self._position : self._position + self._at_once]
        self._position += len(names)
        for regex, matches in self._matches.items():
            matches += filter(self._sees, find_matches(regex, names))
        if self._position < len(self._names):
            self._soon(group_id, self._go_on)
            return
        resolved = {
            regex: ResolvedRegex(frozenset(matches), self._version, self._started_ms)
            for regex, matches in self._matches.items()
        }
        self._done(resolved, now_ms)


def find_matches(regex: str, names: Iterable[str]) -> list[str]:
    """Return the names that an expression matches as a whole. One that is not valid matches nothing."""
    try:
        fullmatch = compile_regex(regex).fullmatch
    except Refused:
        # It came from the log: another release found it valid.
        return []
    return [name for name in names if fullmatch(name) is not None]


def timer_name(group_id: str) -> tuple[str, str]:
    """Return the name of the timer that runs while a group's expressions are being resolved."""
    return ("regex", group_id)
