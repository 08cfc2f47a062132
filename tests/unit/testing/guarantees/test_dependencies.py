"""Transactions that overlap may mix their writes. That is told, and is legal."""

import pytest

from ottla.testing.guarantees.anomalies import find_anomalies
from ottla.testing.guarantees.history import EventType, Operation, Polled, Sent
from ottla.testing.guarantees.indexes import Indexes
from ottla.testing.guarantees.lag import worst_lag_ms

Step = Sent | Polled


def operation(number: int, begin: int, end: int, *steps: Step, process: int | None = None) -> Operation:
    return Operation(
        number, number if process is None else process, "txn", EventType.OK, steps, (), frozenset(),
        begin, end, None,
    )  # fmt: skip


MIXED_WRITES = [
    operation(0, 0, 10, Sent(1, 0, 10), Sent(2, 1, 20)),
    operation(1, 0, 10, Sent(1, 1, 11), Sent(2, 0, 21)),
]
READ_BETWEEN_WRITES = [
    operation(0, 0, 10, Sent(1, 0, 10), Sent(2, 1, 20)),
    operation(1, 0, 20, Sent(1, 1, 11)),
    operation(2, 0, 30, Polled({1: [(0, 10), (1, 11)]}), Sent(2, 0, 21)),
]
MIXED_BY_A_PROCESS = [
    operation(0, 0, 30, Sent(1, 1, 11), Sent(2, 0, 20)),
    operation(1, 1, 10, Sent(2, 1, 21), process=1),
    operation(2, 11, 20, Sent(1, 0, 10), process=1),
]
MIXED_IN_TIME = [
    operation(0, 0, 30, Sent(1, 1, 11), Sent(2, 0, 20)),
    operation(1, 1, 10, Sent(2, 1, 21)),
    operation(2, 11, 20, Sent(1, 0, 10)),
]
SKIPPED = [
    operation(0, 0, 10, Sent(1, 0, 10), Sent(1, 2, 12)),
    operation(1, 0, 10, Sent(1, 1, 11)),
]


@pytest.mark.parametrize(
    ("name", "operations"),
    [
        ("G0", MIXED_WRITES),
        ("G1c-ww", READ_BETWEEN_WRITES),
        ("G1c-ww-process", MIXED_BY_A_PROCESS),
        ("G1c-ww-realtime", MIXED_IN_TIME),
        ("int-send-skip", SKIPPED),
    ],
)
def test_legal_mixture_is_told_by_its_name(name: str, operations: list[Operation]) -> None:
    found = find_anomalies(Indexes(operations))
    assert name in {one.name for one in found}
    assert all(one.is_legal for one in found)


def test_operation_that_overlaps_another_does_not_come_before_it() -> None:
    reader = operation(0, 0, 10, Polled({1: [(0, 10)]}))
    writer = operation(1, 10, 20, Sent(1, 0, 10))
    assert find_anomalies(Indexes([reader, writer])) == []
    later = find_anomalies(Indexes([reader, writer._replace(invoked_ns=11)]))
    assert "G1c-realtime" in {one.name for one in later}


def test_lag_is_from_the_acknowledgement_to_the_first_reading() -> None:
    writer = operation(0, 0, 1_000_000, Sent(1, 0, 10))
    first, second = (operation(number, 0, number * 4_000_000, Polled({1: [(0, 10)]})) for number in (1, 2))
    last = operation(3, 0, 90_000_000, Polled({1: [(0, 10)]}))._replace(function="final")
    assert worst_lag_ms(Indexes([writer, second, first, last])) == 3
    assert worst_lag_ms(Indexes([writer, last])) == 0
