"""Registration of brokers and controllers: who is part of the cluster, and what it supports."""

from collections.abc import Iterator

from ottla.metadata.directory_ids import is_reserved
from ottla.metadata.features import (
    CONTROLLER_REGISTRATION_FROM,
    DIRECTORIES_FROM,
    KRAFT_VERSION,
    METADATA_VERSION,
    UNSUPPORTED,
    LevelRange,
)
from ottla.quorum.controller.brokers.sessions import Incarnation
from ottla.quorum.controller.deciders import decides
from ottla.quorum.controller.decision import ControllerView, Decision, Refusal, check_record_count
from ottla.quorum.controller.partitions.leadership import BrokerChange, partition_changes
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from ottla.wire.metadata_records.brokers import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from ottla.wire.metadata_records.controllers import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from ottla.wire.metadata_records.partitions import PartitionChangeRecord


def refuse_register_broker(_ask: BrokerRegistrationRequest, refusal: Refusal) -> BrokerRegistrationResponse:
    """Refuse the registration of a broker."""
    return BrokerRegistrationResponse(error_code=refusal.error_code)


@decides(BrokerRegistrationRequest, refuse=refuse_register_broker)
def decide_register_broker(
    view: ControllerView, ask: BrokerRegistrationRequest
) -> Decision[BrokerRegistrationResponse]:
    """Register a broker, fenced until it has caught up.

    A new incarnation gets a new epoch, and what the one before led has no leader until then. Whether that
    one stopped cleanly is known from the epoch it left behind: if not, it may have lost what it acknowledged.
    """
    try:
        _check_registration(view, ask)
    except Refusal as refusal:
        return Decision(refuse_register_broker(ask, refusal))
    known = view.image.brokers.get(ask.broker_id)
    is_same = known is not None and known.incarnation_id == ask.incarnation_id
    records = [] if is_same else list(_changes_of_restart(view, ask))
    # The epoch is where the decision begins, not where the registration lies: what comes before it in the
    # same batch belongs to it too.
    epoch = known.broker_epoch if known is not None and is_same else view.next_offset
    registration = RegisterBrokerRecord(
        broker_id=ask.broker_id,
        incarnation_id=ask.incarnation_id,
        broker_epoch=epoch,
        endpoints=tuple(
            BrokerEndpoint(
                name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol
            )
            for one in ask.listeners
        ),
        features=tuple(
            BrokerFeature(
                name=one.name,
                min_supported_version=one.min_supported_version,
                max_supported_version=one.max_supported_version,
            )
            for one in ask.features
        ),
        rack=ask.rack,
        fenced=known.fenced if known is not None and is_same else True,
        in_controlled_shutdown=known.in_controlled_shutdown if known is not None and is_same else False,
        log_dirs=ask.log_dirs if view.metadata_version >= DIRECTORIES_FROM else (),
    )
    return Decision(BrokerRegistrationResponse(broker_epoch=epoch), [*records, registration])


def _check_registration(view: ControllerView, ask: BrokerRegistrationRequest) -> None:
    if ask.cluster_id != view.settings.cluster_id:
        raise Refusal(ErrorCode.INCONSISTENT_CLUSTER_ID)
    _check_session(view, ask)
    if ask.is_migrating_zk_broker:
        raise Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED)
    if view.metadata_version >= DIRECTORIES_FROM:
        _check_directories(view, ask)
    _check_features(view, ask)


def _check_session(view: ControllerView, ask: BrokerRegistrationRequest) -> None:
    """Refuse a second process with the id of a broker that lives.

    Deviation: Kafka also refuses a broker that stopped cleanly, until the session of its last process has
    timed out. Here such a broker may come back at once: the epoch in its directories says that it is the one
    that was registered, and that it has stopped. So may one whose process is known to be gone.
    """
    known = view.image.brokers.get(ask.broker_id)
    if known is None or known.incarnation_id == ask.incarnation_id:
        return
    if ask.previous_broker_epoch == known.broker_epoch:
        return
    if view.sessions.has_session(Incarnation(known.broker_id, known.broker_epoch), view.monotonic_ms):
        raise Refusal(ErrorCode.DUPLICATE_BROKER_REGISTRATION)


def _check_directories(view: ControllerView, ask: BrokerRegistrationRequest) -> None:
    directories = ask.log_dirs
    if not directories or any(map(is_reserved, directories)) or len(set(directories)) != len(directories):
        raise Refusal(ErrorCode.INVALID_REGISTRATION)
    for other in view.image.brokers.values():
        if other.broker_id != ask.broker_id and not set(directories).isdisjoint(other.log_dirs):
            raise Refusal(ErrorCode.INVALID_REGISTRATION)


def _check_features(view: ControllerView, ask: BrokerRegistrationRequest) -> None:
    supported = {
        feature.name: LevelRange(feature.min_supported_version, feature.max_supported_version)
        for feature in ask.features
    }
    finalized = {
        **view.image.features,
        METADATA_VERSION: view.metadata_version,
        KRAFT_VERSION: view.kraft_version,
    }
    for name in {**finalized, **supported}:
        if finalized.get(name, 0) not in supported.get(name, UNSUPPORTED):
            raise Refusal(ErrorCode.UNSUPPORTED_VERSION)
    if METADATA_VERSION not in supported:
        raise Refusal(ErrorCode.INVALID_REGISTRATION)


def _changes_of_restart(
    view: ControllerView, ask: BrokerRegistrationRequest
) -> Iterator[PartitionChangeRecord]:
    known = view.image.brokers.get(ask.broker_id)
    stopped_cleanly = known is not None and ask.previous_broker_epoch == known.broker_epoch
    if view.elr_enabled and not stopped_cleanly:
        return partition_changes(view, BrokerChange(stopped_uncleanly=ask.broker_id))
    return partition_changes(view, BrokerChange(leaving=ask.broker_id))


def refuse_unregister_broker(_ask: UnregisterBrokerRequest, refusal: Refusal) -> UnregisterBrokerResponse:
    """Refuse to forget a broker."""
    return UnregisterBrokerResponse(error_code=refusal.error_code, error_message=str(refusal))


@decides(UnregisterBrokerRequest, refuse=refuse_unregister_broker)
def decide_unregister_broker(
    view: ControllerView, ask: UnregisterBrokerRequest
) -> Decision[UnregisterBrokerResponse]:
    """Forget a broker for good. Its replicas stay assigned to it: it is for the user to move them.

    Deviation: Kafka also forgets a broker that is alive. That broker serves on without a single leader until
    it is restarted, and nobody notices. Here a broker has to be stopped first.
    """
    broker = view.image.brokers.get(ask.broker_id)
    if broker is None:
        unknown = Refusal(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {ask.broker_id} is not currently registered"
        )
        return Decision(refuse_unregister_broker(ask, unknown))
    if not broker.fenced:
        message = f"Broker {ask.broker_id} is alive: stop it before it is unregistered."
        return Decision(refuse_unregister_broker(ask, Refusal(ErrorCode.POLICY_VIOLATION, message)))
    records = [
        *partition_changes(view, BrokerChange(unregistered=ask.broker_id)),
        UnregisterBrokerRecord(broker_id=ask.broker_id, broker_epoch=broker.broker_epoch),
    ]
    try:
        check_record_count(len(records))
    except Refusal as refusal:
        return Decision(refuse_unregister_broker(ask, refusal))
    return Decision(UnregisterBrokerResponse(error_message=None), records)


def refuse_register_controller(
    _ask: ControllerRegistrationRequest, refusal: Refusal
) -> ControllerRegistrationResponse:
    """Refuse the registration of a controller."""
    return ControllerRegistrationResponse(error_code=refusal.error_code, error_message=refusal.message)


@decides(ControllerRegistrationRequest, refuse=refuse_register_controller)
def decide_register_controller(
    view: ControllerView, ask: ControllerRegistrationRequest
) -> Decision[ControllerRegistrationResponse]:
    """Note where a controller listens and what it supports."""
    if view.metadata_version < CONTROLLER_REGISTRATION_FROM:
        too_old = Refusal(
            ErrorCode.UNSUPPORTED_VERSION,
            "The cluster's metadata.version has no registrations of controllers.",
        )
        return Decision(refuse_register_controller(ask, too_old))
    record = RegisterControllerRecord(
        controller_id=ask.controller_id,
        incarnation_id=ask.incarnation_id,
        zk_migration_ready=False,
        endpoints=tuple(
            ControllerEndpoint(
                name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol
            )
            for one in ask.listeners
        ),
        features=tuple(
            ControllerFeature(
                name=one.name,
                min_supported_version=one.min_supported_version,
                max_supported_version=one.max_supported_version,
            )
            for one in ask.features
        ),
    )
    return Decision(ControllerRegistrationResponse(error_message=None), [record])
