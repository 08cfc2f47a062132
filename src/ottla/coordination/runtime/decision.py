"""What a handler decides: records to write, and the answer to give once they are on disk."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class CoordinatorRecord:
    """A change of state: a key message, and the value message or None to delete what the key stands for."""

    key: Any
    value: Any | None
    value_version: int = 0


@dataclass(frozen=True, slots=True)
class Decision(Generic[R]):
    """Records that become one batch, so all or none of them happen; and the reply.

    `reply` is given when the records are committed. With no reply the decision parked the asker itself (a
    join that waits for others, say) and answers it later. `then` runs right after the records are replayed.
    """

    records: tuple[CoordinatorRecord, ...] = ()
    reply: R | None = None
    then: Callable[[], None] | None = None
    replayed: bool = True
    """False where the state in memory is ahead of its record: a classic group keeps open joins, the record
    only its last settled generation."""


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """On whose behalf a batch is written when it is part of a transaction."""

    producer_id: int
    producer_epoch: int
