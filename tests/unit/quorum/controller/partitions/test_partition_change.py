"""Elections and what goes with them, case by case."""

import pytest

from ottla.metadata.topics import NO_LEADER, NO_LEADER_CHANGE, NO_RECOVERY_CHANGE, RECOVERING, merge
from ottla.model.uuid import Uuid
from ottla.quorum.controller.partitions.partition_change import (
    Election,
    Target,
    Terms,
    change_partition,
    complete_reassignment,
)
from ottla.wire.metadata_records.partitions import PartitionChangeRecord, PartitionRecord

ID = Uuid(b"topic-id-0000001")


def directory(broker: int) -> Uuid:
    return Uuid(bytes((7, broker)) + bytes(14))


def partition(**fields: object) -> PartitionRecord:
    replicas = fields.get("replicas", (1, 2, 3))
    assert isinstance(replicas, tuple)
    defaults: dict[str, object] = {
        "partition_id": 0,
        "topic_id": ID,
        "replicas": replicas,
        "isr": replicas,
        "removing_replicas": (),
        "adding_replicas": (),
        "leader": 1,
        "leader_epoch": 4,
        "partition_epoch": 7,
        "directories": tuple(map(directory, replicas)),
    }
    return PartitionRecord(**{**defaults, **fields})  # type: ignore[arg-type]


def terms(
    *alive: int,
    election: Election = Election.ONLINE,
    min_isr: int = 1,
    elr: bool = True,
    not_eligible: tuple[int, ...] = (),
    metadata_version: int = 30,
) -> Terms:
    return Terms(
        can_lead=lambda broker: broker in alive,
        default_directory=directory,
        min_insync_replicas=min_isr,
        elr_enabled=elr,
        metadata_version=metadata_version,
        election=election,
        not_eligible=not_eligible,
    )


def changed(before: PartitionRecord, target: Target, given: Terms) -> PartitionChangeRecord:
    record = change_partition(before, target, given)
    assert record is not None, "something changes"
    return record


def test_nothing_to_change_gives_no_record() -> None:
    assert change_partition(partition(), Target(), terms(1, 2, 3)) is None


def test_the_present_leader_stays_while_it_can() -> None:
    assert change_partition(partition(leader=2), Target(), terms(1, 2, 3)) is None


def test_the_first_replica_in_sync_that_lives_becomes_leader() -> None:
    record = changed(partition(isr=(1, 3)), Target(isr=(3,)), terms(2, 3))
    assert (record.leader, record.isr) == (3, (3,))


def test_a_preferred_election_gives_the_leadership_back() -> None:
    before = partition(leader=2)
    assert changed(before, Target(), terms(1, 2, 3, election=Election.PREFERRED)).leader == 1


def test_a_preferred_election_changes_nothing_when_the_preferred_one_is_not_in_sync() -> None:
    before = partition(leader=2, isr=(2, 3))
    assert change_partition(before, Target(), terms(1, 2, 3, election=Election.PREFERRED)) is None


def test_the_last_in_sync_replica_becomes_eligible_when_it_goes() -> None:
    record = changed(partition(isr=(1,)), Target(isr=()), terms(2, 3))
    assert record.isr == ()
    assert record.leader == NO_LEADER
    assert record.eligible_leader_replicas == (1,)
    assert record.last_known_elr == (1,)


def test_without_eligible_leaders_the_last_in_sync_replica_stays_in_the_list() -> None:
    record = changed(partition(isr=(1,)), Target(isr=()), terms(2, 3, elr=False))
    assert record.isr is None
    assert record.leader == NO_LEADER
    assert record.eligible_leader_replicas is None
    assert record.last_known_elr is None


def test_replicas_that_fall_out_below_the_minimum_stay_eligible() -> None:
    record = changed(partition(), Target(isr=(1,)), terms(1, 2, 3, min_isr=2))
    assert record.isr == (1,)
    assert record.eligible_leader_replicas == (2, 3)
    assert record.leader == NO_LEADER_CHANGE


def test_eligible_leaders_are_forgotten_when_enough_are_in_sync() -> None:
    before = partition(isr=(1,), eligible_leader_replicas=(2, 3))
    record = changed(before, Target(isr=(1, 2)), terms(1, 2, 3, min_isr=2))
    assert record.eligible_leader_replicas == ()


def test_a_replica_that_stopped_uncleanly_is_not_eligible() -> None:
    before = partition(isr=(1, 2), leader=1)
    record = changed(before, Target(isr=(2,)), terms(2, 3, min_isr=2, not_eligible=(1,)))
    assert record.leader == 2
    assert record.eligible_leader_replicas is None


def test_an_eligible_replica_is_elected_when_nobody_is_in_sync() -> None:
    before = partition(isr=(), leader=NO_LEADER, eligible_leader_replicas=(2, 3), last_known_elr=(1,))
    record = changed(before, Target(), terms(3, min_isr=2))
    assert (record.leader, record.isr, record.eligible_leader_replicas) == (3, (3,), (2,))
    assert record.last_known_elr == (), "who led last is of no interest any more"
    assert record.leader_recovery_state == NO_RECOVERY_CHANGE, "an eligible replica has lost nothing"


def test_an_eligible_replica_is_not_elected_while_somebody_is_in_sync() -> None:
    before = partition(isr=(1,), leader=NO_LEADER, eligible_leader_replicas=(2,))
    assert change_partition(before, Target(), terms(2, 3, min_isr=2)) is None


def test_the_last_known_leader_is_elected_when_it_is_all_that_is_left() -> None:
    before = partition(isr=(), leader=NO_LEADER, last_known_elr=(1,))
    record = changed(before, Target(), terms(1))
    assert (record.leader, record.isr, record.last_known_elr) == (1, (1,), ())
    assert record.leader_recovery_state == RECOVERING, "it may have lost records"


@pytest.mark.parametrize("last_known", [(1, 2), (9,)], ids=["two", "dead"])
def test_of_several_or_a_dead_last_known_leader_none_is_elected(last_known: tuple[int, ...]) -> None:
    before = partition(isr=(), leader=NO_LEADER, last_known_elr=last_known)
    assert change_partition(before, Target(), terms(1, 2)) is None


def test_an_unclean_election_takes_any_live_replica() -> None:
    before = partition(isr=(1,), eligible_leader_replicas=(2,))
    record = changed(before, Target(isr=()), terms(3, elr=False, election=Election.UNCLEAN))
    assert (record.leader, record.isr, record.leader_recovery_state) == (3, (3,), RECOVERING)
    assert record.eligible_leader_replicas == ()


def test_an_unclean_election_prefers_a_clean_one() -> None:
    record = changed(partition(isr=(1, 2)), Target(isr=(2,)), terms(2, 3, election=Election.UNCLEAN))
    assert (record.leader, record.leader_recovery_state) == (2, NO_RECOVERY_CHANGE)


def test_recovering_is_not_said_twice() -> None:
    before = partition(isr=(1,), leader_recovery_state=RECOVERING)
    record = changed(before, Target(isr=()), terms(3, elr=False, election=Election.UNCLEAN))
    assert record.leader_recovery_state == NO_RECOVERY_CHANGE


def test_a_leader_can_say_that_it_has_recovered() -> None:
    before = partition(isr=(1,), leader_recovery_state=RECOVERING)
    assert changed(before, Target(recovery_state=0), terms(1, 2, 3)).leader_recovery_state == 0


def test_a_replica_that_goes_raises_the_leader_epoch() -> None:
    before = partition()
    record = changed(before, Target(replicas=(1, 2), isr=(1, 2)), terms(1, 2, 3))
    assert record.leader == 1, "the same leader, named again, raises the epoch"
    assert merge(before, record).leader_epoch == before.leader_epoch + 1
    assert record.directories == (directory(1), directory(2))


def test_new_replicas_lie_in_their_brokers_default_directory() -> None:
    before = partition(replicas=(1,))
    record = changed(before, Target(replicas=(1, 2), adding=(2,)), terms(1, 2))
    assert (record.replicas, record.adding_replicas) == ((1, 2), (2,))
    assert record.directories == (directory(1), directory(2))
    assert record.leader == NO_LEADER_CHANGE


def test_before_directory_ids_none_are_written() -> None:
    before = partition(replicas=(1,))
    record = changed(before, Target(replicas=(1, 2), adding=(2,)), terms(1, 2, metadata_version=16))
    assert record.directories is None


@pytest.mark.parametrize(("metadata_version", "leader"), [(11, 1), (12, NO_LEADER_CHANGE)])
def test_old_versions_raise_the_leader_epoch_when_replicas_fall_out_of_sync(
    metadata_version: int, leader: int
) -> None:
    record = changed(partition(), Target(isr=(1, 2)), terms(1, 2, 3, metadata_version=metadata_version))
    assert record.leader == leader


def test_a_directory_can_be_told_alone() -> None:
    record = changed(partition(), Target(directories={2: directory(9)}), terms(1, 2, 3))
    assert record.directories == (directory(1), directory(9), directory(3))
    assert record.leader == NO_LEADER_CHANGE


def test_a_reassignment_completes_when_the_new_replica_is_in_sync() -> None:
    before = partition(replicas=(2, 1), isr=(1,), adding_replicas=(2,), removing_replicas=(1,))
    record = changed(before, Target(isr=(1, 2)), terms(1, 2))
    assert (record.replicas, record.isr) == ((2,), (2,))
    assert (record.adding_replicas, record.removing_replicas) == ((), ())
    assert record.leader == 2, "the old leader has left"


@pytest.mark.parametrize(
    ("replicas", "isr", "removing", "adding", "expected"),
    [
        ((1, 2), (1, 2), (), (), None),
        ((2, 1), (1,), (1,), (2,), None),
        ((2, 1), (1, 2), (1,), (2,), ((2,), (2,))),
        ((1, 2, 3), (2, 3), (2, 3), (), None),
        ((1, 2, 3), (1, 2, 3), (2, 3), (), ((1,), (1,))),
        ((1, 2, 3), (3, 2), (3,), (2,), ((1, 2), (2,))),
        ((1, 2, 3), (1, 3), (3,), (), None),
    ],
    ids=[
        "none under way",
        "new one not in sync",
        "new one in sync",
        "nobody would be in sync",
        "others only removed",
        "as many come as go, not all in sync",
        "more go than come, not all in sync",
    ],
)
def test_when_a_reassignment_is_complete(
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    removing: tuple[int, ...],
    adding: tuple[int, ...],
    expected: tuple[tuple[int, ...], tuple[int, ...]] | None,
) -> None:
    assert complete_reassignment(replicas, isr, removing, adding) == expected
