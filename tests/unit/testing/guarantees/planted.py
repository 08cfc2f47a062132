"""A history of a log that does everything right, and one change for each thing that could go wrong."""

import copy
import random
from collections.abc import Callable
from typing import Any

from ottla.testing.guarantees.ledger import ACCOUNTS, entry

Event = dict[str, Any]
KEYS = range(4)
GROUP_KEY = 0
"""The key that the copier copies, to a key of its own."""
COPIES = 77
PROCESSES = 3
COPIER = 50
LOOKER = 60


class RightWorld:
    """Logs that do everything right, and processes that use them, one operation after the other."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.events: list[Event] = []
        self.logs: dict[int, list[int | None]] = {key: [] for key in (*KEYS, COPIES, *ACCOUNTS)}
        self.counters = dict.fromkeys((*KEYS, COPIES), 0)
        self.positions: dict[tuple[int, int], int] = {}
        self.committed_offset = 0
        self.transfers = 0

    def poll(self, process: int, key: int) -> list[list[int]]:
        begin = self.positions.get((process, key), 0)
        found = [[at, value] for at, value in enumerate(self.logs[key]) if at >= begin and value is not None]
        if found:
            self.positions[process, key] = found[:5][-1][0] + 1
        return found[:5]

    def send(self, key: int, value: int, committed: bool) -> list[Any]:
        self.logs[key].append(value if committed else None)
        return ["send", key, [len(self.logs[key]) - 1, value]]

    def new_value(self, key: int) -> int:
        self.counters[key] += 1
        return self.counters[key] - 1

    def end(self, process: int, function: str, done: list[Any], committed: bool) -> None:
        """Write markers and the events; without a commit the positions go back."""
        for key in sorted({step[1] for step in done if step[0] == "send"}):
            self.logs[key].append(None)
        for step in done:
            if not committed and step[0] == "poll":
                for key, records in step[1].items():
                    where = (process, int(key))
                    self.positions[where] = min(self.positions[where], records[0][0])
        asked = [["poll"] if step[0] == "poll" else ["send", step[1], step[2][1]] for step in done]
        add(self.events, process, function, asked, done, "ok" if committed else "fail")

    def transact(self) -> None:
        process, committed = self.rng.randrange(PROCESSES), self.rng.random() < 0.8
        # Reads come first: what a transaction writes it does not see.
        done: list[Any] = []
        for _ in range(self.rng.randrange(1, 3)):
            polled = {str(key): self.poll(process, key) for key in self.rng.sample(KEYS, 2)}
            done.append(["poll", {key: records for key, records in polled.items() if records}])
        for _ in range(self.rng.randrange(1, 4)):
            key = self.rng.choice(KEYS)
            done.append(self.send(key, self.new_value(key), committed))
        self.end(process, "txn", done, committed)

    def transfer(self) -> None:
        source, target = self.rng.sample(ACCOUNTS, 2)
        amount, committed = self.rng.randrange(1, 100), self.rng.random() < 0.8
        entries = ((source, entry(self.transfers, -amount)), (target, entry(self.transfers, amount)))
        self.transfers += 1
        done = [self.send(key, value, committed) for key, value in entries]
        self.end(self.rng.randrange(PROCESSES), "txn", done, committed)

    def copy(self) -> None:
        committed = self.rng.random() < 0.8
        records = self.poll(COPIER, GROUP_KEY)
        if records:
            done: list[Any] = [["poll", {str(GROUP_KEY): records}]]
            done += [self.send(COPIES, self.new_value(COPIES), committed) for _ in records]
            self.end(COPIER, "copy", done, committed)
            self.committed_offset = self.positions[COPIER, GROUP_KEY]

    def look(self) -> None:
        bounds = {
            "log_start_offset": dict.fromkeys(map(str, KEYS), 0),
            "last_stable_offset": {str(key): len(self.logs[key]) for key in KEYS},
            "high_watermark": {str(key): len(self.logs[key]) for key in KEYS},
            "committed_offset": {str(GROUP_KEY): self.committed_offset},
        }
        add(self.events, LOOKER, "look", [["look"]], [["look", bounds]], "ok")

    def read_all(self, process: int) -> None:
        polled = {
            str(key): [[at, value] for at, value in enumerate(log) if value is not None]
            for key, log in self.logs.items()
        }
        add(self.events, process, "final", [["poll"]], [["poll", polled]], "ok")


def right_history(seed: int, operations: int = 150) -> list[Event]:
    """Make the history of some processes that use logs without a fault."""
    world = RightWorld(seed)
    for process in range(PROCESSES):
        add(world.events, process, "assign", list(KEYS), list(KEYS), "ok")
    for _ in range(operations):
        world.rng.choices((world.transact, world.transfer, world.copy, world.look), (8, 1, 1, 1))[0]()
    for process in range(10, 12):
        world.read_all(process)
    return world.events


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
        if event["type"] != "invoke" and event["f"] in ("txn", "copy", "final"):
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
        return rng.choice([last[key] for key in KEYS])
    # Not one of the last, so that later ones have been read.
    found = [tuple(step) for event in ends(events)[:60] for step in sends(event) if step[1] in KEYS]
    _, key, (offset, value) = rng.choice(found)
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


def _read_the_future(events: list[Event], rng: random.Random, is_same_process: bool) -> None:
    """Let an operation read what is written later, by one that reads nothing and so depends on nobody."""
    found = [
        (reader, writer)
        for place, reader in enumerate(ends(events)[:60])
        for writer in ends(events)[place + 1 :]
        if (reader["proc"] == writer["proc"]) is is_same_process and sends(writer)[0][1] in KEYS
    ]
    reader, writer = rng.choice(found)
    for polled in polls(writer):
        polled.clear()
    _, key, (offset, value) = sends(writer)[0]
    reader["value"].append(["poll", {str(key): [[offset, value]]}])


def read_cycle_in_a_process(events: list[Event], rng: random.Random) -> None:
    _read_the_future(events, rng, is_same_process=True)


def read_cycle_in_time(events: list[Event], rng: random.Random) -> None:
    # No more looks or copies, and each operation has a process of its own: nothing but time orders them.
    _read_the_future(events, rng, is_same_process=False)
    for number, event in enumerate(events):
        if event["type"] == "invoke" and event["f"] == "txn":
            event["proc"] = events[number + 1]["proc"] = 1000 + number


def unknown_value(events: list[Event], rng: random.Random) -> None:
    key, _, _ = pick_acknowledged(events, rng)
    for reader in ends(events, "final"):
        polled = polls(reader)[0][str(key)]
        polled.append([polled[-1][0] + 7, 888_888])


def send_behind_known_offset(events: list[Event], rng: random.Random) -> None:
    """Let two values of different processes lie in each other's place, for everybody."""
    writers = [
        (event, step[1], step[2][1])
        for event in ends(events)[:60]
        for step in sends(event)
        if step[1] in KEYS
    ]
    pairs = [
        (key, value, other)
        for event, key, value in writers
        for another, other_key, other in writers
        if event["i"] < another["i"] and event["proc"] != another["proc"] and key == other_key
    ]
    _swap_values(events, *rng.choice(pairs))


def _look(events: list[Event], rng: random.Random, bound: str) -> dict[str, int]:
    """Return a bound as a late look saw it."""
    offsets: dict[str, int] = rng.choice(ends(events, "look")[-4:])["value"][0][1][bound]
    return offsets


def log_start_offset_goes_back(events: list[Event], rng: random.Random) -> None:
    ends(events, "look")[0]["value"][0][1]["log_start_offset"]["1"] = 5


def last_stable_offset_goes_back(events: list[Event], rng: random.Random) -> None:
    _look(events, rng, "last_stable_offset")["1"] = 0


def high_watermark_goes_back(events: list[Event], rng: random.Random) -> None:
    _look(events, rng, "high_watermark")["2"] = 0


def committed_offset_goes_back(events: list[Event], rng: random.Random) -> None:
    first, last = ends(events, "look")[0], ends(events, "look")[-1]
    first["value"][0][1]["committed_offset"]["0"] = 1
    last["value"][0][1]["committed_offset"]["0"] = 0


def high_watermark_behind(events: list[Event], rng: random.Random) -> None:
    """Let one that nobody has looked at before be too low."""
    for look in ends(events, "look"):
        del look["value"][0][1]["high_watermark"]["3"]
    _look(events, rng, "high_watermark")["3"] = 1


def last_stable_offset_behind(events: list[Event], rng: random.Random) -> None:
    for look in ends(events, "look"):
        del look["value"][0][1]["last_stable_offset"]["3"]
    _look(events, rng, "last_stable_offset")["3"] = 0


def consumed_twice(events: list[Event], rng: random.Random) -> None:
    copies = ends(events, "copy")
    earlier, later = copies[0], copies[-1]
    later["value"][0][1][str(GROUP_KEY)].insert(0, list(earlier["value"][0][1][str(GROUP_KEY)][0]))


def consumed_never(events: list[Event], rng: random.Random) -> None:
    first = ends(events, "copy")[0]
    first["value"][0][1][str(GROUP_KEY)].pop(0)


def _entries(events: list[Event]) -> list[tuple[str, list[int]]]:
    """Return what the last reader found in accounts."""
    polled = polls(ends(events, "final")[0])[0]
    return [(str(key), pair) for key in ACCOUNTS for pair in polled[str(key)]]


def torn_transfer(events: list[Event], rng: random.Random) -> None:
    key, pair = rng.choice(_entries(events))
    everywhere(events, int(key), lambda pairs: [one for one in pairs if one != pair])


def wrong_sum(events: list[Event], rng: random.Random) -> None:
    """Let a transfer enter more than it takes."""
    key, pair = rng.choice(_entries(events))
    raised = [pair[0], pair[1] + 1]
    everywhere(events, int(key), lambda pairs: [raised if one == pair else one for one in pairs])


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
    "G1c-process": read_cycle_in_a_process,
    "G1c-realtime": read_cycle_in_time,
    "unknown-value": unknown_value,
    "send-behind-known-offset": send_behind_known_offset,
    "nonmonotonic-log-start-offset": log_start_offset_goes_back,
    "nonmonotonic-last-stable-offset": last_stable_offset_goes_back,
    "nonmonotonic-high-watermark": high_watermark_goes_back,
    "nonmonotonic-committed-offset": committed_offset_goes_back,
    "high-watermark-behind": high_watermark_behind,
    "last-stable-offset-behind": last_stable_offset_behind,
    "consumed-twice": consumed_twice,
    "consumed-never": consumed_never,
    "torn-transfer": torn_transfer,
    "wrong-sum": wrong_sum,
    "stuck": stuck,
}
