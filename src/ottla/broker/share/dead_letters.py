"""Dead letters: records that a share group gives up are copied to another topic, with the reason (KIP-1191).

A record that is rejected, or was delivered as often as the group allows, is first written down as being
archived (ARCHIVING). Then its letter is written to the topic of dead letters, and when that is committed, the
record is archived. So a crash loses none. When a share partition is loaded with records that are being
archived, their letters may be there already: the topic is searched for them first, so that none is written
twice. The search goes as far as the leader of the letters' partition had appended when it began, committed or
not. What arrives there later, the leader sorts out itself (`Letterbox`).

As long as letters cannot be written, the records stay in flight, and the writing is tried again. A letter may
be larger than `max.message.bytes` of its topic: its record was let in by another one, and is not given up.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from ottla.broker.cluster.auto_topics import creatable_topic
from ottla.broker.logs.partition import INTERNAL_TOPICS, Partition
from ottla.broker.share.letters import (
    READ_BYTES,
    DeadRun,
    Letterbox,
    Queue,
    iter_letter_batches,
    iter_letters,
    note_letters,
)
from ottla.broker.share.persister import SharePersister
from ottla.broker.share.share_node import ShareNode
from ottla.coordination.share.state import ShareKey
from ottla.metadata.configs.group import GroupConfig
from ottla.model.ids import Offset
from ottla.model.uuid import Uuid
from ottla.runtime.connections.peer import Unanswered
from ottla.runtime.log_lines import RepeatedLines
from ottla.storage.errors import AppendError, LogDirectoryOffline, OffsetOutOfRange
from ottla.storage.read import ReadLimit
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_topics import CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.wire.messages.produce import (
    ACKS_ALL,
    ACKS_LETTERS,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from ottla.world.scheduler import Scheduler

_logger: Final = logging.getLogger("ottla.share")

_ENABLE: Final = "errors.deadletterqueue.group.enable"
_TIMEOUT_MS: Final = 30_000
_RETRY_MS: Final = 100
_READS_OF_NOTHING_MAX: Final = 100


class _Target(NamedTuple):
    topic: str
    topic_id: Uuid
    partition: int
    leader: int
    leader_epoch: int
    bytes_max: int


Done = Callable[[bool], None]
Offsets = set[int]


class _Job(NamedTuple):
    """Letters that are to be written."""

    queue: Queue
    partition: Partition
    runs: Sequence[DeadRun]
    copies: bool
    target: _Target
    done: Done

    @property
    def key(self) -> ShareKey:
        """The group, and the partition that it reads."""
        return self.queue.key


class DeadLetters:
    """Writes letters for the share partitions of a node."""

    def __init__(self, broker: ShareNode, scheduler: Scheduler, persister: SharePersister) -> None:
        self._broker = broker
        self._scheduler = scheduler
        self._persister = persister
        self._lines = RepeatedLines(_logger, broker.clock.monotonic_ms)
        self._is_creating = False
        self.letterbox = Letterbox()

    def write(
        self,
        queue: Queue,
        partition: Partition,
        runs: Sequence[DeadRun],
        group_config: GroupConfig,
        is_first: bool,
        done: Done,
    ) -> None:
        """Write the letters of runs, and say whether they are committed.

        `is_first` says that some may be there already, since the share partition was just loaded.
        """
        target = self._find_target(queue.key, group_config)
        if target is None:
            done(False)
            return
        copies = group_config.errors_deadletterqueue_copy_record_enable
        job = _Job(queue, partition, runs, copies, target, done)
        if is_first:
            self._find_end(job)
        else:
            self._write(job, set())

    # Where to

    def _find_target(self, key: ShareKey, group_config: GroupConfig) -> _Target | None:
        config, name = self._broker.config, group_config.errors_deadletterqueue_topic_name
        topic = self._broker.image.topics.find(name)
        if not name.startswith(config.errors_deadletterqueue_topic_name_prefix) or name in INTERNAL_TOPICS:
            prefix = config.errors_deadletterqueue_topic_name_prefix
            self._complain(key, f"its topic {name} must begin with {prefix!r}")
            return None
        if topic is None:
            if config.errors_deadletterqueue_auto_create_topics_enable:
                self._create(name)
            else:
                self._complain(key, f"create its topic {name} with {_ENABLE}=true")
            return None
        topic_config = self._broker.configs.topic(self._broker.image.topic_config(name))
        if not topic_config.errors_deadletterqueue_group_enable:
            self._complain(key, f"set {_ENABLE}=true for its topic {name}")
            return None
        number = key.partition % len(topic.partitions)
        record = topic.partitions[number]
        return _Target(
            name, topic.id, number, record.leader, record.leader_epoch, topic_config.max_message_bytes
        )

    def _complain(self, key: ShareKey, what_to_do: str) -> None:
        self._lines.warn("dead letters of a share group cannot be written", f"{key.group_id}: {what_to_do}")

    def _create(self, name: str) -> None:
        if self._is_creating:
            return
        self._is_creating = True
        broker = self._broker
        topic = creatable_topic(name, broker.config, len(broker.image.brokers))
        topic = replace(topic, configs=(*topic.configs, CreatableTopicConfig(name=_ENABLE, value="true")))

        def done(_answer: object) -> None:
            self._is_creating = False

        request = CreateTopicsRequest(topics=(topic,), timeout_ms=_TIMEOUT_MS)
        broker.controller.ask(request, None).when_done(done, done)

    def _find_local(self, target: _Target) -> Partition | None:
        """Return the partition for the letters if this node leads it."""
        partition = self._broker.partitions.by_key.get((target.topic_id, target.partition))
        return partition if partition is not None and partition.is_leader else None

    def _ask(self, target: _Target, request: Any, answered: Callable[[Any], None]) -> None:
        """Ask the leader of the letters' partition. Without an answer, nothing is called but `done`."""
        if target.leader < 0:
            answered(Unanswered("the partition has no leader"))
        else:
            self._persister.ask(target.leader, request, answered)

    # Writing

    def _write(self, job: _Job, known: Offsets) -> None:
        letters = iter_letters(job.queue, job.partition, job.runs, job.copies, self._broker.clock.now_ms())
        new = (letter for letter in letters if letter.offset not in known)
        self._write_batches(job, iter_letter_batches(new, job.target.bytes_max))

    def _write_batches(self, job: _Job, batches: Iterator[bytearray]) -> None:
        try:
            batch = next(batches, None)
        except LogDirectoryOffline:
            job.done(False)
            return
        if batch is None:
            job.done(True)
            return

        def written(is_written: bool) -> None:
            if is_written:
                # Not at once: there may be more batches than Python can call into each other.
                self._scheduler.call_soon(self._write_batches, job, batches)
            else:
                job.done(False)

        partition = self._find_local(job.target)
        if partition is not None:
            self._append(job, partition, batch, written)
        else:
            self._send(job, batch, ACKS_LETTERS, written)

    def _append(self, job: _Job, partition: Partition, batch: bytearray, done: Done) -> None:
        if not partition.takes_writes:
            done(False)
            return
        try:
            self.letterbox.append(partition, memoryview(batch), self._broker.clock.now_ms())
        except (AppendError, LogDirectoryOffline) as error:
            self._complain(job.key, f"its topic {job.target.topic} refuses them: {error}")
            done(False)
            return
        partition.log.when_committed(partition.log.log_end_offset, lambda error: done(error is None))

    def _send(self, job: _Job, batch: bytearray, acks: int, done: Done) -> None:
        target = job.target
        data = PartitionProduceData(partition_index=target.partition, records=memoryview(batch))
        topic = TopicProduceData(name=target.topic, topic_id=target.topic_id, partition_data=(data,))
        request = ProduceRequest(acks=acks, timeout_ms=_TIMEOUT_MS, topic_data=(topic,))

        def answered(response: Any) -> None:
            if isinstance(response, Unanswered):
                done(False)
                return
            (answer,) = (one for each in response.responses for one in each.partition_responses)
            if answer.error_code is ErrorCode.INVALID_REQUIRED_ACKS and acks == ACKS_LETTERS:
                # The leader is a broker of Apache Kafka: it takes letters like any other records.
                self._send(job, batch, ACKS_ALL, done)
                return
            if not (answer.error_code is ErrorCode.NONE or answer.error_code.retriable):
                self._complain(
                    job.key, _why_refused(target, len(batch), answer.error_code, answer.error_message)
                )
            done(answer.error_code is ErrorCode.NONE)

        self._ask(target, request, answered)

    # Searching

    def _find_end(self, job: _Job) -> None:
        """Find out how far to search: all that the leader has appended, whether it is committed or not."""
        local = self._find_local(job.target)
        if local is not None:
            self._search(job, local.log.log_end_offset, Offset(0), set())
            return
        target = job.target
        one = OffsetForLeaderPartition(
            partition=target.partition,
            current_leader_epoch=target.leader_epoch,
            leader_epoch=target.leader_epoch,
        )
        topic = OffsetForLeaderTopic(topic=target.topic, partitions=(one,))

        def answered(response: Any) -> None:
            if isinstance(response, Unanswered):
                job.done(False)
                return
            (end,) = (one for each in response.topics for one in each.partitions)
            if end.error_code is not ErrorCode.NONE or end.end_offset < 0:
                job.done(False)
            else:
                self._search(job, end.end_offset, Offset(0), set())

        self._ask(target, OffsetForLeaderEpochRequest(replica_id=-1, topics=(topic,)), answered)

    def _search(self, job: _Job, end: int, offset: Offset, known: Offsets, tries: int = 0) -> None:
        """Find the letters that are there already, one megabyte in a turn, then write the others."""
        if offset >= end:
            self._write(job, known)
            return

        def read(data: bytes | memoryview, start: int) -> None:
            found = note_letters(memoryview(data), offset, job.queue, job.runs, known)
            next_offset = Offset(max(found or offset, start))
            if next_offset > offset:
                self._scheduler.call_soon(self._search, job, end, next_offset, known)
            elif tries < _READS_OF_NOTHING_MAX:
                # What is there is not committed yet.
                self._scheduler.call_later(_RETRY_MS, self._search, job, end, offset, known, tries + 1)
            else:
                job.done(False)

        partition = self._find_local(job.target)
        if partition is None:
            self._fetch(job, offset, read)
            return
        log = partition.log
        try:
            start = log.log_start_offset
            data = b"" if offset < start else log.read(offset, READ_BYTES, ReadLimit.LOG_END, True).read()
        except (OffsetOutOfRange, LogDirectoryOffline):
            job.done(False)
            return
        read(data, start)

    def _fetch(self, job: _Job, offset: Offset, read: Callable[[bytes | memoryview, int], None]) -> None:
        target = job.target
        one = FetchPartition(partition=target.partition, fetch_offset=offset, partition_max_bytes=READ_BYTES)
        topic = FetchTopic(topic=target.topic, topic_id=target.topic_id, partitions=(one,))
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, max_bytes=READ_BYTES, topics=(topic,), forgotten_topics_data=()
        )

        def answered(response: Any) -> None:
            parts = (
                ()
                if isinstance(response, Unanswered)
                else [one for each in response.responses for one in each.partitions]
            )
            if len(parts) != 1 or parts[0].error_code not in (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE):
                job.done(False)
                return
            read(bytes(parts[0].records or b""), max(parts[0].log_start_offset, 0))

        self._ask(target, request, answered)


def _why_refused(target: _Target, size_bytes: int, error_code: ErrorCode, message: str | None) -> str:
    if error_code is ErrorCode.MESSAGE_TOO_LARGE:
        return f"set max.message.bytes of its topic {target.topic} to at least {size_bytes}"
    return f"its topic {target.topic} refuses them: {message or error_code.name}"
