"""Values that are lost, doubled, unknown or shown too early."""

from collections.abc import Iterator

from ottla.testing.guarantees.anomaly import Anomaly
from ottla.testing.guarantees.history import EventType
from ottla.testing.guarantees.indexes import Indexes


def find_inconsistent_offsets(indexes: Indexes) -> Iterator[Anomaly]:
    """Two values at one offset."""
    for key, offsets in indexes.log.items():
        for offset, values in offsets.items():
            if len(values) > 1:
                yield Anomaly("inconsistent-offsets", key, f"offset {offset} holds {sorted(values)}")


def find_duplicates(indexes: Indexes) -> Iterator[Anomaly]:
    """One value at two offsets."""
    for key, dense in indexes.dense.items():
        for value, first in dense.first_index.items():
            if dense.last_index[value] != first:
                yield Anomaly("duplicate", key, f"value {value} is there more than once")


def find_aborted_reads(indexes: Indexes) -> Iterator[Anomaly]:
    """A value that was read, and whose write surely did not happen."""
    for key, values in indexes.readers.items():
        for value, readers in values.items():
            writer = indexes.writer[key].get(value)
            if writer is not None and writer.type is EventType.FAIL:
                for reader in readers:
                    if reader.type is EventType.OK:
                        yield Anomaly(
                            "G1a", key, f"operation {reader.number} read {value} of failed {writer.number}"
                        )
                        break


def find_lost_writes(indexes: Indexes) -> Iterator[Anomaly]:
    """A value that surely was written, that nobody saw, before one that somebody saw."""
    for key, dense in indexes.dense.items():
        seen = indexes.ok_read[key]
        bound = max((dense.first_index[value] for value in seen), default=-1)
        for value, last in dense.last_index.items():
            writer = indexes.writer[key].get(value)
            if last <= bound and value not in seen and writer is not None and indexes.is_committed(writer):
                yield Anomaly("lost-write", key, f"nobody read value {value} of operation {writer.number}")


def find_unseen(indexes: Indexes) -> Iterator[Anomaly]:
    """A value that surely was written, and that not even the last readers saw, who read to the end."""
    if not any(one.function == "final" for one in indexes.operations):
        return
    lost = {(one.key, one.detail) for one in find_lost_writes(indexes)}
    for key, values in indexes.writer.items():
        for value, writer in values.items():
            if indexes.is_committed(writer) and value not in indexes.ok_read[key]:
                detail = f"nobody read value {value} of operation {writer.number}"
                if (key, detail) not in lost:
                    yield Anomaly("unseen", key, detail)


def find_precommitted_reads(indexes: Indexes) -> Iterator[Anomaly]:
    """A transaction that read what it wrote itself, before it was committed."""
    for operation in indexes.operations:
        sent = {(one.key, one.value) for one in operation.sends}
        for polled in operation.polls:
            for key, records in polled.records.items():
                for _, value in records:
                    if (key, value) in sent:
                        yield Anomaly(
                            "precommitted-read", key, f"operation {operation.number} read its own {value}"
                        )


def find_unknown_values(indexes: Indexes) -> Iterator[Anomaly]:
    """A value that was read and that nobody wrote."""
    for key, values in indexes.readers.items():
        for value, readers in values.items():
            if value not in indexes.writer[key]:
                yield Anomaly("unknown-value", key, f"operation {readers[0].number} read {value}")
