"""A history of a log that does everything right, and one change for each thing that could go wrong."""

import copy
import random
from collections.abc import Callable
from typing import Any

Event = dict[str, Any]
KEYS = range(4)


def right_history(seed: int, operations: int = 120) -> list[Event]:  # noqa: C901 - a log in one loop
    """Make the history of some processes that send and poll in transactions, one after the other."""
    rng = random.Random(seed)
    logs: dict[int, list[int | None]] = {key: [] for key in KEYS}
    counters = dict.fromkeys(KEYS, 0)
    positions: dict[tuple[int, int], int] = {}
    events: list[Event] = []
    for process in range(3):
        add(events, process, "assign", list(KEYS), list(KEYS), "ok")
    for _ in range(operations):
        process = rng.randrange(3)
        committed = rng.random() < 0.8
        asked: list[Any] = []
        done: list[Any] = []
        staged: list[tuple[int, int, int]] = []
        # Reads come first: what a transaction writes it does not see.
        for _ in range(rng.randrange(1, 3)):
            asked.append(["poll"])
            records = {}
            for key in rng.sample(KEYS, 2):
                begin = positions.get((process, key), 0)
                found = [
                    (at, value) for at, value in enumerate(logs[key]) if at >= begin and value is not None
                ]
                if found[:5]:
                    records[str(key)] = [list(pair) for pair in found[:5]]
                    positions[process, key] = found[:5][-1][0] + 1
            done.append(["poll", records])
        for _ in range(rng.randrange(1, 4)):
            key = rng.choice(KEYS)
            value = counters[key]
            counters[key] += 1
            asked.append(["send", key, value])
            offset = len(logs[key])
            logs[key].append(value if committed else None)
            staged.append((key, offset, value))
            done.append(["send", key, [offset, value]])
        for key in {key for key, _, _ in staged}:
            logs[key].append(None)
        if not committed:
            # Its reads count, but its position goes back.
            for step in done:
                if step[0] == "poll":
                    for key, records in step[1].items():
                        where = (process, int(key))
                        positions[where] = min(positions[where], records[0][0])
        add(events, process, "txn", asked, done, "ok" if committed else "fail")
    for process in range(10, 12):
        polled = {
            str(key): [[at, value] for at, value in enumerate(log) if value is not None]
            for key, log in logs.items()
        }
        add(events, process, "final", [["poll"]], [["poll", polled]], "ok")
    return events


def add(events: list[Event], process: int, function: str, asked: Any, done: Any, end: str) -> None:
    for kind, value in (("invoke", asked), (end, done)):
        events.append(
            {
                "i": len(events), "t": len(events) * 1000, "proc": process, "node": 1, "type": kind,
                "f": function, "value": copy.deepcopy(value), "rebalance": [], "err": None,
            }
        )  # fmt: skip


# Looking into a history


def ends(events: list[Event], function: str = "txn", kind: str = "ok") -> list[Event]:
    return [event for event in events if event["f"] == function and event["type"] == kind]


def polls(event: Event) -> list[dict[str, list[list[int]]]]:
    return [step[1] for step in event["value"] if step[0] == "poll"]


def sends(event: Event) -> list[list[Any]]:
    return [step for step in event["value"] if step[0] == "send"]


def everywhere(events: list[Event], key: int, change: Callable[[list[list[int]]], list[list[int]]]) -> None:
    """Change what everybody polled of a key."""
    for event in events:
        if event["type"] != "invoke" and event["f"] in ("txn", "final"):
            for polled in polls(event):
                if str(key) in polled:
                    polled[str(key)] = change(polled[str(key)])


def pick_acknowledged(events: list[Event], rng: random.Random, is_last: bool = False) -> tuple[int, int, int]:
    """Return key, offset and value of an acknowledged send that everybody has read."""
    if is_last:
        last: dict[int, tuple[int, int, int]] = {}
        for event in ends(events):
            for _, key, (offset, value) in sends(event):
                last[key] = (key, offset, value)
        return rng.choice(sorted(last.values()))
    # Not one of the last, so that later ones have been read.
    event = rng.choice(ends(events)[:60])
    _, key, (offset, value) = rng.choice(sends(event))
    return key, offset, value


# What could go wrong


def inconsistent_offsets(events: list[Event], rng: random.Random) -> None:
    key, offset, _ = pick_acknowledged(events, rng)
    reader = ends(events, "final")[0]
    for pair in polls(reader)[0][str(key)]:
        if pair[0] == offset:
            pair[1] = 999_999
    # Somebody else still reads what was there.


def duplicate(events: list[Event], rng: random.Random) -> None:
    key, _, value = pick_acknowledged(events, rng)
    for reader in ends(events, "final"):
        polled = polls(reader)[0][str(key)]
        polled.append([polled[-1][0] + 7, value])


def aborted_read(events: list[Event], rng: random.Random) -> None:
    failed = rng.choice(ends(events, kind="fail"))
    _, key, (offset, value) = sends(failed)[0]
    for reader in ends(events, "final"):
        polled = polls(reader)[0].setdefault(str(key), [])
        polled.append([offset, value])
        polled.sort()


def lost_write(events: list[Event], rng: random.Random) -> None:
    key, _, value = pick_acknowledged(events, rng)
    everywhere(events, key, lambda pairs: [pair for pair in pairs if pair[1] != value])


def unseen(events: list[Event], rng: random.Random) -> None:
    key, _, value = pick_acknowledged(events, rng, is_last=True)
    everywhere(events, key, lambda pairs: [pair for pair in pairs if pair[1] != value])


def precommitted_read(events: list[Event], rng: random.Random) -> None:
    event = rng.choice(ends(events))
    _, key, (offset, value) = sends(event)[0]
    event["value"].append(["poll", {str(key): [[offset, value]]}])


def _reader_of_three(events: list[Event], rng: random.Random) -> tuple[Event, str]:
    found = [
        (event, key)
        for event in ends(events)
        for polled in polls(event)[:1]
        for key, pairs in polled.items()
        if len(pairs) >= 3
    ]
    return rng.choice(found)


def poll_skip_within(events: list[Event], rng: random.Random) -> None:
    event, key = _reader_of_three(events, rng)
    del polls(event)[0][key][1]


def nonmonotonic_poll_within(events: list[Event], rng: random.Random) -> None:
    event, key = _reader_of_three(events, rng)
    pairs = polls(event)[0][key]
    pairs.append(list(pairs[0]))


def _second_reader(events: list[Event], rng: random.Random, pairs_min: int) -> tuple[Event, str]:
    """Return an operation that goes on reading a key, in its only poll of it, with so many records."""
    seen: set[tuple[int, str]] = set()
    found = []
    for event in ends(events):
        by_key: dict[str, int] = {}
        for polled in polls(event):
            for key in polled:
                by_key[key] = by_key.get(key, 0) + 1
        for polled in polls(event):
            for key, pairs in polled.items():
                if (event["proc"], key) in seen and by_key[key] == 1 and len(pairs) >= pairs_min:
                    found.append((event, key))
        seen.update((event["proc"], key) for key in by_key)
    return rng.choice(found)


def poll_skip_between(events: list[Event], rng: random.Random) -> None:
    event, key = _second_reader(events, rng, 2)
    next(polled for polled in polls(event) if key in polled)[key].pop(0)


def nonmonotonic_poll_between(events: list[Event], rng: random.Random) -> None:
    event, key = _second_reader(events, rng, 1)
    for earlier in events:
        if earlier["proc"] == event["proc"] and earlier["type"] == "ok" and earlier["f"] == "txn":
            for polled in polls(earlier):
                if key in polled:
                    pairs = next(one for one in polls(event) if key in one)
                    pairs[key] = [list(polled[key][-1])]
                    return


def _swap_values(events: list[Event], key: int, one: int, other: int) -> None:
    """Let two values of a key lie in each other's place, for everybody."""
    swapped = {one: other, other: one}
    everywhere(events, key, lambda pairs: [[at, swapped.get(value, value)] for at, value in pairs])
    offsets = {}
    for event in events:
        if event["type"] != "invoke" and event["f"] == "txn":
            for step in sends(event):
                if step[1] == key and step[2][1] in swapped:
                    offsets[step[2][1]] = step
    offsets[one][2][0], offsets[other][2][0] = offsets[other][2][0], offsets[one][2][0]


def nonmonotonic_send_within(events: list[Event], rng: random.Random) -> None:
    found = []
    for event in ends(events):
        by_key: dict[int, list[int]] = {}
        for _, key, (_, value) in sends(event):
            by_key.setdefault(key, []).append(value)
        found += [(key, values) for key, values in by_key.items() if len(values) >= 2]
    key, values = rng.choice(found)
    _swap_values(events, key, values[0], values[1])


def nonmonotonic_send(events: list[Event], rng: random.Random) -> None:
    found = []
    last: dict[tuple[int, int], int] = {}
    for event in ends(events):
        by_key: dict[int, list[int]] = {}
        for _, key, (_, value) in sends(event):
            by_key.setdefault(key, []).append(value)
        for key, values in by_key.items():
            where = (event["proc"], key)
            if where in last and len(values) == 1 and last[where] >= 0:
                found.append((key, last[where], values[0]))
            last[where] = values[0] if len(values) == 1 else -1
    _swap_values(events, *rng.choice(found))


def read_cycle(events: list[Event], rng: random.Random) -> None:
    """Let an operation read what an operation wrote that has read from it: only when is wrong."""
    readers = [
        (event, key, pair)
        for event in ends(events)
        for polled in polls(event)
        for key, pairs in polled.items()
        for pair in pairs
    ]
    rng.shuffle(readers)
    writers = {(key, value): event for event in ends(events) for _, key, (_, value) in sends(event)}
    for reader, key, (_, value) in readers:
        writer = writers[int(key), value]
        for _, sent_key, (offset, sent) in sends(reader):
            if not any(str(sent_key) in polled for polled in polls(writer)):
                writer["value"].append(["poll", {str(sent_key): [[offset, sent]]}])
                return
    raise AssertionError("nobody reads from anybody")


def stuck(events: list[Event], _rng: random.Random) -> None:
    end = ends(events, "final")[0]
    end["type"], end["err"] = "fail", "time is over"


PLANTED: dict[str, Callable[[list[Event], random.Random], None]] = {
    "inconsistent-offsets": inconsistent_offsets,
    "duplicate": duplicate,
    "G1a": aborted_read,
    "lost-write": lost_write,
    "unseen": unseen,
    "precommitted-read": precommitted_read,
    "int-poll-skip": poll_skip_within,
    "int-nonmonotonic-poll": nonmonotonic_poll_within,
    "poll-skip": poll_skip_between,
    "nonmonotonic-poll": nonmonotonic_poll_between,
    "int-nonmonotonic-send": nonmonotonic_send_within,
    "nonmonotonic-send": nonmonotonic_send,
    "G1c": read_cycle,
    "stuck": stuck,
}
