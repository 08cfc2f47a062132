"""Asks Apache Kafka's client-side assignors, and its codec for the blobs of classic consumers."""

import json
from collections.abc import Iterable
from typing import Any

from tests.java.oracle import Oracle, Text
from tests.property.consumer_members import member

from ottla.client.consumer.assignors.assignor import Members, PartitionCounts, Shares
from ottla.client.consumer.embedded_protocol import decode_assignment, encode_assignment, encode_subscription
from ottla.model.ids import TopicPartition


def _write_group(group: tuple[Members, PartitionCounts]) -> str:
    members, partitions = group
    shown = {
        name: [list(one.topics), [list(where) for where in one.owned], one.group_instance_id]
        for name, one in members.items()
    }
    return json.dumps([shown, dict(partitions)])


def _read_group(text: str) -> tuple[Members, PartitionCounts]:
    shown, partitions = json.loads(text)
    members = {}
    for name, (topics, owned, instance_id) in shown.items():
        had = tuple(TopicPartition(*where) for where in owned)
        members[name] = member(tuple(topics), had, instance_id)
    return members, partitions


GROUP_TEXT = Text(_write_group, _read_group)
"""How a group is written down as an example."""


class ConsumerAssignors:
    """Kafka's, asked one question at a time."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    def assign(self, strategy: str, members: Members, partitions: PartitionCounts) -> Shares:
        """Return how Kafka's assignor shares out. Its codec must write the subscriptions as we do."""
        blobs = {name: encode_subscription(subscription).hex() for name, subscription in members.items()}
        answer = self._ask(
            {
                "strategy": strategy,
                "partitions": dict(partitions),
                "members": {
                    name: {"subscription": blobs[name], "instance": subscription.group_instance_id}
                    for name, subscription in members.items()
                },
            }
        )
        assert answer["subscriptions"] == blobs
        shares = {name: bytes.fromhex(blob) for name, blob in answer["shares"].items()}
        for blob in shares.values():
            assert encode_assignment(decode_assignment(blob)) == blob
        return {name: list(decode_assignment(blob)) for name, blob in shares.items()}

    def note(self, strategy: str, assigned: Iterable[TopicPartition], generation: int) -> bytes | None:
        """Return what Kafka's assignor writes into the user data after it got an assignment."""
        blob = encode_assignment(assigned).hex()
        answer = self._ask({"strategy": strategy, "assigned": blob, "generation": generation})
        return None if answer["note"] is None else bytes.fromhex(answer["note"])

    def _ask(self, question: dict[str, Any]) -> Any:
        answer = json.loads(self._oracle.ask("ConsumerAssignors", json.dumps(question)))
        assert "error" not in answer, answer
        return answer
