"""What must hold of what a mirror says, while it works.

- A lag is told of the topic that there is in the source, and a lag of 0 only if all of it was copied.
- A copy that waits for an operator waits, whoever mirrors, until an operator has done something.
"""

from typing import Final, NamedTuple

from tests.simulation.cluster.rules.wrong import must
from tests.simulation.meetings import Met
from tests.simulation.mirror.seeded.truth import Truth

from ottla.client import surroundings
from ottla.mirror.progress import PartitionProgress, Progress
from ottla.model.ids import TopicPartition
from ottla.model.uuid import ZERO_UUID, Uuid

ERROR: Final = "errors of mirrors"
LATE_MS_MAX: Final = 12_000
"""How long a leader of the source that was replaced may answer with what it has. It is cut off for less."""
ROUND_MS_MAX: Final = 4_000
"""How long a mirror may take to look at its copies again, while it reaches its source."""
HALTS: Final = ("was deleted and made again", "the source has lost records")


class Halt(NamedTuple):
    """What a mirror has said of a copy that waits for an operator."""

    why: str
    at_ms: int
    told_by: Progress


class Watch:
    """Looks at what mirrors say."""

    def __init__(self, truth: Truth, met: Met) -> None:
        self._truth = truth
        self._met = met
        # The copies that wait for an operator, by their id.
        self.halted: dict[tuple[Uuid, TopicPartition], Halt] = {}
        # When an operator has decided about a copy. A mirror may not know it yet.
        self._decided_at_ms: dict[Uuid, int] = {}

    def look(self, progress: Progress) -> None:
        """Look at one mirror now."""
        for where, part in progress.partitions.items():
            if part.error is not None:
                self._take_error(progress, where, part)
            if part.lag is not None:
                self._check_halt(progress, where, part)
                self._check_lag(where, part)

    def decided(self, copy_id: Uuid) -> None:
        """Take note that an operator has decided about a copy."""
        self._decided_at_ms[copy_id] = surroundings.now_ms()
        for key in [key for key in self.halted if key[0] == copy_id]:
            del self.halted[key]

    def _take_error(self, progress: Progress, where: TopicPartition, part: PartitionProgress) -> None:
        assert part.error is not None
        self._met[ERROR, kind_of(part.error)] += 1
        is_old = surroundings.now_ms() < self._decided_at_ms.get(part.copy_id, -LATE_MS_MAX) + LATE_MS_MAX
        if part.copy_id != ZERO_UUID and not is_old and any(halt in part.error for halt in HALTS):
            halt = Halt(part.error, surroundings.now_ms(), progress)
            self.halted.setdefault((part.copy_id, where), halt)

    def _check_halt(self, progress: Progress, where: TopicPartition, part: PartitionProgress) -> None:
        halt = self.halted.get((part.copy_id, where))
        if halt is None:
            return
        # Another mirror may have asked the source for the last time before this one knew it.
        is_later = halt.told_by is progress or part.seen_at_ms > halt.at_ms + ROUND_MS_MAX
        must(not is_later, f"halted: {where} has a lag of {part.lag}, but waits for an operator: {halt.why}")

    def _check_lag(self, where: TopicPartition, part: PartitionProgress) -> None:
        life = self._truth.lives.get(part.source_id)
        current = self._truth.current.get(where.topic)
        if life is None:
            return
        if current is not None and current is not life:
            must(
                part.seen_at_ms < current.made_at_ms + LATE_MS_MAX,
                f"lag: {where} has a lag of {part.lag} behind a topic that is no more",
            )
        end = self._truth.end_before(life, where.partition, part.seen_at_ms - LATE_MS_MAX)
        assert part.lag is not None
        must(
            part.copied_to + part.lag >= end,
            f"lag: {where} is copied to {part.copied_to} lag {part.lag}, but the source ends at {end}",
        )


def kind_of(error: str) -> str:
    """Return what kind of error one of a partition is."""
    kinds = (*HALTS, "has no topic", "the target refuses", "the source refuses", "not a mirror any more")
    return next((kind for kind in kinds if kind in error), "another one")
