"""Runs: offsets in a row of records that are in the same state."""

from enum import IntEnum
from typing import Final

from ottla.coordination.share.state_batches import StateBatch

NOBODY: Final = ""


class RecordState(IntEnum):
    """The state of a record, by the number that is written."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


class AcknowledgeType(IntEnum):
    """What a member says of a record, by the number in requests."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


TERMINAL: Final = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class Run:
    """Offsets in a row that are in the same state."""

    __slots__ = (
        "batch_records",
        "count",
        "deadline_ms",
        "first",
        "has_letter",
        "is_rejected",
        "last",
        "member",
        "pending",
        "state",
    )

    def __init__(
        self,
        first: int,
        last: int,
        state: RecordState,
        count: int,
        member: str = NOBODY,
        deadline_ms: int = 0,
        batch_records: int = 0,
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.count = count
        """How often the records were delivered."""
        self.member = member
        self.deadline_ms = deadline_ms
        """Until when an acquired run is the member's."""
        self.batch_records = batch_records or last - first + 1
        """How many records were first delivered together with these."""
        self.pending: RecordState | None = None
        """The state that is being written."""
        self.is_rejected = False
        """Whether a member has said that nobody can make use of the records."""
        self.has_letter = False
        """Whether the records are copied to the topic of dead letters."""

    def __repr__(self) -> str:
        pending = "" if self.pending is None else f"->{self.pending.name}"
        return f"<{self.first}-{self.last} {self.state.name}{pending} {self.count} {self.member}>"

    def __len__(self) -> int:
        return self.last - self.first + 1

    @property
    def is_terminal(self) -> bool:
        """Whether nothing happens to the records any more."""
        return self.pending is None and self.state in TERMINAL

    @property
    def is_free(self) -> bool:
        """Whether the records can be acquired."""
        return self.state is RecordState.AVAILABLE and self.pending is None

    @property
    def is_held(self) -> bool:
        """Whether a member has the records and has said nothing of them."""
        return self.state is RecordState.ACQUIRED and self.pending is None

    def split_before(self, offset: int) -> "Run":
        """Cut off the part from `offset` on, and return it."""
        assert self.first < offset <= self.last, "a split leaves something on both sides"
        assert self.pending is None, "a run is not split while a write is under way"
        rest = Run(
            offset, self.last, self.state, self.count, self.member, self.deadline_ms, self.batch_records
        )
        self.last = offset - 1
        return rest

    def state_batch(self) -> StateBatch:
        """Return what is written about the run."""
        state = self.state if self.pending is None else self.pending
        return StateBatch(self.first, self.last, state, self.count)
