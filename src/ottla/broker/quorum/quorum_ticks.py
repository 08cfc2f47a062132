"""What the metadata quorum does now and then on every node: snapshots, and signs of life in the log."""

from ottla.quorum.metadata_quorum import MetadataQuorum
from ottla.world.scheduler import Scheduler, Timer


class QuorumTicks:
    """The timer of the quorum's upkeep. The quorum itself says when it is due again."""

    def __init__(self, quorum: MetadataQuorum, scheduler: Scheduler) -> None:
        self._quorum = quorum
        self._scheduler = scheduler
        self._timer: Timer | None = None

    def start(self) -> None:
        """Begin."""
        self._timer = self._scheduler.call_later(0, self._tick)

    def stop(self) -> None:
        """End."""
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        self._timer = self._scheduler.call_later(self._quorum.tick(), self._tick)
