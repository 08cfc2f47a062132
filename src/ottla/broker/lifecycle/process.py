"""A node as a process: an event loop, from start to stop."""

import gc
import logging
import sys
from asyncio import Future
from collections.abc import Callable
from typing import Final

from ottla.broker.authorization.audit import LOGGER as AUDIT_LOGGER
from ottla.broker.lifecycle.shutdown import NodeStop
from ottla.broker.lifecycle.startup import Node, NodeFailure, NodeOptions, NodeStart
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.load import LoadedConfig
from ottla.runtime.log_lines import set_up_audit
from ottla.runtime.poller import ServingLoop
from ottla.runtime.real_world import real_world
from ottla.runtime.signals import StopSignals
from ottla.world.world import World

__all__ = ["NodeFailure", "NodeOnLoop", "NodeOptions", "run_node"]

GIVE_WAY_SECONDS: Final = 0.001
_logger: Final = logging.getLogger("ottla")


class NodeOnLoop:
    """A node on an event loop of this process."""

    def __init__(self, loop: ServingLoop) -> None:
        self._loop = loop
        self._started: Future[Node] = loop.create_future()
        # Done when the node has stopped after `begin_stop`, or when it cannot go on.
        self.over: Future[None] = loop.create_future()

    def start(self, configs: EffectiveConfigs, options: NodeOptions, world: World | None = None) -> Node:
        """Run the loop until the node serves. Raises `NodeFailure` if it cannot.

        `world` is that of the process, or one that a test has changed.
        """
        world = world or real_world(self._loop)
        NodeStart(configs, options, world, self._started.set_result, self._fail)
        return self._loop.run_until_complete(self._started)

    def begin_stop(self) -> None:
        """Begin to stop the node in order. `over` is done when it has."""
        NodeStop(self._started.result(), self._stop_ended)

    def stop(self) -> None:
        """Stop the node in order, even if it could not go on, and run the loop until it has."""
        ended: Future[Exception | None] = self._loop.create_future()
        NodeStop(self._started.result(), ended.set_result)
        if (error := self._loop.run_until_complete(ended)) is not None:
            raise error

    def _fail(self, error: Exception) -> None:
        outcome = self.over if self._started.done() else self._started
        if not outcome.done():
            outcome.set_exception(error)

    def _stop_ended(self, error: Exception | None) -> None:
        if self.over.done():
            return
        if error is None:
            self.over.set_result(None)
        else:
            self.over.set_exception(error)


def run_node(loaded: LoadedConfig, options: NodeOptions, ready: Callable[[str], None]) -> None:
    """Run a node until a signal stops it. `ready` is called with its address once it serves."""
    for warning in loaded.warnings:
        _logger.warning("%s", warning)
    try:
        set_up_audit(AUDIT_LOGGER, loaded.config.ottla_audit_file)
    except OSError as error:
        raise NodeFailure(
            f"cannot write to {loaded.config.ottla_audit_file}: {error.strerror}; change ottla.audit.file"
        ) from error
    loop = ServingLoop()
    # A thread that opens a batch computes. Whenever the loop wants to go on it has to wait this long.
    sys.setswitchinterval(GIVE_WAY_SECONDS)
    try:
        on_loop = NodeOnLoop(loop)
        node = on_loop.start(loaded.configs, options)
        # What was made up to here stays. With many partitions the garbage collector would stop the loop for
        # as long as it takes to look at all of it, again and again, and find nothing.
        gc.freeze()
        _serve(on_loop, node, loop, ready)
    finally:
        loop.close()


def _serve(on_loop: NodeOnLoop, node: Node, loop: ServingLoop, ready: Callable[[str], None]) -> None:
    def stop() -> None:
        _logger.info("stopping")
        on_loop.begin_stop()

    StopSignals(loop, stop).install()
    try:
        _serve_metrics(node)
    except NodeFailure:
        on_loop.stop()
        raise
    first = node.bound[0]
    host = f"[{first.host}]" if ":" in first.host else first.host
    loop.call_soon(ready, f"{host}:{first.port}")
    loop.run_until_complete(on_loop.over)
    _logger.info("stopped")


def _serve_metrics(node: Node) -> None:
    controller = node.parts.controller
    configs = node.broker.configs if node.has_broker else controller.configs
    port = configs.node.ottla_metrics_port
    if port < 0:
        return
    # Imported only here: most nodes are not scraped, and all of them are to start quickly.
    from ottla.broker.metrics.collectors import serve_controller_metrics, serve_metrics
    from ottla.satellite.metrics_page import HOST

    try:
        if node.has_broker:
            served = serve_metrics(node.broker, port)
        else:
            served = serve_controller_metrics(controller, port)
        _logger.info("metrics are served on http://%s:%d/metrics", HOST, served)
    except OSError as error:
        raise NodeFailure(f"cannot serve metrics on port {port}: {error.strerror}") from error
