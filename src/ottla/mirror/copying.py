"""Copying partitions: fetch whole batches from their leader, and have them appended at the same offsets.

One task serves one leader of the source. While a piece is being written, the next one is fetched. Where the
target's log ends is where copying goes on, so nothing has to be remembered, and whatever is killed, a batch
is written once: the target refuses an offset that it has.

Everything up to the source's high watermark is copied, also open transactions and markers. So a reader of the
copy sees what a reader of the source sees, with either isolation level.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final, NamedTuple

from ottla.client import surroundings
from ottla.client.cluster import Cluster
from ottla.client.errors import BrokerError, ClientError
from ottla.client.fetching import FetchedPartition, FetchLimits, fetch_from
from ottla.client.list_offsets import EARLIEST, LATEST, list_offsets
from ottla.client.producer.produce_requests import produce_request
from ottla.mirror.followed import FollowedPartitions
from ottla.mirror.halting import HAS_LOST, WHAT_NOW, reason_of_loss
from ottla.mirror.progress import PartitionProgress, Progress
from ottla.model.ids import TopicPartition
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.records.batch import iter_batches
from ottla.records.errors import RecordsError
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.produce import (
    ACKS_MIRRORED,
    TOPIC_IDS_FROM,
    PartitionProduceResponse,
    ProduceRequest,
)

_logger = logging.getLogger("ottla.mirror")

_LIMITS: Final = FetchLimits(max_bytes=16 << 20, partition_max_bytes=4 << 20)
_WRITE_TIMEOUT_MS: Final = 30_000
_LEARNING: Final = "learning leaders"
_PAUSE_S: Final = 0.2
_PAUSE_MAX_S: Final = 5.0
# What comes of leaders that moved, and of targets whose high watermark is behind: look again, then go on.
_PASSING: Final = (ErrorCode.OFFSET_OUT_OF_RANGE,)


class _Piece(NamedTuple):
    """Whole batches, the offset after them, and the copy whose end they belong to."""

    records: memoryview
    end: int
    copy_id: Uuid


class Copying:
    """Copies the partitions of one link. `halt` keeps in the target that one has to wait for an operator."""

    def __init__(
        self,
        source: Cluster,
        target: Cluster,
        progress: Progress,
        halt: Callable[[TopicPartition], Awaitable[None]],
    ) -> None:
        self._source = source
        self._target = target
        self._progress = progress
        self._halt = halt
        self._followed = FollowedPartitions(source, progress)
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def follow(self, partitions: Mapping[TopicPartition, TopicPartition]) -> None:
        """Copy these partitions of the source, by their names in the target."""
        self._followed.follow(partitions)
        for where, part in self._progress.partitions.items():
            self._renew(where, part)
        for node_id in self._source.topology.brokers:
            task = self._tasks.get(node_id)
            if task is None or task.done():
                self._tasks[node_id] = asyncio.create_task(self._run(node_id))

    def _renew(self, where: TopicPartition, part: PartitionProgress) -> None:
        """Take a new round in. What has an error is tried again, unless it waits for an operator."""
        if part.copy_id not in (ZERO_UUID, _topic_id(self._target, where)):
            # The copy was deleted and made again. What waited was the one before.
            part.position = part.copied_to = -1
            part.has_lost = part.halted = False
        reason = self._progress.halted.get(where)
        if reason is not None:
            part.has_lost = part.halted = True
            # The mirror that found it knows more of it: where both of them ended.
            if reason != reason_of_loss(part.source) or HAS_LOST not in (part.error or ""):
                part.error = reason
        if part.has_lost:
            return
        part.source_id = self._progress.topic_ids.get(part.source.topic, ZERO_UUID)
        if part.error is not None:
            # It goes on at the end of the copy.
            part.error, part.position = None, -1

    async def stop(self) -> None:
        """Stop. What was not written yet is fetched again the next time."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _run(self, node_id: int) -> None:
        pause_s = _PAUSE_S
        while True:
            try:
                await self._copy_from(node_id)
                self._progress.note_success(_copying_from(node_id))
                pause_s = _PAUSE_S
            except ClientError as error:
                self._progress.note_error(_copying_from(node_id), str(error))
                _logger.warning("copying from broker %d pauses: %s", node_id, error)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _PAUSE_MAX_S)
                await self._learn_leaders()
            except Exception as error:
                self._progress.note_error(_copying_from(node_id), f"it failed: {error!r}")
                _logger.exception("copying from broker %d pauses", node_id)
                await asyncio.sleep(_PAUSE_MAX_S)

    async def _learn_leaders(self) -> None:
        try:
            await self._followed.learn_source_leaders()
            await self._followed.learn_target_leaders(self._target)
        except ClientError as error:
            self._progress.note_error(_LEARNING, str(error))
        else:
            self._progress.note_success(_LEARNING)

    async def _copy_from(self, node_id: int) -> None:
        """Copy until something goes wrong, or the leaders change."""
        await self._find_positions(node_id)
        writing: asyncio.Task[None] | None = None
        try:
            while positions := self._positions(node_id):
                fetched = await fetch_from(self._source, node_id, positions, limits=_LIMITS)
                if writing is not None:
                    await writing
                    writing = None
                pieces, misplaced, passing = self._pieces(fetched)
                if pieces:
                    writing = asyncio.create_task(self._write(pieces))
                if passing is not None:
                    raise passing
                self._progress.note_success(_copying_from(node_id))
                for part in misplaced:
                    await self._relocate(part)
                await self._find_positions(node_id)
        finally:
            if writing is not None:
                await asyncio.gather(writing, return_exceptions=True)
        await asyncio.sleep(_PAUSE_S)

    def _positions(self, node_id: int) -> dict[TopicPartition, int]:
        parts = (self._progress_of(source) for source in self._followed.led_by(node_id))
        return {part.source: part.position for part in parts if part.position >= 0 and self._is_same(part)}

    def _progress_of(self, source: TopicPartition) -> PartitionProgress:
        return self._followed.progress_of(self._followed.by_source[source])

    def _is_same(self, part: PartitionProgress) -> bool:
        """Say whether the source still has the topic that is copied. If not, an operator has to decide.

        That is known after a restart as well: the copy remembers the id.
        """
        current = _topic_id(self._source, part.source)
        if ZERO_UUID in (current, part.source_id) or current == part.source_id:
            return True
        part.has_lost = part.halted = True
        part.error = f"topic {part.source.topic!r} of the source was deleted and made again. {WHAT_NOW}"
        return False

    async def _find_positions(self, node_id: int) -> None:
        """Find where the target's logs end, of partitions for which that is not known."""
        unknown = [self._followed.by_source[source] for source in self._followed.led_by(node_id)]
        unknown = [where for where in unknown if self._followed.progress_of(where).position < 0]
        if unknown:
            ids = {where: _topic_id(self._target, where) for where in unknown}
            for where, found in (await list_offsets(self._target, dict.fromkeys(unknown, LATEST))).items():
                part = self._followed.progress_of(where)
                if ids[where] == _topic_id(self._target, where):
                    part.position = part.copied_to = found.offset
                    part.copy_id = ids[where]

    def _pieces(
        self, fetched: Collection[FetchedPartition]
    ) -> tuple[dict[TopicPartition, _Piece], list[PartitionProgress], BrokerError | None]:
        """Return whole batches to write, what is not where we look for it, and an error that will pass.

        The positions are behind these batches then: one that is not written would leave a hole. So an error
        of one partition is not raised before those of the others are on their way.
        """
        pieces: dict[TopicPartition, _Piece] = {}
        misplaced: list[PartitionProgress] = []
        passing: BrokerError | None = None
        for item in fetched:
            where = self._followed.by_source.get(item.where)
            if where is None:
                continue
            part = self._followed.progress_of(where)
            if item.fetch_offset != part.position or part.error is not None:
                # The piece before it was not written, so this one would leave a hole.
                continue
            if not self._is_same(part):
                # Those who fetch by name got records of the other topic.
                continue
            if item.error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
                misplaced.append(part)
                continue
            if item.error_code is not ErrorCode.NONE:
                passing = self._take_error(item, part) or passing
                continue
            part.source_end, part.source_start = item.high_watermark, item.log_start_offset
            part.seen_at_ms = surroundings.now_ms()
            try:
                piece, end = _whole_batches(item.records)
            except RecordsError as error:
                part.error = f"{item.where} has damaged bytes at or after {item.fetch_offset}: {error}"
                continue
            if piece:
                pieces[where] = _Piece(piece, end, part.copy_id)
                part.position = end
        return pieces, misplaced, passing

    def _take_error(self, item: FetchedPartition, part: PartitionProgress) -> BrokerError | None:
        if item.error_code.retriable:
            return BrokerError(item.error_code, f"cannot read {item.where}")
        part.error = f"the source refuses {item.where}: {item.error_code.name}"
        return None

    async def _relocate(self, part: PartitionProgress) -> None:
        """Go on after what the source has removed. If it lost what was copied, stop: the copy is ahead."""
        source, position = part.source, part.position
        await self._source.refresh({source.topic})
        if not self._is_same(part):
            return
        start = (await list_offsets(self._source, {source: EARLIEST}))[source].offset
        end = (await list_offsets(self._source, {source: LATEST}))[source].offset
        if position > end:
            part.error = (
                f"the copy of {source} ends at {position}, but the source at {end}: {HAS_LOST} "
                f"that were copied. {WHAT_NOW}"
            )
            part.has_lost = True
            await self._halt(self._followed.by_source[source])
        elif position < start:
            _logger.warning("%s: the source removed offsets %d to %d", source, position, start - 1)
            part.records_skipped += start - position
        part.position = max(position, start)

    async def _write(self, pieces: Mapping[TopicPartition, _Piece]) -> None:
        """Have pieces appended by their leaders. After an error, positions are asked for again."""
        by_leader: dict[int, dict[TopicPartition, _Piece]] = {}
        try:
            for where, piece in pieces.items():
                by_leader.setdefault((await self._target.leader(where)).leader, {})[where] = piece
            await asyncio.gather(*(self._write_to(node_id, mine) for node_id, mine in by_leader.items()))
        except BaseException:
            for where in pieces:
                self._followed.progress_of(where).position = -1
            raise

    async def _write_to(self, node_id: int, pieces: Mapping[TopicPartition, _Piece]) -> None:
        connection = await self._target.connection(node_id)
        version = connection.version_for(ProduceRequest)
        topics = self._target.topology.topics
        for where, piece in pieces.items():
            if _topic_id(self._target, where) != piece.copy_id:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, f"the copy {where} was deleted and made again")
        records = [(where, piece.records) for where, piece in pieces.items()]
        request = produce_request(topics, records, version, acks=ACKS_MIRRORED, timeout_ms=_WRITE_TIMEOUT_MS)
        answer = await connection.ask(request, version, timeout_s=2 * _WRITE_TIMEOUT_MS / 1000)
        names = {topics[where.topic].topic_id: where.topic for where in pieces}
        passing: BrokerError | None = None
        for topic in answer.responses:
            name = names[topic.topic_id] if version >= TOPIC_IDS_FROM else topic.name
            for item in topic.partition_responses:
                where = TopicPartition(name, item.partition_index)
                passing = self._take_answer(where, item, pieces[where]) or passing
        if passing is not None:
            raise passing

    def _take_answer(
        self, where: TopicPartition, item: PartitionProduceResponse, piece: _Piece
    ) -> BrokerError | None:
        part = self._followed.progress_of(where)
        code = item.error_code
        if code is ErrorCode.NONE:
            part.bytes_copied += len(piece.records)
            if part.copy_id == piece.copy_id:
                part.copied_to = piece.end
            return None
        part.position = -1
        error = BrokerError(code, f"the target refuses {where}", item.error_message)
        if code.retriable or code in _PASSING:
            return error
        part.error = str(error)
        if code is ErrorCode.INVALID_REQUIRED_ACKS:
            part.error = f"{where} is not a mirror any more: it was made writable"
        return None


def _copying_from(node_id: int) -> str:
    return f"copying from broker {node_id}"


def _topic_id(cluster: Cluster, where: TopicPartition) -> Uuid:
    view = cluster.topology.topics.get(where.topic)
    return ZERO_UUID if view is None else view.topic_id


def _whole_batches(records: memoryview) -> tuple[memoryview, int]:
    """Return the bytes without a batch that is cut off at the end, and the offset after them."""
    size_bytes, end = 0, -1
    for batch in iter_batches(records):
        size_bytes += len(batch.view)
        end = batch.next_offset
    return records[:size_bytes], end
