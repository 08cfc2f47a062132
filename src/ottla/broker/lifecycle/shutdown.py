"""Stopping a node in order, so that the next start, of Ottla or Apache Kafka, has nothing to recover.

    tell the controller -> answer what waits -> close the connections -> hand over the quorum
    -> close the logs -> checkpoints -> mark of a clean stop, as the last act

A directory that failed gets no mark. If anything goes wrong the mark is missing, and the next start recovers.
As in a start, the steps run on the node's loop.
"""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from ottla.broker.lifecycle.startup import Node, stop_quorum_parts
from ottla.runtime.closing import ClosingDirectory
from ottla.storage.errors import StorageError
from ottla.storage.log_dirs.clean_shutdown import NO_BROKER_EPOCH
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.world.disk import DiskError

ANSWERS_MS_MAX: Final = 5000
"""How long answers that are under way may take before their connections are closed all the same."""
HAND_OVER_MS_MAX: Final = 2000
"""How long another node of the quorum may take to lead. If the others are gone, none ever will."""
_LOOK_AGAIN_MS: Final = 10

_logger: Final = logging.getLogger("ottla.shutdown")


class NodeStop:
    """The steps of one stop. `stopped` is called when all are done, with None or a bug of ours."""

    def __init__(self, node: Node, stopped: Callable[[Exception | None], None]) -> None:
        self._node = node
        self._parts = node.parts
        self._scheduler = node.parts.world.scheduler
        self._stopped = stopped
        self._is_over = False
        self._then(self._leave_cluster if node.has_broker else self._hand_over)

    def _then(self, step: Callable[[], None]) -> None:
        self._scheduler.call_soon(self._run, step)

    def _run(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:
            self._end(error)

    def _end(self, error: Exception | None) -> None:
        if not self._is_over:
            self._is_over = True
            self._stopped(error)

    # The steps

    def _leave_cluster(self) -> None:
        """Tell the controller, which lets others lead what this broker leads, and says when it may go.

        Clients are served meanwhile, so that those that write find out where to go.
        """
        broker = self._node.broker
        self._node.housekeeping.stop()
        broker.log_moves.stop()
        broker.deletions.stop()
        if broker.config.controlled_shutdown_enable:
            broker.membership.leave().when_done(lambda _: self._then(self._stop_serving))
        else:
            broker.membership.stop()
            self._then(self._stop_serving)

    def _stop_serving(self) -> None:
        # Followers, and clients that fetch, always have a request under way that waits for records. Unless
        # each connection ended by itself, there would be no moment at which all have their answers.
        self._node.broker.listeners.end()
        self._node.broker.parked_fetches.give_up_all()
        self._then(self._stop_coordinators)

    def _stop_coordinators(self) -> None:
        self._node.broker.replication.stop()
        # Mostly they have nothing left by now. But the controller may not have answered.
        self._node.broker.coordinators.stop()
        self._node.broker.events.stop()
        self._node.broker.openings.close()
        self._send_answers(self._parts.world.clock.monotonic_ms() + ANSWERS_MS_MAX)

    def _send_answers(self, deadline_ms: int) -> None:
        """Let the answers that are due go out."""
        listeners = self._node.broker.listeners
        is_late = self._parts.world.clock.monotonic_ms() >= deadline_ms
        if is_late or not listeners.connections:
            listeners.close()
            self._node.housekeeping.cleaner.drain(partial(self._then, self._hand_over))
        else:
            again = partial(self._send_answers, deadline_ms)
            self._scheduler.call_later(_LOOK_AGAIN_MS, self._run, again)

    def _hand_over(self) -> None:
        """Let another node of the quorum lead, if this one does."""
        self._parts.quorum.hand_over(HAND_OVER_MS_MAX, partial(self._then, self._drain_syncs))

    def _drain_syncs(self) -> None:
        self._parts.flusher.drain(partial(self._then, self._close_logs))

    def _close_logs(self) -> None:
        parts = self._parts
        parts.flusher.close()
        if self._node.has_broker:
            self._node.broker.leaving_logs.finish_all()
        parts.world.workers.close()
        parts.world.openers.close()
        stop_quorum_parts(parts)
        try:
            parts.quorum.close()
        except (StorageError, DiskError) as error:
            _logger.critical("the metadata log was not closed cleanly: %s", error)
        self._close_next(iter(parts.directories.online))

    def _close_next(self, left: Iterator[LogDirectory]) -> None:
        directory = next(left, None)
        if directory is None:
            for one in self._parts.directories.directories:
                one.release()
            self._end(None)
            return

        def closed(error: Exception | None) -> None:
            if error is not None:
                _logger.critical("%s was not closed cleanly: %s", directory.path, error)
            self._then(partial(self._close_next, left))

        epoch = self._node.broker.broker_epoch if self._node.has_broker else NO_BROKER_EPOCH
        ClosingDirectory(directory, self._parts.world.make_syncs, closed, epoch).begin()
