"""Partition directories full of what compaction has to tell apart, drawn from a seed.

Plain, idempotent and transactional producers write side by side; transactions commit, abort or stay open;
keys repeat, are long, or missing; values are missing; codecs, timestamp types and leader epochs change. Only
`.log` files are written: whoever opens the directory has to recover it.
"""

from dataclasses import dataclass
from pathlib import Path
from random import Random

from ottla.records.attributes import Codec
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.records.control import EndTxnMarker, build_end_txn_batch

START_MS = 1_700_000_000_000


@dataclass
class Producer:
    """What a producer sends next."""

    producer_id: int
    is_transactional: bool
    epoch: int = 0
    sequence: int = 0
    is_open: bool = False


class RandomLog:
    """Writes one partition. `end_offset` and `now_ms` grow with it."""

    def __init__(self, seed: int, *, codecs: tuple[Codec, ...] = tuple(Codec)) -> None:
        self.random = Random(seed)
        self.codecs = codecs
        self.end_offset = 0
        self.now_ms = START_MS
        self.leader_epoch = 0
        self.producers = [Producer(-1, False)]
        self.producers += [Producer(producer_id, False) for producer_id in (1, 2)]
        self.producers += [Producer(producer_id, True) for producer_id in (11, 12, 13)]
        self.keys = [b"a", b"b", b"", b"0123456789abcdef", b"k" * 46, b"k" * 47, b"k" * 300]
        self.has_null_keys = self.random.random() < 0.3
        self.has_append_time = self.random.random() < 0.3

    def write(self, directory: Path, segments: int = 5) -> None:
        """Write some segments. The last of them is the active one."""
        directory.mkdir(parents=True)
        for name, content in self.make_segments(segments).items():
            (directory / name).write_bytes(content)

    def make_segments(self, segments: int = 5, *, ends_transactions: bool = False) -> dict[str, bytes]:
        """Return the content of some segments by the name of their file.

        With `ends_transactions` none is left open before the last segment, so that all others can be cleaned.
        """
        contents: dict[str, bytes] = {}
        for number in range(segments):
            base_offset = self.end_offset
            batches = [self._batch() for _ in range(self.random.randint(1, 12))]
            if number + 1 < segments and self.random.random() < 0.1:
                batches = []
                self.end_offset = base_offset + 1
            if ends_transactions and number + 2 >= segments:
                batches += [self._marker(producer) for producer in self.producers if producer.is_open]
            contents[f"{base_offset:020d}.log"] = b"".join(batches)
        return contents

    def _batch(self) -> bytes:
        self.now_ms += self.random.randint(0, 50)
        if self.random.random() < 0.05:
            self.leader_epoch += self.random.randint(1, 2)
        if self.random.random() < 0.05:
            # Offsets may be missing anywhere, since a log can have been compacted before.
            self.end_offset += self.random.randint(1, 3)
        producer = self.random.choice(self.producers)
        if producer.is_open and self.random.random() < 0.4:
            return self._marker(producer)
        return self._data(producer)

    def _marker(self, producer: Producer) -> bytes:
        producer.is_open = False
        if self.random.random() < 0.5:
            # Under the second version of transactions every one of them has an epoch of its own.
            producer.epoch += 1
            producer.sequence = 0
        batch = build_end_txn_batch(
            EndTxnMarker(is_commit=self.random.random() < 0.5, coordinator_epoch=0),
            timestamp=self.now_ms,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_offset=self.end_offset,
            leader_epoch=self.leader_epoch,
        )
        self.end_offset += 1
        return bytes(batch)

    def _data(self, producer: Producer) -> bytes:
        records = [
            Record(
                self.end_offset + at,
                self.now_ms + self.random.randint(-100, 100),
                self._key(),
                None
                if self.random.random() < 0.2
                else self.random.randbytes(self.random.choice((0, 5, 200))),
                (("h", b"1"),) if self.random.random() < 0.1 else (),
            )
            for at in range(self.random.randint(1, 5))
        ]
        fields: dict[str, object] = {}
        if producer.producer_id >= 0:
            fields = {
                "producer_id": producer.producer_id,
                "producer_epoch": producer.epoch,
                "base_sequence": producer.sequence,
                "is_transactional": producer.is_transactional,
            }
            producer.sequence += len(records)
            producer.is_open = producer.is_transactional
        if self.has_append_time and self.random.random() < 0.5:
            fields["append_time"] = self.now_ms
        batch = build_batch(
            records,
            base_offset=self.end_offset,
            leader_epoch=self.leader_epoch,
            codec=self.random.choice(self.codecs),
            **fields,  # type: ignore[arg-type]
        )
        self.end_offset += len(records)
        return bytes(batch)

    def _value(self) -> bytes | None:
        if self.random.random() < 0.2:
            return None
        return self.random.randbytes(self.random.choice((0, 5, 200)))

    def _key(self) -> bytes | None:
        if self.has_null_keys and self.random.random() < 0.1:
            return None
        return self.random.choice(self.keys)
