"""Reports to the controller on where replicas lie (KIP-858), collected and sent together.

With one log directory the controller knows by itself. With several, the broker chooses where a new replica
goes, and may move it later. After a change of metadata with thousands of new partitions there is one report,
not thousands.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Final, NamedTuple

from ottla.broker.logs.logs_node import LogsNode
from ottla.broker.logs.partition import Partition
from ottla.metadata.directory_ids import LOST
from ottla.metadata.image import MetadataImage
from ottla.metadata.topics import NO_LEADER
from ottla.model.uuid import Uuid
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.assign_replicas_to_dirs import (
    AssignedPartition,
    AssignedTopic,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryAssignment,
)
from ottla.wire.metadata_records.partitions import PartitionRecord
from ottla.world.scheduler import Scheduler

REPLICAS_MAX: Final = 2000
"""How many replicas one report names: each makes a record, and a batch of records has a bound."""

RETRY_MS: Final = 1000
"""After how long a report is sent again that was refused."""

NOT_REGISTERED: Final = -1
"""The broker epoch until the controller has registered the broker."""

Key = tuple[Uuid, int]


class Announcement(NamedTuple):
    """A replica that is about to lie in another directory, and whom to tell that the controller knows."""

    partition: Partition
    target: LogDirectory
    known: Callable[[], None]


class DirectoryReports:
    """The replicas that are to be reported.

    There is one report under way at a time. A report that the controller has not answered is sent again, to
    the next controller if need be. If another one were sent meanwhile, the older could be the last to be
    decided about, and the controller would go by it for good.
    """

    def __init__(self, broker: LogsNode, scheduler: Scheduler) -> None:
        self._broker = broker
        self._scheduler = scheduler
        # By topic id and number. What is due is in one of them.
        self._due: dict[Key, Partition] = {}
        # Replicas that lie in a directory that is offline, or have to be copied again.
        self._lost: dict[Key, None] = {}
        # The leader epoch in which a replica was cut, until it has caught up.
        self._cut: dict[Key, int] = {}
        # Replicas that are reported from where they are about to lie.
        self._announced: dict[Key, Announcement] = {}
        self._is_asking = False
        self._sends_soon = False
        self._sends_later = False

    def add(self, partition: Partition) -> None:
        """Tell the controller soon where this replica lies. One that was lost has to be copied before."""
        key = (partition.topic_id, partition.index)
        self._lost.pop(key, None)
        self._due[key] = partition
        self._send_soon()

    def announce(self, partition: Partition, target: LogDirectory, known: Callable[[], None]) -> None:
        """Tell the controller where a replica is about to lie. `known` is called when it has agreed."""
        self._announced[partition.topic_id, partition.index] = Announcement(partition, target, known)
        self.add(partition)

    def arrived(self, partition: Partition) -> None:
        """Take note that a replica lies where it was announced to."""
        self._announced.pop((partition.topic_id, partition.index), None)

    def withdraw(self, partition: Partition) -> None:
        """Tell the controller that a replica stays where it is, if another place was announced."""
        if self._announced.pop((partition.topic_id, partition.index), None) is not None:
            self.add(partition)

    def add_lost(self, topic_id: Uuid, index: int) -> None:
        """Tell the controller soon that this replica cannot be reached, or lacks records."""
        self._due.pop((topic_id, index), None)
        self._lost[topic_id, index] = None
        self._send_soon()

    def is_to_be_cut(self, partition: Partition) -> None:
        """Take note of a replica that is about to be cut, and copied again."""
        self._cut[partition.topic_id, partition.index] = partition.leader_epoch

    def caught_up(self, partition: Partition) -> None:
        """Take note of a replica that has all that its leader has said is committed."""
        if self._cut:
            self._cut.pop((partition.topic_id, partition.index), None)

    def registered(self) -> None:
        """Send what was found before the controller knew the broker: while its metadata was loaded."""
        self._send_soon()

    def _send_soon(self) -> None:
        if not self._sends_soon:
            self._sends_soon = True
            self._scheduler.call_soon(self._begin)

    def _send_later(self) -> None:
        if not self._sends_later:
            self._sends_later = True
            self._scheduler.call_later(RETRY_MS, self._begin_again)

    def _begin(self) -> None:
        self._sends_soon = False
        self._send()

    def _begin_again(self) -> None:
        self._sends_later = False
        self._send()

    def _send(self) -> None:
        if self._is_asking or self._broker.broker_epoch == NOT_REGISTERED:
            return
        by_key = self._broker.partitions.by_key
        self._due = {key: one for key, one in self._due.items() if by_key.get(key) is one}
        lost = list(islice(self._lost, REPLICAS_MAX))
        for key in lost:
            del self._lost[key]
        reportable = (key for key, one in self._due.items() if self._may_be_reported(one))
        due = {key: self._due[key] for key in islice(reportable, REPLICAS_MAX - len(lost))}
        for key in due:
            del self._due[key]
        if self._due:
            self._send_later()
        if not due and not lost:
            return
        announced = {key: self._announced[key] for key in due if key in self._announced}
        broker = self._broker
        ask = AssignReplicasToDirsRequest(
            broker_id=broker.node_id,
            broker_epoch=broker.broker_epoch,
            directories=(*self._group(due.values()), *_group_lost(lost)),
        )

        def reported(answer: AssignReplicasToDirsResponse) -> None:
            # Another controller will be found, or the broker be registered again. Partitions that are gone by
            # then are no matter. A metadata version that knows no directories needs no report.
            self._is_asking = False
            if answer.error_code in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION):
                self._tell_known(announced, answer)
                self._send_soon()
            else:
                self._take_back(due, lost)

        def failed(_error: Exception) -> None:
            self._is_asking = False
            self._take_back(due, lost)

        self._is_asking = True
        broker.controller.ask(ask).when_done(reported, failed)

    def _tell_known(
        self, announced: Mapping[Key, Announcement], answer: AssignReplicasToDirsResponse
    ) -> None:
        """Tell those whose replicas the controller expects elsewhere now. It is asked again for the rest."""
        refused = {
            (topic.topic_id, partition.partition_index)
            for directory in answer.directories
            for topic in directory.topics
            for partition in topic.partitions
            if partition.error_code is not ErrorCode.NONE
        }
        for key, announcement in announced.items():
            if self._announced.get(key) is not announcement:
                continue
            if key in refused:
                self._take_back({key: announcement.partition}, ())
            else:
                announcement.known()

    def _take_back(self, due: Mapping[Key, Partition], lost: Iterable[Key]) -> None:
        """Report again, in a while, what has not turned out to be otherwise since."""
        for key, partition in due.items():
            if key not in self._lost:
                self._due.setdefault(key, partition)
        for key in lost:
            if key not in self._due:
                self._lost[key] = None
        self._send_later()

    def _may_be_reported(self, partition: Partition) -> bool:
        """Say whether it is safe to have a replica elected.

        One that was lost and said so may lack what was committed, until the leader has taken it for in sync
        again: a leader does so only when it knows itself what is committed. Where nobody leads, the replica
        must not be an eligible leader: a controller of Apache Kafka keeps one that is lost among them.
        """
        broker, log = self._broker, partition.log
        record = find_record(broker.image, partition)
        if record is None or not is_lost(record, broker.node_id):
            return True
        if record.leader == NO_LEADER and broker.node_id not in record.isr:
            return broker.node_id not in (record.eligible_leader_replicas or ())
        if not partition.is_leader and (broker.node_id not in record.isr or self._lacks(partition)):
            return False
        if log.recovery_point < log.high_watermark:
            log.volume.syncs.request(log, log.log_end_offset, None)
            return False
        return True

    def _lacks(self, partition: Partition) -> bool:
        """Say whether the leader may count on what a replica had before it was cut.

        A fetch from before may come to the leader late, so that it takes the replica for in sync. So what is
        committed then may be nowhere else, until the replica has caught up. The next leader counts again.
        """
        return self._cut.get((partition.topic_id, partition.index)) == partition.leader_epoch

    def _group(self, partitions: Iterable[Partition]) -> Iterable[DirectoryAssignment]:
        grouped: dict[Uuid, dict[Uuid, list[int]]] = {}
        for partition in partitions:
            announcement = self._announced.get((partition.topic_id, partition.index))
            if announcement is not None and announcement.partition is partition:
                directory_id = announcement.target.meta.directory_id
            else:
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


def _group_lost(keys: Iterable[Key]) -> Iterable[DirectoryAssignment]:
    topics: dict[Uuid, list[AssignedPartition]] = {}
    for topic_id, index in keys:
        topics.setdefault(topic_id, []).append(AssignedPartition(partition_index=index))
    if topics:
        named = [AssignedTopic(topic_id=one, partitions=tuple(numbers)) for one, numbers in topics.items()]
        yield DirectoryAssignment(id=LOST, topics=tuple(named))


def find_record(image: MetadataImage, partition: Partition) -> PartitionRecord | None:
    """Return what the metadata says of a partition."""
    topic = image.topics.find_by_id(partition.topic_id)
    return None if topic is None else topic.partitions.get(partition.index)


def is_lost(record: PartitionRecord, node_id: int) -> bool:
    """Say whether a replica is marked as one that cannot be reached, or has to be copied again."""
    return dict(zip(record.replicas, record.directories, strict=False)).get(node_id) == LOST
