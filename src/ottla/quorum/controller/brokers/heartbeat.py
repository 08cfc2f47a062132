"""The life of a registered broker, as its heartbeats drive it.

    FENCED         -- wants in, and has read its own registration,
                      and what was taken from it since              --> UNFENCED, leads what nobody leads
    FENCED         -- wants out                                     --> may stop
    UNFENCED       -- wants out, and leads something                --> SHUTTING DOWN, leads nothing any more
    UNFENCED       -- wants out, and leads nothing                  --> FENCED, may stop
    SHUTTING DOWN  -- leads nothing, and all live brokers know that --> FENCED, may stop

A broker whose heartbeats stay out is fenced by `fencing`.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any

from ottla.metadata.features import CORDONED_FROM, DIRECTORIES_FROM
from ottla.model.uuid import Uuid
from ottla.quorum.controller.brokers.fencing import fence, registration_change, unfence
from ottla.quorum.controller.brokers.sessions import BrokerSessions, Incarnation
from ottla.quorum.controller.deciders import decides
from ottla.quorum.controller.decision import ControllerView, Decision, Refusal
from ottla.quorum.controller.partitions.leadership import BrokerChange, leads_anything, partition_changes
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.metadata_records.brokers import RegisterBrokerRecord


def refuse_heartbeat(_ask: BrokerHeartbeatRequest, refusal: Refusal) -> BrokerHeartbeatResponse:
    """Refuse a heartbeat."""
    return BrokerHeartbeatResponse(error_code=refusal.error_code, should_shut_down=False)


def note_heartbeat(
    sessions: BrokerSessions, ask: BrokerHeartbeatRequest, reply: BrokerHeartbeatResponse, now_ms: int
) -> None:
    """Keep the session of a broker, unless it may shut down now: its next process may come at any time."""
    if reply.error_code is not ErrorCode.NONE:
        return
    broker = Incarnation(ask.broker_id, ask.broker_epoch)
    if reply.should_shut_down:
        sessions.end(broker)
    else:
        sessions.heard(broker, ask.current_metadata_offset, now_ms)


@decides(BrokerHeartbeatRequest, refuse=refuse_heartbeat, note=note_heartbeat)
def decide_heartbeat(view: ControllerView, ask: BrokerHeartbeatRequest) -> Decision[BrokerHeartbeatResponse]:
    """Do what a broker wants, as far as its state allows, and note what it says about its directories."""
    broker = view.image.brokers.get(ask.broker_id)
    if broker is None or broker.broker_epoch != ask.broker_epoch:
        return Decision(refuse_heartbeat(ask, Refusal(ErrorCode.STALE_BROKER_EPOCH)))
    applied = ask.current_metadata_offset
    is_caught_up = applied >= view.sessions.registered_at(broker) and view.sessions.knows_what_it_leads(
        broker, applied
    )
    next_state = _next_state(view, broker, ask, is_caught_up=is_caught_up)
    records = [*_state_changes(view, broker, next_state), *_directory_changes(view, broker, ask)]
    reply = BrokerHeartbeatResponse(
        is_caught_up=is_caught_up and not view.sessions.is_held,
        is_fenced=next_state in (_State.FENCED, _State.MAY_STOP),
        should_shut_down=next_state is _State.MAY_STOP,
    )
    return Decision(reply, records)


class _State(Enum):
    FENCED = "known, and takes part in nothing"
    UNFENCED = "takes part"
    SHUTTING_DOWN = "hands over what it leads"
    MAY_STOP = "fenced, and free to go"


def _next_state(
    view: ControllerView, broker: RegisterBrokerRecord, ask: BrokerHeartbeatRequest, *, is_caught_up: bool
) -> _State:
    if broker.fenced:
        if ask.want_shut_down:
            return _State.MAY_STOP
        return _State.UNFENCED if is_caught_up and not ask.want_fence else _State.FENCED
    if broker.in_controlled_shutdown:
        is_done = not leads_anything(view, broker.broker_id) and view.sessions.has_been_seen_to_stop(
            view.image.brokers, broker
        )
        return _State.MAY_STOP if is_done else _State.SHUTTING_DOWN
    if ask.want_shut_down:
        has_to_hand_over = not ask.want_fence and leads_anything(view, broker.broker_id)
        return _State.SHUTTING_DOWN if has_to_hand_over else _State.MAY_STOP
    return _State.FENCED if ask.want_fence else _State.UNFENCED


def _state_changes(view: ControllerView, broker: RegisterBrokerRecord, state: _State) -> list[Any]:
    if state is _State.UNFENCED:
        return unfence(view, broker) if broker.fenced else []
    if state is _State.SHUTTING_DOWN:
        return [] if broker.in_controlled_shutdown else _begin_shutdown(view, broker)
    return [] if broker.fenced else fence(view, broker)


def _begin_shutdown(view: ControllerView, broker: RegisterBrokerRecord) -> list[Any]:
    return [
        registration_change(broker, in_controlled_shutdown=1),
        *partition_changes(view, BrokerChange(leaving=broker.broker_id)),
    ]


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
            records.append(registration_change(broker, cordoned_log_dirs=ask.cordoned_log_dirs))
    return records


def _directories_lost(view: ControllerView, broker: RegisterBrokerRecord, lost: list[Uuid]) -> list[Any]:
    """Take the leadership from replicas in directories that failed, and those directories off the list."""
    change = BrokerChange(leaving=broker.broker_id, lost_directories=frozenset(lost))
    online = tuple(directory for directory in broker.log_dirs if directory not in lost)
    return [*partition_changes(view, change), registration_change(broker, log_dirs=online)]
