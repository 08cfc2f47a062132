"""The recent past of each transactional id: who fenced whom, when, and by which request."""

from enum import Enum
from typing import NamedTuple

from ottla.coordination.runtime.journal import BoundedJournal


class Event(Enum):
    """What happened."""

    INITIALIZED = "initialized"
    FENCED_BY_INIT = "fenced by a new instance"
    PARTITIONS_ADDED = "partitions added"
    COMMIT_DECIDED = "commit decided"
    ABORT_DECIDED = "abort decided"
    TIMED_OUT = "timed out"
    COMPLETED = "completed"
    REFUSED = "refused"
    EXPIRED = "expired"


class Entry(NamedTuple):
    """One thing that happened to a transactional id."""

    at_ms: int
    event: Event
    producer_id: int
    producer_epoch: int
    client: str
    """Who asked, as client id and address; empty for what the coordinator did by itself."""
    detail: object
    """Partitions, or the request and the error of a refusal: whatever the event is about."""


class TransactionJournal(BoundedJournal[Entry]):
    """The last entries of the transactional ids that were active last."""

    def add(
        self,
        transactional_id: str,
        at_ms: int,
        event: Event,
        producer_id: int,
        producer_epoch: int,
        client: str = "",
        detail: object = None,
    ) -> None:
        """Note that something happened."""
        items = 1 + len(detail) if isinstance(detail, (tuple, frozenset)) else 1
        self.append(transactional_id, Entry(at_ms, event, producer_id, producer_epoch, client, detail), items)
