"""Batches of the source as a producer of the target sends them.

Most batches pass as they are: only their header is changed, and nothing is decompressed. A broker takes from
a producer only batches without holes, with the producer's own timestamps. What compaction or LogAppendTime
has changed is built again from its records, and so are very small batches, to send them together.
"""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from ottla.mirror.maker.offset_map import Run
from ottla.records.attributes import APPEND_TIME_BIT, DELETE_HORIZON_BIT, TRANSACTIONAL_BIT, Codec
from ottla.records.batch import (
    ATTRIBUTES_OFFSET,
    CRC_OFFSET,
    HEADER,
    MAGIC,
    BatchHeader,
    BatchView,
    LegacyBatchView,
)
from ottla.records.batch_records import iter_batch_record_tuples
from ottla.records.builder import build_batch
from ottla.records.codec import RecordTuple
from ottla.records.errors import CorruptBatch

_SMALL_BYTES: Final = 4096
_JOINED_BYTES_MAX: Final = 128 << 10
_CRC: Final = Struct(">I")


class Outgoing(NamedTuple):
    """A batch for the target, without the numbers of its producer, and where its records come from.

    The runs have offsets relative to the batch as their downstream offsets.
    """

    content: bytearray
    records: int
    runs: tuple[Run, ...]


def outgoing_batches(batches: Iterable[BatchView], first_offset: int) -> Iterator[Outgoing]:
    """Return what a producer sends of `batches`: their records from `first_offset` on."""
    waiting: list[BatchView] = []
    waiting_bytes = 0
    for batch in batches:
        if not batch.crc_is_valid():
            raise CorruptBatch(0, f"the checksum of the batch at {batch.base_offset} is wrong")
        is_small = len(batch.view) < _SMALL_BYTES
        if waiting and not (
            is_small and batch.codec is waiting[0].codec and waiting_bytes < _JOINED_BYTES_MAX
        ):
            yield from _joined(waiting, first_offset)
            waiting, waiting_bytes = [], 0
        waiting.append(batch)
        waiting_bytes += len(batch.view)
        if not is_small:
            yield from _joined(waiting, first_offset)
            waiting, waiting_bytes = [], 0
    if waiting:
        yield from _joined(waiting, first_offset)


def stamped(batch: bytearray, producer_id: int, producer_epoch: int, base_sequence: int) -> bytearray:
    """Give a batch the numbers of a transactional producer, in place."""
    header = BatchHeader._make(HEADER.unpack_from(batch))
    HEADER.pack_into(
        batch,
        0,
        *header._replace(
            base_offset=0,
            leader_epoch=-1,
            attributes=header.attributes | TRANSACTIONAL_BIT,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        ),
    )
    _CRC.pack_into(batch, CRC_OFFSET, crc32c(memoryview(batch)[ATTRIBUTES_OFFSET:]))
    return batch


def _joined(batches: list[BatchView], first_offset: int) -> Iterator[Outgoing]:
    if len(batches) == 1 and _passes(batches[0], first_offset):
        (batch,) = batches
        yield Outgoing(bytearray(batch.view), batch.count, (Run(batch.base_offset, 0, batch.count),))
        return
    records = [
        record for batch in batches for record in iter_batch_record_tuples(batch) if record[0] >= first_offset
    ]
    if records:
        yield Outgoing(_built(records, batches[0].codec), len(records), _runs(records))


def _passes(batch: BatchView, first_offset: int) -> bool:
    """Say whether a broker takes a batch from a producer as it is."""
    if isinstance(batch, LegacyBatchView):
        return False
    header = batch.header
    return (
        header.magic == MAGIC
        and header.count == header.last_offset_delta + 1
        and not header.attributes & (APPEND_TIME_BIT | DELETE_HORIZON_BIT)
        and header.base_offset >= first_offset
    )


def _built(records: list[RecordTuple], codec: Codec) -> bytearray:
    return build_batch([(place, *record[1:]) for place, record in enumerate(records)], codec=codec)


def _runs(records: list[RecordTuple]) -> tuple[Run, ...]:
    runs: list[Run] = []
    for place, record in enumerate(records):
        if runs and record[0] == runs[-1].upstream + runs[-1].length:
            runs[-1] = runs[-1]._replace(length=runs[-1].length + 1)
        else:
            runs.append(Run(record[0], place))
    return tuple(runs)
