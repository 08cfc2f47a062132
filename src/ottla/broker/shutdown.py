"""Stopping a node in order, so that the next start, of Ottla or Apache Kafka, has nothing to recover.

    answer who waits -> tell the controller -> close the connections -> close the logs -> checkpoints
    -> mark of a clean stop, as the last act

A directory that failed gets no mark. If anything goes wrong the mark is missing, and the next start recovers.
"""

import asyncio
import logging
from typing import Final

from ottla.broker.deferred import Deferred
from ottla.broker.membership import heartbeat
from ottla.broker.startup import Node
from ottla.quorum.controller.controller import needs_nothing
from ottla.quorum.controller.heartbeat import decide_heartbeat
from ottla.runtime.closing import close_directory
from ottla.storage.directory import LogDirectory
from ottla.storage.errors import StorageError
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatResponse
from ottla.world.disk import DiskError

ANSWERS_SECONDS_MAX: Final = 5.0
"""How long answers that are under way may take before their connections are closed all the same."""

_logger: Final = logging.getLogger("ottla.shutdown")


async def stop_node(node: Node) -> None:
    """Stop a node cleanly."""
    broker = node.broker
    node.housekeeping.stop()
    broker.log_moves.stop()
    broker.deletions.stop()
    broker.listeners.stop_accepting()
    broker.parked_fetches.give_up_all()
    await _leave_cluster(node)
    # Mostly they have nothing left by now. But the controller may not have answered.
    broker.groups.stop()
    broker.transactions.stop()
    await _send_answers(node)
    broker.listeners.close()
    await node.housekeeping.cleaner.drain()
    await broker.flusher.drain()
    broker.flusher.close()
    broker.leaving_logs.finish_all()
    broker.controller.prepare = needs_nothing
    broker.threads.close()
    broker.openers.close()
    _close_metadata(node)
    for directory in broker.directories.online:
        _close_directory(directory, broker.broker_epoch)
    for directory in broker.directories.directories:
        directory.release()


async def _leave_cluster(node: Node) -> None:
    """Tell the controller, which takes the leadership from this broker and says when it may go."""
    # First what it leads is taken from it, then it is fenced.
    for _ in range(2):
        try:
            answer = await asyncio.wait_for(_tell_of_stop(node), ANSWERS_SECONDS_MAX)
        except TimeoutError:
            # The metadata cannot be written. There is nobody to tell.
            return
        if answer.should_shut_down:
            return


async def _tell_of_stop(node: Node) -> BrokerHeartbeatResponse:
    broker = node.broker
    said: Deferred[BrokerHeartbeatResponse] = Deferred()
    ask = heartbeat(broker, wants_shut_down=True)
    broker.decide(decide_heartbeat, ask, said.resolve)
    answered = asyncio.Event()
    said.when_done(lambda _: answered.set())
    await answered.wait()
    return said.value()


async def _send_answers(node: Node) -> None:
    """Let the answers that are due go out."""
    deadline = node.loop.time() + ANSWERS_SECONDS_MAX
    while node.loop.time() < deadline:
        if all(connection.has_answered for connection in node.broker.listeners.connections):
            return
        await asyncio.sleep(0.01)


def _close_directory(directory: LogDirectory, broker_epoch: int) -> None:
    try:
        close_directory(directory, broker_epoch)
    except (StorageError, DiskError) as error:
        _logger.critical("%s did not stop cleanly: %s", directory.path, error)


def _close_metadata(node: Node) -> None:
    try:
        node.standalone.close()
    except (StorageError, DiskError) as error:
        _logger.critical("the metadata log did not stop cleanly: %s", error)
