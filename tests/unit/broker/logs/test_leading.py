"""A leader moves the high watermark and the in-sync replicas by what its followers have."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.group_world import ManualClock
from tests.support.replicas import ManualScheduler, Replica, ReplicaNode, partition_record
from tests.unit.storage.logs import NOW_MS, batch
from tests.unit.storage.manual_syncs import ManualSyncs

from ottla.broker.logs.leading import SUSPICIOUS_REPEATS, Leading
from ottla.storage.syncing import committed


class Led:
    """A partition with three replicas that node 1 leads."""

    def __init__(self, *in_sync: int, minimum: int = 1, records: int = 0) -> None:
        self.clock = ManualClock(NOW_MS)
        self.node = ReplicaNode(1, self.clock, ManualScheduler(self.clock))
        self.replica = Replica(self.node)
        self.partition = self.replica.partition
        self.partition.configure(self.replica.log.config, minimum)
        if records:
            self.replica.log.append_as_leader(
                batch(records), leader_epoch=self.partition.leader_epoch, now_ms=NOW_MS
            )
        self.follow(in_sync or (1, 2, 3))

    @property
    def leading(self) -> Leading:
        assert self.partition.leading is not None
        return self.partition.leading

    @property
    def high_watermark(self) -> int:
        return self.replica.log.high_watermark

    def follow(
        self, in_sync: tuple[int, ...], leader: int = 1, epoch: int = 0, partition_epoch: int = 0
    ) -> None:
        self.replica.follow(partition_record(leader, in_sync, epoch, partition_epoch, replicas=3))

    def append(self, count: int = 1) -> None:
        self.replica.append(batch(count))

    def fetch(self, broker_id: int, offset: int, broker_epoch: int | None = None) -> None:
        epoch = 100 + broker_id if broker_epoch is None else broker_epoch
        self.leading.note_fetch(
            self.leading.followers[broker_id], offset, 0, self.clock.monotonic_ms(), epoch
        )

    def proposed(self) -> list[int] | None:
        proposal = self.leading.proposal
        return None if proposal is None else sorted(proposal.in_sync)


def test_the_high_watermark_is_what_all_in_sync_replicas_have() -> None:
    led = Led()
    led.append(5)
    assert led.high_watermark == 0
    led.fetch(2, 5)
    assert led.high_watermark == 0
    led.fetch(3, 3)
    assert led.high_watermark == 3
    led.fetch(3, 5)
    assert led.high_watermark == 5
    assert led.node.moved


def test_an_append_alone_moves_it_only_where_no_other_replica_is_in_sync() -> None:
    led = Led(1)
    led.append(2)
    assert led.high_watermark == 2


def test_it_waits_for_the_disk_of_the_leader() -> None:
    led = Led(1, 2)
    led.replica.log.volume.syncs = syncs = ManualSyncs()
    led.append(2)
    assert syncs.asked == [led.replica.log], "a sync runs while followers fetch"
    led.fetch(2, 2)
    assert led.high_watermark == 0
    led.append(1)
    syncs.sync()
    assert led.high_watermark == 2, "the follower has no more"
    led.fetch(2, 3)
    assert led.high_watermark == 3


def test_with_one_replica_it_does_not_wait_for_the_disk_but_an_answer_to_all_does() -> None:
    led = Led()
    led.replica.follow(partition_record(1, (1,), 1, 1, replicas=1))
    assert led.partition.leading is None
    log = led.replica.log
    log.volume.syncs = syncs = ManualSyncs()
    led.append(2)
    assert (led.high_watermark, syncs.asked) == (2, []), "consumers read it, and nobody asks for a sync"
    assert committed.committed_offset(log) == 0
    told: list[Any] = []
    log.when_committed(log.log_end_offset, told.append)
    assert told == []
    syncs.sync()
    assert told == [None]
    assert committed.committed_offset(log) == 2


def test_it_waits_for_no_disk_where_nobody_does() -> None:
    led = Led(1, 2)
    led.replica.log.volume.syncs = syncs = ManualSyncs()
    led.partition.configure(replace(led.replica.log.config, acks_all_sync=False), 1)
    led.append(2)
    led.fetch(2, 2)
    assert led.high_watermark == 2
    assert (syncs.asked, syncs.waiting) == ([], [])


def test_nobody_joins_a_leader_that_has_not_synced_what_readers_have_seen() -> None:
    led = Led(1)
    led.replica.log.volume.syncs = syncs = ManualSyncs()
    led.append(2)
    # As the only replica, before it got others.
    led.replica.log.update_high_watermark(led.replica.log.log_end_offset)
    led.fetch(2, 2)
    assert led.proposed() is None
    syncs.sync()
    led.fetch(2, 2)
    assert led.proposed() == [1, 2]


def test_it_never_goes_back() -> None:
    led = Led(records=4)
    for broker_id in (2, 3):
        led.fetch(broker_id, 4)
    led.fetch(2, 1)
    assert led.high_watermark == 4


def test_it_stays_while_there_are_too_few_in_sync_replicas() -> None:
    led = Led(1, minimum=2)
    led.append()
    assert led.high_watermark == 0
    led.follow((1, 2), partition_epoch=1)
    led.fetch(2, 1)
    assert led.high_watermark == 1


def test_a_follower_joins_when_it_has_what_is_committed_and_this_epochs_beginning() -> None:
    led = Led(1, records=3)
    led.fetch(2, 2)
    assert led.proposed() is None, "the epoch begins at 3"
    led.append()
    led.fetch(2, 3)
    assert led.proposed() is None, "4 is committed"
    led.fetch(2, 4)
    assert led.proposed() == [1, 2]
    assert led.leading.proposal is not None
    assert led.leading.proposal.members == ((1, 101), (2, 102))


def test_the_high_watermark_waits_for_a_follower_that_may_have_joined() -> None:
    led = Led(1)
    led.fetch(2, 0)
    assert led.leading.maximal_in_sync == {1, 2}
    led.append()
    assert led.high_watermark == 0
    led.fetch(2, 1)
    assert led.high_watermark == 1


def test_it_waits_for_one_that_is_nearly_in_sync_only_for_the_lag_time() -> None:
    led = Led(1)
    led.fetch(2, 0)
    led.leading.rejected()
    led.append()
    assert led.high_watermark == 0
    led.clock.advance(30_001)
    led.append()
    assert led.high_watermark == 2


def test_one_change_is_under_way_at_a_time() -> None:
    led = Led(1)
    led.fetch(2, 0)
    led.fetch(3, 0)
    assert led.proposed() == [1, 2]
    led.leading.accepted((1, 2), 1)
    led.fetch(3, 0)
    assert led.proposed() == [1, 2, 3]


@pytest.mark.parametrize("reason", ["dead", "another life", "never fetched in this life"])
def test_a_broker_that_does_not_serve_does_not_join(reason: str) -> None:
    led = Led(1)
    if reason == "dead":
        led.node.dead.add(2)
        led.fetch(2, 0)
    elif reason == "another life":
        led.node.epochs[2] = 500
        led.fetch(2, 0)
    else:
        led.fetch(2, 0, broker_epoch=99)
    assert led.proposed() is None


def test_an_unregistered_broker_joins_by_its_place_alone() -> None:
    led = Led(1)
    led.fetch(2, 0, broker_epoch=-1)
    assert led.proposed() == [1, 2]


def test_a_follower_leaves_when_it_has_been_behind_for_too_long() -> None:
    led = Led()
    led.append()
    led.fetch(2, 1)
    led.clock.advance(30_000)
    led.leading.maybe_shrink(led.clock.monotonic_ms())
    assert led.proposed() is None
    led.clock.advance(1)
    led.leading.maybe_shrink(led.clock.monotonic_ms())
    assert led.proposed() == [1, 2]
    assert led.high_watermark == 0, "the controller may refuse it"
    led.leading.accepted((1, 2), 1)
    assert led.high_watermark == 0, "the metadata may say first that more replicas are asked for"
    led.follow((1, 2), partition_epoch=1)
    assert led.high_watermark == 1
    assert (led.node.in_sync_shrinks, led.node.in_sync_expands) == (1, 0)


def test_a_follower_that_has_everything_stays_however_long_it_is_silent() -> None:
    led = Led()
    for broker_id in (2, 3):
        led.fetch(broker_id, 0)
    led.clock.advance(1_000_000)
    led.leading.maybe_shrink(led.clock.monotonic_ms())
    assert led.proposed() is None


def test_a_follower_that_always_has_what_was_there_at_its_last_fetch_keeps_up() -> None:
    led = Led()
    led.fetch(3, 0)
    for number in range(100):
        led.append()
        led.clock.advance(500)
        led.fetch(2, number)
        led.fetch(3, number + 1)
        led.leading.maybe_shrink(led.clock.monotonic_ms())
        assert led.proposed() is None


def test_the_metadata_overrides_a_proposal() -> None:
    led = Led(1)
    led.fetch(2, 0)
    led.follow((1, 3), partition_epoch=1)
    assert led.leading.proposal is None
    assert led.partition.in_sync == {1, 3}


def test_older_metadata_is_ignored() -> None:
    led = Led(1)
    led.fetch(2, 0)
    led.leading.accepted((1, 2), 5)
    led.follow((1,), partition_epoch=4)
    assert led.partition.in_sync == {1, 2}
    assert led.partition.partition_epoch == 5


def test_a_new_epoch_of_the_same_leader_keeps_what_followers_have() -> None:
    led = Led()
    led.append()
    for broker_id in (2, 3):
        led.fetch(broker_id, 1)
    led.follow((1, 2), epoch=1, partition_epoch=1)
    assert led.leading.followers[2].log_end_offset == 1
    assert led.leading.epoch_start_offset == 1
    led.append()
    led.fetch(2, 2)
    assert led.high_watermark == 2


def test_a_new_leader_knows_nothing_of_its_followers() -> None:
    led = Led()
    led.append()
    led.fetch(2, 1)
    led.follow((1, 2, 3), leader=2, epoch=1, partition_epoch=1)
    assert led.partition.leading is None
    led.follow((1, 2, 3), leader=1, epoch=2, partition_epoch=2)
    assert led.leading.followers[2].log_end_offset == -1
    assert led.high_watermark == 0


def test_who_waits_for_replicas_is_refused_when_another_leads() -> None:
    led = Led()
    led.append()
    told: list[Any] = []
    led.replica.log.when_committed(led.replica.log.log_end_offset, told.append)
    led.follow((2, 3), leader=2, epoch=1, partition_epoch=1)
    assert [type(one).__name__ for one in told] == ["LeadershipLost"]


def test_committed_is_what_followers_have_and_this_disk_has() -> None:
    led = Led()
    led.append()
    told: list[Any] = []
    led.replica.log.when_committed(led.replica.log.log_end_offset, told.append)
    led.fetch(2, 1)
    assert told == []
    led.fetch(3, 1)
    assert told == [None]
    assert committed.committed_offset(led.replica.log) == 1


def test_the_low_watermark_counts_living_replicas() -> None:
    led = Led(records=5)
    led.replica.log.update_high_watermark(led.replica.log.log_end_offset)
    led.replica.log.increment_log_start_offset(led.replica.log.log_end_offset)
    led.fetch(2, 5)
    led.leading.followers[2].log_start_offset = 4
    led.leading.followers[3].log_start_offset = 1
    assert led.leading.low_watermark() == 1
    led.node.dead.add(3)
    assert led.leading.low_watermark() == 4
    led.node.dead.add(2)
    assert led.leading.low_watermark() == 5, "nobody else is alive"


def test_a_replica_that_has_lost_what_is_committed_leaves_at_once() -> None:
    led = Led(records=4)
    for broker_id in (2, 3):
        led.fetch(broker_id, 4)
    led.fetch(3, 2)
    assert led.proposed() == [1, 2]
    led.leading.accepted((1, 2), 1)
    led.follow((1, 2), partition_epoch=1)
    led.fetch(3, 4)
    assert led.proposed() == [1, 2, 3]


def test_a_leader_checks_its_log_if_a_follower_asks_for_the_same_again_and_again() -> None:
    led = Led(minimum=2)
    led.append(5)
    for _ in range(SUSPICIOUS_REPEATS):
        led.fetch(2, 3)
    assert led.node.suspected == []
    led.fetch(2, 3)
    assert led.node.suspected == [3]
    led.fetch(2, 5)
    for _ in range(2 * SUSPICIOUS_REPEATS):
        led.fetch(2, 5)
    assert led.node.suspected == [3], "it has everything"
