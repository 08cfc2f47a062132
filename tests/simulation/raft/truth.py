"""What has been committed, as far as anybody in a simulated quorum was ever told: each batch."""

from hashlib import blake2b
from typing import NamedTuple


class Violation(AssertionError):
    """An invariant is broken."""


class CommittedBatch(NamedTuple):
    """One batch below a high watermark."""

    base_offset: int
    next_offset: int
    epoch: int
    content: bytes


class Truth:
    """The committed log. Whoever commits something first adds to it; everybody else has to agree."""

    def __init__(self) -> None:
        self.end = 0
        self.last_epoch = 0
        self._by_offset: dict[int, CommittedBatch] = {}
        # What a state machine that has replayed everything below an offset would be, by offset.
        self._digests: dict[int, bytes] = {0: b""}
        self._epochs: dict[int, int] = {0: 0}

    def commit(self, node: str, batch: CommittedBatch) -> None:
        """Take note that a node counts a batch as committed."""
        known = self._by_offset.get(batch.base_offset)
        if known is not None:
            if known != batch:
                raise Violation(
                    f"CommittedNeverLostOrChanged: {node} has other bytes at {batch.base_offset} than were "
                    f"committed, of epoch {batch.epoch} instead of {known.epoch}"
                )
            return
        if batch.base_offset != self.end:
            raise Violation(
                f"LogPrefixesEqualBelowHighWatermark: {node} has a batch at {batch.base_offset}, but what is "
                f"committed has none that begins there, and ends at {self.end}"
            )
        self._by_offset[batch.base_offset] = batch
        digest = blake2b(self._digests[self.end] + batch.content, digest_size=8).digest()
        self.end, self.last_epoch = batch.next_offset, batch.epoch
        self._digests[self.end] = digest
        self._epochs[self.end] = batch.epoch

    def digest_at(self, offset: int) -> str:
        """Return the state at the end of a batch."""
        found = self._digests.get(offset)
        if found is None:
            raise Violation(f"SnapshotsAreOfTheCommitted: nothing was committed that ends at {offset}")
        return found.hex()

    def epoch_at(self, offset: int) -> int:
        """Return the epoch of the record before an offset."""
        return self._epochs[offset]

    def batches(self) -> list[CommittedBatch]:
        return list(self._by_offset.values())
