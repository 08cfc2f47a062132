"""Dead letters: records that a share group gives up are copied to another topic, with the reason (KIP-1191).

A record that is rejected, or was delivered as often as the group allows, is first written down as being
archived (ARCHIVING). Then its letter is written to the topic of dead letters, and when that is committed, the
record is archived. So a crash loses none. When a share partition is loaded with records that are being
archived, their letters may be there already: the topic is searched for them first, so that none is written
twice.

As long as letters cannot be written, the records stay in flight, and the writing is tried again.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.broker.auto_topics import creatable_topic
from ottla.broker.logs.partition import INTERNAL_TOPICS, Partition
from ottla.broker.replication.broker_peer import Unanswered
from ottla.coordination.share.state import ShareKey
from ottla.metadata.configs.group import GroupConfig
from ottla.model.ids import Offset
from ottla.model.uuid import Uuid
from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.records.errors import RecordsError
from ottla.runtime.log_lines import RepeatedLines
from ottla.storage.errors import AppendError, LogDirectoryOffline, OffsetOutOfRange
from ottla.storage.read import ReadLimit
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_topics import CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.world.scheduler import Scheduler

if TYPE_CHECKING:
    from ottla.broker.node import Broker
    from ottla.broker.share.persister import SharePersister

_logger: Final = logging.getLogger("ottla.share")

REJECTED: Final = "Offset rejected by client."
USED_UP: Final = "Offset delivery count exceeded the threshold."

_HEADER: Final = "__dlq.errors."
_ENABLE: Final = "errors.deadletterqueue.group.enable"
_BATCH_BYTES: Final = 256 << 10
_READ_BYTES: Final = 1 << 20
_TIMEOUT_MS: Final = 30_000
_OVERHEAD_BYTES: Final = 512


class DeadRun(NamedTuple):
    """Offsets in a row that are given up for the same reason."""

    first: int
    last: int
    deliveries: int
    reason: str


class _Target(NamedTuple):
    topic: str
    topic_id: Uuid
    partition: int
    leader: int


Done = Callable[[bool], None]
Offsets = set[int]


class DeadLetters:
    """Writes letters for the share partitions of a node."""

    def __init__(self, broker: "Broker", scheduler: Scheduler, persister: "SharePersister") -> None:
        self._broker = broker
        self._scheduler = scheduler
        self._persister = persister
        self._lines = RepeatedLines(_logger, broker.clock.monotonic_ms)
        self._is_creating = False

    def write(
        self,
        key: ShareKey,
        partition: Partition,
        runs: Sequence[DeadRun],
        group_config: GroupConfig,
        is_first: bool,
        done: Done,
    ) -> None:
        """Write the letters of runs, and say whether they are committed.

        `is_first` says that some may be there already, since the share partition was just loaded.
        """
        target = self._find_target(key, group_config)
        if target is None:
            done(False)
            return

        def go_on(known: Offsets | None) -> None:
            if known is None:
                done(False)
                return
            copies = group_config.errors_deadletterqueue_copy_record_enable
            letters = [
                letter
                for run in runs
                for letter in _letters(key, partition, run, copies)
                if letter.offset not in known
            ]
            self._write_batches(target, _batches(letters), done)

        if is_first:
            self._search(key, partition.topic, target, Offset(0), set(), go_on)
        else:
            go_on(set())

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
        return _Target(name, topic.id, number, topic.partitions[number].leader)

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

    # Writing

    def _write_batches(self, target: _Target, batches: Iterator[bytearray], done: Done) -> None:
        batch = next(batches, None)
        if batch is None:
            done(True)
            return

        def written(is_written: bool) -> None:
            if is_written:
                self._write_batches(target, batches, done)
            else:
                done(False)

        partition = self._broker.partitions.by_key.get((target.topic_id, target.partition))
        if partition is not None and partition.is_leader:
            self._append(partition, batch, written)
        else:
            self._send(target, batch, written)

    def _append(self, partition: Partition, batch: bytearray, done: Done) -> None:
        if not partition.takes_writes:
            done(False)
            return
        try:
            partition.append(memoryview(batch), self._broker.clock.now_ms())
        except (AppendError, LogDirectoryOffline) as error:
            self._lines.warn("a partition refused dead letters", f"{partition}: {error}")
            done(False)
            return
        partition.log.when_committed(partition.log.log_end_offset, lambda error: done(error is None))

    def _send(self, target: _Target, batch: bytearray, done: Done) -> None:
        data = PartitionProduceData(partition_index=target.partition, records=memoryview(batch))
        topic = TopicProduceData(name=target.topic, topic_id=target.topic_id, partition_data=(data,))
        request = ProduceRequest(acks=-1, timeout_ms=_TIMEOUT_MS, topic_data=(topic,))

        def answered(response: Any) -> None:
            if isinstance(response, Unanswered):
                done(False)
                return
            codes = [one.error_code for each in response.responses for one in each.partition_responses]
            done(codes == [ErrorCode.NONE])

        if target.leader < 0:
            done(False)
        else:
            self._persister.ask(target.leader, request, answered)

    # Searching

    def _search(
        self,
        key: ShareKey,
        source: str,
        target: _Target,
        offset: Offset,
        known: Offsets,
        done: Callable[[Offsets | None], None],
    ) -> None:
        """Find the letters of a share partition that are there already, one megabyte in a turn."""

        def read(data: bytes | memoryview, start: int) -> None:
            next_offset = _note_letters(memoryview(data), offset, key, source, known)
            if next_offset is None and offset >= start:
                done(known)
                return
            go_on = Offset(max(next_offset or 0, start))
            self._scheduler.call_soon(self._search, key, source, target, go_on, known, done)

        partition = self._broker.partitions.by_key.get((target.topic_id, target.partition))
        if partition is None or not partition.is_leader:
            self._fetch(target, offset, read, lambda: done(None))
            return
        log = partition.log
        try:
            start = log.log_start_offset
            data = b"" if offset < start else log.read(offset, _READ_BYTES, ReadLimit.LOG_END, True).read()
        except (OffsetOutOfRange, LogDirectoryOffline):
            done(None)
            return
        read(data, start)

    def _fetch(
        self,
        target: _Target,
        offset: Offset,
        read: Callable[[bytes | memoryview, int], None],
        fail: Callable[[], None],
    ) -> None:
        one = FetchPartition(partition=target.partition, fetch_offset=offset, partition_max_bytes=_READ_BYTES)
        topic = FetchTopic(topic=target.topic, topic_id=target.topic_id, partitions=(one,))
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, max_bytes=_READ_BYTES, topics=(topic,), forgotten_topics_data=()
        )

        def answered(response: Any) -> None:
            parts = (
                ()
                if isinstance(response, Unanswered)
                else [one for each in response.responses for one in each.partitions]
            )
            if len(parts) != 1 or parts[0].error_code not in (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE):
                fail()
                return
            read(bytes(parts[0].records or b""), max(parts[0].log_start_offset, 0))

        if target.leader < 0:
            fail()
        else:
            self._persister.ask(target.leader, request, answered)


def _letters(key: ShareKey, partition: Partition, run: DeadRun, copies: bool) -> Iterator[Record]:
    """Make the letters of a run. Their offsets are those of the records."""
    for offset, record in _find_records(partition, run.first, run.last):
        headers = (
            *(record.headers if copies else ()),
            (f"{_HEADER}topic", partition.topic.encode()),
            (f"{_HEADER}partition", b"%d" % key.partition),
            (f"{_HEADER}offset", b"%d" % offset),
            (f"{_HEADER}group", key.group_id.encode()),
            (f"{_HEADER}delivery.count", b"%d" % run.deliveries),
            (f"{_HEADER}message", run.reason.encode()),
        )
        yield Record(
            offset,
            record.timestamp,
            record.key if copies else None,
            record.value if copies else None,
            headers,
        )


def _find_records(partition: Partition, first: int, last: int) -> Iterator[tuple[int, Record]]:
    """Give the records of the log from `first` to `last`. Those that are gone have no letter."""
    log, offset = partition.log, max(first, partition.log.log_start_offset)
    while offset <= last:
        try:
            data = log.read(Offset(offset), _READ_BYTES, ReadLimit.HIGH_WATERMARK, True).read()
        except OffsetOutOfRange:
            return
        next_offset = offset
        for batch in iter_batches(memoryview(data)):
            header = batch.header
            next_offset = max(next_offset, header.last_offset + 1)
            if header.is_control or header.last_offset < offset:
                continue
            for record in iter_batch_records(batch):
                if offset <= record.offset <= last:
                    yield record.offset, record
        if next_offset == offset:
            return
        offset = next_offset


def _batches(letters: Iterable[Record]) -> Iterator[bytearray]:
    """Make batches of letters that are not too large."""
    some: list[Record] = []
    size = 0
    for letter in letters:
        letter_size = _OVERHEAD_BYTES + len(letter.key or b"") + len(letter.value or b"")
        if some and size + letter_size > _BATCH_BYTES:
            yield _batch(some)
            some, size = [], 0
        some.append(letter)
        size += letter_size
    if some:
        yield _batch(some)


def _batch(letters: Sequence[Record]) -> bytearray:
    return build_batch([letter._replace(offset=number) for number, letter in enumerate(letters)])


def _note_letters(data: memoryview, offset: int, key: ShareKey, source: str, known: Offsets) -> int | None:
    """Note the offsets of records that have a letter in these batches. Return where the next batch begins."""
    wanted = {
        f"{_HEADER}group": key.group_id.encode(),
        f"{_HEADER}topic": source.encode(),
        f"{_HEADER}partition": b"%d" % key.partition,
    }
    next_offset = None
    for batch in iter_batches(data):
        if batch.last_offset < offset:
            continue
        next_offset = batch.last_offset + 1
        try:
            for record in iter_batch_records(batch):
                headers = dict(record.headers)
                if wanted.items() <= headers.items():
                    known.add(int(headers.get(f"{_HEADER}offset") or b"-1"))
        except (RecordsError, ValueError):
            # Somebody else's, or damaged: it is no letter of ours.
            continue
    return next_offset
