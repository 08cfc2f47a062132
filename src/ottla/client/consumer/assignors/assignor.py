"""What an assignor is: a name, a rebalance protocol, a note for the next leader, and a function."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from ottla.client.consumer.embedded_protocol import Subscription
from ottla.model.ids import TopicPartition

Members = Mapping[str, Subscription]
"""Subscriptions by member id."""
PartitionCounts = Mapping[str, int]
"""How many partitions each topic has. Topics that do not exist are not in it."""
Shares = dict[str, list[TopicPartition]]
"""What each member is to read."""


class RebalanceProtocol(Enum):
    """Whether members give up everything before they join again, or only what is taken from them."""

    EAGER = "eager"
    COOPERATIVE = "cooperative"


def no_note(_owned: Sequence[TopicPartition], _generation: int) -> bytes | None:
    """Keep no note in the subscription."""
    return None


class Assignor(NamedTuple):
    """One way to share out partitions."""

    name: str
    protocol: RebalanceProtocol
    assign: Callable[[Members, PartitionCounts], Shares]
    note: Callable[[Sequence[TopicPartition], int], bytes | None] = no_note
    """(what was last assigned, in which generation) -> user data of the next subscription."""


def in_order(members: Members) -> list[str]:
    """Return member ids in the order that all makes of client use: static members first, by instance id."""

    def key(member_id: str) -> tuple[bool, str]:
        instance_id = members[member_id].group_instance_id
        return (instance_id is None, member_id if instance_id is None else instance_id)

    return sorted(members, key=key)
