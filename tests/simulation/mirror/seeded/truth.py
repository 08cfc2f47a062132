"""What the source has acknowledged, and what a copy of it may therefore have.

Topics are deleted and made again under the same name. Each time is another life of the topic, with an id of
its own, and each value tells its life. A copy that an operator lets go on has records of several lives: of
each one from the offset on at which it went on.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tests.simulation.cluster.rules.wrong import must

from ottla.model.uuid import Uuid

Offset = int


class Life(NamedTuple):
    """A topic between its creation and its deletion."""

    topic: str
    number: int
    id: Uuid
    made_at_ms: int


class Acknowledged(NamedTuple):
    """A record."""

    value: bytes
    at_ms: int


class Truth:
    """What is known of the source, whatever a mirror does."""

    def __init__(self) -> None:
        self.lives: dict[Uuid, Life] = {}
        self.current: dict[str, Life | None] = {}
        self.acknowledged: dict[tuple[Uuid, int], dict[Offset, Acknowledged]] = {}
        # Up to where records may have been removed, by request.
        self.removed: dict[tuple[Uuid, int], Offset] = {}
        # By the id of a copy and the number of a partition: where it went on with which life.
        self.went_on: dict[tuple[Uuid, int], list[tuple[Offset, Life]]] = {}
        # Copies that may have gone on with one life or another.
        self.unclear: set[Uuid] = set()

    def is_made(self, topic: str, topic_id: Uuid, now_ms: int) -> Life:
        """Take note of a new life."""
        number = self.lives_of(topic)
        life = self.lives[topic_id] = self.current[topic] = Life(topic, number, topic_id, now_ms)
        return life

    def lives_of(self, topic: str) -> int:
        """Return how many lives a topic has had."""
        return sum(life.topic == topic for life in self.lives.values())

    def find_life(self, topic_id: str | None) -> Life | None:
        """Return the life of which a copy says that it is."""
        return next((life for life in self.lives.values() if str(life.id) == topic_id), None)

    def note(self, life: Life, partition: int, offset: Offset, value: bytes, now_ms: int) -> None:
        """Take note of an acknowledged record."""
        found = self.acknowledged.setdefault((life.id, partition), {})
        must(offset not in found, f"offsets: {life.topic}-{partition} has two records at {offset}")
        found[offset] = Acknowledged(value, now_ms)

    def segments(self, copy_id: Uuid, partition: int, last: Life) -> list[tuple[Offset, Life]]:
        """Return of which lives a copy is, from which offset on. `last` is the one that it follows now."""
        gone_on = self.went_on.get((copy_id, partition))
        return [(0, last)] if gone_on is None else gone_on

    def check_copy(
        self,
        copy_id: Uuid,
        partition: int,
        last: Life,
        bounds: tuple[Offset, Offset],
        records: Iterable[tuple[Offset, bytes]],
    ) -> None:
        """Compare a copy with what was acknowledged: nothing is missing, twice, or of another life."""
        start, end = bounds
        found = dict(records)
        name = f"the copy of {last.topic}-{partition}"
        segments = self.segments(copy_id, partition, last)
        begins = [begin for begin, _ in segments]
        for (begin, life), until in zip(segments, [*begins[1:], end], strict=True):
            mine = {offset: value for offset, value in found.items() if begin <= offset < until}
            must(
                len(set(mine.values())) == len(mine),
                f"twice: {name} has a value twice from {begin} to {until}",
            )
            for offset, value in mine.items():
                must(
                    life_of(value) == (life.topic, life.number),
                    f"life: {name} has {value!r} at {offset}, and should have life {life.number} there",
                )
            # What the source had removed before the copy began is not in it.
            first = max(begin, start, self.removed.get((life.id, partition), 0))
            for offset, one in self.acknowledged.get((life.id, partition), {}).items():
                if first <= offset < until:
                    must(
                        found.get(offset) == one.value,
                        f"copy: {name} has {found.get(offset)!r} at {offset}, and the source {one.value!r}",
                    )
        removed = max((self.removed.get((life.id, partition), 0) for _, life in segments), default=0)
        # A copy that was made when its source had removed something begins there, or where a batch ends.
        must(start <= removed, f"start: {name} starts at {start}, but the source has removed up to {removed}")

    def end_before(self, life: Life, partition: int, at_ms: int) -> Offset:
        """Return where a partition ended at the least at a time."""
        found: Mapping[Offset, Acknowledged] = self.acknowledged.get((life.id, partition), {})
        return max((offset + 1 for offset, one in found.items() if one.at_ms < at_ms), default=0)


def value_of(life: Life, partition: int, number: int) -> bytes:
    """Return a value that is nowhere else."""
    return f"{life.topic} {life.number} {partition} {number}".encode()


def life_of(value: bytes) -> tuple[str, int]:
    """Return which life a value says that it is of."""
    topic, number, *_ = value.decode().split()
    return topic, int(number)
