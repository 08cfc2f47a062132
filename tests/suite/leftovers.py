"""No process outlives the suite.

Every process that a test starts inherits a token in its environment, whoever is its parent by now. At the end
of a run, what still has the token is named and ended, and the run fails.
"""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple
from uuid import uuid4

TOKEN: Final = "OTTLA_TEST_RUN"
_PATIENCE_S: Final = 10.0
"""Processes that were told to end may still be ending when the last test is done."""


class Leftover(NamedTuple):
    pid: int
    command: str


def hand_out_token() -> None:
    """Let all processes that this one starts from now on carry a token of this run."""
    os.environ[TOKEN] = uuid4().hex


def find_leftovers(token: str, spared: frozenset[int] = frozenset()) -> list[Leftover]:
    """Return the processes with the token of a run, this one and those spared left out."""
    return list(_leftovers(f"{TOKEN}={token}".encode(), spared | {os.getpid()}))


def end_leftovers(token: str) -> list[Leftover]:
    """Wait for processes that are ending, end those that do not, and return these."""
    deadline = time.monotonic() + _PATIENCE_S
    while (found := find_leftovers(token)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for leftover in found:
        try:
            os.kill(leftover.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return found


def _leftovers(wanted: bytes, spared: frozenset[int]) -> Iterator[Leftover]:
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) in spared:
            continue
        try:
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                yield Leftover(int(process.name), command.strip() or "(ended, not waited for)")
        except OSError:
            continue  # it has ended meanwhile, or belongs to somebody else
