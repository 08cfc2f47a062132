"""What is known of pipelines that run, in files that other processes of their owner read.

    DIRECTORY/<query>/                Spark's checkpoint of a query
    DIRECTORY/.status/<query>.json    how it does, written again whenever that changes
    DIRECTORY/.status/<query>.stop    somebody wants it to stop

A directory belongs to pipelines alone: it is never one where a node keeps its log.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Final

from ottla.runtime.private_files import make_private_directory

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
    batch_id: int | None = None
    """The last batch that was done, if any was."""
    rows: int = 0
    rows_per_second: float = 0.0
    lag: int | None = None
    """How far it was behind when that was last asked; None if nobody knew."""
    restarts: int = 0
    last_error: str | None = None
    batch_ms: int | None = None
    """How long the last batch took."""
    state_rows: int = 0
    state_bytes: int = 0
    """What it keeps in memory from batch to batch."""
    dropped_rows: int = 0
    """Rows that came too late for the watermark, since it was started."""
    spark_page: str | None = None
    """Where Spark shows its queries in a browser, while it runs."""
    pipeline: str | None = None
    """What it belongs to: a pipeline may have several queries."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """The topics that it reads, and where it begins in each."""
    bootstrap: str | None = None
    ends_process: bool = False
    """Whether its process ends when all queries in there are over."""

    @property
    def is_over(self) -> bool:
        """Say whether nothing runs any more."""
        return self.state in (STOPPED, DONE, FAILED, GONE)

    def belongs_to(self, name: str) -> bool:
        """Say whether this is the query of that name, or one of the pipeline of that name."""
        return name in (self.name, self.pipeline)


def prepare_directory(directory: Path) -> Path:
    """Make a directory for checkpoints, and return it with links resolved."""
    directory = directory.resolve()
    for place in (directory, *directory.parents):
        if (place / _MARK_OF_A_NODE).exists():
            raise InvalidDirectory(
                f"{directory} is inside {place}, the log directory of a node: choose another with --directory"
            )
    # Rows that a query remembers are in checkpoints.
    make_private_directory(directory / _STATUS)
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
        status = _parse(path.read_text())
        if not status.is_over and not is_alive(status.pid):
            status = replace(status, state=GONE)
        if status.is_over:
            # Nothing is done any more, and nobody serves the page.
            status = replace(status, rows_per_second=0.0, spark_page=None)
        found.append(status)
    return found


def _parse(text: str) -> QueryStatus:
    """Read a status. Another version may have written it, with more or fewer facts."""
    known = {item.name for item in fields(QueryStatus)}
    content = {name: value for name, value in json.loads(text).items() if name in known}
    status = QueryStatus(**content)
    return replace(status, batch_id=None) if status.batch_id == -1 else status


def is_alive(pid: int) -> bool:
    """Say whether there is a process of this number. One that only waits to be reaped has ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        pass
    else:
        return state != "Z"
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
