"""The transaction coordinator on this node, and what it asks of the node: markers and new producer ids."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ottla.broker.coordinators.coordinators_node import CoordinatorsNode
from ottla.broker.coordinators.hosted_coordinator import HostedCoordinator
from ottla.broker.coordinators.markers import MarkerWriter
from ottla.broker.coordinators.remote_checks import RemoteChecks
from ottla.broker.coordinators.shard_log import PartitionShardLog
from ottla.broker.logs.partition import Partition
from ottla.coordination.runtime.key_partition import partition_of_key
from ottla.coordination.transaction.coordinator import TransactionCoordinator
from ottla.coordination.transaction.environment import Markers
from ottla.coordination.transaction.settings import TransactionSettings
from ottla.coordination.transaction.transaction import Transaction
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.features import TRANSACTION_VERSION
from ottla.model.ids import Offset
from ottla.storage.errors import LeadershipLost, LogDirectoryOffline
from ottla.wire.coordinator_records.framing import TRANSACTION_RECORDS
from ottla.wire.error_code import ErrorCode
from ottla.world.scheduler import Scheduler

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class Transactions(HostedCoordinator[TransactionCoordinator]):
    """The transaction coordinator of a node. Implements `TransactionHost`."""

    records = TRANSACTION_RECORDS

    def __init__(self, broker: CoordinatorsNode, scheduler: Scheduler) -> None:
        self._marker_writer = MarkerWriter(broker, scheduler)
        self.remote_checks = RemoteChecks(
            lambda broker_id: broker.replication.peer(broker_id, f"broker-{broker.node_id}-txn-checker"),
            scheduler,
            lambda: broker.config.add_partitions_to_txn_retry_backoff_ms,
        )
        # By shard: the end of its log when it was elected.
        self._loaded_to: dict[int, Offset] = {}
        super().__init__(broker, scheduler)

    def _make_coordinator(self) -> TransactionCoordinator:
        return TransactionCoordinator(transaction_settings(self._broker.config), self)

    def stop(self) -> None:
        """Tell those who wait that this node serves no more, and send no more markers."""
        super().stop()
        self._marker_writer.close()
        self.remote_checks.close()

    def metrics(self) -> "Iterable[Metric]":
        """Return the metrics of transactions."""
        # Imported only here: a node without Prometheus does without it.
        from ottla.broker.coordinators.group_metrics import transaction_metrics

        return transaction_metrics(self.coordinator)

    def find_leader(self, transactional_id: str) -> int | None:
        """Return the broker that coordinates a transactional id, -1 for none now. None: nobody ever did."""
        topic = self._broker.image.topics.find(self.topic)
        if topic is None:
            return None
        return topic.partitions[partition_of_key(transactional_id, len(topic.partitions))].leader

    # What the coordinator asks for

    def new_producer_id(self, take: Callable[[int | ErrorCode], None]) -> None:
        """Get a producer id that nobody had before."""
        self._broker.producer_ids.next().when_done(take)

    def transaction_expired(self, transaction: Transaction) -> None:
        """Write to the journal that a transaction is about to be aborted."""
        self._broker.journal.note(
            f"transaction/{transaction.transactional_id}",
            "transaction-expired",
            txn=transaction.transactional_id,
            producer=transaction.producer_id,
            epoch=transaction.producer_epoch,
            after_ms=transaction.timeout_ms,
        )

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

        def go_on(error: LogDirectoryOffline | LeadershipLost | None) -> None:
            if error is None:
                self._marker_writer.write(markers, is_current, done)

        partition = self._broker.partitions.find(self.topic, shard)
        if partition is None:
            return
        # What was decided just now is committed already. What was read back after a crash may not be: a
        # process that crashes leaves what it wrote in the system's cache.
        partition.log.when_committed(self._loaded_to[shard], go_on)

    def _open_log(self, partition: Partition) -> PartitionShardLog:
        self._loaded_to[partition.index] = partition.log.log_end_offset
        return super()._open_log(partition)


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
