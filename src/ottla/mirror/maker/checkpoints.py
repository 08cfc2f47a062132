"""Checkpoints: where the groups of the source would go on in the target. They can become offsets there."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from ottla.client import surroundings
from ottla.client.admin import Admin
from ottla.client.admin.group_offsets import CommittedOffset
from ottla.client.cluster import Cluster
from ottla.client.errors import BrokerError, ClientError
from ottla.client.producer import Producer
from ottla.mirror.link import Link
from ottla.mirror.maker.formats import Checkpoint, UnreadableRecord, decode_checkpoint, encode_checkpoint
from ottla.mirror.maker.offset_syncs import OffsetSyncs
from ottla.mirror.maker.options import MakerOptions
from ottla.mirror.maker.own_topics import make_topic, partitions_of, read_committed
from ottla.mirror.progress import Progress
from ottla.model.ids import TopicPartition

_logger = logging.getLogger("ottla.mirror")
_PAUSE_S: Final = 2.0

ByPartition = dict[TopicPartition, Checkpoint]


def is_news(checkpoint: Checkpoint, last: Checkpoint | None) -> bool:
    """Say whether a checkpoint is to be written: forward, unless the group was set back in the source."""
    return last is None or checkpoint.upstream < last.upstream or checkpoint.downstream > last.downstream


class Checkpoints:
    """Writes the checkpoints of one link."""

    def __init__(
        self,
        link: Link,
        options: MakerOptions,
        source: Admin,
        target: Admin,
        cluster: Cluster,
        progress: Progress,
        syncs: OffsetSyncs,
    ) -> None:
        self._link = link
        self._options = options
        self._source = source
        self._target = target
        self._cluster = cluster
        self._progress = progress
        self._syncs = syncs
        self._last: dict[str, ByPartition] = {}

    async def run(self) -> None:
        """Write checkpoints and offsets, again and again."""
        topic = self._options.names.checkpoints
        intervals = (self._options.checkpoints_s, self._options.group_offsets_s)
        interval_s = min(interval for interval in intervals if interval is not None)
        is_loaded = False
        while True:
            try:
                await make_topic(self._target, topic, 1, self._options.internal_replication_factor)
                if not is_loaded:
                    await self._load(topic)
                    is_loaded = True
                async with Producer(properties=dict(self._link.target)) as producer:
                    while True:
                        await self._round(producer, topic)
                        await asyncio.sleep(interval_s)
            except ClientError as error:
                _logger.warning("checkpoints do not follow now: %s", error)
                await asyncio.sleep(_PAUSE_S)

    async def _load(self, topic: str) -> None:
        async for record in read_committed(self._cluster, await partitions_of(self._cluster, topic)):
            try:
                checkpoint = decode_checkpoint(record.key, record.value)
            except UnreadableRecord as error:
                _logger.warning("%s: %s", topic, error)
                continue
            self._last.setdefault(checkpoint.group, {})[checkpoint.where] = checkpoint

    async def _round(self, producer: Producer, topic: str) -> None:
        copies = {part.source: where for where, part in self._progress.partitions.items()}
        for listed in await self._source.groups.list():
            group = listed.group_id
            if listed.type.lower() not in ("", "classic", "consumer") or not self._link.wants_group(group):
                continue
            last = self._last.setdefault(group, {})
            now_ms = surroundings.now_ms()
            for checkpoint in await self._checkpoints_of(group, copies):
                if is_news(checkpoint, last.get(checkpoint.where)):
                    last[checkpoint.where] = checkpoint
                    key, value = encode_checkpoint(checkpoint)
                    await producer.send(topic, value, key=key, partition=0, timestamp_ms=now_ms)
            if self._options.group_offsets_s is not None:
                await self._set_offsets(group, last)
        await producer.flush()

    async def _checkpoints_of(
        self, group: str, copies: Mapping[TopicPartition, TopicPartition]
    ) -> list[Checkpoint]:
        found = []
        for source, item in (await self._source.group_offsets.list(group)).items():
            downstream = self._syncs.translate(source, item.offset) if source in copies else None
            if downstream is not None:
                found.append(Checkpoint(group, copies[source], item.offset, downstream, item.metadata))
        return found

    async def _set_offsets(self, group: str, checkpoints: ByPartition) -> None:
        """Commit for a group that has no members in the target, and never backwards."""
        try:
            ours = await self._target.group_offsets.list(group, tuple(checkpoints))
            ahead = {
                where: CommittedOffset(item.downstream, -1, item.metadata)
                for where, item in checkpoints.items()
                if where not in ours or ours[where].offset < item.downstream
            }
            if ahead:
                # A group with members refuses: it reads here already.
                (await self._target.group_offsets.alter(group, ahead)).check()
        except BrokerError as error:
            _logger.info("the offsets of group %r do not follow: %s", group, error)
