"""The life of a registered broker: fenced, unfenced, shutting down.

    FENCED       -- wants in, and has read its own registration --> UNFENCED, leads what nobody leads
    UNFENCED     -- wants out, and leads something               --> SHUTTING DOWN, leads nothing any more
    UNFENCED     -- wants out, and leads nothing                 --> FENCED, may stop
    SHUTTING DOWN, leads nothing                                 --> FENCED, may stop

This is what a node does with its own broker. Fencing others whose heartbeats stay out is not done here.
"""

from collections.abc import Sequence
from typing import Any

from ottla.metadata.features import CORDONED_FROM, DIRECTORIES_FROM
from ottla.metadata.image import MetadataImage
from ottla.model.uuid import Uuid
from ottla.quorum.controller.deciders import decides
from ottla.quorum.controller.decision import ControllerView, Decision, Refusal
from ottla.quorum.controller.partitions.leadership import BrokerChange, partition_changes
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.metadata_records.brokers import BrokerRegistrationChangeRecord, RegisterBrokerRecord

FENCE = 1
UNFENCE = -1


def refuse_heartbeat(_ask: BrokerHeartbeatRequest, refusal: Refusal) -> BrokerHeartbeatResponse:
    """Refuse a heartbeat."""
    return BrokerHeartbeatResponse(error_code=refusal.error_code, should_shut_down=False)


@decides(BrokerHeartbeatRequest, refuse=refuse_heartbeat)
def decide_heartbeat(view: ControllerView, ask: BrokerHeartbeatRequest) -> Decision[BrokerHeartbeatResponse]:
    """Do what a broker wants, as far as its state allows, and note what it says about its directories."""
    broker = view.image.brokers.get(ask.broker_id)
    if broker is None or broker.broker_epoch != ask.broker_epoch:
        return Decision(refuse_heartbeat(ask, Refusal(ErrorCode.STALE_BROKER_EPOCH)))
    is_caught_up = ask.current_metadata_offset >= broker.broker_epoch
    records: list[Any] = []
    is_fenced, should_shut_down = broker.fenced, False
    if broker.fenced:
        if ask.want_shut_down:
            should_shut_down = True
        elif not ask.want_fence and is_caught_up:
            records += _unfence(view, broker)
            is_fenced = False
    elif ask.want_shut_down and not ask.want_fence and _leads_anything(view.image, broker.broker_id):
        if not broker.in_controlled_shutdown:
            records += _begin_shutdown(view, broker)
    elif ask.want_shut_down or ask.want_fence:
        records += fence(view, broker)
        is_fenced, should_shut_down = True, ask.want_shut_down
    records += _directory_changes(view, broker, ask)
    reply = BrokerHeartbeatResponse(
        is_caught_up=is_caught_up, is_fenced=is_fenced, should_shut_down=should_shut_down
    )
    return Decision(reply, records)


def fence(view: ControllerView, broker: RegisterBrokerRecord) -> list[Any]:
    """Return what takes a broker out: first what it led and held in sync, then itself."""
    return [
        *partition_changes(view, BrokerChange(leaving=broker.broker_id)),
        _change_of(broker, fenced=FENCE),
    ]


def _unfence(view: ControllerView, broker: RegisterBrokerRecord) -> list[Any]:
    return [
        _change_of(broker, fenced=UNFENCE),
        *partition_changes(view, BrokerChange(coming=broker.broker_id)),
    ]


def _begin_shutdown(view: ControllerView, broker: RegisterBrokerRecord) -> list[Any]:
    return [
        _change_of(broker, in_controlled_shutdown=1),
        *partition_changes(view, BrokerChange(leaving=broker.broker_id)),
    ]


def _change_of(broker: RegisterBrokerRecord, **changes: Any) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id, broker_epoch=broker.broker_epoch, **changes
    )


def _leads_anything(image: MetadataImage, broker_id: int) -> bool:
    return any(
        partition.leader == broker_id for topic in image.topics for partition in topic.partitions.values()
    )


def _directory_changes(
    view: ControllerView, broker: RegisterBrokerRecord, ask: BrokerHeartbeatRequest
) -> Sequence[Any]:
    records: list[Any] = []
    if view.metadata_version >= DIRECTORIES_FROM:
        lost = [directory for directory in ask.offline_log_dirs if directory in broker.log_dirs]
        if lost:
            records += _directories_lost(view, broker, lost)
    if view.metadata_version >= CORDONED_FROM and ask.cordoned_log_dirs is not None:
        known = broker.cordoned_log_dirs
        if known is None or set(known) != set(ask.cordoned_log_dirs):
            records.append(_change_of(broker, cordoned_log_dirs=ask.cordoned_log_dirs))
    return records


def _directories_lost(view: ControllerView, broker: RegisterBrokerRecord, lost: list[Uuid]) -> list[Any]:
    """Take the leadership from replicas in directories that failed, and those directories off the list."""
    broker_id = broker.broker_id
    in_lost = [
        record
        for record in partition_changes(view, BrokerChange(leaving=broker_id))
        if _directory_of(view.image, record.topic_id, record.partition_id, broker_id) in lost
    ]
    online = tuple(directory for directory in broker.log_dirs if directory not in lost)
    return [*in_lost, _change_of(broker, log_dirs=online)]


def _directory_of(image: MetadataImage, topic_id: Uuid, partition_id: int, broker_id: int) -> Uuid:
    partition = image.topics.by_id[topic_id].partitions[partition_id]
    return partition.directories[partition.replicas.index(broker_id)]
