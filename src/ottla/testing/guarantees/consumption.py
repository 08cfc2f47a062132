"""Exactly once by a group: every input counts in one committed transaction of its copiers, and in one only.

A `copy` operation polls inputs, sends one output for each, and commits the group's offsets, in one
transaction. That each output is there exactly once is what all values are checked for.
"""

from collections import defaultdict
from collections.abc import Iterator

from ottla.testing.guarantees.anomaly import Anomaly
from ottla.testing.guarantees.history import Operation
from ottla.testing.guarantees.indexes import Indexes

Consumers = dict[int, dict[int, list[Operation]]]


def find_consumed_twice(indexes: Indexes) -> Iterator[Anomaly]:
    """An input of two committed transactions."""
    for key, values in consumers_of(indexes).items():
        for value, operations in values.items():
            if len(operations) > 1:
                numbers = [one.number for one in operations]
                yield Anomaly("consumed-twice", key, f"value {value} counts in operations {numbers}")


def find_consumed_never(indexes: Indexes) -> Iterator[Anomaly]:
    """A value of no committed transaction, before one that counts in some."""
    for key, consumed in consumers_of(indexes).items():
        dense = indexes.dense[key]
        bound = max(dense.first_index[value] for value in consumed)
        for values in dense.values[:bound]:
            for value in values:
                if value not in consumed:
                    yield Anomaly("consumed-never", key, f"value {value} was left out")


def consumers_of(indexes: Indexes) -> Consumers:
    """Return, by key and value, the committed transactions in which an input counts."""
    consumers: Consumers = defaultdict(lambda: defaultdict(list))
    for operation in indexes.operations:
        if operation.function == "copy" and indexes.is_committed(operation):
            for polled in operation.polls:
                for key, records in polled.records.items():
                    for _, value in records:
                        consumers[key][value].append(operation)
    return consumers
