"""A connector at work: it has its tasks written, and again if its work may have changed."""

import logging
from collections.abc import Awaitable, Callable

from ottla.connect.errors import ConnectError, RestError
from ottla.connect.running.supervised import Ready, Stopping

_logger = logging.getLogger(__name__)


class ConnectorRun:
    """One life of a connector."""

    def __init__(self, publish: Callable[[], Awaitable[None]], refresh_ms: int | None = None) -> None:
        """`publish` has the tasks written. It is called again every `refresh_ms`, if that is given."""
        self._publish = publish
        self._refresh_s = None if refresh_ms is None else refresh_ms / 1000

    async def run(self, ready: Ready, is_stopping: Stopping) -> None:
        """Divide the work among tasks."""
        await self._publish()
        ready(has_worked=True)
        while not await is_stopping.wait(self._refresh_s):
            try:
                await self._publish()
            except (ConnectError, RestError) as error:
                # The tasks go on as they are.
                _logger.warning("the work of a connector could not be divided again: %s", error)
