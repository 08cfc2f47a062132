"""How a consumer is, from what it knows already: nothing here asks a broker.

`ConsumerHealth` holds facts. Its sentence and `is_healthy` follow from them in one table, `_judge`: the first
line that fits counts. To join a group, or to have nothing to read, is no illness: what restarts a program
that is not healthy must not restart one that waits for its group.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, NamedTuple

from ottla.model.ids import TopicPartition


class Mishap(NamedTuple):
    """An error, and when it happened, by the clock of the loop."""

    text: str
    at_s: float


@dataclass(frozen=True, slots=True)
class PartitionHealth:
    """One partition that is read."""

    topic: str
    partition: int
    position: int | None
    """The next offset that is handed over; None: not known yet."""
    end: int | None
    """The offset after the last record for this consumer, as the last fetch told; None: not known yet."""
    fetched_s_ago: float | None
    """How long ago a broker answered a fetch of it without an error; None: never."""
    waiting_s: float | None
    """How long it has wanted a fetch; None: it is paused, or enough of it is at hand."""
    is_paused: bool

    @property
    def where(self) -> TopicPartition:
        """Return which partition it is."""
        return TopicPartition(self.topic, self.partition)

    @property
    def lag(self) -> int | None:
        """Return how many offsets there are from the position to the end; None: not known yet."""
        return None if self.position is None or self.end is None else max(0, self.end - self.position)


@dataclass(frozen=True, slots=True)
class GroupHealth:
    """What a consumer that subscribed knows of its place in the group."""

    group_id: str
    member_id: str
    is_member: bool
    is_rebalancing: bool
    heard_s_ago: float | None
    """How long ago the coordinator last answered this member without an error; None: never."""
    error: str | None
    """What went wrong with the coordinator since it last answered."""
    silence_s: float
    """How long ago this member last called poll, or subscribed."""
    session_timeout_s: float
    max_poll_interval_s: float


@dataclass(frozen=True, slots=True)
class ConsumerHealth:
    """How a consumer is: facts, and the sentence that follows from them."""

    is_open: bool
    group: GroupHealth | None
    """None: it did not subscribe."""
    partitions: tuple[PartitionHealth, ...]
    polled_s_ago: float | None
    """How long ago it was last asked for records; 0: it is being asked now; None: never."""
    last_error: str | None
    """What last went wrong, also if it was put right since."""
    last_error_s_ago: float | None
    failure: str | None
    """The error that the next poll raises."""
    fetch_timeout_s: float
    """How long a fetch may take."""

    @property
    def is_healthy(self) -> bool:
        """Say whether nothing is known to be wrong."""
        return self._judge()[0]

    @property
    def sentence(self) -> str:
        """Say how it is in one sentence."""
        return self._judge()[1]

    @property
    def is_member(self) -> bool:
        """Say whether it is a member of its group, as far as the coordinator last told."""
        return self.group is not None and self.group.is_member

    @property
    def lag(self) -> int | None:
        """Return the sum of the lags; None: that of one partition is not known yet."""
        lags = [part.lag for part in self.partitions]
        known = [lag for lag in lags if lag is not None]
        return sum(known) if len(known) == len(lags) else None

    @property
    def fetched_s_ago(self) -> float | None:
        """Return how long ago a broker last answered a fetch without an error; None: never."""
        return min((p.fetched_s_ago for p in self.partitions if p.fetched_s_ago is not None), default=None)

    def as_json(self) -> dict[str, Any]:
        """Return all of it as `json.dumps` takes it."""
        facts = asdict(self)
        for part, judged in zip(facts["partitions"], self.partitions, strict=True):
            part["lag"] = judged.lag
        return {
            "is_healthy": self.is_healthy,
            "sentence": self.sentence,
            "is_member": self.is_member,
            "lag": self.lag,
            "fetched_s_ago": self.fetched_s_ago,
            **facts,
        }

    def read_again_from(self, offsets: Mapping[TopicPartition, int]) -> "ConsumerHealth":
        """Return the same with other positions, for records that were taken and not handed over."""
        return replace(
            self,
            partitions=tuple(
                replace(part, position=offsets.get(part.where, part.position)) for part in self.partitions
            ),
        )

    def _judge(self) -> tuple[bool, str]:
        if not self.is_open:
            return False, "the consumer is not open"
        if self.failure is not None:
            return False, f"the next poll raises an error: {self.failure}"
        trouble = (None if self.group is None else _group_trouble(self.group)) or self._fetch_trouble()
        if trouble is not None:
            return False, trouble
        group = self.group
        if group is not None and not group.is_member:
            return True, f"it is joining group {group.group_id!r}"
        if group is not None and group.is_rebalancing:
            return True, f"group {group.group_id!r} is rebalancing"
        if not self.partitions:
            if group is None:
                return True, "it reads nothing: neither subscribe nor assign named partitions"
            return True, f"it is a member of group {group.group_id!r}, which gave it no partitions"
        count = len(self.partitions)
        reads = f"it reads {count} partition{'' if count == 1 else 's'}"
        member = "" if group is None else f" as a member of group {group.group_id!r}"
        lag = "how far it is behind is not known yet" if self.lag is None else f"{self.lag} offsets behind"
        return True, f"{reads}{member}, {lag}"

    def _fetch_trouble(self) -> str | None:
        late = [
            part
            for part in self.partitions
            if part.waiting_s is not None and part.waiting_s > self.fetch_timeout_s
        ]
        if not late:
            return None
        first = max(late, key=lambda part: part.waiting_s or 0.0)
        more = f" and {len(late) - 1} more" if len(late) > 1 else ""
        last = "" if self.last_error is None else f"; the last error: {self.last_error}"
        return f"no broker has answered a fetch of {first.where}{more} for {first.waiting_s:.0f} s{last}"


def _group_trouble(group: GroupHealth) -> str | None:
    if group.silence_s > group.max_poll_interval_s:
        return (
            f"poll was not called for {group.silence_s:.0f} s, longer than max.poll.interval.ms "
            f"({group.max_poll_interval_s:.0f} s): group {group.group_id!r} gives its partitions to others"
        )
    if not group.is_member:
        return None if group.error is None else f"it cannot join group {group.group_id!r}: {group.error}"
    if not group.is_rebalancing and (group.heard_s_ago or 0.0) > group.session_timeout_s:
        last = "" if group.error is None else f"; the last error: {group.error}"
        return (
            f"the coordinator of group {group.group_id!r} has not answered for {group.heard_s_ago:.0f} s, "
            f"longer than session.timeout.ms ({group.session_timeout_s:.0f} s): others may have its "
            f"partitions{last}"
        )
    return None


CLOSED: Final = ConsumerHealth(
    is_open=False,
    group=None,
    partitions=(),
    polled_s_ago=None,
    last_error=None,
    last_error_s_ago=None,
    failure=None,
    fetch_timeout_s=0.0,
)
"""A consumer that is closed, of which nothing else is known."""
