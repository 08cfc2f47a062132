"""What lies where in the target: kept in memory exactly, and written as offset syncs for others.

An offset sync says of one record where it lies on both sides. A reader that knows only syncs must go on
after the last one before an offset. Here the runs of records are known, so offsets are translated exactly. A
header of a sync, which MirrorMaker 2 does not look at, has the length of the run that begins there. So a new
start knows the runs as well, as far back as the topic has not been compacted.
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
from ottla.mirror.maker.own_topics import make_topic, partitions_of, read_committed
from ottla.model.ids import TopicPartition
from ottla.records.codec import Headers

_logger = logging.getLogger("ottla.mirror")

_LENGTH: Final = "ottla.length"
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
        if waiting and (joined := waiting[-1].joined(run)) is not None:
            waiting[-1] = joined
            return
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
        topic = self._options.offset_syncs_topic
        async for record in read_committed(self._cluster, await partitions_of(self._cluster, topic)):
            try:
                sync = decode_offset_sync(record.key, record.value)
            except UnreadableRecord as error:
                _logger.warning("%s: %s", topic, error)
                continue
            run = Run(sync.upstream, sync.downstream, _length_in(record.headers))
            self._maps.setdefault(sync.where, OffsetMap()).add(run)

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
            for run in _told(runs):
                key, value = encode_offset_sync(OffsetSync(source, run.upstream, run.downstream))
                headers = [(_LENGTH, b"%d" % run.length)]
                await producer.send(topic, value, key=key, partition=0, headers=headers)
        if waiting:
            await producer.flush()


def _told(runs: list[Run]) -> list[Run]:
    """Return all runs, and the very last record: for those who know only syncs, a group goes on after it."""
    beyond = runs[-1].length - 1
    last = Run(runs[-1].upstream + beyond, runs[-1].downstream + beyond)
    return [*runs, last] if beyond else runs


def _length_in(headers: Headers) -> int:
    """Return the length of the run that a sync begins. Syncs of MirrorMaker 2 itself stand for one record."""
    found = next((value for name, value in headers if name == _LENGTH), None)
    return int(found) if found is not None and found.isdigit() else 1
