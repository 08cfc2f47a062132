"""A hash of the topics that a group subscribes to, kept in its record: when it changes, so must the target.

XXH3 with 64 bits, as Kafka computes it, so that neither a takeover by Apache Kafka nor one from it costs a
rebalance. Numbers are little-endian. A text is its UTF-16 code units, then how many there are:

    topic   0, id (two int64), name, partition count, then for each partition: its number and, sorted, each
            rack of its replicas: length, text
    group   the hashes of its topics that exist, in the order of their names; 0 when there is none

The hash of a topic takes 1 ms when it has 10,000 partitions, so it is kept until the topic changes.
"""

from collections.abc import Iterable, Sequence
from struct import Struct

from xxhash import xxh3_64_intdigest

from ottla.coordination.group.environment import TopicFacts, Topics

_INT = Struct("<i")
_LONG = Struct("<q")
_TOPIC_FORMAT = b"\x00"


class MetadataHashes:
    """The hashes of topics, and of groups over them."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._known: dict[str, tuple[TopicFacts, int]] = {}

    def of_group(self, topic_names: Iterable[str]) -> int:
        """Return the hash of everything a group subscribes to. Topics that do not exist do not count."""
        hashes = [found for name in sorted(topic_names) if (found := self._of_topic(name)) is not None]
        return _signed(xxh3_64_intdigest(b"".join(map(_LONG.pack, hashes)))) if hashes else 0

    def forget(self, topic_names: Iterable[str]) -> None:
        """Compute the hashes of these topics again: they have changed, or do not exist any more."""
        for name in topic_names:
            self._known.pop(name, None)

    def _of_topic(self, name: str) -> int | None:
        facts = self._topics.find_by_name(name)
        if facts is None:
            return None
        known = self._known.get(name)
        if known is None or known[0] != facts:
            known = self._known[name] = (facts, topic_hash(facts, self._topics.racks(facts.topic_id)))
        return known[1]


def topic_hash(topic: TopicFacts, racks: Sequence[Sequence[str]]) -> int:
    """Return the hash of one topic. `racks` has the racks of each partition, or nothing if there are none."""
    # An id is two big-endian halves, and each of them is written as a little-endian number.
    parts = [_TOPIC_FORMAT, topic.topic_id[7::-1], topic.topic_id[:7:-1], _text(topic.name)]
    parts.append(_INT.pack(topic.partition_count))
    for partition in range(topic.partition_count):
        parts.append(_INT.pack(partition))
        for rack in sorted(racks[partition], key=_code_units) if racks else ():
            parts += (_INT.pack(len(_code_units(rack)) // 2), _text(rack))
    return _signed(xxh3_64_intdigest(b"".join(parts)))


def _text(text: str) -> bytes:
    units = text.encode("utf-16-le", "surrogatepass")
    return units + _INT.pack(len(units) // 2)


def _code_units(text: str) -> bytes:
    # Java compares and measures texts by their UTF-16 code units.
    return text.encode("utf-16-be", "surrogatepass")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
