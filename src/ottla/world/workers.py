"""What a node asks of others because it takes long: blocking work, and syncs of files.

The loop of a node never waits. A worker does what blocks, and its result comes back as a call on the loop. In
a process workers are threads and the kernel; in a simulation they are events that come some time later.
"""

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from ottla.world.disk import DiskError, File

Run: TypeAlias = Callable[[Callable[[], None], Callable[[Exception | None], None]], None]
"""Do the first elsewhere, then call the second on the loop with None or the error."""


class Workers(Protocol):
    """Those who do work that blocks: cold reads, checkpoints, removing files."""

    def run(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        """Do blocking work elsewhere, then call `done` on the loop with None or the error."""

    def run_steps(self, steps: "Steps", ended: Callable[[], None]) -> "LongWork":
        """Work through `steps` elsewhere, then call `ended` on the loop."""

    def close(self) -> None:
        """Wait for what is under way, and drop what has not begun. Nothing is called back from now on."""


class OnLoop(NamedTuple):
    """A step of long work that has to be done on the loop."""

    work: Callable[[], None]


class Pause(NamedTuple):
    """A step of long work that is to wait for a while."""

    milliseconds: int


Steps: TypeAlias = Generator[OnLoop | Pause, None, None]
"""Long work that comes back to the loop now and then. What is between two steps may block.

When it has to end early it is closed, so it sees a `GeneratorExit` at the step it has come to. It must not
raise anything.
"""


def throw_into(steps: Steps, error: Exception) -> OnLoop | Pause | None:
    """Raise in the steps what their last step on the loop raised. Returns the next one, if there is one."""
    try:
        return steps.throw(error)
    except StopIteration:
        return None


class LongWork(Protocol):
    """Work in steps that is under way."""

    def ask_to_end(self) -> None:
        """Close the steps at the next one. `ended` is called then."""

    def end(self) -> None:
        """Close the steps at the next one, and return when they are closed. `ended` is still called."""


class SyncJob(Protocol):
    """Something to sync."""

    @property
    def only_file(self) -> File | None:
        """The file, if it is one file and nothing else that has to be synced."""

    def run(self) -> None:
        """Sync, blocking. Raises `DiskError`."""


class SyncResult(NamedTuple):
    """How a sync ended, and how long it took."""

    job: SyncJob
    error: DiskError | None
    took_ns: int


class Syncs(Protocol):
    """Those who sync. Several syncs may be under way at once."""

    def begin(self, job: SyncJob) -> None:
        """Begin a sync. Its result is delivered on the loop, never before this has returned."""

    def close(self) -> None:
        """Wait for the syncs that have begun. Their results are not delivered any more."""


MakeSyncs: TypeAlias = Callable[[Callable[[Sequence[SyncResult]], None]], Syncs]
"""Make those who sync. They deliver results, several at a time if they ended together."""
