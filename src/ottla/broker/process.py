"""A node as a process: an event loop, from start to stop."""

import asyncio
import gc
import logging
from collections.abc import Callable
from typing import Final

from ottla.broker.shutdown import stop_node
from ottla.broker.startup import Node, NodeFailure, NodeOptions, start_node
from ottla.metadata.configs.load import LoadedConfig
from ottla.runtime.poller import ServingLoop
from ottla.runtime.signals import StopSignals

__all__ = ["NodeFailure", "NodeOptions", "run_node"]

_logger: Final = logging.getLogger("ottla")


def run_node(loaded: LoadedConfig, options: NodeOptions, ready: Callable[[str], None]) -> None:
    """Run a node until it is told to stop. `ready` is called with its address once it serves."""
    for warning in loaded.warnings:
        _logger.warning("%s", warning)
    loop = ServingLoop()
    try:
        node = start_node(loaded.configs, options, loop)
        # What was made up to here stays. With many partitions the garbage collector would stop the loop for
        # as long as it takes to look at all of it, again and again, and find nothing.
        gc.freeze()
        _serve(node, loop, ready)
    finally:
        loop.close()


def _serve(node: Node, loop: asyncio.AbstractEventLoop, ready: Callable[[str], None]) -> None:
    stopped: asyncio.Future[None] = loop.create_future()

    def stop() -> None:
        _logger.info("stopping")
        task = loop.create_task(stop_node(node))
        task.add_done_callback(lambda done: _settle(stopped, done))

    def give_up(error: Exception) -> None:
        # What was decided is in memory and not on disk: there is no way on from here.
        if not stopped.done():
            stopped.set_exception(NodeFailure(f"the metadata cannot be written any more: {error}"))

    node.broker.give_up = give_up
    StopSignals(loop, stop).install()
    node.housekeeping.start()
    try:
        _serve_metrics(node)
    except NodeFailure:
        loop.run_until_complete(stop_node(node))
        raise
    first = node.bound[0]
    host = f"[{first.host}]" if ":" in first.host else first.host
    loop.call_soon(ready, f"{host}:{first.port}")
    loop.run_until_complete(stopped)
    _logger.info("stopped")


def _serve_metrics(node: Node) -> None:
    port = node.broker.config.ottla_metrics_port
    if port < 0:
        return
    # Imported only here: most nodes are not scraped, and all of them are to start quickly.
    from ottla.broker.metrics import HOST, serve_metrics

    try:
        _logger.info("metrics are served on http://%s:%d/metrics", HOST, serve_metrics(node.broker, port))
    except OSError as error:
        raise NodeFailure(f"cannot serve metrics on port {port}: {error.strerror}") from error


def _settle(stopped: "asyncio.Future[None]", task: "asyncio.Task[None]") -> None:
    if stopped.done():
        return
    error = task.exception()
    if error is None:
        stopped.set_result(None)
    else:
        stopped.set_exception(error)
