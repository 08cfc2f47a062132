"""Events become records: once a second, one batch, into the partition of the journal that is this node's own.

The topic is created when the first event waits. Every node has one partition, whose preferred leader it is,
which the first node creates with the topic and the others add. Where there are more nodes, two
copy it: what a node saw is known also while it is down, and when its disk is gone. One replica in sync is
enough, so no node waits for another. Partitions that earlier releases made, or a node that was alone, have
one replica: they get the others when there are nodes for it.

The journal never takes a directory offline: it stops while there is little room (`room.py`).
"""

import logging
from typing import Any, Final

from ottla.broker.cluster.auto_topics import creatable_topic
from ottla.broker.journal.journal import Event, partition_subject
from ottla.broker.journal.journal_node import JournalNode
from ottla.broker.journal.sampling import Sampler
from ottla.broker.logs.journal_room import TOPIC, has_room
from ottla.broker.logs.partition import Partition
from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.records.attributes import Codec
from ottla.records.builder import build_batch
from ottla.records.codec import RecordTuple
from ottla.storage.appending.append_info import AppendOrigin
from ottla.storage.errors import AppendError, LogDirectoryOffline
from ottla.wire.declare import replace
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.wire.messages.create_topics import CreatableReplicaAssignment, CreateTopicsRequest
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

_logger: Final = logging.getLogger("ottla.journal")

_TIMEOUT_MS: Final = 30_000
_BATCH_BYTES_MAX: Final = 512 << 10
"""Less than a topic takes in one batch, by default."""
_COMPRESSED_FROM: Final = 8
"""So few records are not worth the work."""
REPLICAS_MAX: Final = 3
_UPKEEP_SECONDS: Final = 10
"""How often it is looked whether the partition has its replicas, and its leader."""


class JournalWriter:
    """Writes the journal of a broker."""

    def __init__(self, broker: JournalNode) -> None:
        self._broker = broker
        self._sampler = Sampler(broker)
        self._is_creating = False
        self._has_complained = False
        self._started: Event | None = Event(
            f"node/{broker.node_id}", "node-started", broker.clock.now_ms(), {}
        )
        """Told before everything else. It alone is no reason to make the topic."""
        self._upkeep_in = 0

    def each_second(self) -> None:
        """Look, and write what there is."""
        broker = self._broker
        journal = broker.journal
        self._sampler.look()
        events = journal.take()
        if not events:
            return
        if self._started is not None:
            # Clients that were connected before are not any more, also if nobody could write that.
            events.insert(0, self._started)
            self._started = None
        number = self._own_number()
        if number is None:
            self._create_partition()
            journal.put_back(events)
            return
        self._keep_up(number)
        partition = broker.partitions.find(TOPIC, number)
        if partition is not None and partition.is_leader:
            self._append(partition, events)
        else:
            journal.put_back(events)

    def metadata_changed(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Note what has changed about topics and partitions that are there."""
        journal = self._broker.journal
        for topic_id, name in delta.topics.created.items():
            topic = image.topics.find_by_id(topic_id)
            if topic is not None and name != TOPIC:
                journal.note(f"topic/{name}", "topic-created", topic=name, partitions=len(topic.partitions))
        for topic in delta.topics.deleted.values():
            journal.note(f"topic/{topic.name}", "topic-deleted", topic=topic.name)
        grown: dict[str, int] = {}
        for change in delta.topics:
            if change.before is None and change.after is not None:
                if change.topic_id not in delta.topics.created:
                    grown[change.topic] = max(grown.get(change.topic, 0), change.partition + 1)
            elif change.before is not None and change.after is not None:
                self._note_change(change)
        for name, count in grown.items():
            journal.note(f"topic/{name}", "partitions-added", topic=name, partitions=count)

    def _note_change(self, change: Any) -> None:
        subject = partition_subject(change.topic, change.partition)
        before, after = change.before, change.after
        at = f"{change.topic}/{change.partition}"
        if before.leader != after.leader or before.leader_epoch != after.leader_epoch:
            self._broker.journal.note(
                subject, "leader-changed", at=at, before=before.leader, leader=after.leader
            )
        if before.isr != after.isr:
            self._broker.journal.note(
                subject, "isr-changed", at=at, before=list(before.isr), isr=list(after.isr)
            )

    def _own_number(self) -> int | None:
        """Return the number of the partition whose first replica is this node's."""
        topic = self._broker.image.topics.find(TOPIC)
        for number, record in {} if topic is None else topic.partitions.items():
            if record.replicas[:1] == (self._broker.node_id,):
                return number
        return None

    def _keep_up(self, number: int) -> None:
        """See now and then that the partition has its replicas, and that this node leads it."""
        self._upkeep_in -= 1
        topic = self._broker.image.topics.find(TOPIC)
        if self._upkeep_in > 0 or topic is None:
            return
        self._upkeep_in = _UPKEEP_SECONDS
        broker, record = self._broker, topic.partitions[number]
        replicas = self._replicas()
        if len(record.replicas) == 1 < len(replicas) and record.leader == broker.node_id:
            part = ReassignablePartition(partition_index=number, replicas=replicas)
            moved = ReassignableTopic(name=TOPIC, partitions=(part,))
            broker.controller.ask(AlterPartitionReassignmentsRequest(topics=(moved,), timeout_ms=_TIMEOUT_MS))
        elif record.leader != broker.node_id and broker.node_id in record.isr:
            one = TopicPartitions(topic=TOPIC, partitions=(number,))
            broker.controller.ask(ElectLeadersRequest(topic_partitions=(one,), timeout_ms=_TIMEOUT_MS))

    def _replicas(self) -> tuple[int, ...]:
        """Return the nodes that have a copy: this one, and the next that are there and take replicas."""
        broker = self._broker
        others = sorted(
            node_id
            for node_id, one in broker.image.brokers.items()
            if node_id != broker.node_id and not one.fenced and _takes_replicas(one)
        )
        after = [node_id for node_id in others if node_id > broker.node_id]
        before = [node_id for node_id in others if node_id < broker.node_id]
        return (broker.node_id, *(after + before)[: REPLICAS_MAX - 1])

    def _append(self, partition: Partition, events: list[Event]) -> None:
        if not has_room(partition.log.volume):
            self._complain("there is no room for it, or its directory is offline")
            return
        records: list[RecordTuple] = []
        size = 0
        for event in events:
            key, value = event.encode(self._broker.node_id)
            size += len(key) + len(value) + 32
            if size > _BATCH_BYTES_MAX:
                break
            records.append((len(records), event.time_ms, key, value, ()))
        # The rest is for the next second.
        self._broker.journal.put_back(events[len(records) :])
        codec = Codec.LZ4 if len(records) >= _COMPRESSED_FROM else Codec.NONE
        batch = build_batch(records, codec=codec)
        try:
            partition.append(memoryview(batch), self._broker.clock.now_ms(), AppendOrigin.COORDINATOR)
        except (AppendError, LogDirectoryOffline) as error:
            self._complain(error)
        else:
            self._has_complained = False

    def _complain(self, reason: object) -> None:
        if not self._has_complained:
            self._has_complained = True
            _logger.warning("the journal cannot be written, what it would have told is lost: %s", reason)

    def _create_partition(self) -> None:
        """Ask for a partition of this node's own. If another node was first, the next second asks again."""
        broker = self._broker
        topic = broker.image.topics.find(TOPIC)
        if self._is_creating or not _takes_replicas(broker.image.brokers.get(broker.node_id)):
            return
        self._is_creating = True
        ask = self._new_topic() if topic is None else self._one_more_partition(len(topic.partitions))
        broker.controller.ask(ask).when_done(self._created)

    def _new_topic(self) -> CreateTopicsRequest:
        broker = self._broker
        topic = replace(
            creatable_topic(TOPIC, broker.config, 1),
            num_partitions=-1,
            replication_factor=-1,
            assignments=(CreatableReplicaAssignment(partition_index=0, broker_ids=self._replicas()),),
        )
        return CreateTopicsRequest(topics=(topic,), timeout_ms=_TIMEOUT_MS)

    def _one_more_partition(self, partitions: int) -> CreatePartitionsRequest:
        assignment = CreatePartitionsAssignment(broker_ids=self._replicas())
        topic = CreatePartitionsTopic(name=TOPIC, partition_count=partitions + 1, assignments=(assignment,))
        return CreatePartitionsRequest(topics=(topic,), timeout_ms=_TIMEOUT_MS, validate_only=False)

    def _created(self, _answer: object) -> None:
        self._is_creating = False


def _takes_replicas(broker: Any) -> bool:
    """Say whether a broker has a directory that is not cordoned: one that is being emptied has none."""
    if broker is None:
        return True
    return not broker.log_dirs or bool(set(broker.log_dirs) - set(broker.cordoned_log_dirs or ()))
