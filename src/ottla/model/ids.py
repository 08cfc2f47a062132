"""Integers and strings that must not be mixed up get types of their own.

They cost nothing at run time. A function that takes an `Offset` is not given a `LeaderEpoch` by mistake.
"""

from typing import NamedTuple, NewType

NodeId = NewType("NodeId", int)
Offset = NewType("Offset", int)
FilePosition = NewType("FilePosition", int)
LeaderEpoch = NewType("LeaderEpoch", int)
ProducerId = NewType("ProducerId", int)

NO_OFFSET = Offset(-1)
NO_LEADER_EPOCH = LeaderEpoch(-1)
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1


class TopicPartition(NamedTuple):
    """One partition of a topic, by name. Sorts by topic, then by number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
