"""Copies records in MirrorMaker 2's way, and exactly once: positions are written together with the data.

One task for each leader of the source fetches, and one task writes. What it finds waiting goes into one
transaction, with the new positions in the source as records of MirrorMaker's own topic. So after whatever is
killed, the positions that are committed are those of the records that are committed. Whenever writing fails,
a new session begins: the transactional id is taken again, which ends what was open, and positions are read.
"""

import asyncio
import contextlib
import logging
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from ottla.client import surroundings
from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.errors import BrokerError, ClientError
from ottla.client.fetching import FetchedPartition, FetchLimits, fetch_from, visible_batches
from ottla.client.list_offsets import EARLIEST, LATEST, list_offsets
from ottla.client.producer.partitioner import partition_of_key
from ottla.mirror.followed import FollowedPartitions
from ottla.mirror.link import Link
from ottla.mirror.maker.batches import Outgoing, outgoing_batches
from ottla.mirror.maker.formats import encode_source_offset
from ottla.mirror.maker.offset_map import Run
from ottla.mirror.maker.offset_syncs import OffsetSyncs
from ottla.mirror.maker.options import MakerOptions
from ottla.mirror.maker.own_topics import made_partitions, make_topic, read_positions
from ottla.mirror.maker.transactional_writer import PartitionRefused, TransactionalWriter
from ottla.mirror.progress import PartitionProgress, Progress
from ottla.model.ids import TopicPartition
from ottla.records.batch import iter_batches
from ottla.records.builder import build_batch
from ottla.records.errors import RecordsError
from ottla.wire.error_code import ErrorCode

_logger = logging.getLogger("ottla.mirror")

_LIMITS: Final = FetchLimits(max_bytes=16 << 20, partition_max_bytes=4 << 20)
_TRANSACTION_BYTES_MAX: Final = 32 << 20
_PAUSE_S: Final = 0.2
_PAUSE_MAX_S: Final = 5.0
_REST_S: Final = 15.0
_COPYING: Final = "copying"


class Piece(NamedTuple):
    """What was fetched of one partition from `start` to before `end`, ready to be written."""

    source: TopicPartition
    start: int
    end: int
    batches: tuple[Outgoing, ...] = ()

    @property
    def size_bytes(self) -> int:
        return sum(len(batch.content) for batch in self.batches)


class Forwarding:
    """Copies the partitions of one link."""

    def __init__(
        self,
        link: Link,
        options: MakerOptions,
        source: Cluster,
        target: Cluster,
        admin: Admin,
        progress: Progress,
        syncs: OffsetSyncs,
    ) -> None:
        self._link = link
        self._options = options
        self._source = source
        self._target = target
        self._admin = admin
        self._progress = progress
        self._syncs = syncs
        self._followed = FollowedPartitions(source, progress)
        self._stored: dict[TopicPartition, int] = {}
        self._fetched_to: dict[TopicPartition, int] = {}
        self._written_to: dict[TopicPartition, int] = {}
        self._resting_until_s: dict[TopicPartition, float] = {}
        """When partitions of the target that refused a batch are tried again."""
        self._task: asyncio.Task[None] | None = None

    def follow(self, partitions: Mapping[TopicPartition, TopicPartition]) -> None:
        """Copy these partitions of the source, by their names in the target."""
        self._followed.follow(partitions)
        now_s = asyncio.get_running_loop().time()
        for where, part in self._progress.partitions.items():
            if now_s >= self._resting_until_s.get(where, 0.0):
                # An operator may have fixed it.
                part.error = None
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop. A transaction that is open is aborted when the next life begins."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        pause_s = _PAUSE_S
        while True:
            began_s = asyncio.get_running_loop().time()
            try:
                await self._session()
            except PartitionRefused as error:
                # The others go on without it at once.
                self._progress.note_error(_COPYING, str(error))
                self._followed.progress_of(error.where).error = str(error)
                self._resting_until_s[error.where] = asyncio.get_running_loop().time() + _REST_S
                _logger.warning("%s is not copied for a while: %s", error.where, error)
                continue
            except ClientError as error:
                self._progress.note_error(_COPYING, str(error))
                _logger.warning("writing to %s pauses: %s", self._options.names.target, error)
            except Exception:
                _logger.exception("writing to %s pauses", self._options.names.target)
            if asyncio.get_running_loop().time() - began_s > _PAUSE_MAX_S:
                pause_s = _PAUSE_S
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)
            with contextlib.suppress(ClientError):
                await self._followed.learn_target_leaders(self._target)

    async def _session(self) -> None:
        """Copy until writing fails."""
        names = self._options.names
        topic = names.source_offsets
        replication_factor = self._options.offsets_replication_factor
        await make_topic(self._admin, topic, self._options.offsets_partitions, replication_factor)
        writer = TransactionalWriter(
            self._target, self._link.target, f"ottla-mirror.{names.source}->{names.target}"
        )
        own = await made_partitions(self._target, topic)
        await writer.start(self._admin, [*self._followed.by_source.values(), *own])
        self._stored = await read_positions(self._target, own)
        self._fetched_to.clear()
        self._written_to.clear()
        await self._syncs.begin(self._stored, self._followed.by_source)
        pieces: asyncio.Queue[list[Piece]] = asyncio.Queue(1)
        fetching = asyncio.create_task(self._fetch_all(pieces))
        try:
            while True:
                await self._write(writer, await self._waiting(pieces))
        finally:
            fetching.cancel()
            await asyncio.gather(fetching, return_exceptions=True)

    async def _waiting(self, pieces: "asyncio.Queue[list[Piece]]") -> list[Piece]:
        """Return what one transaction takes: what has been fetched, up to a size."""
        taken = await pieces.get()
        while not pieces.empty() and sum(piece.size_bytes for piece in taken) < _TRANSACTION_BYTES_MAX:
            taken += pieces.get_nowait()
            # The one that was waiting for room puts the next ones in.
            await asyncio.sleep(0)
        return taken

    async def _fetch_all(self, pieces: "asyncio.Queue[list[Piece]]") -> None:
        """Keep one task for each broker of the source."""
        tasks: dict[int, asyncio.Task[None]] = {}
        try:
            while True:
                for node_id in self._source.topology.brokers:
                    if node_id not in tasks:
                        tasks[node_id] = asyncio.create_task(self._fetch(node_id, pieces))
                await asyncio.sleep(_PAUSE_S)
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def _fetch(self, node_id: int, pieces: "asyncio.Queue[list[Piece]]") -> None:
        pause_s = _PAUSE_S
        while True:
            try:
                if await self._fetch_once(node_id, pieces):
                    self._progress.note_success(_COPYING)
                    pause_s = _PAUSE_S
            except ClientError as error:
                self._progress.note_error(_COPYING, str(error))
                _logger.warning("reading from broker %d pauses: %s", node_id, error)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _PAUSE_MAX_S)
                with contextlib.suppress(ClientError):
                    await self._followed.learn_source_leaders()
            except Exception:
                _logger.exception("reading from broker %d pauses", node_id)
                await asyncio.sleep(_PAUSE_MAX_S)

    async def _fetch_once(self, node_id: int, pieces: "asyncio.Queue[list[Piece]]") -> bool:
        """Fetch what a broker leads, and say whether there is anything that it does."""
        await self._find_positions(node_id)
        positions = {source: self._fetched_to[source] for source in self._followed.led_by(node_id)}
        if not positions:
            await asyncio.sleep(_PAUSE_S)
            return False
        fetched = await fetch_from(self._source, node_id, positions, self._options.isolation, _LIMITS)
        ready, passing = self._pieces(fetched)
        if ready:
            await pieces.put(ready)
        if passing is not None:
            raise passing
        for item in fetched:
            if item.error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
                await pieces.put(await self._relocated(item.where))
        return True

    async def _find_positions(self, node_id: int) -> None:
        """Find where to begin, for partitions that are new in this session, or were away for a while."""
        unknown = [source for source in self._followed.led_by(node_id) if source not in self._fetched_to]
        fresh = [source for source in unknown if source not in self._written_to]
        first = [source for source in fresh if source not in self._stored]
        if first:
            place = LATEST if self._options.from_latest else EARLIEST
            for source, found in (await list_offsets(self._source, dict.fromkeys(first, place))).items():
                self._stored.setdefault(source, found.offset)
        for source in fresh:
            self._written_to.setdefault(source, self._stored[source])
        for source in unknown:
            self._fetched_to.setdefault(source, self._written_to[source])
            where = self._followed.by_source.get(source)
            if where is not None:
                self._followed.progress_of(where).copied_to = self._written_to[source]

    def _pieces(self, fetched: Collection[FetchedPartition]) -> tuple[list[Piece], BrokerError | None]:
        """Return what to write and an error that will pass, and move the positions on.

        The positions are behind these pieces then: one that is not written is missed until more comes. So an
        error of one partition is not raised before those of the others are on their way.
        """
        pieces = []
        passing: BrokerError | None = None
        for item in fetched:
            where = self._followed.by_source.get(item.where)
            if where is None or item.fetch_offset != self._fetched_to.get(item.where):
                # Another task has fetched it: its leader moved.
                continue
            part = self._followed.progress_of(where)
            if item.error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
                continue
            if item.error_code is not ErrorCode.NONE:
                if item.error_code.retriable:
                    passing = BrokerError(item.error_code, f"cannot read {item.where}")
                    continue
                part.error = f"the source refuses {item.where}: {item.error_code.name}"
                continue
            part.source_end, part.source_start = item.high_watermark, item.log_start_offset
            part.seen_at_ms = surroundings.now_ms()
            try:
                piece = self._piece(item)
            except RecordsError as error:
                part.error = f"{item.where} has damaged bytes at or after {item.fetch_offset}: {error}"
                continue
            if piece.end > item.fetch_offset:
                self._fetched_to[item.where] = piece.end
                pieces.append(piece)
        return pieces, passing

    def _piece(self, item: FetchedPartition) -> Piece:
        end = item.fetch_offset
        for batch in iter_batches(item.records):
            end = max(end, batch.next_offset)
        visible = visible_batches(item, self._options.isolation)
        return Piece(item.where, item.fetch_offset, end, tuple(outgoing_batches(visible, item.fetch_offset)))

    async def _relocated(self, source: TopicPartition) -> list[Piece]:
        """Go on after what the source has removed, or at the start of a topic that was made again."""
        position = self._fetched_to.get(source)
        where = self._followed.by_source.get(source)
        if position is None or where is None:
            return []
        start = (await list_offsets(self._source, {source: EARLIEST}))[source].offset
        end = (await list_offsets(self._source, {source: LATEST}))[source].offset
        if start <= position <= end:
            return []
        if position < start:
            _logger.warning("%s: the source removed offsets %d to %d", source, position, start - 1)
            self._followed.progress_of(where).records_skipped += start - position
        else:
            _logger.warning(
                "%s ends at %d, before the position %d: it was made again, or has lost records. Copying "
                "begins again at %d",
                source, end, position, start,
            )  # fmt: skip
        self._fetched_to[source] = start
        return [Piece(source, position, start)]

    async def _write(self, writer: TransactionalWriter, pieces: Collection[Piece]) -> None:
        """Write pieces and the new positions in one transaction; then take note of what lies where."""
        copies = self._followed.by_source
        content: dict[TopicPartition, list[Outgoing]] = {}
        ends: dict[TopicPartition, int] = {}
        for piece in pieces:
            source = piece.source
            if source not in copies or piece.start != ends.get(source, self._written_to.get(source)):
                # The partition was away for a while, and what lies between was not written.
                self._fetched_to.pop(source, None)
                continue
            ends[source] = piece.end
            if piece.batches:
                content.setdefault(copies[source], []).extend(piece.batches)
        if content:
            changed = {source: end for source, end in ends.items() if copies[source] in content}
            offsets = await writer.write({**content, **self._position_batches(changed)})
            for source in changed:
                self._note(
                    source,
                    content[copies[source]],
                    offsets[copies[source]],
                    self._followed.progress_of(copies[source]),
                )
        for source, end in ends.items():
            self._written_to[source] = end
            self._followed.progress_of(copies[source]).copied_to = end

    def _position_batches(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, list[Outgoing]]:
        names = self._options.names
        count = len(self._target.topology.topics[names.source_offsets].partitions)
        records: dict[int, list[tuple[bytes, bytes]]] = {}
        for source, end in ends.items():
            key, value = encode_source_offset(names.source, source, end - 1)
            records.setdefault(partition_of_key(key, count), []).append((key, value))
        now_ms = surroundings.now_ms()
        return {
            TopicPartition(names.source_offsets, number): [
                Outgoing(
                    build_batch([(place, now_ms, *item, ()) for place, item in enumerate(items)]),
                    len(items),
                    (),
                )
            ]
            for number, items in records.items()
        }

    def _note(
        self,
        source: TopicPartition,
        batches: Collection[Outgoing],
        offsets: Collection[int],
        part: PartitionProgress,
    ) -> None:
        for batch, offset in zip(batches, offsets, strict=True):
            part.bytes_copied += len(batch.content)
            for run in batch.runs:
                self._syncs.note(source, Run(run.upstream, offset + run.downstream, run.length))
