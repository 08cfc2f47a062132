"""Asks Apache Kafka's client-side assignors, and its codec for the blobs of classic consumers."""

import json
import subprocess
from collections.abc import Iterable
from typing import Any

from tests.java.jars import compiled, java_command

from ottla.client.consumer.assignors.assignor import Members, PartitionCounts, Shares
from ottla.client.consumer.embedded_protocol import decode_assignment, encode_assignment, encode_subscription
from ottla.model.ids import TopicPartition


class ConsumerAssignors:
    """A Java process that answers one question at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            java_command(compiled("ConsumerAssignors.java"), "ConsumerAssignors"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

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

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _ask(self, question: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer
        return answer
