"""How much a member gets at once, and of what."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.broker.share.runs import RecordState, Run


class Acquired(NamedTuple):
    """Offsets in a row that a member has acquired."""

    first: int
    last: int
    deliveries: int


class Limits(NamedTuple):
    """What the group allows."""

    deliveries_max: int = 5
    in_flight_max: int = 2000
    lock_ms: int = 30_000
    may_renew: bool = True
    keeps_dead_letters: bool = False
    """Whether archived records are copied to another topic first."""


class Wanted(NamedTuple):
    """How much a member wants at once."""

    records_max: int
    batch_size: int
    is_record_limit: bool = False
    """Whether `records_max` counts exactly. Otherwise the last batch of the log is given as a whole."""


class Acquiring:
    """What one member acquires at once."""

    def __init__(
        self, member: str, wanted: Wanted, records_max: int, limits: Limits, deadline_ms: int
    ) -> None:
        self.wanted = wanted
        self.left = records_max
        self.acquired: list[Acquired] = []
        self._member = member
        self._limits = limits
        self._deadline_ms = deadline_ms

    def records_of(self, run: Run) -> int:
        """Return how many records of a run may be taken.

        Records that have failed several times are delivered in ever smaller groups, and by themselves, so
        that one of them that makes members crash does not take the others with it.
        """
        most = self._limits.deliveries_max
        throttled_from = max(2, -(-most // 2))
        count = self.left if self.wanted.is_record_limit else len(run)
        if run.count >= throttled_from:
            if self.acquired:
                self.left = 0
                return 0
            count = min(count, max(1, run.batch_records >> (run.count - throttled_from + 1)))
            if run.count >= most - 1 and most > 2:
                count = 1
            # Nothing else is delivered together with them.
            self.left = count
        return count

    def take(self, run: Run) -> None:
        """Give a run to the member."""
        run.state, run.member, run.deadline_ms = RecordState.ACQUIRED, self._member, self._deadline_ms
        run.count += 1
        self.left -= len(run)
        last = self.acquired[-1] if self.acquired else None
        if last is not None and run.count > 1 and (last.last + 1, last.deliveries) == (run.first, run.count):
            self.acquired[-1] = last._replace(last=run.last)
        else:
            self.acquired.append(Acquired(run.first, run.last, run.count))


def divide(
    first: int, last: int, batches: Sequence[tuple[int, int]], wanted: Wanted
) -> Iterable[tuple[int, int]]:
    """Divide new records at the batches of the log into parts of about the size that is wanted."""
    if not wanted.is_record_limit and last - first + 1 > wanted.batch_size > 0:
        for base, _ in batches:
            if base > last:
                break
            if base - first >= wanted.batch_size:
                yield first, base - 1
                first = base
    yield first, last
