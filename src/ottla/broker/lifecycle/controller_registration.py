"""A controller makes itself known: where it listens, and what it supports.

Apache Kafka's controllers do the same when they start. The active one writes it into the metadata, where
admin clients find all controllers, and where a new level of a feature is checked against all of them.
"""

import logging
from typing import Final

from ottla.broker.lifecycle.format_options import controller_endpoint
from ottla.broker.login.bound_listeners import SECURITY_PROTOCOLS
from ottla.broker.quorum.controller_channel import ControllerChannel
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.features import SUPPORTED
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    Feature,
    Listener,
)
from ottla.world.scheduler import Scheduler, Timer

RETRY_MS_MIN: Final = 100
RETRY_MS_MAX: Final = 5000
_logger: Final = logging.getLogger("ottla.controller")


class ControllerRegistration:
    """Registers the controller of a node, and tries again until the active controller has taken it."""

    def __init__(
        self, config: NodeConfig, channel: ControllerChannel, scheduler: Scheduler, incarnation_id: Uuid
    ) -> None:
        self._ask = _registration(config, incarnation_id)
        self._channel = channel
        self._scheduler = scheduler
        self._retry_ms = RETRY_MS_MIN
        self._timer: Timer | None = None
        self._is_stopped = False

    def start(self) -> None:
        """Ask the active controller."""
        self._timer = None
        self._channel.ask(self._ask).when_done(self._answered, lambda _: self._again())

    def stop(self) -> None:
        """Ask no more."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _answered(self, answer: ControllerRegistrationResponse) -> None:
        if answer.error_code is ErrorCode.NONE or self._is_stopped:
            return
        if answer.error_code is ErrorCode.UNSUPPORTED_VERSION:
            # The cluster has a metadata.version without such registrations.
            return
        _logger.warning("the controller could not be registered, trying again: %s", answer.error_code.name)
        self._again()

    def _again(self) -> None:
        if not self._is_stopped:
            self._timer = self._scheduler.call_later(self._retry_ms, self.start)
            self._retry_ms = min(2 * self._retry_ms, RETRY_MS_MAX)


def _registration(config: NodeConfig, incarnation_id: Uuid) -> ControllerRegistrationRequest:
    endpoints = config.advertised_controller_endpoints
    listeners = [
        Listener(
            name=one.listener,
            host=one.host or "localhost",
            port=one.port,
            security_protocol=SECURITY_PROTOCOLS[one.security_protocol],
        )
        for one in endpoints
    ]
    if not listeners:
        # A node on its own needs no listener for its controller. It is said to have one all the same.
        said = controller_endpoint(config)
        listeners = [Listener(name=said.listener, host=said.host, port=said.port, security_protocol=0)]
    return ControllerRegistrationRequest(
        controller_id=config.node_id,
        incarnation_id=incarnation_id,
        zk_migration_ready=False,
        listeners=tuple(listeners),
        features=tuple(
            Feature(name=name, min_supported_version=levels.min, max_supported_version=levels.max)
            for name, levels in SUPPORTED.items()
        ),
    )
