"""What the group coordinator asks of the share coordinators, which keep the state of share partitions."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from ottla.coordination.group.consumer.assignors.assignor import Partitions
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode

NO_START: int = -1
"""The start offset of a partition whose leader should find one when the group first reads it."""

StartOffsets = Mapping[Uuid, Mapping[int, int]]
Errors = Mapping[tuple[Uuid, int], ErrorCode]
"""What became of each partition that was asked for."""


class StateSummary(NamedTuple):
    """What is known of the state of a partition."""

    error_code: ErrorCode
    start_offset: int = NO_START
    leader_epoch: int = 0
    delivery_complete_count: int = -1


Summaries = Mapping[tuple[Uuid, int], StateSummary]


class StatePersister(Protocol):
    """The share coordinators of the cluster. `done` is called once for each request, perhaps much later."""

    def initialize(
        self, group_id: str, state_epoch: int, starts: StartOffsets, done: Callable[[Errors], None]
    ) -> None:
        """Give partitions a state, which begins at these offsets."""

    def delete(self, group_id: str, partitions: Partitions, done: Callable[[Errors], None]) -> None:
        """Delete the state of partitions."""

    def summarize(self, group_id: str, partitions: Partitions, done: Callable[[Summaries], None]) -> None:
        """Read where partitions begin, and how much of them is done."""
