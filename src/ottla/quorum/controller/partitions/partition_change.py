"""What has to change in a partition, and who leads it then.

Whatever happens to a partition (a broker comes or goes, the in-sync replicas change, replicas move) ends
here: the caller says what it is to become, and this finds out the rest, in this order:

1. A reassignment whose new replicas are all in sync is completed.
2. While fewer than `min.insync.replicas` are in sync, those that were are remembered as eligible leaders
   (KIP-966), except brokers that stopped uncleanly or have lost the replica: they may lack what they had
   acknowledged.
3. A leader is elected: the present one if it still can, otherwise the first replica that can. It must be in
   sync, or eligible when nobody is. Failing that, the last known leader, if it is the only one left; then, if
   the topic allows it, any live replica. Those two may have lost records, so the partition becomes
   RECOVERING.
4. The leader epoch is raised, by naming the leader in the record, when the leader changes or a replica goes.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from ottla.metadata.features import DIRECTORIES_FROM
from ottla.metadata.topics import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    RECOVERING,
)
from ottla.model.uuid import Uuid
from ottla.wire.metadata_records.partitions import PartitionChangeRecord, PartitionRecord

_SHRINK_KEEPS_EPOCH_FROM: Final = 12
"""The metadata.version from which on a leader need not be fenced off by an epoch when replicas fall out."""

Ids = tuple[int, ...]


class Election(Enum):
    """How far an election may go."""

    PREFERRED = "the first replica, even if another one leads"
    ONLINE = "an in-sync or eligible replica"
    UNCLEAN = "any live replica, at the price of records"


class Terms(NamedTuple):
    """The circumstances under which a partition changes."""

    can_lead: Callable[[int], bool]
    default_directory: Callable[[int], Uuid]
    min_insync_replicas: int
    elr_enabled: bool
    metadata_version: int
    election: Election = Election.ONLINE
    not_eligible: Ids = ()
    """Those that may lack what they have acknowledged."""


class Target(NamedTuple):
    """What a partition is to become. None leaves things as they are."""

    isr: Ids | None = None
    replicas: Ids | None = None
    removing: Ids | None = None
    adding: Ids | None = None
    recovery_state: int | None = None
    directories: Mapping[int, Uuid] | None = None


def change_partition(before: PartitionRecord, target: Target, terms: Terms) -> PartitionChangeRecord | None:
    """Return the record that makes `before` what `target` says, or None if there is nothing to change."""
    isr = before.isr if target.isr is None else target.isr
    replicas = before.replicas if target.replicas is None else target.replicas
    removing = before.removing_replicas if target.removing is None else target.removing
    adding = before.adding_replicas if target.adding is None else target.adding
    completed = complete_reassignment(replicas, isr, removing, adding)
    if completed is not None:
        replicas, isr = completed
        removing = adding = ()

    elr = _eligible_leaders(before, replicas, isr, terms)
    leader, is_unclean = _elect(before, replicas, isr, elr, terms)
    changes_leader = leader != before.leader
    if changes_leader and leader in elr:
        isr = (leader,)
        elr = tuple(one for one in elr if one != leader)
    recovery = NO_RECOVERY_CHANGE
    if changes_leader and is_unclean:
        isr, elr = (leader,), ()
        if before.leader_recovery_state != RECOVERING:
            recovery = RECOVERING
    elif not isr and not terms.elr_enabled:
        # Without eligible leaders the last in-sync replica stays in the list, so that it can be elected
        # again.
        isr = before.isr
    if target.recovery_state is not None and target.recovery_state != before.leader_recovery_state:
        recovery = target.recovery_state

    raises_epoch = changes_leader or _loses_replica(before, replicas, isr, terms)
    record = PartitionChangeRecord(
        partition_id=before.partition_id,
        topic_id=before.topic_id,
        isr=_if_new(isr, before.isr),
        leader=leader if raises_epoch else NO_LEADER_CHANGE,
        replicas=_if_new(replicas, before.replicas),
        removing_replicas=_if_new(removing, before.removing_replicas),
        adding_replicas=_if_new(adding, before.adding_replicas),
        leader_recovery_state=recovery,
        directories=_directories(before, replicas, target, terms),
        eligible_leader_replicas=_if_new(elr, before.eligible_leader_replicas or ()),
        last_known_elr=_last_known(before, leader, raises_epoch, terms),
    )
    return None if record == _nothing(before) else record


def complete_reassignment(replicas: Ids, isr: Ids, removing: Ids, adding: Ids) -> tuple[Ids, Ids] | None:
    """Return replicas and in-sync replicas after a reassignment, or None while it is not finished."""
    if not removing and not adding:
        return None
    staying = tuple(one for one in replicas if one not in removing)
    staying_isr = tuple(one for one in isr if one not in removing)
    if not staying or not staying_isr or not set(adding) <= set(staying_isr):
        return None
    # Where more replicas go than come, those that stay have to be in sync before the others may go.
    if len(adding) < len(removing) and not set(staying) <= set(staying_isr):
        return None
    return staying, staying_isr


def _eligible_leaders(before: PartitionRecord, replicas: Ids, isr: Ids, terms: Terms) -> Ids:
    """Return those that have all that was committed, though they are not in sync now.

    Deviation: Kafka also keeps a broker that is no replica any more. It has deleted the partition, and must
    not be trusted if it becomes a replica again.
    """
    if not terms.elr_enabled or len(isr) >= terms.min_insync_replicas:
        return ()
    candidates = {*before.isr, *(before.eligible_leader_replicas or ())}
    return tuple(sorted(candidates.intersection(replicas).difference(isr, terms.not_eligible)))


def _elect(before: PartitionRecord, replicas: Ids, isr: Ids, elr: Ids, terms: Terms) -> tuple[int, bool]:
    """Return the leader, and whether records may be lost by it."""

    def is_valid(replica: int) -> bool:
        return (replica in isr or (not isr and replica in elr)) and terms.can_lead(replica)

    if terms.election is Election.PREFERRED and is_valid(replicas[0]):
        return replicas[0], False
    for candidate in (before.leader, *replicas):
        if is_valid(candidate):
            return candidate, False
    last_known = before.last_known_elr or ()
    if terms.elr_enabled and not isr and not elr and len(last_known) == 1 and terms.can_lead(last_known[0]):
        return last_known[0], True
    if terms.election is Election.UNCLEAN:
        for candidate in replicas:
            if terms.can_lead(candidate):
                return candidate, True
    return NO_LEADER, False


def _loses_replica(before: PartitionRecord, replicas: Ids, isr: Ids, terms: Terms) -> bool:
    if not set(before.replicas) <= set(replicas):
        return True
    return terms.metadata_version < _SHRINK_KEEPS_EPOCH_FROM and not set(before.isr) <= set(isr)


def _last_known(before: PartitionRecord, leader: int, names_leader: bool, terms: Terms) -> Ids | None:
    """Remember who led last when nobody does, and forget it when somebody does again."""
    if not terms.elr_enabled or not names_leader:
        return None
    if leader == NO_LEADER:
        is_news = before.last_known_elr is None and before.leader != NO_LEADER
        return (before.leader,) if is_news else None
    return () if before.last_known_elr is not None else None


def _directories(
    before: PartitionRecord, replicas: Ids, target: Target, terms: Terms
) -> tuple[Uuid, ...] | None:
    if terms.metadata_version < DIRECTORIES_FROM or (not target.directories and replicas == before.replicas):
        return None
    known = dict(zip(before.replicas, before.directories, strict=True))
    known.update(target.directories or {})
    directories = tuple(known.get(one) or terms.default_directory(one) for one in replicas)
    return None if directories == before.directories else directories


def _if_new(after: Ids, before: Ids) -> Ids | None:
    return None if after == before else after


def _nothing(before: PartitionRecord) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=before.partition_id, topic_id=before.topic_id)
