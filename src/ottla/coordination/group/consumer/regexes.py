"""Regular expressions that members subscribe by: RE2's syntax, linear time (KIP-848).

An expression must match a topic's whole name. It is checked when a member brings it, and resolved against the
names of all topics soon after, in slices, so that a broker with 100,000 topics serves others meanwhile. All
expressions of a group are resolved together, so that a new topic costs one rebalance. They are resolved again

    when a member brought a new one, or a topic was created; but not within ten seconds of the last time
    when the last time is `group.consumer.regex.refresh.interval.ms` ago

Topics that are deleted need nothing: they count no longer, whatever matches them.

Deviation: an expression that takes too much (`ottla.model.patterns`) is refused. Kafka compiles it.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

from ottla.coordination.group.consumer.group import ConsumerGroup, ResolvedRegex
from ottla.coordination.group.environment import Environment, sees_everything
from ottla.coordination.group.refusal import Refused
from ottla.model.patterns import InvalidPattern, compile_pattern
from ottla.wire.error_code import ErrorCode

REFRESH_INTERVAL_MIN_MS: Final = 10_000
NAMES_AT_ONCE: Final = 1_000
"""How many topic names are matched between two requests; one takes 3 to 5 us."""
STEPS_AT_ONCE: Final = 20_000
"""The same in instructions of all compiled expressions. At worst a long name takes 2 us for each of them."""

Resolved = Callable[[dict[str, ResolvedRegex], int], None]
"""Called with what the expressions match, and the time."""


def compile_regex(regex: str) -> Any:
    """Return the compiled expression. Raises `Refused`."""
    try:
        return compile_pattern(regex)
    except InvalidPattern as error:
        message = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}."
        raise Refused(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from error


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
