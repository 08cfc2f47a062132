"""Who leads what when a broker comes, goes or stops: the changes of all partitions it concerns."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final, NamedTuple

from ottla.metadata.topics import NO_LEADER, Topic
from ottla.quorum.controller.decision import ControllerView
from ottla.quorum.controller.partitions.partition_change import Election, Target, Terms, change_partition
from ottla.quorum.controller.partitions.replicas import default_directory, has_directory_online, is_active
from ottla.wire.metadata_records.partitions import PartitionChangeRecord, PartitionRecord


class BrokerChange(NamedTuple):
    """A broker that comes or goes with the records being made, so that the image does not say so yet."""

    leaving: int | None = None
    coming: int | None = None
    stopped_uncleanly: int | None = None

    def concerns(self, partition: PartitionRecord) -> bool:
        """Say whether a partition has to be looked at."""
        if self.coming is not None:
            return partition.leader == NO_LEADER
        if self.stopped_uncleanly is not None:
            eligible = partition.eligible_leader_replicas or ()
            return self.stopped_uncleanly in partition.isr or self.stopped_uncleanly in eligible
        return self.leaving in partition.isr


NO_CHANGE: Final = BrokerChange()


def terms_of(
    view: ControllerView,
    topic: Topic,
    partition: PartitionRecord,
    election: Election = Election.ONLINE,
    change: BrokerChange = NO_CHANGE,
) -> Terms:
    """Return the circumstances under which a partition changes now."""
    stopped = () if change.stopped_uncleanly is None else (change.stopped_uncleanly,)
    return Terms(
        can_lead=partial(_can_lead, view, partition, change),
        default_directory=partial(default_directory, view),
        min_insync_replicas=view.min_insync_replicas(topic),
        elr_enabled=view.elr_enabled,
        metadata_version=view.metadata_version,
        election=election,
        stopped_uncleanly=stopped,
    )


def automatic_election(view: ControllerView, topic: str) -> Election:
    """Return how far an election goes that nobody asked for."""
    return Election.UNCLEAN if view.allows_unclean_election(topic) else Election.ONLINE


def partition_changes(view: ControllerView, change: BrokerChange) -> Iterator[PartitionChangeRecord]:
    """Give what changes in all partitions when a broker comes, goes or stops."""
    for topic in view.image.topics:
        concerned = [partition for partition in topic.partitions.values() if change.concerns(partition)]
        if concerned:
            yield from _changes_of_topic(view, topic, concerned, change)


def _changes_of_topic(
    view: ControllerView, topic: Topic, partitions: Iterable[PartitionRecord], change: BrokerChange
) -> Iterator[PartitionChangeRecord]:
    gone = (change.leaving, change.stopped_uncleanly)
    terms: Terms | None = None
    for partition in partitions:
        isr = tuple([replica for replica in partition.isr if replica not in gone])
        # All but who can lead is the same for all partitions of a topic. Found out once for each topic, a
        # change takes 12 us instead of 17, of which a broker with 100,000 partitions makes as many.
        if terms is None:
            terms = terms_of(view, topic, partition, automatic_election(view, topic.name), change)
        else:
            terms = terms._replace(can_lead=partial(_can_lead, view, partition, change))
        record = change_partition(partition, Target(isr=isr), terms)
        if record is not None:
            yield record


def _can_lead(view: ControllerView, partition: PartitionRecord, change: BrokerChange, broker_id: int) -> bool:
    if broker_id in (change.leaving, change.stopped_uncleanly):
        return False
    brokers = view.image.brokers
    if broker_id != change.coming and not is_active(brokers, broker_id):
        return False
    if broker_id not in partition.replicas:
        return True
    directory = partition.directories[partition.replicas.index(broker_id)]
    return has_directory_online(brokers, broker_id, directory)
