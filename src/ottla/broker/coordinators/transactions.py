"""The transaction coordinator, driven: its shards, its timers, its markers, and new producer ids."""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.broker.coordinators.loop_timer import LoopTimer
from ottla.broker.coordinators.markers import MarkerWriter
from ottla.broker.coordinators.shard_hosting import ShardHosting
from ottla.broker.coordinators.shard_log import PartitionShardLog
from ottla.broker.coordinators.turn_end import TurnEnd
from ottla.broker.partition import Partition
from ottla.coordination.transaction.coordinator import TransactionCoordinator
from ottla.coordination.transaction.environment import Markers
from ottla.coordination.transaction.settings import TransactionSettings
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.features import TRANSACTION_VERSION
from ottla.metadata.image import MetadataImage
from ottla.model.ids import Offset
from ottla.storage.errors import LogDirectoryOffline
from ottla.wire.coordinator_records.framing import TRANSACTION_RECORDS
from ottla.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.node import Broker

TOPIC: Final = TRANSACTION_RECORDS.topic


class Transactions:
    """The transaction coordinator of a node, and what it needs of the node. Implements `TransactionHost`."""

    def __init__(self, broker: "Broker", loop: AbstractEventLoop) -> None:
        self._broker = broker
        self._turn_end = TurnEnd(loop)
        self.clock = broker.clock
        self._timer = LoopTimer(loop, broker.clock, self._fire)
        self.wake = self._timer.wake
        self._marker_writer = MarkerWriter(broker, loop)
        # By shard: the end of its log when it was elected.
        self._loaded_to: dict[int, Offset] = {}
        self.coordinator = TransactionCoordinator(transaction_settings(broker.config), self)
        self.hosting = ShardHosting(
            TOPIC,
            self.coordinator.shards,
            broker.partitions,
            broker.node_id,
            self._open_log,
            loop,
            broker.clock,
        )

    def start(self, image: MetadataImage) -> None:
        """Take over the transactional ids whose partitions this node leads."""
        self.hosting.start(image)

    def metadata_changed(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Follow who leads what."""
        if delta.topics:
            self.hosting.metadata_changed(image, delta)

    def stop(self) -> None:
        """Tell whoever waits that this node serves no more."""
        self.hosting.stop()
        self._timer.stop()

    # What the coordinator asks for

    def new_producer_id(self, take: Callable[[int | ErrorCode], None]) -> None:
        """Get a producer id that nobody had before."""
        self._broker.producer_ids.next().when_done(take)

    def transaction_version(self) -> int:
        """Return the finalized level of `transaction.version`."""
        return self._broker.image.features.get(TRANSACTION_VERSION, 0)

    def write_markers(self, shard: int, markers: Markers, done: Callable[[], None]) -> None:
        """Write markers to all partitions, once the decision is surely on disk."""
        shards = self.coordinator.shards

        def is_current() -> bool:
            current = shards.get(shard)
            return (
                current is not None
                and current.epoch == markers.coordinator_epoch
                and current.refusal is ErrorCode.NONE
            )

        def go_on(error: LogDirectoryOffline | None) -> None:
            if error is None:
                self._marker_writer.write(markers, is_current, done)

        partition = self._broker.partitions.find(TOPIC, shard)
        if partition is None:
            return
        # What was decided just now is on disk already. What was read back after a crash may not be: a process
        # that crashes leaves what it wrote in the system's cache.
        self._broker.flusher.request(partition.log, self._loaded_to[shard], go_on)

    def _fire(self) -> int | None:
        return self.coordinator.fire_timers()

    def _open_log(self, partition: Partition) -> PartitionShardLog:
        self._loaded_to[partition.index] = partition.log.log_end_offset
        return PartitionShardLog(
            partition, TRANSACTION_RECORDS, self._broker.flusher, self.clock, self._turn_end
        )


def transaction_settings(config: NodeConfig) -> TransactionSettings:
    """Return what the configuration says about transactions."""
    return TransactionSettings(
        max_timeout_ms=config.transaction_max_timeout_ms,
        id_expiration_ms=config.transactional_id_expiration_ms,
        abort_interval_ms=config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
        expiry_interval_ms=config.transaction_remove_expired_transaction_cleanup_interval_ms,
        retry_ms_max=config.add_partitions_to_txn_retry_backoff_max_ms,
        is_two_phase_commit_enabled=config.transaction_two_phase_commit_enable,
    )
