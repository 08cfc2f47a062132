"""Runs shards of Apache Kafka's own group coordinator, step by step."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.java.oracle import Oracle

from ottla.model.uuid import Uuid
from ottla.wire.codec import encode
from ottla.wire.declare import spec_of

Written = tuple[bytes, bytes | None]
"""A record: key and value."""
Topic = tuple[str, Uuid, int, Sequence[Sequence[str]]]
"""Name, id, partition count, racks of each partition."""


class Outcome(NamedTuple):
    """What a step brought about."""

    batches: list[list[Written]]
    """The records that Kafka wrote."""
    replies: dict[int, bytes]
    """Answers by the number of their request, counted from 0 for each shard."""
    creatable: tuple[tuple[str, int, int, dict[str, str]], ...]
    """Topics that the broker shall create: name, partitions, replication factor, configs."""


class KafkaFailed(Exception):
    """Kafka's shard threw an exception that is no answer."""


class GroupShards:
    """Shards by name."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    def shard(self, name: str, now_ms: int, configs: Mapping[str, str]) -> "KafkaShard":
        """Begin a shard. One of the same name ends."""
        self.tell(op="new", shard=name, now=now_ms, configs=dict(configs))
        return KafkaShard(self, name)

    def tell(self, **question: Any) -> Outcome:
        """Make a step."""
        answer = json.loads(self._oracle.ask("GroupShards", json.dumps(question)))
        if "error" in answer:
            raise KafkaFailed(answer["error"])
        batches = [
            [(bytes.fromhex(key), None if value is None else bytes.fromhex(value)) for key, value in batch]
            for batch in answer.get("batches", ())
        ]
        replies = {number: bytes.fromhex(body) for number, body in answer.get("replies", ())}
        return Outcome(batches, replies, tuple(map(tuple, answer.get("creatable", ()))))


class KafkaShard:
    """One shard."""

    def __init__(self, shards: GroupShards, name: str) -> None:
        self._shards = shards
        self._name = name

    def load(self) -> Outcome:
        """Say that everything has been replayed."""
        return self._shards.tell(op="load", shard=self._name)

    def use_topics(self, topics: Sequence[Topic], version: int) -> Outcome:
        """Tell the topics that there are from now on."""
        shown = [[name, str(topic_id), count, racks] for name, topic_id, count, racks in topics]
        return self._shards.tell(op="topics", shard=self._name, topics=shown, version=version)

    def ask(self, request: Any, version: int, client_id: str) -> Outcome:
        """Send a request."""
        return self._shards.tell(
            op="ask",
            shard=self._name,
            api=spec_of(type(request)).api_key,
            version=version,
            client=client_id,
            body=encode(request, version).hex(),
        )

    def advance(self, now_ms: int) -> Outcome:
        """Let tasks run and timers fire."""
        return self._shards.tell(op="advance", shard=self._name, to=now_ms)

    def replay(self, records: Sequence[Written]) -> Outcome:
        """Apply records that somebody else wrote. Raises `KafkaFailed` where Kafka could not load them."""
        shown = [[key.hex(), None if value is None else value.hex()] for key, value in records]
        return self._shards.tell(op="replay", shard=self._name, records=shown)
