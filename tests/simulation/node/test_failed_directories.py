"""A log directory that cannot be read for a while takes nothing with it, and comes back with what it has."""

from typing import Any, Final

import pytest

from ottla import Admin, Producer
from ottla.broker.deferred import Deferred
from ottla.broker.node import Broker
from ottla.model.uuid import Uuid
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.node import DATA, SimulatedNode
from ottla.testing.simulation.simulation import Simulation
from ottla.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from ottla.world.disk import Reason

TOPIC: Final = "orders"
PARTITIONS: Final = 4
RECORDS: Final = 5
SECOND: Final = "/data2"
THIRD: Final = "/data3"
NO_LEADER: Final = -1


class World:
    """A node with several log directories, and records in each."""

    def __init__(self, directories: str = f"{DATA},{SECOND}") -> None:
        self.simulation = Simulation(1)
        network = SimulatedNetwork(self.simulation)
        self.one = SimulatedNode(self.simulation, network, 1, {"log.dirs": directories})
        self.loop = simulated_loop(self.simulation, network)
        self.one.start()
        self.loop.run(self.create())
        self.loop.run(self.produce(*range(PARTITIONS)))

    async def create(self) -> None:
        async with Admin(self.one.bootstrap) as admin:
            await admin.topics.create(TOPIC, partitions=PARTITIONS)

    async def delete(self) -> None:
        async with Admin(self.one.bootstrap) as admin:
            await admin.topics.delete(TOPIC)

    async def produce(self, *partitions: int) -> None:
        """Write the same number of records to each of these partitions."""
        async with Producer(self.one.bootstrap) as producer:
            for number in range(RECORDS):
                for index in partitions:
                    await producer.send_and_wait(TOPIC, b"%d" % number, partition=index)

    @property
    def broker(self) -> Broker:
        """The broker that runs now."""
        assert self.one.node is not None
        return self.one.node.broker

    def places(self) -> dict[int, str]:
        """Return where the topic's logs are."""
        return {one.index: one.log.path for one in self.broker.partitions if one.topic == TOPIC}

    def ends(self) -> dict[int, int]:
        """Return where the topic's logs end."""
        return {one.index: one.log.log_end_offset for one in self.broker.partitions if one.topic == TOPIC}

    def leaders(self) -> dict[int, int]:
        """Return who leads the topic's partitions."""
        topic = self.broker.image.topics.find(TOPIC)
        assert topic is not None
        return {number: record.leader for number, record in topic.partitions.items()}

    def start_without(self, path: str) -> None:
        """Start while one directory cannot be read."""
        self.one.disk.fail("read", Reason.IO_ERROR, path=path, times=None)
        self.one.start()

    def start_with_all(self) -> None:
        """Start again, with all directories."""
        self.one.stop()
        self.one.disk.heal()
        self.one.start()


def test_no_empty_log_takes_the_place_of_one_in_a_directory_that_is_offline() -> None:
    it = World()
    before = it.places()
    there = {index for index, path in before.items() if path.startswith(f"{SECOND}/")}
    assert 0 < len(there) < PARTITIONS
    it.one.stop()
    it.start_without(SECOND)
    it.simulation.run_for(3_000)
    assert it.places().keys() == before.keys() - there
    assert {index for index, leader in it.leaders().items() if leader == NO_LEADER} == there

    it.start_with_all()
    it.simulation.run_until(lambda: NO_LEADER not in it.leaders().values())
    assert it.places() == before
    assert set(it.ends().values()) == {RECORDS}


def test_nobody_leads_from_a_directory_that_is_offline_though_the_metadata_does_not_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = World()
    (index, place) = next(pair for pair in it.places().items() if not pair[1].startswith(f"{SECOND}/"))
    partition = it.broker.partitions.find(TOPIC, index)
    assert partition is not None
    # It moves and nothing is reported, as where an earlier version stopped between the two.
    reports = it.broker.directory_reports
    monkeypatch.setattr(reports, "announce", lambda _partition, _target, known: known())
    it.broker.log_moves.begin(partition, it.broker.directories.directories[1])
    it.simulation.run_until(lambda: it.places()[index] != place)
    it.one.stop()
    it.start_without(SECOND)
    it.simulation.run_for(3_000)
    assert it.leaders()[index] == NO_LEADER

    it.start_with_all()
    it.simulation.run_until(lambda: NO_LEADER not in it.leaders().values())
    assert it.ends()[index] == RECORDS


def test_a_directory_that_comes_back_after_its_topic_was_made_again_keeps_the_old_records_aside() -> None:
    it = World()
    old = it.places()
    it.one.stop()
    it.start_without(SECOND)
    it.loop.run(it.delete())
    it.loop.run(it.create())
    new = it.places()
    assert not any(path.startswith(f"{SECOND}/") for path in new.values())

    it.start_with_all()
    it.simulation.run_until(lambda: NO_LEADER not in it.leaders().values())
    assert it.places() == new
    assert set(it.ends().values()) == {0}
    kept = [entry.name for entry in it.one.disk.list(SECOND) if entry.name.endswith("-stray")]
    assert len(kept) == sum(path.startswith(f"{SECOND}/") for path in old.values())


def test_one_unreadable_file_of_a_partition_does_not_stop_the_node() -> None:
    it = World()
    it.one.stop()
    it.one.disk.fail("read", Reason.IO_ERROR, path=f"{DATA}/{TOPIC}-0/partition.metadata")
    it.one.disk.fail("read", Reason.IO_ERROR, path=f"{SECOND}/{TOPIC}-1/partition.metadata")
    it.one.start()
    it.simulation.run_until(lambda: NO_LEADER not in it.leaders().values())
    assert it.ends() == dict.fromkeys(range(PARTITIONS), RECORDS)


def test_of_two_logs_of_a_partition_the_one_with_more_records_is_kept() -> None:
    it = World()
    before = it.places()
    index, path = next((index, path) for index, path in before.items() if path.startswith(f"{SECOND}/"))
    elsewhere = f"{DATA}/{TOPIC}-{index}"
    metadata = it.one.disk.read_file(f"{path}/partition.metadata")
    it.one.stop()
    # What an interrupted move leaves, with less in it.
    it.one.disk.make_directory(elsewhere)
    it.one.disk.write_file_atomically(f"{elsewhere}/partition.metadata", metadata)
    it.one.disk.open(f"{elsewhere}/{0:020}.log", create=True)
    it.one.start()
    assert it.places() == before
    assert it.ends()[index] == RECORDS
    assert any(entry.name.endswith("-stray") for entry in it.one.disk.list(DATA))


def leave_a_log_behind(it: World) -> int:
    """Move a partition from the second directory to the third, while the second one fails. Write on there.

    The second directory keeps a log, in which the last records are missing.
    """
    index = next(index for index, path in it.places().items() if path.startswith(f"{SECOND}/"))
    partition = it.broker.partitions.find(TOPIC, index)
    assert partition is not None
    it.one.disk.fail("rename", Reason.IO_ERROR, path=f"{SECOND}/", times=None)
    it.broker.log_moves.begin(partition, it.broker.directories.directories[2])
    it.simulation.run_until(lambda: it.places()[index].startswith(f"{THIRD}/"))
    third = it.broker.directories.directories[2].meta.directory_id

    def named() -> Uuid:
        topic = it.broker.image.topics.find(TOPIC)
        assert topic is not None
        return topic.partitions[index].directories[0]

    assert named() == third, "the controller knows it before anything is written there"
    it.loop.run(it.produce(index))
    assert it.ends()[index] == 2 * RECORDS
    it.one.stop()
    it.one.disk.heal()
    assert it.one.disk.exists(f"{SECOND}/{TOPIC}-{index}"), "it was left behind"
    return index


def test_a_log_that_was_left_behind_does_not_lead_while_the_directory_of_the_metadata_is_offline(
    caplog: pytest.LogCaptureFixture,
) -> None:
    it = World(f"{DATA},{SECOND},{THIRD}")
    index = leave_a_log_behind(it)
    it.start_without(THIRD)
    it.simulation.run_for(3_000)
    assert it.leaders()[index] == NO_LEADER
    assert f"{SECOND}/{TOPIC}-{index} is not used" in caplog.text

    it.start_with_all()
    it.simulation.run_until(lambda: NO_LEADER not in it.leaders().values())
    assert it.ends()[index] == 2 * RECORDS
    assert it.places()[index].startswith(f"{THIRD}/")
    assert any(entry.name.endswith("-stray") for entry in it.one.disk.list(SECOND))


def test_a_log_leads_on_if_the_controller_never_heard_that_it_moves_from_a_directory_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = World(f"{DATA},{SECOND},{THIRD}")
    index = next(index for index, path in it.places().items() if path.startswith(f"{SECOND}/"))
    partition = it.broker.partitions.find(TOPIC, index)
    assert partition is not None
    ask = it.broker.controller.ask

    def lose_reports(request: Any, *others: Any) -> Any:
        return Deferred() if isinstance(request, AssignReplicasToDirsRequest) else ask(request, *others)

    monkeypatch.setattr(it.broker.controller, "ask", lose_reports)
    it.one.disk.fail("rename", Reason.IO_ERROR, path=f"{SECOND}/{TOPIC}-{index}", times=None)
    it.broker.log_moves.begin(partition, it.broker.directories.directories[2])
    # Not so long that the next heartbeat tells of a directory that has failed.
    it.simulation.run_for(200)
    it.loop.run(it.produce(index))
    # The disks change places: the old one is back, and the new one is gone.
    it.one.kill()
    it.one.disk.heal()
    it.start_without(THIRD)
    it.simulation.run_until(lambda: it.leaders()[index] != NO_LEADER)
    assert it.ends()[index] == 2 * RECORDS


def test_what_was_left_behind_leads_when_an_operator_says_that_the_directory_is_gone() -> None:
    it = World(f"{DATA},{SECOND},{THIRD}")
    index = leave_a_log_behind(it)
    it.one.settings["log.dirs"] = f"{DATA},{SECOND}"
    it.one.start()
    it.simulation.run_until(lambda: NO_LEADER not in it.leaders().values())
    assert it.ends()[index] == RECORDS


def test_a_node_that_loses_the_old_directory_of_a_move_knows_that_it_lacks_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = World(f"{DATA},{SECOND},{THIRD}")
    index = next(index for index, path in it.places().items() if path.startswith(f"{SECOND}/"))
    partition = it.broker.partitions.find(TOPIC, index)
    assert partition is not None
    reports = it.broker.directory_reports
    announce = reports.announce
    known: list[str] = []
    monkeypatch.setattr(
        reports, "announce", lambda one, target, _known: announce(one, target, lambda: known.append("known"))
    )
    it.broker.log_moves.begin(partition, it.broker.directories.directories[2])
    it.simulation.run_until(lambda: bool(known))
    assert it.places()[index].startswith(f"{SECOND}/")
    it.one.stop()
    # Only the copy is left, in the directory that the metadata names.
    it.one.settings["log.dirs"] = f"{DATA},{THIRD}"
    it.one.start()
    begun_again = it.broker.partitions.find(TOPIC, index)
    assert begun_again is not None
    assert begun_again.log.damages, "an empty log would be elected as if nothing was missing"
