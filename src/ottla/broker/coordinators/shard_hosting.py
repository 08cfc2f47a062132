"""The shards of one coordinator on this node: elected, loaded and resigned as the metadata says.

A shard is loaded in slices on the event loop, so that a large one does not keep clients of others waiting.
Meanwhile its clients get an error that says that it loads. A record that cannot be loaded is left out,
loudly: one that a stranger wrote, or a newer Kafka, must not take the groups or transactions of all others
from their clients. A log that cannot be read at all makes the shard fail: its clients look for another
coordinator, and do not find one. A shard that failed because its log refused a batch is loaded again.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from ottla.broker.coordinators.shard_log import OpenLog, PartitionShardLog
from ottla.broker.logs.partitions import Partitions
from ottla.coordination.runtime.shard import Shard, ShardStatus, State
from ottla.coordination.runtime.shards import Shards
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.records.errors import RecordsError
from ottla.storage.errors import DamagedRecords, StorageError
from ottla.wire.metadata_records.partitions import PartitionRecord
from ottla.world.clock import Clock
from ottla.world.scheduler import Scheduler

_logger: Final = logging.getLogger("ottla.coordinators")

SLICE_NS: Final = 5_000_000
TICK_MS: Final = 500
"""How long a tick is, by which clients wait for answers that are not committed yet."""
RELOAD_MS: Final = 1000
"""How long after its failure a shard is loaded again: it must not keep the node busy by failing each time."""
_ANY_EPOCH: Final = 1 << 31

S = TypeVar("S", bound=State)


class ShardHosting(Generic[S]):
    """Keeps the shards of a coordinator in step with the leaders of its topic's partitions."""

    def __init__(
        self,
        topic: str,
        shards: Shards[S],
        partitions: Partitions,
        node_id: int,
        open_log: OpenLog,
        scheduler: Scheduler,
        clock: Clock,
        act: Callable[..., None],
    ) -> None:
        """`act` takes a step in which something acts on new metadata, and goes on if it fails."""
        self.topic = topic
        self._shards = shards
        self._partitions = partitions
        self._node_id = node_id
        self._open_log = open_log
        self._scheduler = scheduler
        self._clock = clock
        self._act = act
        self._is_ticking = False

    def start(self, image: MetadataImage) -> None:
        """Take over every partition that this node leads."""
        topic = image.topics.find(self.topic)
        if topic is not None:
            for number, record in topic.partitions.items():
                self._follow(number, record)
        self._count_partitions(image)

    def metadata_changed(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Act on changed partitions."""
        for change in delta.topics:
            if change.topic == self.topic:
                self._act(self._follow, change.partition, change.after)
        self._count_partitions(image)

    def stop(self) -> None:
        """Resign from everything."""
        for shard in list(self._shards):
            self._shards.resign(shard.partition, _ANY_EPOCH)

    def write_out(self, number: int) -> None:
        """Have the shard of a partition write what it holds back: somebody else is about to append."""
        shard = self._shards.get(number)
        if shard is not None:
            shard.write_out()

    def _count_partitions(self, image: MetadataImage) -> None:
        topic = image.topics.find(self.topic)
        self._shards.partition_count = None if topic is None else len(topic.partitions)

    def _follow(self, number: int, record: PartitionRecord | None) -> None:
        if record is None:
            self._shards.resign(number, _ANY_EPOCH)
        elif record.leader == self._node_id:
            self._elect(number, record.leader_epoch)
        else:
            self._shards.resign(number, record.leader_epoch)

    def _elect(self, number: int, epoch: int) -> None:
        partition = self._partitions.find(self.topic, number)
        if partition is None:
            # Its directory has failed.
            return
        current = self._shards.get(number)
        if current is not None and current.epoch >= epoch:
            # Something else of the partition has changed.
            return
        log = self._open_log(partition)
        shard = self._shards.elect(number, epoch, log)
        if shard is not None:
            log.shard = shard
            shard.when_parked = self._let_time_pass
            log.when_refused = lambda: self._scheduler.call_later(RELOAD_MS, self._reload, shard)
            if partition.log.log_start_offset == partition.log.log_end_offset:
                shard.activate(self._clock.now_ms())
            else:
                self._load(shard, shard.load(), log)

    def _let_time_pass(self) -> None:
        """Tick while answers are parked, so that none of them is parked for good."""
        if not self._is_ticking:
            self._is_ticking = True
            self._scheduler.call_later(TICK_MS, self._tick)

    def _tick(self) -> None:
        self._is_ticking = False
        some_wait = [shard.tick() for shard in self._shards]
        if any(some_wait):
            self._let_time_pass()

    def _reload(self, failed: Shard[S]) -> None:
        """Replace a shard whose state was ahead of what its log took, if it is still this node's to serve."""
        number = failed.partition
        partition = self._partitions.find(self.topic, number)
        if partition is not None and partition.is_leader and self._shards.get(number) is failed:
            self._shards.resign(number, failed.epoch)
            self._elect(number, failed.epoch)

    def _load(self, shard: Shard[S], steps: Iterator[int], log: PartitionShardLog) -> None:
        started_ms = self._clock.monotonic_ms()

        def go_on() -> None:
            if shard.status is not ShardStatus.LOADING:
                return
            deadline_ns = self._clock.monotonic_ns() + SLICE_NS
            try:
                for _ in steps:
                    if self._clock.monotonic_ns() >= deadline_ns:
                        self._scheduler.call_soon(go_on)
                        return
            except DamagedRecords as error:
                _logger.warning("cannot load %s-%d yet: %s", self.topic, shard.partition, error)
                shard.fail()
                self._scheduler.call_later(RELOAD_MS, self._reload, shard)
                return
            except (RecordsError, StorageError) as error:
                _logger.critical("cannot load %s-%d: %s", self.topic, shard.partition, error)
                shard.fail()
                return
            except BaseException:
                # A bug of ours: the loop reports it. Clients must not wait for a load that has ended.
                shard.fail()
                raise
            if log.left_out:
                _logger.critical(
                    "%s-%d: skipped %d records or batches that cannot be loaded",
                    self.topic,
                    shard.partition,
                    log.left_out,
                )
            log.wait_for_replicas()
            shard.activate(self._clock.now_ms())
            _logger.info(
                "loaded %s-%d up to offset %d in %d ms",
                self.topic,
                shard.partition,
                shard.written_offset,
                self._clock.monotonic_ms() - started_ms,
            )

        self._scheduler.call_soon(go_on)
