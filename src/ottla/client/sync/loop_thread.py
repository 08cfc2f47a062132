"""An event loop on a thread of its own, for callers that have none.

`run` hands a coroutine over and waits for what it returns. Ctrl-C reaches the waiting caller: the coroutine
is cancelled, it cleans up, and only then KeyboardInterrupt goes on, so that nothing is left half done.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class LoopThread:
    """A running loop. End it with `stop`."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        # What is handed over is begun before the loop is stopped, or is refused.
        self._handing_over = threading.Lock()
        self._is_stopping = False
        # A daemon: a program that forgets to close may end all the same.
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Say whether coroutines can be run."""
        return not self._is_stopping

    def run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the loop and return its result, or raise its error, here."""
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError(
                "a callback of a synchronous client must not call the client: it would wait for itself"
            )
        answer: Future[R] = Future()
        tasks: list[asyncio.Task[R]] = []

        def begin() -> None:
            tasks.append(self.loop.create_task(coroutine))
            tasks[0].add_done_callback(lambda task: _hand_over(task, answer))

        def cancel() -> None:
            if not tasks:
                # Ctrl-C came before the coroutine was handed over. One that never begins is complained of.
                begin()
            tasks[0].cancel()

        try:
            with self._handing_over:
                if self._is_stopping:
                    coroutine.close()
                    raise RuntimeError("the client is closed")
                self.loop.call_soon_threadsafe(begin)
            return answer.result()
        except KeyboardInterrupt:
            self.loop.call_soon_threadsafe(cancel)
            with suppress(CancelledError, Exception):
                answer.result()
            raise

    def run_first(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run what a client starts with. When that fails there is no client to close, so the thread ends."""
        try:
            return self.run(coroutine)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Cancel what still runs, and end the thread."""
        with self._handing_over:
            is_first, self._is_stopping = not self._is_stopping, True
        if is_first:
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            left = asyncio.all_tasks(self.loop)
            for task in left:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self.loop.close()


def _hand_over(task: asyncio.Task[R], answer: Future[R]) -> None:
    if task.cancelled():
        answer.set_exception(CancelledError())
    elif (error := task.exception()) is not None:
        answer.set_exception(error)
    else:
        answer.set_result(task.result())


class HasLoop(Protocol):
    """What `blocking` needs: the loop, and the asynchronous twin that does the work."""

    _thread: LoopThread
    _twin: Any


def blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[HasLoop, P], R]:
    """Make of an asynchronous method one that waits, with the same arguments and the same words."""

    def call(self: HasLoop, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._thread.run(method(self._twin, *args, **kwargs))

    call.__name__ = method.__name__
    call.__qualname__ = method.__qualname__
    call.__doc__ = method.__doc__
    return call


def blocking_call(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[HasLoop, P], R]:
    """Make of a method that does not wait, but belongs to the loop's thread, one that any thread may call."""

    def call(self: HasLoop, /, *args: P.args, **kwargs: P.kwargs) -> R:
        async def on_the_loop() -> R:
            return method(self._twin, *args, **kwargs)

        return self._thread.run(on_the_loop())

    call.__name__ = method.__name__
    call.__qualname__ = method.__qualname__
    call.__doc__ = method.__doc__
    return call
