"""The checker finds nothing in a right history, and names what was planted in it."""

import json
import random

import pytest
from tests.unit.testing.guarantees.planted import PLANTED, Event, right_history

from ottla.testing.guarantees.anomalies import find_anomalies
from ottla.testing.guarantees.anomaly import Anomaly
from ottla.testing.guarantees.errors import MalformedHistory
from ottla.testing.guarantees.history import operations_of, read_events
from ottla.testing.guarantees.indexes import Indexes


def judged(events: list[Event]) -> list[Anomaly]:
    return find_anomalies(Indexes(operations_of(read_events(json.dumps(event) for event in events))))


@pytest.mark.parametrize("seed", range(8))
def test_right_history_has_no_anomalies(seed: int) -> None:
    assert judged(right_history(seed)) == []


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("seed", range(8))
def test_planted_anomaly_is_named(name: str, seed: int) -> None:
    events = right_history(seed)
    PLANTED[name](events, random.Random(seed))
    assert name in {anomaly.name for anomaly in judged(events) if not anomaly.is_legal}


@pytest.mark.parametrize("name", ["G1c", "G1c-process", "G1c-realtime"])
@pytest.mark.parametrize("seed", range(8))
def test_cycle_is_named_after_the_weakest_order_that_makes_it_one(name: str, seed: int) -> None:
    events = right_history(seed)
    PLANTED[name](events, random.Random(seed))
    named = {one.name for one in judged(events) if one.name.startswith("G1c") and not one.is_legal}
    assert named == {name}


def test_unknown_operation_that_was_read_in_part_must_be_there_as_a_whole() -> None:
    events = right_history(1)
    value = [["send", 0, [None, 700]], ["send", 1, [None, 701]]]
    for kind in ("invoke", "info"):
        events.insert(
            0 if kind == "invoke" else 1, {**events[0], "proc": 99, "type": kind, "f": "txn", "value": value}
        )
    assert judged(events) == []
    for event in events:
        if event["f"] == "final" and event["type"] == "ok":
            pairs = event["value"][0][1]["0"]
            pairs.append([pairs[-1][0] + 2, 700])
    assert {anomaly.name for anomaly in judged(events)} == {"unseen"}


@pytest.mark.parametrize(
    "lines",
    [
        ["{"],
        ["[]"],
        ['{"t": 1, "proc": 1, "type": "ok", "f": "txn", "value": []}'],
        ['{"t": 1, "proc": 1, "type": "invoke", "f": "txn", "value": [["send"]]}'],
        ['{"t": 1, "proc": 1, "type": "invoke", "f": "txn", "value": []}'] * 2,
    ],
)
def test_what_is_no_history_is_refused(lines: list[str]) -> None:
    with pytest.raises(MalformedHistory):
        operations_of(read_events(lines))
