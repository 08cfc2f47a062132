"""Keeps a task going: tells how it does, and starts again what failed, later each time.

A task whose record is not tolerated is not started again by itself: it would meet the same record.

Deviation: in Kafka a failed task waits for somebody who restarts it. Here it also says FAILED, with the
reason, and is tried again after a pause that grows from one second to one minute. It says RUNNING again when
it has done something.
"""

import asyncio
import contextlib
import logging
import traceback
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from ottla.connect.errors import Superseded, ToleranceExceeded
from ottla.connect.herding.units import Unit
from ottla.connect.store.statuses import FAILED, RUNNING

_logger = logging.getLogger(__name__)
_FIRST_WAIT_S: Final = 1.0
_LONGEST_WAIT_S: Final = 60.0
_STOP_S: Final = 10.0


class Stopping:
    """Whether a unit is to end: to be asked, or waited for."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def __call__(self) -> bool:
        """Say whether the unit is to end."""
        return self._event.is_set()

    def begin(self) -> None:
        """Have the unit end."""
        self._event.set()

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait until the unit is to end, or for a while. Say whether it is."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), seconds)
        return self._event.is_set()


class Ready(Protocol):
    """Called by a life of a unit when it is ready, and each time when it has done something."""

    def __call__(self, *, has_worked: bool = False) -> None:
        """`has_worked` says that it has done something already when it calls for the first time."""


class Run(Protocol):
    """One life of a unit."""

    async def run(self, ready: Ready, is_stopping: Stopping) -> None:
        """Work until stopped."""


Tell = Callable[[Unit, str, str | None], None]
"""Publishes a state, with the reason if it is FAILED."""


class SupervisedUnit:
    """A unit through all its lives."""

    def __init__(self, unit: Unit, make: Callable[[], Awaitable[Run]], tell: Tell) -> None:
        self._unit = unit
        self._make = make
        self._tell = tell
        self._stopping = Stopping()
        self._is_told = False
        self._wait_s = _FIRST_WAIT_S
        self._task = asyncio.create_task(self._live())

    async def stop(self) -> None:
        """End it. What it has begun it may finish, for a while."""
        self._stopping.begin()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._task), _STOP_S)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _live(self) -> None:
        lives = 0
        while not self._stopping():
            lives += 1
            self._is_told = False
            rounds_until_told = 0 if lives == 1 else 1
            try:
                run = await self._make()
                await run.run(self._ready_after(rounds_until_told), self._stopping)
            except asyncio.CancelledError:
                raise
            except Superseded as error:
                # The worker is about to stop this unit. Another one starts in its place.
                _logger.info("%s does not start: %s", self._unit, error)
                return
            except ToleranceExceeded as error:
                self._failed(error, "")
                return
            # Whatever a connector may raise, the others go on.
            except Exception as error:
                self._failed(error, f"The next attempt is in {self._wait_s:.0f} s.\n")
                await self._pause()

    def _ready_after(self, rounds: int) -> Ready:
        calls = 0

        def ready(*, has_worked: bool = False) -> None:
            nonlocal calls
            calls += 1
            if (has_worked or calls > rounds) and not self._is_told:
                self._is_told = True
                self._wait_s = _FIRST_WAIT_S
                self._tell(self._unit, RUNNING, None)

        return ready

    async def _pause(self) -> None:
        wait_s, self._wait_s = self._wait_s, min(self._wait_s * 2, _LONGEST_WAIT_S)
        await self._stopping.wait(wait_s)

    def _failed(self, error: Exception, outlook: str) -> None:
        _logger.error("%s failed: %s", self._unit, error, exc_info=error)
        trace = "".join(traceback.format_exception(error))
        self._tell(self._unit, FAILED, f"{error}\n{outlook}{trace}")
