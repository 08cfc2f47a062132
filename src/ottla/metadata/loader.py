"""From the batches of a metadata log to an image: batches in, the newest image that may be seen out.

Records between BeginTransaction and EndTransaction count together, when the end is there. Until then, and for
ever if the transaction is aborted, the image is the one before it (KIP-868).

Many batches may be fed before an image is asked for: making one copies the tables that changed, so a log with
thousands of batches is loaded as one change.
"""

from collections.abc import Sequence
from typing import Any

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.errors import MetadataError
from ottla.metadata.image import MetadataImage, Position
from ottla.wire.metadata_records.metadata_transactions import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)


class MetadataLoader:
    """Replays batches in the order of the log."""

    def __init__(self, image: MetadataImage) -> None:
        self._delta = MetadataDelta(image)
        self._position = image.position
        # The records of the transaction under way.
        self._hidden: list[Any] | None = None

    @property
    def is_in_transaction(self) -> bool:
        """Say whether a transaction has begun and not ended."""
        return self._hidden is not None

    @property
    def image(self) -> MetadataImage:
        """The image that was taken last."""
        return self._delta.base

    def feed(self, records: Sequence[Any], position: Position) -> None:
        """Replay one batch, whose last record lies at `position`."""
        for record in records:
            if isinstance(record, BeginTransactionRecord):
                if self._hidden is not None:
                    raise MetadataError(f"a transaction began before {position.offset} within another")
                self._hidden = []
            elif isinstance(record, (EndTransactionRecord, AbortTransactionRecord)):
                if self._hidden is None:
                    raise MetadataError(f"a transaction that never began ended before {position.offset}")
                if isinstance(record, EndTransactionRecord):
                    self._replay(self._hidden)
                self._hidden = None
            elif self._hidden is not None:
                self._hidden.append(record)
            else:
                self._delta.replay(record)
        self.skip(position)

    def skip(self, position: Position) -> None:
        """Pass over a batch of control records."""
        if position.offset <= self._position.offset:
            raise MetadataError(f"the batch up to {position.offset} comes after {self._position.offset}")
        if self._hidden is None:
            self._position = position

    def take(self) -> tuple[MetadataImage, MetadataDelta]:
        """Return the newest image that may be seen, and what is new in it since the last call."""
        delta = self._delta
        image = delta.apply(self._position)
        self._delta = MetadataDelta(image)
        return image, delta

    def peek_security(self) -> MetadataImage:
        """Return the image that was taken last, with the rules and users that were fed since."""
        return self.image._replace(acls=self._delta.acls.apply(), scram=self._delta.scram.apply())

    def fork(self) -> "MetadataLoader":
        """Return another loader that goes on from here. Nothing may have been fed since the last `take`."""
        assert not self._delta, "what was fed is in no image yet"
        other = MetadataLoader(self._delta.base)
        other._position = self._position
        other._hidden = None if self._hidden is None else list(self._hidden)
        return other

    def _replay(self, records: Sequence[Any]) -> None:
        for record in records:
            self._delta.replay(record)
