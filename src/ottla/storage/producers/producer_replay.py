"""The producers of a log at an offset, from the newest snapshot below it and the batches after that."""

from collections.abc import Sequence

from ottla.model.ids import Offset
from ottla.records.batch import HEADER, HEADER_BYTES, MAGIC, BatchHeader
from ottla.storage.file_errors import CorruptFile
from ottla.storage.names import FileKind, segment_file_name
from ottla.storage.producers.producer_snapshot import ProducerSnapshotEntry, decode_producer_snapshot
from ottla.storage.producers.producer_state import ProducerState
from ottla.storage.producers.replay import replay_batch
from ottla.storage.segment import Segment
from ottla.world.disk import Disk, DiskError, Reason


class ProducerReplay:
    """Goes through a log from front to back and knows the producers at any offset on the way."""

    __slots__ = ("_disk", "_expiration_ms", "_now_ms", "_path", "offset", "snapshots", "state")

    def __init__(
        self,
        disk: Disk,
        path: str,
        snapshots: Sequence[Offset],
        start: Offset,
        now_ms: int,
        expiration_ms: int,
    ) -> None:
        """Start with no producers at `start`, where the log begins."""
        self._disk = disk
        self._path = path
        self._now_ms = now_ms
        self._expiration_ms = expiration_ms
        self.snapshots = sorted(snapshots)
        self.state = ProducerState()
        self.offset = start

    def advance(self, offset: Offset, segments: Sequence[Segment]) -> ProducerState:
        """Return the state at `offset`. `segments` are those from where the state is now."""
        self._load_newest(offset)
        for segment in segments:
            if self.offset >= offset:
                break
            self._replay(segment, offset)
        self.offset = max(self.offset, offset)
        return self.state

    def _load_newest(self, offset: Offset) -> None:
        """Take the newest snapshot that is usable and nearer to `offset` than the state is.

        At the start of a log the state is empty, and one there knows the producers of what was deleted.
        """
        first = self.offset if not self.state.producers else self.offset + 1
        for at in reversed([at for at in self.snapshots if first <= at <= offset]):
            if self._load(at):
                return

    def prefer_snapshot(self, offset: Offset) -> None:
        """Take the snapshot at `offset`, where the state is, if there is one.

        It knows what the batches before it said when it was written. Compaction may have taken markers since.
        """
        if offset in self.snapshots:
            self._load(offset)

    def _load(self, at: Offset) -> bool:
        path = f"{self._path}/{segment_file_name(at, FileKind.PRODUCER_SNAPSHOT)}"
        try:
            entries = decode_producer_snapshot(self._disk.read_file(path))
        except CorruptFile:
            # Torn by a crash. An older one does too, with more batches to read.
            self._disk.remove(path)
            self.snapshots.remove(at)
            return False
        except DiskError as error:
            if error.reason is not Reason.NOT_FOUND:
                raise
            # It went with the segment that started there.
            self.snapshots.remove(at)
            return False
        self.state = ProducerState([entry for entry in entries if not self._is_expired(entry)])
        self.offset = at
        return True

    def _is_expired(self, entry: ProducerSnapshotEntry) -> bool:
        has_transaction = entry.transaction_first_offset >= 0
        return not has_transaction and self._now_ms - entry.timestamp_ms >= self._expiration_ms

    def _replay(self, segment: Segment, offset: Offset) -> None:
        for place in segment.scan_from(self.offset):
            if place.base_offset >= offset:
                return
            if place.last_offset < self.offset:
                continue
            self.offset = Offset(place.last_offset + 1)
            head = segment.file.read(place.position, HEADER_BYTES)
            if head[16] != MAGIC:
                continue
            header = BatchHeader._make(HEADER.unpack_from(head))
            if header.producer_id < 0:
                continue
            body = segment.file.read(place.position, place.size_bytes) if header.is_control else head
            replay_batch(self.state, header, memoryview(body))
