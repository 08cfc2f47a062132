"""Fencing: a broker is taken out of what it leads and holds in sync, and let in again.

Fencing is always safe. What was acknowledged is on the other in-sync replicas, or the partition has no leader
until the broker is back. A broker that is fenced by mistake is let in again by its next heartbeat.
"""

from typing import Any, Final

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.topics import NO_LEADER
from ottla.quorum.controller.brokers.sessions import Incarnation
from ottla.quorum.controller.decision import ControllerView
from ottla.quorum.controller.partitions.leadership import BrokerChange, partition_changes
from ottla.wire.metadata_records.brokers import BrokerRegistrationChangeRecord, RegisterBrokerRecord

FENCE: Final = 1
UNFENCE: Final = -1


def fence(view: ControllerView, broker: RegisterBrokerRecord) -> list[Any]:
    """Return what takes a broker out: first what it led and held in sync, then itself."""
    return [
        *partition_changes(view, BrokerChange(leaving=broker.broker_id)),
        registration_change(broker, fenced=FENCE),
    ]


def unfence(view: ControllerView, broker: RegisterBrokerRecord) -> list[Any]:
    """Return what lets a broker in, to lead what nobody leads."""
    return [
        registration_change(broker, fenced=UNFENCE),
        *partition_changes(view, BrokerChange(coming=broker.broker_id)),
    ]


def fence_incarnation(view: ControllerView, gone: Incarnation) -> list[Any]:
    """Return what takes a broker out that is gone, nothing if it is out or has come back already."""
    broker = view.image.brokers.get(gone.broker_id)
    if broker is None or broker.broker_epoch != gone.epoch or broker.fenced:
        return []
    return fence(view, broker)


def registration_change(broker: RegisterBrokerRecord, **changes: Any) -> BrokerRegistrationChangeRecord:
    """Return the record that changes a registration."""
    return BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id, broker_epoch=broker.broker_epoch, **changes
    )


def deposed_leaders(delta: MetadataDelta) -> set[int]:
    """Return the brokers that lead something no more which they led before."""
    return {
        change.before.leader
        for change in delta.topics
        if change.before is not None
        and change.before.leader != NO_LEADER
        and (change.after is None or change.after.leader != change.before.leader)
    }
