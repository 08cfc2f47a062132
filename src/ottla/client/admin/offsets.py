"""Offsets of partitions: the first, the last, or the first at or after a time."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from ottla.client.admin.results import Results
from ottla.client.admin.routes import ByVersion, Routes, outcome_of
from ottla.client.errors import ClientError, UnsupportedByBroker
from ottla.model.ids import TopicPartition
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic


class OffsetSpec(IntEnum):
    """An offset by its place. Any number of 0 or more is a time in milliseconds instead."""

    LATEST = -1
    """One past the last record that consumers may see."""
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    """The record with the highest timestamp (Kafka 3.0)."""
    EARLIEST_LOCAL = -4
    """The first that is not in remote storage only (Kafka 3.4)."""
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


_FIRST_VERSION = {-3: 7, -4: 8, -5: 9, -6: 11}


@dataclass(frozen=True, slots=True)
class FoundOffset:
    """An offset, with the record's timestamp where the broker looked at one. -1: there is no such record."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


class Offsets:
    """The offsets of a cluster's partitions."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    async def list(
        self, partitions: Mapping[TopicPartition, int], *, read_committed: bool = False
    ) -> Results[TopicPartition, FoundOffset]:
        """Find an offset for each partition: by an `OffsetSpec`, or by a time in milliseconds.

        With `read_committed` LATEST is the last stable offset: open transactions count as not there.
        """

        async def ask(
            node_id: int, keys: Sequence[TopicPartition]
        ) -> dict[TopicPartition, FoundOffset | ClientError]:
            request = ByVersion(
                ListOffsetsRequest, lambda version: self._request(partitions, keys, read_committed, version)
            )
            answer = await self._routes.ask_node(node_id, request)
            return {
                TopicPartition(topic.name, item.partition_index): outcome_of(
                    item.error_code,
                    f"cannot find the offset of {topic.name}-{item.partition_index}",
                    None,
                    FoundOffset(item.offset, item.timestamp, item.leader_epoch),
                )
                for topic in answer.topics
                for item in topic.partitions
            }

        return await self._routes.ask_leaders(partitions, ask)

    async def earliest(self, partitions: Collection[TopicPartition]) -> Results[TopicPartition, FoundOffset]:
        """Find where partitions start."""
        return await self.list(dict.fromkeys(partitions, OffsetSpec.EARLIEST))

    async def latest(self, partitions: Collection[TopicPartition]) -> Results[TopicPartition, FoundOffset]:
        """Find where partitions end, for a reader."""
        return await self.list(dict.fromkeys(partitions, OffsetSpec.LATEST))

    def _request(
        self,
        specs: Mapping[TopicPartition, int],
        keys: Collection[TopicPartition],
        read_committed: bool,
        version: int,
    ) -> ListOffsetsRequest:
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for key in keys:
            spec = specs[key]
            if version < _FIRST_VERSION.get(spec, 0):
                raise UnsupportedByBroker(f"the broker is too old to find {OffsetSpec(spec).name}")
            topics.setdefault(key.topic, []).append(
                ListOffsetsPartition(partition_index=key.partition, timestamp=spec)
            )
        return ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(read_committed),
            topics=tuple(
                ListOffsetsTopic(name=name, partitions=tuple(items)) for name, items in topics.items()
            ),
            timeout_ms=self._routes.request_timeout_ms,
        )
