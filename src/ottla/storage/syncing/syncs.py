"""Who syncs the logs of a directory, as the logs see it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from ottla.model.ids import Offset
from ottla.storage.errors import LogDirectoryOffline

if TYPE_CHECKING:
    from ottla.storage.log import Log

Waiter: TypeAlias = Callable[[LogDirectoryOffline | None], None]
"""Called with None when what was waited for is on disk, or with why it never will be."""


class Syncs(Protocol):
    """Syncs logs, for many at once and beside what else is going on."""

    def request(self, log: "Log", offset: Offset | None = None, waiter: Waiter | None = None) -> None:
        """Have a log synced. `waiter` is called once everything below `offset` is on disk, or cannot be."""

    def forget(self, log: "Log") -> list[Waiter]:
        """Let go of a log that was truncated, deleted or moved. Returns those who waited for it."""


class SyncsAtOnce:
    """Syncs in the call that asks for it: for tools and tests that have no event loop."""

    def request(self, log: "Log", offset: Offset | None = None, waiter: Waiter | None = None) -> None:
        """Sync a log."""
        try:
            if offset is None or log.recovery_point < offset:
                log.flush()
        except LogDirectoryOffline as error:
            if waiter is None:
                raise
            waiter(error)
        else:
            if waiter is not None:
                waiter(None)

    def forget(self, log: "Log") -> list[Waiter]:  # noqa: ARG002
        """Nobody waits."""
        return []
