"""Threads for work that blocks: cold reads, checkpoints, removing files. They start when there is work."""

from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from threading import Event, Thread
from typing import Final

from ottla.world.scheduler import Scheduler
from ottla.world.workers import OnLoop, Steps, throw_into

THREADS_MAX: Final = 4


class Threads:
    """A pool of threads for one event loop."""

    def __init__(self, scheduler: Scheduler, threads_max: int = THREADS_MAX) -> None:
        self._scheduler = scheduler
        self._pool = ThreadPoolExecutor(threads_max, thread_name_prefix="worker")
        self._is_closed = False

    def run(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        """Do blocking work in a thread, then call back on the loop."""
        if self._is_closed:
            return

        def tell(error: Exception | None) -> None:
            # The one who asked may be closed as well by now: its files may be another node's.
            if not self._is_closed:
                done(error)

        def run() -> None:
            error: Exception | None = None
            try:
                work()
            except Exception as raised:
                error = raised
            self._scheduler.call_from_thread(tell, error)

        self._pool.submit(run)

    def run_steps(self, steps: Steps, ended: Callable[[], None]) -> "StepThread":
        """Work through `steps` in a thread of their own, then call back on the loop."""
        return StepThread(self._scheduler, steps, ended)

    def close(self) -> None:
        """Wait for what is under way, and drop what has not begun. Nothing is called back from now on.

        A timer that still fires while the loop comes to its end asks without effect.
        """
        self._is_closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)


class StepThread:
    """A thread that works through steps. For those that belong to the loop it waits for the loop."""

    def __init__(self, scheduler: Scheduler, steps: Steps, ended: Callable[[], None]) -> None:
        self._scheduler = scheduler
        self._steps = steps
        self._ended = ended
        self._ending = Event()
        # What the thread waits for the loop to do.
        self._wanted: Future[None] | None = None
        self._thread = Thread(target=self._run, name="steps", daemon=True)
        self._thread.start()

    def ask_to_end(self) -> None:
        """Let the thread end at its next step."""
        self._ending.set()

    def end(self) -> None:
        """End the thread now. It is at most a step away from its end, and waits for nothing then."""
        self._ending.set()
        # The thread first says what it wants and then looks whether it is to end; here it is the other way
        # round. So one of the two notices the other.
        wanted = self._wanted
        if wanted is not None:
            wanted.cancel()
        self._thread.join()

    # In the thread

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self._steps.close()
            self._scheduler.call_from_thread(self._ended)

    def _work(self) -> None:
        steps = self._steps
        step = next(steps, None)
        while step is not None:
            if not isinstance(step, OnLoop):
                if self._ending.wait(step.milliseconds / 1000):
                    return
                step = next(steps, None)
                continue
            try:
                self._on_loop(step.work)
            except CancelledError:
                return
            except Exception as error:
                step = throw_into(steps, error)
            else:
                step = next(steps, None)

    def _on_loop(self, work: Callable[[], None]) -> None:
        """Have something done on the event loop, and wait for it. Raises `CancelledError` at the end."""
        done: Future[None] = Future()

        def run() -> None:
            if not done.set_running_or_notify_cancel():
                return
            try:
                work()
            except Exception as error:
                done.set_exception(error)
            else:
                done.set_result(None)

        self._wanted = done
        if self._ending.is_set():
            done.cancel()
        self._scheduler.call_from_thread(run)
        try:
            done.result()
        finally:
            self._wanted = None
