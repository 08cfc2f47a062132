"""How long it took until what was acknowledged was read. Told, not judged: nobody promised a time."""

from ottla.testing.guarantees.history import EventType
from ottla.testing.guarantees.indexes import Indexes


def worst_lag_ms(indexes: Indexes) -> int:
    """Return the longest time from an acknowledgement to the first reading, as far as clients have read.

    The last readers do not count, since they came when all was over.
    """
    worst_ns = 0
    for key, values in indexes.readers.items():
        for value, readers in values.items():
            writer = indexes.writer[key].get(value)
            if writer is None or writer.type is not EventType.OK:
                continue
            read_ns = [one.completed_ns for one in readers if one.function != "final"]
            if read_ns:
                worst_ns = max(worst_ns, min(read_ns) - writer.completed_ns)
    return worst_ns // 1_000_000
