"""Running a test on the event loop that a node has."""

import asyncio
from collections.abc import Coroutine

from ottla.runtime.poller import ServingLoop


def run_serving(main: Coroutine[object, object, None]) -> None:
    """Run something to its end."""
    with asyncio.Runner(loop_factory=ServingLoop) as runner:
        runner.run(main)


def serving_loop() -> ServingLoop:
    """Return the loop that runs."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ServingLoop)
    return loop
