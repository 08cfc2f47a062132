"""What a handler decides: records to write, and the answer to give once they are on disk."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode

R = TypeVar("R")


@dataclass(slots=True)
class Decision(Generic[R]):
    """Records that become one batch, so all or none of them happen; and the reply.

    Nobody changes one. It is not frozen because making it would take four times as long.

    `reply` is given when the records are committed. A decision without one parked the asker itself (a join
    that waits for others, say) and answers it later. `on_commit` is told NONE when the records are committed,
    or why they are not and never will be.
    """

    records: tuple[CoordinatorRecord, ...] = ()
    reply: R | None = None
    on_commit: Callable[[ErrorCode], None] | None = None
    replayed: bool = True
    """False where the state in memory is ahead of its record: a classic group keeps open joins, the record
    only its last settled generation."""
    is_atomic: bool = True
    """False where the records do not belong together, such as those of offsets that expire: they may become
    several batches if one would be too large."""
    encoded: Sequence[bytes] | None = None
    """The records as the log writes them, from somebody who had most of their bytes already."""
    replay: Callable[[], None] | None = None
    """What replaying `encoded` comes to, from the same: there need be no `records` then."""
    after_replay: Callable[[], None] | None = None
    """Called when the records have been appended and replayed, for what is in memory only: timers, and those
    who wait."""


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """On whose behalf a batch is written when it is part of a transaction."""

    producer_id: int
    producer_epoch: int
    proof: Any = field(default=None, compare=False)
    """What the log handed out when it was to be asked whether the transaction is known; it takes it back with
    the batch (`ottla.storage.verification`)."""
