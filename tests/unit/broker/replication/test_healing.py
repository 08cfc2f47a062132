"""Damaged replicas are healed, whatever else happens to them meanwhile."""

from types import SimpleNamespace
from typing import Any

from tests.unit.storage.damages.test_damage import written_log
from tests.unit.storage.damages.test_healing import damage, find_damage

from ottla.broker.replication.healing import Healing
from ottla.metadata.image import EMPTY_IMAGE
from ottla.metadata.topics import Topic, Topics
from ottla.model.ids import Offset
from ottla.model.uuid import Uuid
from ottla.storage.log import Log
from ottla.testing.simulation.simulation import Machine, Simulation
from ottla.testing.simulation.workers import SimulatedWorkers
from ottla.wire.metadata_records.partitions import PartitionRecord

BASE_OFFSET_AT = 7
TOPIC, DIRECTORY = Uuid(b"topic-0000000001"), Uuid(b"directory-000001")


class Replica:
    """As much of a partition as healing needs."""

    topic_id = TOPIC
    index = 0

    def __init__(self, log: Log, replicas: tuple[int, ...]) -> None:
        self.log = log
        self.replicas = replicas
        self.in_sync = frozenset(replicas)
        self.is_leader = True
        self.leader_id = 1


class World:
    """A broker with one damaged replica."""

    def __init__(self, replicas: tuple[int, ...]) -> None:
        self.simulation = Simulation(1)
        machine = Machine(self.simulation, "broker", "10.0.0.1")
        self.replica = Replica(written_log(), replicas)
        self.told_lost = 0
        self.cut_at: list[Offset] = []
        self.broker = SimpleNamespace(
            node_id=1,
            workers=SimulatedWorkers(machine),
            deletions=SimpleNamespace(add=lambda _deletion: None),
            changed=lambda _partition: None,
            clock=machine,
            image=EMPTY_IMAGE,
            directory_reports=SimpleNamespace(
                add=lambda _partition: None, add_lost=self._tell_lost, is_to_be_cut=lambda _partition: None
            ),
            replication=SimpleNamespace(
                is_alive=lambda _broker: True, copy_from=lambda _partition, offset: self.cut_at.append(offset)
            ),
        )
        broker: Any = self.broker
        self.healing = Healing(broker, machine)

    def _tell_lost(self, _topic_id: Uuid, _index: int) -> None:
        self.told_lost += 1

    def find_damage(self) -> None:
        """Let the damage of the log be found that there is now."""
        partition: Any = self.replica
        self.healing.found(partition, find_damage(self.replica.log))

    def follow(self, eligible: tuple[int, ...]) -> None:
        """Let another broker lead, and the metadata say who is eligible."""
        self.replica.is_leader, self.replica.leader_id = False, 2
        self.replica.in_sync = frozenset((2,))
        record = PartitionRecord(
            topic_id=TOPIC,
            replicas=(1, 2),
            isr=(2,),
            removing_replicas=(),
            adding_replicas=(),
            leader=2,
            leader_epoch=1,
            directories=(DIRECTORY, DIRECTORY),
            eligible_leader_replicas=eligible,
        )
        topics = Topics({TOPIC: Topic("orders", TOPIC, {0: record})}, {"orders": TOPIC})
        self.broker.image = EMPTY_IMAGE._replace(topics=topics)


def test_a_replica_that_moves_while_it_is_healed_can_be_healed_again() -> None:
    world = World((1,))
    old, new = world.replica.log, written_log()
    damage(old, 4, BASE_OFFSET_AT)
    world.find_damage()
    assert old.cleaning is not None, "a worker is about to put the batch right"
    # As at the end of a move to another directory.
    world.replica.log = new
    old.end_cleaning()
    world.simulation.run_for(1_000)

    damage(new, 4, BASE_OFFSET_AT)
    world.find_damage()
    world.simulation.run_for(1_000)
    assert find_damage(new) == []
    assert new.unhealed == ()


def test_a_replica_is_not_cut_while_it_may_be_elected() -> None:
    world = World((1, 2))
    # Nothing is committed, so that nobody else need have what is damaged.
    world.replica.log.high_watermark = Offset(0)
    damage(world.replica.log, 4)
    world.find_damage()
    assert world.told_lost == 1
    world.follow(eligible=(1,))
    world.simulation.run_for(10_000)
    assert world.cut_at == []
    assert world.told_lost > 1

    world.follow(eligible=())
    world.simulation.run_for(10_000)
    assert world.cut_at == [4]


def test_a_follower_whose_cut_would_take_damage_is_copied_again_when_it_cannot_be_elected() -> None:
    world = World((1, 2))
    replica: Any = world.replica
    damage(world.replica.log, 4)
    world.follow(eligible=(1,))
    world.broker.replication.is_alive = lambda _broker: False
    world.find_damage()
    assert not world.healing.is_about_to_cut(replica)

    world.healing.copy_again(replica)
    world.broker.replication.is_alive = lambda _broker: True
    world.simulation.run_for(10_000)
    assert world.healing.is_about_to_cut(replica)
    assert world.told_lost > 0
    assert world.cut_at == []

    world.follow(eligible=())
    world.simulation.run_for(10_000)
    assert world.cut_at == [4]
