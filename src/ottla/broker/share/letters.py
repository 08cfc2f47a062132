"""Dead letters as records: made of records that a share group gives up, and found again (KIP-1191).

A letter has the key, the value and the headers of its record, if the group has them copied. Headers of its
own say where the record is and why it was given up. Its timestamp is the time at which it is made, so that
retention counts from then on. A record that is gone since, by compaction or retention, has a letter without
key and value.

Deviation: two headers of our own tell letters apart that are about different records. A topic that was made
again has offsets of its own, so the topic's id is part of a letter's identity. And a group that was set back
may give up a record once more, perhaps long after its first letter is gone: so is the epoch of the state.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from ottla.broker.logs.partition import Partition
from ottla.coordination.share.state import ShareKey
from ottla.model.ids import Offset
from ottla.model.uuid import Uuid
from ottla.records.attributes import Codec
from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.records.errors import RecordsError
from ottla.storage.appending.append_info import AppendInfo
from ottla.storage.errors import OffsetOutOfRange
from ottla.storage.read import ReadLimit

REJECTED: Final = "Offset rejected by client."
USED_UP: Final = "Offset delivery count exceeded the threshold."

READ_BYTES: Final = 1 << 20

_HEADER: Final = "__dlq.errors."
_ID_HEADERS: Final = tuple(
    f"{_HEADER}{name}"
    for name in ("group", "topic", "partition", "ottla.topic.id", "ottla.state.epoch", "offset")
)
"""The headers that say which record a letter is about, in the order of `LetterId`."""
_BATCH_BYTES: Final = 256 << 10
_BATCH_OVERHEAD_BYTES: Final = 61
_RECORD_OVERHEAD_BYTES: Final = 40
_HEADER_OVERHEAD_BYTES: Final = 10


class DeadRun(NamedTuple):
    """Offsets in a row that are given up for the same reason."""

    first: int
    last: int
    deliveries: int
    reason: str


class Letter(NamedTuple):
    """A letter, the offset of its record, and how the record is compressed."""

    offset: int
    record: Record
    codec: Codec


class LetterId(NamedTuple):
    """Which record a letter is about, and in which life of the queue, as its headers say."""

    group_id: bytes | None
    topic: bytes | None
    partition: bytes | None
    topic_id: bytes | None
    state_epoch: bytes | None
    offset: bytes | None


class Queue(NamedTuple):
    """A partition as a group reads it, since its state was begun last."""

    key: ShareKey
    topic: str
    state_epoch: int

    def letter_id(self, offset: int) -> LetterId:
        """Return the identity of the letter about a record."""
        return LetterId(
            self.key.group_id.encode(),
            self.topic.encode(),
            b"%d" % self.key.partition,
            str(self.key.topic_id).encode(),
            b"%d" % self.state_epoch,
            b"%d" % offset,
        )


class _Found(NamedTuple):
    offset: int
    record: Record | None
    """None for what is no record of a producer: the marker of a transaction."""
    codec: Codec


def iter_letters(
    queue: Queue, partition: Partition, runs: Iterable[DeadRun], copies: bool, now_ms: int
) -> Iterator[Letter]:
    """Make the letters of runs, one after the other: the records of all may be too much to have at once."""
    for run in runs:
        next_offset = run.first
        for offset, record, codec in _iter_found(partition, run.first, run.last):
            for gone in range(next_offset, offset):
                yield _letter(queue, gone, run, None, Codec.NONE, now_ms)
            if record is not None:
                copied = record if copies else None
                yield _letter(queue, offset, run, copied, codec, now_ms)
            next_offset = offset + 1
        for gone in range(next_offset, run.last + 1):
            yield _letter(queue, gone, run, None, Codec.NONE, now_ms)


def _letter(
    queue: Queue, offset: int, run: DeadRun, copied: Record | None, codec: Codec, now_ms: int
) -> Letter:
    identity = zip(_ID_HEADERS, queue.letter_id(offset), strict=True)
    headers = (
        *(copied.headers if copied else ()),
        *identity,
        (f"{_HEADER}delivery.count", b"%d" % run.deliveries),
        (f"{_HEADER}message", run.reason.encode()),
    )
    record = Record(offset, now_ms, copied.key if copied else None, copied.value if copied else None, headers)
    return Letter(offset, record, codec)


def _iter_found(partition: Partition, first: int, last: int) -> Iterator[_Found]:
    """Give what the log has from `first` to `last`. What is gone, or cannot be read, is left out."""
    log, offset = partition.log, max(first, partition.log.log_start_offset)
    while offset <= last:
        try:
            data = log.read(Offset(offset), READ_BYTES, ReadLimit.HIGH_WATERMARK, True).read()
        except OffsetOutOfRange:
            return
        next_offset = offset
        for batch in iter_batches(memoryview(data)):
            header = batch.header
            if header.last_offset < next_offset:
                continue
            first_wanted = next_offset
            next_offset = header.last_offset + 1
            if header.is_control:
                for number in range(max(header.base_offset, first_wanted), min(header.last_offset, last) + 1):
                    yield _Found(number, None, Codec.NONE)
                continue
            try:
                for record in iter_batch_records(batch):
                    if first_wanted <= record.offset <= last:
                        yield _Found(record.offset, record, header.codec)
            except RecordsError:
                # No member could read them either: what their letters say is all that there is to say.
                continue
            if next_offset > last:
                return
        if next_offset == offset:
            return
        offset = next_offset


def iter_letter_batches(letters: Iterable[Letter], bytes_max: int) -> Iterator[bytearray]:
    """Make batches of letters of up to `bytes_max`. A single letter may be larger."""
    room = min(bytes_max, _BATCH_BYTES) - _BATCH_OVERHEAD_BYTES
    some: list[Letter] = []
    size = 0
    for letter in letters:
        letter_size = _size(letter.record)
        if some and size + letter_size > room:
            yield _batch(some, bytes_max)
            some, size = [], 0
        some.append(letter)
        size += letter_size
    if some:
        yield _batch(some, bytes_max)


def _batch(letters: Sequence[Letter], bytes_max: int) -> bytearray:
    batch = _build([letter.record for letter in letters])
    if len(batch) > bytes_max and letters[0].codec is not Codec.NONE:
        # Its record fits in the topic that it comes from because it is compressed there.
        batch = _build([letter.record for letter in letters], letters[0].codec)
    return batch


def _build(records: Sequence[Record], codec: Codec = Codec.NONE) -> bytearray:
    return build_batch([record._replace(offset=number) for number, record in enumerate(records)], codec=codec)


def _size(record: Record) -> int:
    """Return how many bytes a record takes at most."""
    return (
        _RECORD_OVERHEAD_BYTES
        + len(record.key or b"")
        + len(record.value or b"")
        + sum(
            _HEADER_OVERHEAD_BYTES + len(name.encode()) + len(value or b"") for name, value in record.headers
        )
    )


def letter_id(record: Record) -> LetterId:
    """Return which record a letter is about. Of headers with the same name, the last one counts."""
    headers = dict(record.headers)
    return LetterId(*(headers.get(name) for name in _ID_HEADERS))


def note_letters(
    data: memoryview, offset: int, queue: Queue, runs: Iterable[DeadRun], known: set[int]
) -> int | None:
    """Note which records of runs have a letter in these batches. Return where the next batch begins."""
    wanted = queue.letter_id(0)[:-1]
    ranges = [range(run.first, run.last + 1) for run in runs]
    next_offset = None
    for batch in iter_batches(data):
        if batch.last_offset < offset:
            continue
        next_offset = batch.last_offset + 1
        try:
            for record in iter_batch_records(batch):
                found = letter_id(record)
                if found[:-1] == wanted and found.offset is not None:
                    number = int(found.offset)
                    if any(number in each for each in ranges):
                        known.add(number)
        except (RecordsError, ValueError):
            # Somebody else's, or damaged: it is no letter of ours.
            continue
    return next_offset


class Letterbox:
    """The letters that partitions of this node have got, so that a late second one is dropped.

    The leader of a queue's partition looks for letters before it writes them, and may still be late: while
    it was paused, or its request on the way, another leader has looked, found nothing and written the letter.
    The leader of the letters' partition sees both.

    What is noted counts for one leader epoch: in it, nothing that was appended goes away again. Letters of
    earlier leaders are found by looking for them.
    """

    def __init__(self, letters_max: int = 50_000) -> None:
        self._letters_max = letters_max
        self._noted: dict[tuple[Uuid, int, int, LetterId], None] = {}

    def append(self, partition: Partition, batch: memoryview, now_ms: int) -> AppendInfo | None:
        """Append the letters of a batch that the partition does not have yet; None if it has all.

        Raises what `Partition.append_letters` does.
        """
        try:
            (view,) = iter_batches(batch)
            records = list(iter_batch_records(view))
        except ValueError:
            # The log says what is wrong with it.
            return partition.append_letters(batch, now_ms)
        place = (partition.topic_id, partition.index, partition.leader_epoch)
        new = [record for record in records if (*place, letter_id(record)) not in self._noted]
        if not new:
            return None
        if len(new) < len(records):
            batch = memoryview(_build(new, view.header.codec))
        info = partition.append_letters(batch, now_ms)
        self._noted.update(((*place, letter_id(record)), None) for record in new)
        while len(self._noted) > self._letters_max:
            del self._noted[next(iter(self._noted))]
        return info
