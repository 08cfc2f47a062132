"""What is known of pipelines that run, in files that anybody may read.

    DIRECTORY/<query>/                Spark's checkpoint of a query
    DIRECTORY/.status/<query>.json    how it does, written anew about every second
    DIRECTORY/.status/<query>.stop    somebody wants it to stop

A directory belongs to pipelines alone: it is never one where a node keeps its log.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

_STATUS: Final = ".status"
# A node leaves this file in each of its directories.
_MARK_OF_A_NODE: Final = "meta.properties"

STARTING: Final = "starting"
RUNNING: Final = "running"
WAITING: Final = "waiting to restart"
STOPPED: Final = "stopped"
DONE: Final = "done"
FAILED: Final = "failed"
GONE: Final = "gone"


class InvalidDirectory(ValueError):
    """A directory that pipelines cannot use."""


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """How a query does."""

    name: str
    pid: int
    state: str = STARTING
    batch_id: int = -1
    rows: int = 0
    rows_per_second: float = 0.0
    lag: int = 0
    restarts: int = 0
    last_error: str | None = None

    @property
    def is_over(self) -> bool:
        """Say whether nothing runs any more."""
        return self.state in (STOPPED, DONE, FAILED, GONE)


def prepare_directory(directory: Path) -> Path:
    """Make a directory for checkpoints, and return it with links resolved."""
    directory = directory.resolve()
    for place in (directory, *directory.parents):
        if (place / _MARK_OF_A_NODE).exists():
            raise InvalidDirectory(
                f"{directory} is inside {place}, where a node keeps its log: choose another by --directory"
            )
    (directory / _STATUS).mkdir(parents=True, exist_ok=True)
    return directory


def write_status(directory: Path, status: QueryStatus) -> None:
    """Write how a query does. Readers see the old file or the new one, nothing between."""
    path = directory / _STATUS / f"{status.name}.json"
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(asdict(status)))
    unfinished.replace(path)


def read_statuses(directory: Path) -> list[QueryStatus]:
    """Return how all queries of a directory do, by name. One whose process is not there any more is gone."""
    found = []
    for path in sorted((directory / _STATUS).glob("*.json")):
        status = QueryStatus(**json.loads(path.read_text()))
        if not status.is_over and not _is_alive(status.pid):
            status = QueryStatus(**{**asdict(status), "state": GONE})
        found.append(status)
    return found


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def ask_to_stop(directory: Path, names: Iterable[str]) -> None:
    """Ask queries to stop after the batch they are at."""
    for name in names:
        (directory / _STATUS / f"{name}.stop").touch()


def wants_to_stop(directory: Path, name: str) -> bool:
    """Say whether a query was asked to stop."""
    return (directory / _STATUS / f"{name}.stop").exists()


def forget_wishes(directory: Path, name: str) -> None:
    """Forget what was asked of an earlier run."""
    (directory / _STATUS / f"{name}.stop").unlink(missing_ok=True)
