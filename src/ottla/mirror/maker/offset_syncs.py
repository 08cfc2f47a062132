"""What lies where in the target: kept in memory exactly, and written as offset syncs for others.

An offset sync says of one record where it lies on both sides. Whoever knows only syncs must go on after the
last one before an offset. Here the runs of records are known, so offsets are translated exactly. After a new
start, what was copied before is known from the syncs alone.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.client.list_offsets import LATEST, list_offsets
from ottla.client.producer import Producer
from ottla.mirror.link import Link
from ottla.mirror.maker.formats import OffsetSync, UnreadableRecord, decode_offset_sync, encode_offset_sync
from ottla.mirror.maker.offset_map import OffsetMap, Run
from ottla.mirror.maker.options import MakerOptions
from ottla.mirror.maker.own_topics import make_topic, read_topic
from ottla.model.ids import TopicPartition

_logger = logging.getLogger("ottla.mirror")

_FLUSH_S: Final = 1.0
_PAUSE_S: Final = 2.0
_WAITING_MAX: Final = 64


class OffsetSyncs:
    """The offsets of one link."""

    def __init__(
        self, link: Link, options: MakerOptions, source: tuple[Cluster, Admin], target: tuple[Cluster, Admin]
    ) -> None:
        self._options = options
        self._target = target[0]
        self._properties = link.target if options.offset_syncs_in_target else link.source
        self._cluster, self._admin = target if options.offset_syncs_in_target else source
        self._maps: dict[TopicPartition, OffsetMap] = {}
        self._waiting: dict[TopicPartition, list[Run]] = {}
        self._is_loaded = False

    def note(self, source: TopicPartition, run: Run) -> None:
        """Take note of records that were copied, and are committed."""
        self._maps.setdefault(source, OffsetMap()).add(run)
        waiting = self._waiting.setdefault(source, [])
        waiting.append(run)
        # The newest ones matter most to those who translate by syncs.
        del waiting[:-_WAITING_MAX]

    def translate(self, source: TopicPartition, upstream: int) -> int | None:
        """Return where a reader of a partition of the source goes on in the target, if that is known."""
        found = self._maps.get(source)
        return None if found is None else found.translate(upstream)

    async def begin(
        self, positions: Mapping[TopicPartition, int], copies: Mapping[TopicPartition, TopicPartition]
    ) -> None:
        """Learn what earlier lives have copied. `positions` are up to where that was."""
        if not self._is_loaded and self._options.emits_offset_syncs:
            await self._load()
            self._is_loaded = True
        if self._options.names.is_identity:
            # Others may write to such a copy, so its end says nothing about what was copied.
            return
        known = [source for source in positions if source in copies]
        ends = await list_offsets(self._target, {copies[source]: LATEST for source in known})
        for source in known:
            # What was copied ends where the copy ends, even if the last sync was lost.
            run = Run(positions[source], ends[copies[source]].offset, 0)
            self._maps.setdefault(source, OffsetMap()).add(run)

    async def _load(self) -> None:
        async for key, value in read_topic(self._cluster, self._options.offset_syncs_topic):
            try:
                sync = decode_offset_sync(key, value)
            except UnreadableRecord as error:
                _logger.warning("%s: %s", self._options.offset_syncs_topic, error)
                continue
            self._maps.setdefault(sync.where, OffsetMap()).add(Run(sync.upstream, sync.downstream))

    async def run(self) -> None:
        """Write what was noted, again and again."""
        topic = self._options.offset_syncs_topic
        while True:
            try:
                await make_topic(self._admin, topic, 1, self._options.internal_replication_factor)
                async with Producer(properties=dict(self._properties)) as producer:
                    while True:
                        await self._flush(producer, topic)
                        await asyncio.sleep(_FLUSH_S)
            except ClientError as error:
                _logger.warning("cannot write %s: %s", topic, error)
                await asyncio.sleep(_PAUSE_S)

    async def _flush(self, producer: Producer, topic: str) -> None:
        waiting, self._waiting = self._waiting, {}
        for source, runs in waiting.items():
            for sync in _syncs_of(source, runs):
                key, value = encode_offset_sync(sync)
                await producer.send(topic, value, key=key, partition=0)
        if waiting:
            await producer.flush()


def _syncs_of(source: TopicPartition, runs: list[Run]) -> list[OffsetSync]:
    """Return the first record of each run, and the very last one: a group at the end goes on after it."""
    syncs = [OffsetSync(source, run.upstream, run.downstream) for run in runs]
    last = runs[-1]
    if last.length > 1:
        beyond = last.length - 1
        syncs.append(OffsetSync(source, last.upstream + beyond, last.downstream + beyond))
    return syncs
