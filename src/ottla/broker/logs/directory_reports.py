"""Reports to the controller on where replicas lie (KIP-858), collected and sent together.

With one log directory the controller knows by itself. With several, the broker chooses where a new replica
goes, and may move it later. After a change of metadata with thousands of new partitions there is one report,
not thousands.
"""

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Final

from ottla.broker.logs.partition import Partition
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.assign_replicas_to_dirs import (
    AssignedPartition,
    AssignedTopic,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryAssignment,
)
from ottla.world.scheduler import Scheduler

if TYPE_CHECKING:
    from ottla.broker.node import Broker

REPLICAS_MAX: Final = 2000
"""How many replicas one report names: each makes a record, and a batch of records has a bound."""

RETRY_MS: Final = 1000
"""After how long a report is sent again that was refused."""

NOT_REGISTERED: Final = -1
"""The broker epoch until the controller has registered the broker."""


class DirectoryReports:
    """The replicas that are to be reported."""

    def __init__(self, broker: "Broker", scheduler: Scheduler) -> None:
        self._broker = broker
        self._scheduler = scheduler
        self._due: dict[Partition, None] = {}

    def add(self, partition: Partition) -> None:
        """Tell the controller soon where this replica lies."""
        if not self._due:
            self._scheduler.call_soon(self._send)
        self._due[partition] = None

    def registered(self) -> None:
        """Send what was found before the controller knew the broker: while its metadata was loaded."""
        if self._due:
            self._scheduler.call_soon(self._send)

    def _send(self) -> None:
        if self._broker.broker_epoch == NOT_REGISTERED:
            return
        some = list(islice(self._due, REPLICAS_MAX))
        for partition in some:
            del self._due[partition]
        if self._due:
            self._scheduler.call_soon(self._send)
        broker = self._broker
        ask = AssignReplicasToDirsRequest(
            broker_id=broker.node_id, broker_epoch=broker.broker_epoch, directories=tuple(self._group(some))
        )

        def reported(answer: AssignReplicasToDirsResponse) -> None:
            # Another controller will be found, or the broker be registered again. Partitions that are gone by
            # then are no matter. A metadata version that knows no directories needs no report.
            if answer.error_code not in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION):
                self._scheduler.call_later(RETRY_MS, self._repeat, some)

        broker.controller.ask(ask).when_done(reported)

    def _repeat(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            if self._broker.partitions.by_key.get((partition.topic_id, partition.index)) is partition:
                self.add(partition)

    def _group(self, partitions: Iterable[Partition]) -> Iterable[DirectoryAssignment]:
        grouped: dict[Uuid, dict[Uuid, list[int]]] = {}
        for partition in partitions:
            directory_id = self._broker.directories.directory_of(partition.log).meta.directory_id
            if directory_id is not None:
                topics = grouped.setdefault(directory_id, {})
                topics.setdefault(partition.topic_id, []).append(partition.index)
        for directory_id, topics in grouped.items():
            yield DirectoryAssignment(
                id=directory_id,
                topics=tuple(
                    AssignedTopic(
                        topic_id=topic_id,
                        partitions=tuple(AssignedPartition(partition_index=number) for number in numbers),
                    )
                    for topic_id, numbers in topics.items()
                ),
            )
