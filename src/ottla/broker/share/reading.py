"""Reading records for share groups: whole batches of the log, by their headers, and no more than needed."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from ottla.broker.share.acquiring import Acquired
from ottla.model.ids import Offset
from ottla.records.attributes import CONTROL_BIT, TRANSACTIONAL_BIT
from ottla.records.batch import HEADER_BYTES, BatchHeader, BatchView
from ottla.records.control import decode_end_txn_marker, find_control_record
from ottla.runtime.connections.file_range import FileRange
from ottla.storage.errors import OffsetOutOfRange
from ottla.storage.log import Log
from ottla.storage.read import AbortedRange, ReadLimit
from ottla.storage.scan import BatchPlace, scan_batches
from ottla.world.disk import File


class SharedRead:
    """Batches of the log, and which of their records are acquired."""

    def __init__(
        self,
        file: File,
        places: Sequence[BatchPlace],
        aborted: Sequence[AbortedRange],
        acquired: list[Acquired],
    ) -> None:
        self._file = file
        self._places = places
        self._aborted = aborted
        self.acquired = acquired

    @property
    def batches(self) -> list[tuple[int, int]]:
        """The first and last offsets of the batches."""
        return [(place.base_offset, place.last_offset) for place in self._places]

    @property
    def records(self) -> FileRange:
        """The bytes of the batches."""
        position = self._places[0].position
        return FileRange(self._file, position, self._places[-1].end - position)

    def cut_to(self, acquired: list[Acquired]) -> "SharedRead":
        """Return the batches that have acquired records, and those between them."""
        first, last = acquired[0].first, acquired[-1].last
        places = [one for one in self._places if one.last_offset >= first and one.base_offset <= last]
        return SharedRead(self._file, places or self._places, (), acquired)

    def aborted_batches(self) -> Iterator[tuple[int, int]]:
        """Give the first and last offsets of batches that belong to aborted transactions."""
        if not self._aborted:
            return
        beginning = sorted(self._aborted, key=lambda one: one.first_offset)
        producers: set[int] = set()
        for place in self._places:
            header = self._header(place)
            while beginning and beginning[0].first_offset <= place.last_offset:
                producers.add(beginning.pop(0).producer_id)
            if header.producer_id not in producers:
                continue
            if header.attributes & CONTROL_BIT:
                if not self._is_commit(place):
                    producers.discard(header.producer_id)
            elif header.attributes & TRANSACTIONAL_BIT:
                yield place.base_offset, place.last_offset

    def _header(self, place: BatchPlace) -> BatchHeader:
        return BatchView(memoryview(self._file.read(place.position, HEADER_BYTES))).header

    def _is_commit(self, place: BatchPlace) -> bool:
        batch = BatchView(memoryview(self._file.read(place.position, place.size_bytes)))
        record = find_control_record(batch)
        return record is not None and decode_end_txn_marker(record).is_commit


def read_shared(
    log: Log, offset: int, last_wanted: int, bytes_max: int, limit: ReadLimit
) -> SharedRead | None:
    """Read the batches from `offset` to `last_wanted`, as far as there are any and they are not too large."""
    try:
        result = log.read(Offset(offset), bytes_max, limit, True)
    except OffsetOutOfRange:
        return None
    if result.file is None:
        return None
    places: list[BatchPlace] = []
    scanned = scan_batches(result.file, result.position, result.position + result.length)
    for place in takewhile(lambda place: place.base_offset <= last_wanted, scanned):
        places.append(place)
        if place.last_offset >= last_wanted:
            break
    if not places:
        return None
    return SharedRead(result.file, places, result.aborted or (), [])
