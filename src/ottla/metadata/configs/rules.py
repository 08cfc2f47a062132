"""Which values of its type a config takes.

A rule answers a value with a complaint or with None, and describes itself (`str`) the way the reference shows
what is allowed. The complaints say what Kafka's own say, since tools show them to people.
"""

import re
from typing import Final, NamedTuple, Protocol

from ottla.metadata.configs.values import ConfigValue


class Rule(Protocol):
    """Judges a parsed value."""

    def find_fault(self, value: ConfigValue) -> str | None:
        """Say what is wrong with `value`, or None if it is allowed."""


class Range(NamedTuple):
    """A number between two bounds, both included; None is no bound."""

    lowest: float | None = None
    highest: float | None = None

    def find_fault(self, value: ConfigValue) -> str | None:
        if value is None:
            return "Value must be non-null"
        assert isinstance(value, int | float), "only numbers have a range"
        if self.lowest is not None and value < self.lowest:
            return f"Value must be at least {self.lowest}"
        if self.highest is not None and value > self.highest:
            return f"Value must be no more than {self.highest}"
        return None

    def __str__(self) -> str:
        return ",".join(str(part) for part in (self.lowest, "...", self.highest) if part is not None).join(
            "[]"
        )


class OneOf(NamedTuple):
    """A string out of a few."""

    allowed: tuple[str, ...]

    def find_fault(self, value: ConfigValue) -> str | None:
        return None if value in self.allowed else f"String must be one of: {', '.join(self.allowed)}"

    def __str__(self) -> str:
        return ", ".join(self.allowed).join("[]")


class OneOfIgnoringCase(NamedTuple):
    """A string out of a few, in capitals or not."""

    allowed: tuple[str, ...]

    def find_fault(self, value: ConfigValue) -> str | None:
        if isinstance(value, str) and value.upper() in self.allowed:
            return None
        return f"String must be one of (case insensitive): {', '.join(self.allowed)}"

    def __str__(self) -> str:
        return f"(case insensitive) [{', '.join(self.allowed)}]"


class DistinctList(NamedTuple):
    """A list in which repetitions do not count and no element is empty; perhaps of certain elements only."""

    allowed: tuple[str, ...] = ()
    may_be_empty: bool = True
    may_be_null: bool = False

    def find_fault(self, value: ConfigValue) -> str | None:
        if value is None:
            return None if self.may_be_null else "the list must not be null"
        assert isinstance(value, tuple), "only lists have elements"
        if not value:
            return None if self.may_be_empty else "the list must not be empty"
        if "" in value:
            return "no value in the list may be empty"
        for element in value:
            if self.allowed and element not in self.allowed:
                return f"{element} is none of: {', '.join(self.allowed)}"
        return None

    def __str__(self) -> str:
        return ", ".join(self.allowed).join("[]") if self.allowed else ""


class NonEmpty(NamedTuple):
    """A string with something in it. Null passes: it means that nothing is set."""

    def find_fault(self, value: ConfigValue) -> str | None:
        return "String must be non-empty" if value == "" else None

    def __str__(self) -> str:
        return "non-empty string"


class NonNull(NamedTuple):
    """Anything that is set."""

    def find_fault(self, value: ConfigValue) -> str | None:
        return "entry must be non null" if value is None else None

    def __str__(self) -> str:
        return "non-null string"


class GzipLevel(NamedTuple):
    """1 (fast) to 9 (small), or -1 for the codec's own default."""

    def find_fault(self, value: ConfigValue) -> str | None:
        assert isinstance(value, int), "a compression level is a number"
        return None if value == -1 or 1 <= value <= 9 else "Value must be between 1 and 9 or equal to -1"

    def __str__(self) -> str:
        return "[1,...,9] or -1"


class ThrottledReplicas(NamedTuple):
    """`partition:broker` pairs, or `*` alone for every replica, or nothing."""

    def find_fault(self, value: ConfigValue) -> str | None:
        assert isinstance(value, tuple), "throttled replicas are a list"
        if value in ((), ("*",)) or all(_REPLICA.fullmatch(element) for element in value):
            return None
        return (
            "must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )

    def __str__(self) -> str:
        return "[partitionId]:[brokerId],[partitionId]:[brokerId],..."


class Voters(NamedTuple):
    """`id@host:port` elements: the voters of a static quorum."""

    def find_fault(self, value: ConfigValue) -> str | None:
        assert isinstance(value, tuple), "voters are a list"
        for element in value:
            if not _VOTER.fullmatch(element):
                return f"No node id, host and port in {element!r}: each entry has to be id@host:port"
        return None

    def __str__(self) -> str:
        return "non-empty list"


class HostsAndPorts(NamedTuple):
    """`host:port` elements."""

    def find_fault(self, value: ConfigValue) -> str | None:
        assert isinstance(value, tuple), "addresses are a list"
        for element in value:
            if not _HOST_AND_PORT.fullmatch(element):
                return f"No host and port in {element!r}: each entry has to be host:port"
        return None

    def __str__(self) -> str:
        return "non-empty list"


class OffsetReset(NamedTuple):
    """Where a share group begins: an end of the partition, or a span of time back from now."""

    def find_fault(self, value: ConfigValue) -> str | None:
        assert isinstance(value, str), "a reset strategy is a string"
        if value in ("latest", "earliest"):
            return None
        prefix, _, duration = value.partition(":")
        if prefix == "by_duration" and _DURATION.fullmatch(duration):
            return None
        return "must be latest, earliest, or by_duration with a duration as in by_duration:PT1H"

    def __str__(self) -> str:
        return "[latest, earliest, by_duration:PnDTnHnMn.nS]"


_REPLICA: Final = re.compile(r"[0-9]+:[0-9]+")
_HOST_AND_PORT: Final = re.compile(r"(?:\[[0-9a-zA-Z.:%]+\]|[^:\[\]@\s]+):[0-9]{1,5}")
_VOTER: Final = re.compile(r"[0-9]+@" + _HOST_AND_PORT.pattern)
_DURATION: Final = re.compile(
    r"P(?=.)(?:[+]?[0-9]+D)?(?:T(?=.)(?:[+]?[0-9]+H)?(?:[+]?[0-9]+M)?(?:[+]?[0-9]+(?:[.,][0-9]{0,9})?S)?)?",
    re.IGNORECASE,
)
