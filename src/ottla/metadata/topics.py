"""Topics and their partitions, as the metadata log has them.

A partition is kept as the PartitionRecord that would recreate it, so that what a snapshot writes, what a
record said and what a broker acts on are one value. Two things are made uniform when a record is replayed:
lists of eligible leaders are None when empty, and replicas of a record from before directory ids lie in
MIGRATING.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ottla.metadata.directory_ids import MIGRATING
from ottla.metadata.errors import MetadataError
from ottla.model.uuid import Uuid
from ottla.wire.declare import replace
from ottla.wire.metadata_records.partitions import ClearElrRecord, PartitionChangeRecord, PartitionRecord
from ottla.wire.metadata_records.topics import RemoveTopicRecord, TopicRecord

NO_LEADER: Final = -1
NO_LEADER_CHANGE: Final = -2
RECOVERED: Final = 0
RECOVERING: Final = 1
NO_RECOVERY_CHANGE: Final = -1


class Topic(NamedTuple):
    """A topic. Partitions are found by number; they count from 0 without gaps."""

    name: str
    id: Uuid
    partitions: Mapping[int, PartitionRecord]


class Topics:
    """All topics, by id and by name."""

    __slots__ = ("_ids", "by_id")

    def __init__(self, by_id: Mapping[Uuid, Topic], ids: Mapping[str, Uuid]) -> None:
        self.by_id = by_id
        self._ids = ids

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[Topic]:
        return iter(self.by_id.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topics) and self.by_id == other.by_id

    __hash__ = None  # type: ignore[assignment]

    @property
    def names(self) -> Mapping[str, Uuid]:
        """The id of each topic, by name."""
        return self._ids

    def find(self, name: str) -> Topic | None:
        """Return the topic of that name."""
        topic_id = self._ids.get(name)
        return None if topic_id is None else self.by_id[topic_id]

    def find_by_id(self, topic_id: Uuid) -> Topic | None:
        """Return the topic of that id."""
        return self.by_id.get(topic_id)


EMPTY_TOPICS: Final = Topics({}, {})


class PartitionChange(NamedTuple):
    """One partition that some records made, changed or took away."""

    topic: str
    topic_id: Uuid
    partition: int
    before: PartitionRecord | None
    after: PartitionRecord | None


class TopicChanges:
    """What some records change in the topics.

    `created` and `deleted` tell a topic that was deleted and made again under its name as both: its id is
    another one.
    """

    def __init__(self, base: Topics) -> None:
        self.base = base
        self.created: dict[Uuid, str] = {}
        self.deleted: dict[Uuid, Topic] = {}
        self._partitions: dict[Uuid, dict[int, PartitionRecord]] = {}

    def __bool__(self) -> bool:
        """Say whether anything was changed."""
        return bool(self.created or self.deleted or self._partitions)

    def __iter__(self) -> Iterator[PartitionChange]:
        """Give every partition that changed: first those of deleted topics, then the others."""
        for topic in self.deleted.values():
            for number, before in topic.partitions.items():
                yield PartitionChange(topic.name, topic.id, number, before, None)
        for topic_id, partitions in self._partitions.items():
            old = self.base.by_id.get(topic_id)
            name = self._name_of(topic_id)
            for number, after in partitions.items():
                before_change = None if old is None else old.partitions.get(number)
                yield PartitionChange(name, topic_id, number, before_change, after)

    def replay_topic(self, record: TopicRecord) -> None:
        """Begin a topic. Its partitions follow."""
        self.created[record.topic_id] = record.name
        self._partitions[record.topic_id] = {}

    def replay_partition(self, record: PartitionRecord) -> None:
        """Set the whole state of a partition."""
        if (
            len(record.directories) != len(record.replicas)
            or record.eligible_leader_replicas == ()
            or record.last_known_elr == ()
        ):
            record = _uniform(record)
        self._partitions_of(record.topic_id)[record.partition_id] = record

    def replay_partition_change(self, record: PartitionChangeRecord) -> None:
        """Change a partition."""
        partitions = self._partitions_of(record.topic_id)
        before = partitions.get(record.partition_id)
        if before is None:
            topic = self.base.by_id.get(record.topic_id)
            before = None if topic is None else topic.partitions.get(record.partition_id)
        if before is None:
            raise MetadataError(f"partition {record.partition_id} of topic {record.topic_id} is not known")
        partitions[record.partition_id] = merge(before, record)

    def replay_clear_elr(self, record: ClearElrRecord) -> None:
        """Forget the eligible leaders of a topic, or of all topics if the record names none."""
        if not record.topic_name:
            for topic_id in [*self.base.by_id, *self.created]:
                if topic_id not in self.deleted:
                    self._clear_elr(topic_id)
            return
        named = self._find_id(record.topic_name)
        if named is None:
            raise MetadataError(f"topic {record.topic_name}, whose eligible leaders to forget, is not known")
        self._clear_elr(named)

    def replay_remove_topic(self, record: RemoveTopicRecord) -> str:
        """Remove a topic. Returns its name."""
        topic_id = record.topic_id
        old = self.base.by_id.get(topic_id)
        if topic_id not in self.created and (old is None or topic_id in self.deleted):
            raise MetadataError(f"topic {topic_id}, which is to be removed, is not known")
        name = self._name_of(topic_id)
        self._partitions.pop(topic_id, None)
        self.created.pop(topic_id, None)
        if old is not None:
            self.deleted[topic_id] = old
        return name

    def find_changed(self, topic_id: Uuid) -> Mapping[int, PartitionRecord]:
        """Return the partitions of a topic that were made or changed."""
        return self._partitions.get(topic_id, {})

    def apply(self) -> Topics:
        """Return base and changes in one. Where nothing changed that is `base` itself."""
        if not self:
            return self.base
        by_id = dict(self.base.by_id)
        ids = self.base.names
        if self.deleted or self.created:
            ids = dict(ids)
        for topic_id, topic in self.deleted.items():
            del by_id[topic_id]
            if ids[topic.name] == topic_id:
                del ids[topic.name]  # type: ignore[attr-defined]  # it was copied above
        for topic_id, name in self.created.items():
            ids[name] = topic_id  # type: ignore[index]  # it was copied above
        for topic_id, changed in self._partitions.items():
            old = by_id.get(topic_id)
            partitions = changed if old is None else {**old.partitions, **changed}
            by_id[topic_id] = Topic(self._name_of(topic_id), topic_id, partitions)
        return Topics(by_id, ids)

    def _partitions_of(self, topic_id: Uuid) -> dict[int, PartitionRecord]:
        partitions = self._partitions.get(topic_id)
        if partitions is None:
            if topic_id not in self.base.by_id or topic_id in self.deleted:
                raise MetadataError(f"topic {topic_id} of a partition's record is not known")
            partitions = self._partitions[topic_id] = {}
        return partitions

    def _name_of(self, topic_id: Uuid) -> str:
        return self.created.get(topic_id) or self.base.by_id[topic_id].name

    def _find_id(self, name: str) -> Uuid | None:
        for topic_id, created_name in self.created.items():
            if created_name == name:
                return topic_id
        topic_id_before = self.base.names.get(name)
        return None if topic_id_before in self.deleted else topic_id_before

    def _clear_elr(self, topic_id: Uuid) -> None:
        old = self.base.by_id.get(topic_id)
        newest = {**(old.partitions if old is not None else {}), **self.find_changed(topic_id)}
        for number, partition in newest.items():
            if partition.eligible_leader_replicas is not None or partition.last_known_elr is not None:
                self._partitions_of(topic_id)[number] = replace(
                    partition,
                    eligible_leader_replicas=None,
                    last_known_elr=None,
                    partition_epoch=partition.partition_epoch + 1,
                )


def merge(before: PartitionRecord, change: PartitionChangeRecord) -> PartitionRecord:
    """Apply a change to a partition.

    That raises the partition epoch, and the leader epoch if a leader is given, even the same one.
    """
    elects = change.leader != NO_LEADER_CHANGE
    recovery = change.leader_recovery_state
    elr, last_known = change.eligible_leader_replicas, change.last_known_elr
    after = PartitionRecord(
        partition_id=before.partition_id,
        topic_id=before.topic_id,
        replicas=_changed(change.replicas, before.replicas),
        isr=_changed(change.isr, before.isr),
        removing_replicas=_changed(change.removing_replicas, before.removing_replicas),
        adding_replicas=_changed(change.adding_replicas, before.adding_replicas),
        leader=change.leader if elects else before.leader,
        leader_recovery_state=before.leader_recovery_state if recovery == NO_RECOVERY_CHANGE else recovery,
        leader_epoch=before.leader_epoch + elects,
        partition_epoch=before.partition_epoch + 1,
        directories=_directories(before, change),
        eligible_leader_replicas=(before.eligible_leader_replicas if elr is None else elr) or None,
        last_known_elr=(before.last_known_elr if last_known is None else last_known) or None,
    )
    return after if len(after.directories) == len(after.replicas) else _uniform(after)


def _directories(before: PartitionRecord, change: PartitionChangeRecord) -> tuple[Uuid, ...]:
    if change.directories is not None:
        return change.directories
    # Before directory ids, replicas were changed without a word about directories.
    is_unaware = change.replicas is not None and set(before.directories) == {MIGRATING}
    return () if is_unaware else before.directories


def _changed(new: tuple[int, ...] | None, old: tuple[int, ...]) -> tuple[int, ...]:
    return old if new is None else new


def _uniform(record: PartitionRecord) -> PartitionRecord:
    directories = record.directories or (MIGRATING,) * len(record.replicas)
    if len(directories) != len(record.replicas):
        raise MetadataError(
            f"partition {record.partition_id} of topic {record.topic_id} has {len(record.replicas)} replicas "
            f"in {len(directories)} directories"
        )
    return PartitionRecord(
        partition_id=record.partition_id,
        topic_id=record.topic_id,
        replicas=record.replicas,
        isr=record.isr,
        removing_replicas=record.removing_replicas,
        adding_replicas=record.adding_replicas,
        leader=record.leader,
        leader_recovery_state=record.leader_recovery_state,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        directories=directories,
        eligible_leader_replicas=record.eligible_leader_replicas or None,
        last_known_elr=record.last_known_elr or None,
    )
