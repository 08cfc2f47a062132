"""A pytest session of this process that collects once, and then lets a function run the tests.

pytest takes longer to start and to import the tests than most tests take. So one session serves many runs:
what is collected is handed to a function, which forks as often as it likes.
"""

import os
import resource
import signal
import time
from collections.abc import Callable, Sequence
from types import FrameType

import pytest
from tests.suite.selection import LEFT_OUT

Loop = Callable[[dict[str, pytest.Item]], None]
_UNWANTED = ("randomly", "cacheprovider")
_QUICK = " and ".join(f"not {marker}" for marker in LEFT_OUT)
"""What `make test` leaves out does not count: it would notice a fault long after the change."""


class Outcome:
    """How the test that runs now ended."""

    def __init__(self) -> None:
        self.failed = ""
        self.passed = False

    def begin(self) -> None:
        """Forget the test before."""
        self.failed, self.passed = "", False

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a part of a test: set-up, the test itself, or tear-down."""
        if report.failed:
            self.failed = self.failed or str(report.longrepr)[-2000:]
        elif report.when == "call" and report.passed:
            self.passed = True


class _Session:
    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.errors: list[str] = []

    @pytest.hookimpl
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.errors.append(f"{report.nodeid}: {str(report.longrepr)[-2000:]}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        # What is printed about tests goes nowhere: results have a way of their own.
        reporter = session.config.pluginmanager.getplugin("terminalreporter")
        session.config.pluginmanager.unregister(reporter)
        self._loop({item.nodeid: item for item in session.items})
        session.config.pluginmanager.register(reporter, "terminalreporter")
        return True


def with_tests(files: Sequence[str], outcome: Outcome, loop: Loop) -> list[str]:
    """Collect tests of files and call `loop` with them. Returns what could not be collected."""
    session = _Session(loop)
    # pytest would rewrite the assertions of Ottla itself, as a package that brings a plugin, and import it.
    arguments = ["--assert=plain", "-q", "--no-header", "--continue-on-collection-errors", "--tb=short"]
    arguments += ["-m", _QUICK]
    arguments += [part for name in _UNWANTED for part in ("-p", f"no:{name}")]
    pytest.main([*arguments, *files], plugins=[session, outcome])
    return session.errors


def run_one(item: pytest.Item, following: pytest.Item | None) -> None:
    """Run one test, with set-up and tear-down."""
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of those that it waited for."""
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def stop_after(cpu_s: float, wall_s: float) -> None:
    """Skip the test that runs when this process has used that much more CPU, or when so much time is over.

    0: no more. Hypothesis lets a skip through. It would look for smaller examples of another error for
    minutes.
    """

    def stop(_signal: int, _frame: FrameType | None) -> None:
        pytest.skip("this test takes too long to be run many times")

    signal.signal(signal.SIGPROF, stop)
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    signal.setitimer(signal.ITIMER_REAL, wall_s)


def quiet(path: str) -> None:
    """Write what this process prints to a file, from now on."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)


def now() -> float:
    """Return a time that only grows."""
    return time.monotonic()
