"""Whatever crashes, a record that was acknowledged is done, and one that was not is delivered again."""

import pytest
from tests.simulation.share_groups.queue_partition import QueuePartition

from ottla.broker.share.acquiring import Wanted
from ottla.broker.share.in_flight import Acknowledgement
from ottla.broker.share.runs import AcknowledgeType
from ottla.broker.share.share_partition import Status
from ottla.wire.error_code import ErrorCode

RECORDS = 60


class Said:
    """What members have said, and which answers they got."""

    def __init__(self) -> None:
        self.done: set[int] = set()
        self.rejected: set[int] = set()
        self.unanswered: set[int] = set()
        """Accepted or rejected, and nobody knows whether that was written."""
        self.used_up: set[int] = set()


@pytest.mark.parametrize("seed", range(60))
def test_what_is_acknowledged_is_done_and_the_rest_comes_again(seed: int) -> None:
    world = QueuePartition(seed, RECORDS)
    rng = world.rng
    said = Said()
    for _ in range(250):
        world.advance(rng.randrange(15))
        if world.leader.status is Status.FENCED or rng.random() < 0.02:
            world.lead()
        if rng.random() < 0.02:
            world.crash_coordinator()
        if rng.random() < 0.7:
            world.answer_some()
        if world.leader.status is Status.ACTIVE:
            _use(world, said)
    world.settle()
    if world.leader.status is not Status.ACTIVE:
        world.lead()
        world.settle()
    # Everything that is left is acknowledged now.
    for _ in range(60):
        _use(world, said, accepts=True)
        world.settle()
    assert world.leader.in_flight.start == RECORDS, f"replay with seed={seed}: {world.leader.in_flight.runs}"
    assert set(range(RECORDS)) == said.done | said.unanswered | said.used_up, "no record is lost"
    assert len(world.letters) == len(set(world.letters)), "no letter is written twice"
    if world.limits.keeps_dead_letters:
        assert said.rejected <= set(world.letters), "no letter is lost"
    else:
        assert not world.letters


def _use(world: QueuePartition, said: Said, accepts: bool = False) -> None:
    """Let a member acquire something, and say something of what it has."""
    rng, leader = world.rng, world.leader
    in_flight, now_ms = leader.in_flight, world.clock.monotonic_ms()
    member = rng.choice("ab")
    offset = in_flight.next_fetch_offset()
    batches = [batch for batch in world.batches if batch[1] >= offset]
    wanted = Wanted(rng.randrange(1, 12), 5, rng.random() < 0.5)
    for first, last, count in in_flight.acquire(member, wanted, offset, batches, world.limits, now_ms):
        offsets = range(first, last + 1)
        assert said.done.isdisjoint(offsets), "what was acknowledged is not delivered again"
        assert count <= world.limits.deliveries_max
        if count == world.limits.deliveries_max:
            said.used_up.update(offsets)
        leader._arm(now_ms + world.limits.lock_ms)
    held = [run for run in in_flight.runs if run.is_held]
    if not held:
        return
    run = rng.choice(held)
    kind = AcknowledgeType.ACCEPT if accepts else AcknowledgeType(rng.randrange(1, 4))
    meant = set(range(run.first, run.last + 1))
    if kind is not AcknowledgeType.RELEASE:
        said.unanswered |= meant

    def answered(error_code: ErrorCode, _message: str | None) -> None:
        if kind is not AcknowledgeType.RELEASE:
            said.unanswered -= meant
            if error_code is ErrorCode.NONE:
                said.done |= meant
                if kind is AcknowledgeType.REJECT:
                    said.rejected |= meant

    leader.acknowledge(run.member, [Acknowledgement(run.first, run.last, (kind,))], answered)
