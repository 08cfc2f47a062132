"""What a handler decides: records to write, and the answer to give once they are on disk.

Deciding changes nothing. The records are appended, then `replay` changes the state by them, then what is in
memory only follows (`after_append`): a log that refuses the records leaves everything as it was.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ottla.wire.coordinator_records.framing import CoordinatorRecord
from ottla.wire.error_code import ErrorCode

R = TypeVar("R")

Effect = Callable[[], None]
Answer = Callable[[R], None]
Refuse = Callable[[ErrorCode], None]


class EncodedRecords:
    """Records whose bytes are known already. Iterating makes the records themselves."""

    __slots__ = ("encoded",)

    def __init__(self, encoded: Sequence[bytes]) -> None:
        """`encoded` has each record as the log writes it."""
        self.encoded = encoded

    def __len__(self) -> int:
        return len(self.encoded)

    def __iter__(self) -> Iterator[CoordinatorRecord]:
        raise NotImplementedError


Records = tuple[CoordinatorRecord, ...] | EncodedRecords


@dataclass(slots=True)
class Decision(Generic[R]):
    """Records that become one batch, so all or none of them happen; and the reply.

    Nobody changes a decision. It is not frozen because making it would take four times as long.
    """

    records: Records = ()
    reply: R | None = None
    """Given when the records are committed. Without one, the request is answered later by other means: a
    join that waits for other members, for example."""
    after_append: Effect | None = None
    """Called when the records have been appended and replayed, or at once if there are none. It does what is
    in memory only: timers, those who wait, the rebalance of a classic group. It may write further decisions.
    The reply waits for these too."""
    is_atomic: bool = True
    """False where the records do not belong together, such as those of offsets that expire: they may become
    several batches if one would be too large."""


def in_order(effects: Sequence[Effect]) -> Effect | None:
    """Return one effect that stands for all of these."""
    if len(effects) < 2:
        return effects[0] if effects else None

    def run_all() -> None:
        for effect in effects:
            effect()

    return run_all


def ignore(_: object) -> None:
    """An answer or a refusal that nobody waits for."""


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """On whose behalf a batch is written when it is part of a transaction."""

    producer_id: int
    producer_epoch: int
    proof: Any = field(default=None, compare=False)
    """What the log returned when it was asked whether the transaction is known. The batch brings it back
    (`ottla.storage.appending.verification`)."""
