"""Stopping a node in order, so that the next start, of Ottla or Apache Kafka, has nothing to recover.

    answer what waits -> tell the controller -> close the connections -> hand over the quorum
    -> close the logs -> checkpoints -> mark of a clean stop, as the last act

A directory that failed gets no mark. If anything goes wrong the mark is missing, and the next start recovers.
As in a start, the steps run on the node's loop.
"""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from ottla.broker.lifecycle.membership import heartbeat
from ottla.broker.lifecycle.startup import Node
from ottla.runtime.closing import ClosingDirectory
from ottla.storage.errors import StorageError
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatResponse
from ottla.world.disk import DiskError

ANSWERS_MS_MAX: Final = 5000
"""How long answers that are under way may take before their connections are closed all the same."""
_LOOK_AGAIN_MS: Final = 10

_logger: Final = logging.getLogger("ottla.shutdown")


class NodeStop:
    """The steps of one stop. `stopped` is called when all are done, with None or a bug of ours."""

    def __init__(self, node: Node, stopped: Callable[[Exception | None], None]) -> None:
        self._node = node
        self._broker = node.broker
        self._scheduler = node.world.scheduler
        self._stopped = stopped
        self._is_over = False
        # First what it leads is taken from it, then it is fenced.
        self._partings_left = 2
        self._then(self._stop_serving)

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

    def _stop_serving(self) -> None:
        broker = self._broker
        self._node.housekeeping.stop()
        broker.log_moves.stop()
        broker.deletions.stop()
        broker.listeners.stop_accepting()
        broker.parked_fetches.give_up_all()
        self._leave_cluster()

    def _leave_cluster(self) -> None:
        """Tell the controller, which takes the leadership from this broker and says when it may go."""
        self._partings_left -= 1
        has_answered = False

        def answered(answer: BrokerHeartbeatResponse) -> None:
            nonlocal has_answered
            if has_answered:
                return
            has_answered = True
            patience.cancel()
            if answer.should_shut_down or self._partings_left == 0:
                self._then(self._stop_coordinators)
            else:
                self._then(self._leave_cluster)

        def lose_patience() -> None:
            # The metadata cannot be written. There is nobody to tell.
            nonlocal has_answered
            has_answered = True
            self._run(self._stop_coordinators)

        patience = self._scheduler.call_later(ANSWERS_MS_MAX, lose_patience)
        asked = self._broker.controller.ask(heartbeat(self._broker, wants_shut_down=True))
        asked.when_done(answered, lambda _: lose_patience())

    def _stop_coordinators(self) -> None:
        self._broker.replication.stop()
        # Mostly they have nothing left by now. But the controller may not have answered.
        self._broker.coordinators.stop()
        self._send_answers(self._node.world.clock.monotonic_ms() + ANSWERS_MS_MAX)

    def _send_answers(self, deadline_ms: int) -> None:
        """Let the answers that are due go out."""
        listeners = self._broker.listeners
        is_late = self._node.world.clock.monotonic_ms() >= deadline_ms
        if is_late or all(connection.has_answered for connection in listeners.connections):
            listeners.close()
            self._node.housekeeping.cleaner.drain(partial(self._then, self._hand_over))
        else:
            again = partial(self._send_answers, deadline_ms)
            self._scheduler.call_later(_LOOK_AGAIN_MS, self._run, again)

    def _hand_over(self) -> None:
        """Let another node of the quorum lead, if this one does."""
        self._broker.quorum.hand_over(ANSWERS_MS_MAX, partial(self._then, self._drain_syncs))

    def _drain_syncs(self) -> None:
        self._broker.flusher.drain(partial(self._then, self._close_logs))

    def _close_logs(self) -> None:
        broker = self._broker
        broker.flusher.close()
        broker.leaving_logs.finish_all()
        broker.workers.close()
        broker.world.openers.close()
        self._node.controller.listeners.close()
        broker.controller.close()
        try:
            broker.quorum.close()
        except (StorageError, DiskError) as error:
            _logger.critical("the metadata log was not closed cleanly: %s", error)
        self._close_next(iter(broker.directories.online))

    def _close_next(self, left: Iterator[LogDirectory]) -> None:
        directory = next(left, None)
        if directory is None:
            for one in self._broker.directories.directories:
                one.release()
            self._end(None)
            return

        def closed(error: Exception | None) -> None:
            if error is not None:
                _logger.critical("%s was not closed cleanly: %s", directory.path, error)
            self._then(partial(self._close_next, left))

        ClosingDirectory(directory, self._node.world.make_syncs, closed, self._broker.broker_epoch).begin()
