"""Histories: what clients asked for, and what they got, one JSON line for each event.

    {"i": 812, "t": 73120551234, "proc": 7, "node": 1, "type": "ok", "f": "txn",
     "value": [["send", 4, [17, 92]], ["poll", {"4": [[16, 91]]}]], "rebalance": [], "err": null}

Each operation has an `invoke` event, and then `ok`, `fail` (it surely did not happen) or `info` (nobody
knows). `value` is a list of steps: `["send", key, value]` becomes `["send", key, [offset or null, value]]`
when done, `["poll"]` becomes `["poll", {key: [[offset, value], ...]}]`, and `["look"]` becomes
`["look", {bound: {key: offset}}]`. Functions are

- `send`, `poll`: one of these, without a transaction;
- `txn`: sends and polls in one transaction;
- `copy`: a transaction that polls, sends one value for each, and commits the offsets for a group;
- `assign`: what a process reads from now on; its value is the list of keys;
- `look`: the bounds of some keys; see `watermarks`;
- `final`: reading everything once more, when all is over.

A key is a partition. A value is used once for each key. A process is one producer and one consumer: when its
client is thrown away, its successor is another process. Times are monotonic nanoseconds of one clock.
"""

import json
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, NamedTuple

from ottla.testing.guarantees.errors import MalformedHistory


class EventType(Enum):
    """What is known of an operation."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Sent(NamedTuple):
    """A step that wrote a value. The offset is None if nobody knows it."""

    key: int
    offset: int | None
    value: int


class Polled(NamedTuple):
    """A step that read: by key, offsets and values in the order they came."""

    records: dict[int, list[tuple[int, int]]]


class Looked(NamedTuple):
    """A step that asked for bounds: by their names, and by key."""

    bounds: dict[str, dict[int, int]]


Step = Sent | Polled | Looked


class Operation(NamedTuple):
    """One operation, from its invocation to what is known of its end."""

    number: int
    process: int
    function: str
    type: EventType
    steps: tuple[Step, ...]
    keys: tuple[int, ...]
    """The keys of an assignment."""
    rebalanced: frozenset[int]
    invoked_ns: int
    completed_ns: int
    error: str | None

    @property
    def sends(self) -> list[Sent]:
        """What it wrote, in order."""
        return [step for step in self.steps if isinstance(step, Sent)]

    @property
    def polls(self) -> list[Polled]:
        """What it read, in order."""
        return [step for step in self.steps if isinstance(step, Polled)]

    @property
    def looks(self) -> list[Looked]:
        """Which bounds it saw."""
        return [step for step in self.steps if isinstance(step, Looked)]


NEVER_NS = 1 << 62


def read_events(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Read events from JSON lines."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                event = json.loads(line)
            except ValueError as error:
                raise MalformedHistory(f"line {number}: {error}") from error
            if not isinstance(event, dict) or not {"t", "proc", "type", "f", "value"} <= event.keys():
                raise MalformedHistory(f"line {number} is not an event")
            yield event


def operations_of(events: Iterable[dict[str, Any]]) -> list[Operation]:
    """Pair invocations with their ends. What never ended is as if nobody knew how it did."""
    invoked: dict[int, dict[str, Any]] = {}
    operations: list[Operation] = []
    for event in events:
        process = event["proc"]
        kind = EventType(event["type"])
        if kind is EventType.INVOKE:
            if process in invoked:
                raise MalformedHistory(f"process {process} does two things at once")
            invoked[process] = event
        else:
            begin = invoked.pop(process, None)
            if begin is None:
                raise MalformedHistory(f"process {process} ends what it has not begun")
            operations.append(_operation(len(operations), begin, event))
    for begin in invoked.values():
        end = {**begin, "type": "info", "t": NEVER_NS, "err": "never ended"}
        operations.append(_operation(len(operations), begin, end))
    return operations


def _operation(number: int, begin: dict[str, Any], end: dict[str, Any]) -> Operation:
    function = end["f"]
    is_assignment = function in ("assign", "subscribe")
    return Operation(
        number,
        end["proc"],
        function,
        EventType(end["type"]),
        () if is_assignment else tuple(map(_step, end["value"] or ())),
        tuple(end["value"]) if is_assignment else (),
        frozenset(end.get("rebalance") or ()),
        begin["t"],
        end["t"],
        end.get("err"),
    )


def _step(step: list[Any]) -> Step:
    match step:
        case ["send", int(key), [int() | None as offset, int(value)]]:
            return Sent(key, offset, value)
        case ["send", int(key), int(value)]:
            return Sent(key, None, value)
        case ["poll"]:
            return Polled({})
        case ["poll", dict(records)]:
            return Polled(
                {int(key): [(offset, value) for offset, value in pairs] for key, pairs in records.items()}
            )
        case ["look"]:
            return Looked({})
        case ["look", dict(bounds)]:
            return Looked(
                {
                    bound: {int(key): int(offset) for key, offset in offsets.items()}
                    for bound, offsets in bounds.items()
                }
            )
    raise MalformedHistory(f"{step} is not a step")
