"""What workers divide among themselves: connectors and tasks."""

from typing import Final, NamedTuple

CONNECTOR: Final = -1
"""The number that stands for the connector itself among its tasks."""


class Unit(NamedTuple):
    """A connector, or one of its tasks."""

    connector: str
    task: int = CONNECTOR

    @property
    def is_connector(self) -> bool:
        """Say whether this is the connector itself."""
        return self.task == CONNECTOR

    @property
    def task_or_none(self) -> int | None:
        """The number of the task. None: the connector itself."""
        return None if self.is_connector else self.task

    def __str__(self) -> str:
        return f"connector {self.connector}" if self.is_connector else f"task {self.connector}-{self.task}"
