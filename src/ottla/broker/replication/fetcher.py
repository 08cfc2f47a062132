"""Copying partitions from their leader: fetch, append, sync, and fetch on.

A fetcher has one connection to one leader, and one request under way for all partitions that it copies from
there. Batches are appended as they are. What the leader says of one partition is acted on in this order:

    1. the logs diverge         cut the own log, and use nothing else of the answer
    2. records                  append them
    3. the high watermark       take it over, as far as the own log reaches
    4. the log start offset     give up what the leader has given up

The offset of a fetch tells the leader what this replica has, and the leader counts on it. So the next fetch
is sent when what was appended is on disk, for topics with `ottla.acks.all.sync`. All partitions share the
syncs.

A partition that cannot be copied now is left out for a while: first for a moment, since mostly the leader has
not heard that it is one, and in the end for `replica.fetch.backoff.ms`. One that cannot be copied at all
rests until the metadata names another leader epoch.
"""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol

from ottla.broker.logs.divergence import find_common_end
from ottla.broker.logs.journal_room import TOPIC as JOURNAL
from ottla.broker.logs.journal_room import has_room
from ottla.broker.logs.partition import Partition
from ottla.broker.replication.replica_session import Key, ReplicaSession
from ottla.model.ids import LeaderEpoch, Offset
from ottla.runtime.connections.link import Link
from ottla.runtime.connections.peer import Unanswered
from ottla.storage.damages.gaps import expected_gaps_end
from ottla.storage.errors import AppendError, LogDirectoryOffline, StorageError
from ottla.storage.log import Log
from ottla.storage.syncing import committed
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
    ReplicaState,
)
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.world.clock import Clock
from ottla.world.scheduler import Scheduler, Timer

BACKOFF_MS_MIN: Final = 20
"""How long the first pause is. It doubles up to `replica.fetch.backoff.ms`.

Deviation: Kafka pauses for the whole time at once. After an election the followers mostly learn of it before
the new leader does, and everybody who waits for them would wait for a second."""
THROTTLED_MS: Final = 100
"""After how long a partition is looked at again that was held back by a throttle."""
_LATEST, _EARLIEST = -1, -2

_logger: Final = logging.getLogger("ottla.replication")


class FetcherSettings(Protocol):
    """The configs that fetchers obey, as `NodeConfig` has them."""

    replica_fetch_wait_max_ms: int
    replica_fetch_min_bytes: int
    replica_fetch_response_max_bytes: int
    replica_fetch_max_bytes: int
    replica_fetch_backoff_ms: int
    replica_socket_timeout_ms: int


class FetchingNode(Protocol):
    """What a fetcher needs of its node."""

    node_id: int
    clock: Clock
    scheduler: Scheduler

    @property
    def settings(self) -> FetcherSettings:
        """The configs as they are now."""

    @property
    def broker_epoch(self) -> int:
        """That of this broker, -1 before it is registered."""

    @property
    def fetch_version_max(self) -> int:
        """The newest version of Fetch that the cluster has agreed on."""

    def truncate(self, log: Log, offset: Offset) -> None:
        """Make a log end at `offset`."""

    def restart_log(self, log: Log, offset: Offset) -> None:
        """Empty a log, and let it go on at `offset`."""

    def may_cut(self, partition: Partition, offset: Offset) -> bool:
        """Say whether nothing below `offset` would go if a log is cut there. Otherwise it is copied again."""

    def may_fetch(self, partition: Partition, is_behind: bool) -> bool:
        """Say whether a partition is not held back, by a throttle or by damage."""

    def fetched(self, partition: Partition, size_bytes: int) -> None:
        """Take note of records that were copied."""

    def caught_up(self, partition: Partition) -> None:
        """A partition has all that its leader says is committed."""

    def flush_is_due(self, partition: Partition) -> None:
        """A segment was completed, or `flush.messages` is reached."""

    def high_watermark_moved(self, partition: Partition) -> None:
        """Readers may see more than before."""


def _may_copy(partition: Partition) -> bool:
    """Say whether there is room for records that the leader has taken. Those of coordinators come before."""
    volume = partition.log.volume
    if partition.topic == JOURNAL:
        return has_room(volume)
    # A fetch may bring more than what is left, so the last look is not enough.
    volume.look_at_room()
    return partition.is_internal or not volume.is_nearly_full


class FollowedPartition:
    """A partition of a fetcher."""

    __slots__ = (
        "ask",
        "backoff_ms",
        "has_gaps",
        "is_locating",
        "lag",
        "leader_epoch",
        "partition",
        "rests_until_ms",
    )

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        # What the next request asks for, kept as long as it is the same.
        self.ask: FetchPartition | None = None
        self.backoff_ms = 0
        self.rests_until_ms = 0
        # Whether the leader is being asked where its log starts and ends.
        self.is_locating = False
        # Whether the leader has stood by a gap, so that its log may have others.
        self.has_gaps = False
        self.lag = -1

    def renew_ask(self, bytes_max: int) -> FetchPartition:
        """Return what to ask for now."""
        log, ask = self.partition.log, self.ask
        if (
            ask is None
            or ask.fetch_offset != log.log_end_offset
            or ask.log_start_offset != log.log_start_offset
            or ask.last_fetched_epoch != log.leader_epochs.latest
            or ask.partition_max_bytes != bytes_max
        ):
            ask = self.ask = FetchPartition(
                partition=self.partition.index,
                current_leader_epoch=self.leader_epoch,
                fetch_offset=log.log_end_offset,
                last_fetched_epoch=log.leader_epochs.latest,
                log_start_offset=log.log_start_offset,
                partition_max_bytes=bytes_max,
            )
        return ask


class Fetcher:
    """Copies partitions from one leader."""

    def __init__(self, node: FetchingNode, peer: Link, name: str) -> None:
        self.name = name
        self.partitions: dict[Key, FollowedPartition] = {}
        # Those that cannot be copied, until the metadata changes.
        self.failed: dict[Key, str] = {}
        self._node = node
        self._peer = peer
        self._session = ReplicaSession()
        self._is_asking = False
        self._is_closed = False
        self._syncs = 0
        self._backoff_ms = 0
        self._timer: Timer | None = None
        self._is_due = False

    # Partitions

    def add(self, partition: Partition) -> None:
        """Begin to copy a partition, from where its log ends."""
        key = (partition.topic_id, partition.index)
        self.failed.pop(key, None)
        followed = self.partitions[key] = FollowedPartition(partition)
        log = partition.log
        try:
            if log.leader_epochs.latest < 0 and log.log_end_offset > log.high_watermark:
                # Nothing tells where it may depart from the leader's. What is committed does not.
                self._node.truncate(log, log.high_watermark)
            self._sync(followed)
        except StorageError as error:
            self._give_up(followed, error)
        self._go_on_soon()

    def remove(self, partition: Partition) -> None:
        """Stop copying a partition."""
        key = (partition.topic_id, partition.index)
        self.partitions.pop(key, None)
        self.failed.pop(key, None)

    def close(self) -> None:
        """Stop."""
        self._is_closed = True
        self.partitions.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._peer.close()

    # Asking

    def _go_on_soon(self) -> None:
        if not self._is_due and not self._is_closed:
            self._is_due = True
            self._node.scheduler.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_due = False
        if self._is_asking or self._is_closed or self._syncs:
            return
        wanted = self._wanted()
        if not wanted:
            # Deviation: Kafka sends a fetch that only forgets the partitions that rest. It tells the leader
            # nothing that matters, and the next fetch would have to wait for its answer.
            return
        topics, forgotten = self._session.plan(wanted)
        settings = self._node.settings
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=self._node.node_id, replica_epoch=self._node.broker_epoch),
            max_wait_ms=settings.replica_fetch_wait_max_ms,
            min_bytes=settings.replica_fetch_min_bytes,
            max_bytes=settings.replica_fetch_response_max_bytes,
            session_id=self._session.id,
            session_epoch=self._session.epoch,
            topics=topics,
            forgotten_topics_data=forgotten,
        )
        self._is_asking = True
        self._peer.ask(
            request,
            partial(self._answered, wanted),
            settings.replica_socket_timeout_ms,
            version_max=self._node.fetch_version_max,
        )

    def _wanted(self) -> dict[Key, FetchPartition]:
        """Return what to ask for. If somebody rests, have this looked at again when the rest is over."""
        now_ms = self._node.clock.monotonic_ms()
        bytes_max = self._node.settings.replica_fetch_max_bytes
        wanted: dict[Key, FetchPartition] = {}
        next_ms: int | None = None
        for key, followed in self.partitions.items():
            if followed.is_locating:
                continue
            if followed.rests_until_ms > now_ms:
                next_ms = min(followed.rests_until_ms, next_ms or followed.rests_until_ms)
            elif self._node.may_fetch(followed.partition, followed.lag != 0):
                wanted[key] = followed.renew_ask(bytes_max)
            else:
                next_ms = min(now_ms + THROTTLED_MS, next_ms or now_ms + THROTTLED_MS)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if next_ms is not None:
            self._timer = self._node.scheduler.call_later(next_ms - now_ms, self._go_on_soon)
        return wanted

    def _rest(self, followed: FollowedPartition) -> None:
        """Leave a partition out for a while, longer each time."""
        followed.backoff_ms = self._longer(followed.backoff_ms)
        followed.rests_until_ms = self._node.clock.monotonic_ms() + followed.backoff_ms

    def _longer(self, backoff_ms: int) -> int:
        longest_ms = self._node.settings.replica_fetch_backoff_ms
        return min(longest_ms, max(BACKOFF_MS_MIN, 2 * backoff_ms))

    # Answers

    def _answered(self, asked: Mapping[Key, FetchPartition], response: Any) -> None:
        self._is_asking = False
        if self._is_closed:
            return
        if isinstance(response, Unanswered):
            self._lost(response)
            return
        assert isinstance(response, FetchResponse), "it is what was asked for"
        if not self._session.take(response):
            _logger.info("%s begins another fetch session: %s", self.name, response.error_code.name)
            if response.error_code not in _SESSION_ERRORS:
                self._lost(Unanswered(response.error_code.name))
                return
            self._go_on_soon()
            return
        self._backoff_ms = 0
        for topic in response.responses:
            for data in topic.partitions:
                key = (topic.topic_id, data.partition_index)
                followed, ask = self.partitions.get(key), asked.get(key)
                if followed is not None and followed.ask is ask and ask is not None:
                    self._take(followed, ask, data)
        if not self._syncs:
            self._go_on_soon()

    def _lost(self, error: Unanswered) -> None:
        """Let everything rest: the leader cannot be asked."""
        if not self._backoff_ms:
            _logger.warning("%s cannot fetch: %s", self.name, error)
        self._session.restart()
        self._backoff_ms = self._longer(self._backoff_ms)
        until_ms = self._node.clock.monotonic_ms() + self._backoff_ms
        for followed in self.partitions.values():
            followed.rests_until_ms = max(followed.rests_until_ms, until_ms)
        self._go_on_soon()

    def _take(self, followed: FollowedPartition, ask: FetchPartition, data: PartitionData) -> None:
        log = followed.partition.log
        if ask.fetch_offset != log.log_end_offset:
            # It has changed since, so this is an answer to an old question.
            return
        try:
            if data.error_code is not ErrorCode.NONE:
                self._take_error(followed, data.error_code)
            elif data.diverging_epoch.epoch >= 0:
                self._truncate(followed, data)
            else:
                self._take_records(followed, ask, data)
        except AppendError as error:
            if error.error_code is not ErrorCode.CORRUPT_MESSAGE:
                self._give_up(followed, error)
                return
            # Damaged on its way, or in the leader's log. It is never passed over.
            _logger.warning("%r: %s sent damaged records: %s", followed.partition, self.name, error)
            self._rest(followed)
        except StorageError as error:
            self._give_up(followed, error)
        except Exception as error:  # a bug of ours: the fetcher goes on for all other partitions
            _logger.critical("%r: cannot take what %s sent", followed.partition, self.name, exc_info=error)
            self._rest(followed)

    def _take_error(self, followed: FollowedPartition, error_code: ErrorCode) -> None:
        if error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._locate(followed)
        elif error_code is ErrorCode.FENCED_LEADER_EPOCH:
            # The leader knows of a newer epoch, which the metadata will tell.
            self._give_up(followed, Unanswered("the leader has begun another epoch"), logging.INFO)
        else:
            if error_code not in _PASSING:
                _logger.warning("%r: %s answered %s", followed.partition, self.name, error_code.name)
            self._rest(followed)

    def _give_up(self, followed: FollowedPartition, error: Exception, level: int = logging.ERROR) -> None:
        partition = followed.partition
        key = (partition.topic_id, partition.index)
        if self.partitions.get(key) is followed:
            _logger.log(level, "%s copies %r no more: %s", self.name, partition, error)
            del self.partitions[key]
            self.failed[key] = str(error)

    def _take_records(self, followed: FollowedPartition, ask: FetchPartition, data: PartitionData) -> None:
        partition = followed.partition
        log, records = partition.log, data.records
        if records and not _may_copy(partition):
            # Longer each time: the leader would send the same records again and again.
            self._rest(followed)
            return
        followed.backoff_ms = 0
        if records:
            self._append(followed, ask, records, Offset(data.high_watermark))
        lag = max(0, data.high_watermark - log.log_end_offset)
        if not lag and followed.lag:
            self._node.caught_up(partition)
        followed.lag = lag
        high_watermark = Offset(min(data.high_watermark, log.log_end_offset))
        if high_watermark > log.high_watermark:
            log.update_high_watermark(high_watermark)
            self._node.high_watermark_moved(partition)
        log_start = Offset(min(data.log_start_offset, log.high_watermark))
        if log_start > log.log_start_offset:
            log.increment_log_start_offset(log_start)
        if records:
            self._sync(followed)

    def _append(
        self, followed: FollowedPartition, ask: FetchPartition, records: memoryview, high_watermark: Offset
    ) -> None:
        partition = followed.partition
        log, now_ms = partition.log, self._node.clock.now_ms()
        if log.log_start_offset == log.log_end_offset:
            base_offset = int.from_bytes(records[:8], signed=True)
            if 0 <= base_offset < log.log_end_offset:
                # The leader's log starts within a batch. It is copied whole (KAFKA-6975).
                self._node.restart_log(log, Offset(base_offset))
        gaps_end = expected_gaps_end(log, high_watermark)
        if followed.has_gaps:
            gaps_end = max(gaps_end, high_watermark)
        info = log.append_as_follower(records, LeaderEpoch(ask.current_leader_epoch), now_ms, gaps_end)
        if info is not None:
            followed.has_gaps |= info.first_offset > ask.fetch_offset
            self._node.fetched(partition, len(records))
            if info.flush_is_due:
                self._node.flush_is_due(partition)

    def _sync(self, followed: FollowedPartition) -> None:
        """Hold the next fetch back until what a log has is on disk."""
        log = followed.partition.log
        if committed.is_on_disk(log, log.log_end_offset):
            return

        def synced(error: LogDirectoryOffline | None) -> None:
            self._syncs -= 1
            if error is not None:
                self._give_up(followed, error)
            if not self._syncs:
                self._go_on_soon()

        self._syncs += 1
        committed.when_on_disk(log, log.log_end_offset, synced)

    # Logs that differ

    def _truncate(self, followed: FollowedPartition, data: PartitionData) -> None:
        partition, diverging = followed.partition, data.diverging_epoch
        log = partition.log
        offset = find_common_end(log, LeaderEpoch(diverging.epoch), Offset(diverging.end_offset))
        _logger.log(
            logging.INFO if offset < log.log_end_offset else logging.DEBUG,
            "%r ends at %d, but the leader's epoch %d ends at %d: cutting it at %d",
            partition,
            log.log_end_offset,
            diverging.epoch,
            diverging.end_offset,
            offset,
        )
        before = (log.log_end_offset, log.leader_epochs.latest)
        self._cut(partition, offset)
        if (log.log_end_offset, log.leader_epochs.latest) == before:
            # Nothing has changed, so that the answer would be the same, as often as it is asked.
            self._rest(followed)

    def _cut(self, partition: Partition, offset: Offset) -> None:
        """Cut a log, unless records that may be committed would go with damage below: it may lead next."""
        if self._node.may_cut(partition, offset):
            self._node.truncate(partition.log, offset)

    def _locate(self, followed: FollowedPartition) -> None:
        """Find out where the leader's log is: what this replica wants next is not in it."""
        followed.is_locating = True
        self._ask_offset(followed, _LATEST, self._take_end)

    def _take_end(self, followed: FollowedPartition, leader_end: Offset) -> None:
        partition = followed.partition
        log = partition.log
        if leader_end < log.log_end_offset:
            _logger.warning(
                "%r ends at %d, but the leader's log ends at %d: cutting it there",
                partition,
                log.log_end_offset,
                leader_end,
            )
            self._cut(partition, leader_end)
            self._located(followed)
        else:
            self._ask_offset(followed, _EARLIEST, self._take_start)

    def _take_start(self, followed: FollowedPartition, leader_start: Offset) -> None:
        partition = followed.partition
        log = partition.log
        if leader_start > log.log_end_offset:
            _logger.warning(
                "%r ends at %d, but the leader's log starts at %d: beginning again there",
                partition,
                log.log_end_offset,
                leader_start,
            )
            self._node.restart_log(log, leader_start)
        else:
            # It is within the leader's log, which may be seen at the next fetch. It need not come at once.
            self._rest(followed)
        self._located(followed)

    def _located(self, followed: FollowedPartition) -> None:
        followed.is_locating = False
        self._sync(followed)
        self._go_on_soon()

    def _ask_offset(
        self,
        followed: FollowedPartition,
        timestamp: int,
        take: Callable[[FollowedPartition, Offset], None],
    ) -> None:
        partition = followed.partition
        ask = ListOffsetsPartition(
            partition_index=partition.index, current_leader_epoch=followed.leader_epoch, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=self._node.node_id,
            topics=(ListOffsetsTopic(name=partition.topic, partitions=(ask,)),),
        )

        def answered(response: Any) -> None:
            if self.partitions.get((partition.topic_id, partition.index)) is not followed:
                return
            found = None if isinstance(response, Unanswered) else response.topics[0].partitions[0]
            if found is None or found.error_code is not ErrorCode.NONE:
                followed.is_locating = False
                self._rest(followed)
                self._go_on_soon()
                return
            try:
                take(followed, Offset(found.offset))
            except StorageError as error:
                self._give_up(followed, error)

        self._peer.ask(request, answered, self._node.settings.replica_socket_timeout_ms)


_SESSION_ERRORS: Final = frozenset(
    (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    )
)
_PASSING: Final = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    )
)
"""What a leader answers that has not heard yet what this node has heard."""
