"""What stands where a Spark session does: rows become a file of JSON."""

import json
import uuid
from pathlib import Path
from typing import Any


class Session:
    """A session and its writer in one."""

    def __init__(self, rows: list[dict[str, Any]] | None = None) -> None:
        self._rows = rows or []

    def createDataFrame(self, table: Any) -> "Session":  # noqa: N802 - Spark's name
        """Return the rows of a table of Arrow."""
        return Session(table.to_pylist())

    def coalesce(self, _count: int) -> "Session":
        """Return the same rows."""
        return self

    @property
    def write(self) -> "Session":
        """The writer."""
        return self

    def format(self, _name: str) -> "Session":
        """Return the same writer."""
        return self

    def options(self, **_options: str) -> "Session":
        """Return the same writer."""
        return self

    def mode(self, _name: str) -> "Session":
        """Return the same writer."""
        return self

    def save(self, path: str) -> None:
        """Write a file."""
        (Path(path) / f"part-{uuid.uuid4().hex}").write_text(json.dumps(self._rows))
