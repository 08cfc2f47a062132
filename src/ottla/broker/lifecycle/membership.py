"""The broker as a member of the cluster: how it registers, and what it reports about itself.

The controller is in the same process so far, so no heartbeats are needed to keep a session alive. One is sent
when there is something to say: the broker wants in, wants out, has lost a log directory, or is to take no new
logs into one.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.broker.deferred import Deferred
from ottla.broker.lifecycle.bound_listeners import BoundListener
from ottla.broker.lifecycle.format_options import controller_endpoint
from ottla.metadata.features import SUPPORTED
from ottla.model.uuid import Uuid
from ottla.quorum.random_id import random_id
from ottla.storage.log_dirs.directories import LogDirectories
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import broker_registration, controller_registration
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.wire.messages.controller_registration import ControllerRegistrationRequest

if TYPE_CHECKING:
    from ottla.broker.node import Broker


class NotRegistered(Exception):
    """The controller refused this broker."""


def join_cluster(broker: "Broker", listeners: Sequence[BoundListener]) -> Deferred[None]:
    """Make the broker and the controller part of the cluster, and let the broker lead.

    Fails with `NotRegistered` if the controller refuses the broker.
    """
    joined: Deferred[None] = Deferred()

    def registered(answer: BrokerRegistrationResponse) -> None:
        if answer.error_code is not ErrorCode.NONE:
            joined.fail(NotRegistered(f"the broker could not be registered: {answer.error_code.name}"))
            return
        broker.broker_epoch = answer.broker_epoch
        broker.controller.ask(heartbeat(broker)).when_done(unfenced, joined.fail)

    def unfenced(answer: BrokerHeartbeatResponse) -> None:
        if answer.error_code is not ErrorCode.NONE:
            joined.fail(NotRegistered(f"the controller refused the broker: {answer.error_code.name}"))
        else:
            joined.resolve(None)

    incarnation_id = random_id(broker.random)
    broker.controller.ask(_controller_registration(broker, incarnation_id))
    registration = _broker_registration(broker, incarnation_id, listeners)
    broker.controller.ask(registration).when_done(registered, joined.fail)
    return joined


def heartbeat(broker: "Broker", wants_shut_down: bool = False) -> BrokerHeartbeatRequest:
    """Return what the broker reports about itself."""
    return BrokerHeartbeatRequest(
        broker_id=broker.node_id,
        broker_epoch=broker.broker_epoch,
        current_metadata_offset=broker.image.offset,
        want_fence=False,
        want_shut_down=wants_shut_down,
        offline_log_dirs=tuple(
            directory.meta.directory_id
            for directory in broker.directories.directories
            if directory.is_offline and directory.meta.directory_id is not None
        ),
        cordoned_log_dirs=tuple(
            directory.meta.directory_id
            for directory in broker.directories.online
            if directory.meta.directory_id is not None and directory.path in broker.directories.cordoned
        ),
    )


def _controller_registration(broker: "Broker", incarnation_id: Uuid) -> ControllerRegistrationRequest:
    endpoint = controller_endpoint(broker.config)
    return ControllerRegistrationRequest(
        controller_id=broker.node_id,
        incarnation_id=incarnation_id,
        zk_migration_ready=False,
        listeners=(
            controller_registration.Listener(
                name=endpoint.listener, host=endpoint.host, port=endpoint.port, security_protocol=0
            ),
        ),
        features=tuple(
            controller_registration.Feature(
                name=name, min_supported_version=levels.min, max_supported_version=levels.max
            )
            for name, levels in SUPPORTED.items()
        ),
    )


def _broker_registration(
    broker: "Broker", incarnation_id: Uuid, listeners: Sequence[BoundListener]
) -> BrokerRegistrationRequest:
    directory_ids = [directory.meta.directory_id for directory in broker.directories.online]
    return BrokerRegistrationRequest(
        broker_id=broker.node_id,
        cluster_id=broker.cluster_id,
        incarnation_id=incarnation_id,
        listeners=tuple(
            broker_registration.Listener(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=listener.security_protocol,
            )
            for listener in listeners
        ),
        features=tuple(
            broker_registration.Feature(
                name=name, min_supported_version=levels.min, max_supported_version=levels.max
            )
            for name, levels in SUPPORTED.items()
        ),
        rack=broker.config.broker_rack,
        log_dirs=tuple(sorted(one for one in directory_ids if one is not None)),
        previous_broker_epoch=_previous_broker_epoch(broker.directories),
    )


def _previous_broker_epoch(directories: LogDirectories) -> int:
    """Return the epoch of the last clean stop, if all directories agree on one."""
    epochs = {directory.clean_stop_epoch for directory in directories.directories}
    return epochs.pop() if len(epochs) == 1 and directories.was_clean else -1
