"""Which brokers get the replicas of new partitions.

Replicas are dealt out in stripes, so that every broker leads and follows about as much as any other, and the
replicas of a partition lie in different racks as far as there are enough:

- The racks are in a row, and in each rack the brokers are, at first by name and number.
- The leader of a partition comes from the next rack in the row that has a broker which is not fenced. The
  other replicas come from the racks after it, one from each, starting over until there are enough. A fenced
  broker is taken only where its rack has no other.
- Each partition begins one rack and one broker further on. When every broker had its turn, all are shuffled,
  so that partitions with the same leader do not all have the same followers.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from ottla.quorum.controller.decision import ControllerView, Randomness, Refusal
from ottla.quorum.controller.partitions.replicas import default_directory, is_active, takes_replicas
from ottla.wire.error_code import ErrorCode
from ottla.wire.metadata_records.brokers import RegisterBrokerRecord

Assignment = tuple[int, ...]


class _Row:
    """Brokers of one rack, dealt out one by one for each partition, beginning one further each time."""

    def __init__(self, brokers: list[int], random: Randomness) -> None:
        self.brokers = sorted(brokers)
        self._start = random.randrange(len(brokers)) if brokers else 0
        self._taken = 0
        # Turns only grow. A row that was not asked for a while must not take a turn for one it has seen.
        self._turn = 0

    def take(self, turn: int) -> int | None:
        """Return the next broker for the partition of this turn, or None if all were taken for it."""
        if turn != self._turn:
            self._turn, self._taken = turn, 0
            self._start += 1
        if self._taken >= len(self.brokers):
            return None
        broker = self.brokers[(self._start + self._taken) % len(self.brokers)]
        self._taken += 1
        return broker


class _Rack:
    def __init__(self, brokers: Sequence[RegisterBrokerRecord], random: Randomness) -> None:
        self.live = _Row([broker.broker_id for broker in brokers if not broker.fenced], random)
        self.fenced = _Row([broker.broker_id for broker in brokers if broker.fenced], random)

    def take(self, turn: int) -> int | None:
        """Return the next broker, a fenced one only if there is no other left."""
        broker = self.live.take(turn)
        return self.fenced.take(turn) if broker is None else broker


class Placer:
    """Deals out brokers. Make one for each topic."""

    def __init__(self, brokers: Iterable[RegisterBrokerRecord], random: Randomness) -> None:
        by_rack: dict[str | None, list[RegisterBrokerRecord]] = {}
        for broker in brokers:
            by_rack.setdefault(broker.rack, []).append(broker)
        names = sorted(by_rack, key=lambda rack: (rack is not None, rack or ""))
        self._racks = [_Rack(by_rack[name], random) for name in names]
        self._random = random
        self._first = random.randrange(len(names)) if names else 0
        self._turn = 0
        self._shuffled_at = 0
        self.count = sum(len(members) for members in by_rack.values())
        self.live_count = sum(len(rack.live.brokers) for rack in self._racks)

    def place(self, replication_factor: int) -> Assignment:
        """Return the brokers of the next partition, its leader first."""
        if self._turn - self._shuffled_at == self.live_count > 1:
            self._shuffle()
        racks = self._racks
        begin = self._first % len(racks)
        leader_rack, leader = self._take_leader(begin)
        chosen = [leader]
        at = begin
        is_first_round = True
        while len(chosen) < replication_factor:
            # The leader's rack has given one already, so in the first round it is passed over.
            if at == leader_rack and is_first_round:
                is_first_round = False
            else:
                broker = racks[at].take(self._turn)
                if broker is not None:
                    chosen.append(broker)
            at = (at + 1) % len(racks)
        self._turn += 1
        self._first = begin + 1
        return tuple(chosen)

    def _take_leader(self, begin: int) -> tuple[int, int]:
        for step in range(len(self._racks)):
            at = (begin + step) % len(self._racks)
            leader = self._racks[at].live.take(self._turn)
            if leader is not None:
                return at, leader
        raise AssertionError("it was checked before that a broker is there")

    def _shuffle(self) -> None:
        self._shuffled_at = self._turn
        self._random.shuffle(self._racks)
        for rack in self._racks:
            self._random.shuffle(rack.live.brokers)
            self._random.shuffle(rack.fenced.brokers)


def place_partitions(view: ControllerView, count: int, replication_factor: int) -> list[Assignment]:
    """Choose the replicas of `count` new partitions."""
    prefix = f"Unable to replicate the partition {replication_factor} time(s)"
    placer = Placer((broker for broker in view.image.brokers.values() if takes_replicas(broker)), view.random)
    if placer.live_count == 0:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR, f"{prefix}: no broker is up that takes new partitions."
        )
    if replication_factor > placer.count:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{prefix}: The target replication factor of {replication_factor} cannot be reached because "
            f"only {placer.count} broker(s) are registered or some brokers have all their log directories "
            "cordoned.",
        )
    assignments = [placer.place(replication_factor) for _ in range(count)]
    brokers = view.image.brokers
    for assignment in assignments:
        if not any(is_active(brokers, broker_id) for broker_id in assignment):
            raise Refusal(
                ErrorCode.INVALID_REPLICATION_FACTOR, f"{prefix}: the brokers for it are fenced or stopping."
            )
    return assignments


def check_manual_assignment(
    view: ControllerView, assignment: Assignment, replication_factor: int | None, partition: int | None = None
) -> None:
    """Refuse replicas that somebody chose by hand and that cannot be. With a partition, one has to be up."""
    if not assignment:
        raise _bad_assignment("The manual partition assignment includes an empty replica list.")
    for broker_id in sorted(assignment):
        if broker_id not in view.image.brokers:
            raise _bad_assignment(
                f"The manual partition assignment includes broker {broker_id}, but no such broker is "
                "registered."
            )
        if assignment.count(broker_id) > 1:
            raise _bad_assignment(
                f"The manual partition assignment includes the broker {broker_id} more than once."
            )
    if replication_factor is not None and len(assignment) != replication_factor:
        raise _bad_assignment(
            f"The manual partition assignment includes a partition with {len(assignment)} replica(s), but "
            f"this is not consistent with previous partitions, which have {replication_factor} replica(s)."
        )
    if partition is not None and not any(is_active(view.image.brokers, one) for one in assignment):
        raise _bad_assignment(
            f"All brokers specified in the manual partition assignment for partition {partition} are fenced "
            "or in controlled shutdown."
        )


def new_partition_fields(view: ControllerView, assignment: Assignment) -> dict[str, Any]:
    """Return what a PartitionRecord says about replicas when the partition is new."""
    brokers = view.image.brokers
    isr = tuple(broker_id for broker_id in assignment if is_active(brokers, broker_id))
    return {
        "replicas": assignment,
        "isr": isr,
        "removing_replicas": (),
        "adding_replicas": (),
        "leader": isr[0],
        "leader_epoch": 0,
        "partition_epoch": 0,
        "directories": tuple(default_directory(view, broker_id) for broker_id in assignment),
    }


def _bad_assignment(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
