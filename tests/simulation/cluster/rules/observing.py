"""Reading logs of nodes without their notice.

A node that reads its own log looks into what is strange there, and may begin to heal it. If its disk fails,
it gives up the directory. The observer must change nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.simulation.storage.checks import read_log

from ottla.model.ids import Offset
from ottla.storage.log import Log
from ottla.storage.read import ReadLimit
from ottla.testing.simulated_disk import SimulatedDisk


@contextmanager
def _unnoticed(log: Log) -> Iterator[None]:
    """Let the node not get to know what is strange there."""
    when_damaged, log.when_damaged = log.when_damaged, None
    disk = log.volume.disk
    assert isinstance(disk, SimulatedDisk)
    try:
        with disk.observed():
            yield
    finally:
        log.when_damaged = when_damaged


def read_unnoticed(log: Log, offset: int, bytes_max: int) -> bytes:
    """Read as the observer."""
    with _unnoticed(log):
        return log.read(Offset(offset), bytes_max, ReadLimit.LOG_END).read()


def read_all_unnoticed(log: Log) -> bytes:
    """Read all of a log as the observer."""
    with _unnoticed(log):
        return read_log(log)
