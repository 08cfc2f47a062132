"""Producers, as the simulation has them. What one may send next depends on what the log knows of it.

They send batches of many shapes. Sizes that are a multiple of a sector or a page come often, because there
old and new bytes may meet at a batch's border, where no checksum tells.
"""

from random import Random

from tests.simulation.storage.batches import SEQUENCES, TRANSACTIONAL, Record, make_batch, make_marker
from tests.simulation.storage.truth import Truth

from ottla.storage.producers.producer_state import Producer
from ottla.testing.power_cut import PAGE_BYTES, SECTOR_BYTES

PRODUCERS = 4
KEYS = tuple(b"key-%d" % number for number in range(6))


def make_records(rng: Random, now_ms: int) -> list[Record]:
    """Return one to four records, with a batch of a round size now and then."""
    records = [
        Record(rng.choice(KEYS), _value(rng), max(0, now_ms + rng.randint(-20, 20)))
        for _ in range(rng.choice((1, 1, 2, 4)))
    ]
    if rng.random() < 0.3:
        records[-1] = _round_up(records, rng.choice((SECTOR_BYTES, SECTOR_BYTES, PAGE_BYTES)))
    return records


def _value(rng: Random) -> bytes | None:
    roll = rng.random()
    if roll < 0.1:
        return None
    return rng.randbytes(rng.randint(0, 40) if roll < 0.8 else rng.randint(100, 900))


def _round_up(records: list[Record], unit_bytes: int) -> Record:
    """Return the last record with a value that makes the whole batch a multiple of `unit_bytes`."""
    last = records[-1]._replace(value=records[-1].value or b"")
    target = -(-(len(make_batch([*records[:-1], last])) + 8) // unit_bytes) * unit_bytes
    # The length of a longer value may take a byte more, so the first attempt may be too long by a few.
    for _ in range(2):
        missing = target - len(make_batch([*records[:-1], last]))
        assert last.value is not None
        last = last._replace(value=(last.value + bytes(max(missing, 0)))[: len(last.value) + missing])
    return last


def make_plain_batch(rng: Random, now_ms: int) -> bytearray:
    """Return a batch of nobody in particular."""
    return make_batch(make_records(rng, now_ms))


def make_next_batch(
    rng: Random, producer_id: int, known: Producer | None, now_ms: int, transactional: bool
) -> bytearray:
    """Return the batch that a producer may send next. One that the log does not know may start anywhere."""
    if known is None:
        epoch, sequence = 0, rng.choice((0, 0, SEQUENCES - 1, SEQUENCES - 3))
    else:
        epoch = known.epoch
        sequence = (known.last_sequence + 1) % SEQUENCES if known.batches else 0
        if known.has_open_transaction:
            transactional = True
        elif rng.random() < 0.1:
            epoch, sequence = epoch + 1, 0
    return make_batch(
        make_records(rng, now_ms),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        attributes=TRANSACTIONAL if transactional else 0,
    )


def make_next_marker(
    rng: Random, truth: Truth, producer_id: int, now_ms: int, transaction_version: int
) -> bytearray:
    """Return the marker that ends the open transaction of a producer."""
    producer = truth.replay.producers[producer_id]
    return make_marker(
        is_commit=rng.random() < 0.5,
        producer_id=producer_id,
        producer_epoch=producer.epoch + (1 if transaction_version >= 2 else 0),
        coordinator_epoch=max(0, producer.coordinator_epoch) + rng.choice((0, 0, 1)),
        timestamp_ms=now_ms,
    )
