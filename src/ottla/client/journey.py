"""The journey of a record, reported stage by stage to a listener.

A producer tells: serialized, partition chosen, batched, sent, acknowledged (or failed). A consumer tells:
fetched, handed over, committed. Nothing is made when nobody listens.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from ottla.client import surroundings


class Stage(Enum):
    """Where a record is on its way."""

    SERIALIZED = "serialized"
    PARTITION_CHOSEN = "partition chosen"
    BATCHED = "batched"
    SENT = "sent"
    ACKNOWLEDGED = "acknowledged"
    FAILED = "failed"
    FETCHED = "fetched"
    HANDED_OVER = "handed over"
    COMMITTED = "committed"


class Step(NamedTuple):
    """One stage of one record, or of a batch where a stage happens to a whole batch at once."""

    stage: Stage
    at_ns: int
    topic: str
    partition: int | None
    offset: int | None
    detail: dict[str, Any]


Listener = Callable[[Step], None]


def tell(
    listener: Listener, stage: Stage, topic: str, partition: int | None, offset: int | None, **detail: Any
) -> None:
    """Tell one step, with the time it happened."""
    listener(Step(stage, surroundings.current.time_ns(), topic, partition, offset, detail))
