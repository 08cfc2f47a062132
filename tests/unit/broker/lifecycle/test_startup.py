"""A start is steps on the loop: what fails gives back what was taken, and others are served in between."""

import logging
from typing import Any

import pytest

from ottla.broker.lifecycle.startup import NodeFailure
from ottla.runtime import recovery
from ottla.storage.loading.load import load_log
from ottla.storage.log import Log
from ottla.storage.log_dirs.directory import LogDirectory
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.node import DATA, PORT, SimulatedNode
from ottla.testing.simulation.simulation import Simulation


class Place:
    """A simulated machine for one node."""

    def __init__(self) -> None:
        self.simulation = Simulation(1)
        self.network = SimulatedNetwork(self.simulation)
        self.node = SimulatedNode(self.simulation, self.network)

    def failure(self) -> str:
        with pytest.raises(NodeFailure) as failure:
            self.node.start()
        return str(failure.value)

    def directory(self) -> LogDirectory:
        assert self.node.node is not None
        return self.node.node.broker.directories.directories[0]

    def create_topics(self, count: int) -> None:
        from ottla import Admin

        async def create() -> None:
            async with Admin(self.node.bootstrap) as admin:
                for number in range(count):
                    await admin.topics.create(f"topic-{number}", partitions=1)

        simulated_loop(self.simulation, self.network).run(create())


def test_an_address_that_is_taken_gives_back_the_directory() -> None:
    place = Place()
    other = place.network.listen(place.node.machine, place.node.machine.host, PORT)
    assert place.failure() == f"cannot listen on {place.node.bootstrap}: Address already in use"
    assert not place.node.disk.locks
    other.close()
    place.node.kill()
    place.node.start()


def test_metadata_that_cannot_be_read_gives_back_the_address() -> None:
    place = Place()
    place.node.start()
    place.node.stop()
    place.node.disk.remove_tree(f"{DATA}/__cluster_metadata-0")
    place.node.disk.open(f"{DATA}/__cluster_metadata-0", create=True)
    assert "__cluster_metadata-0" in place.failure()
    assert not place.node.disk.locks
    assert place.network.find((place.node.machine.host, PORT)) is None


def test_a_stop_in_order_leaves_nothing_to_recover() -> None:
    place = Place()
    place.node.start()
    place.create_topics(3)
    place.node.stop()
    place.node.start()
    assert place.directory().was_clean
    place.node.kill()
    place.node.start()
    assert not place.directory().was_clean
    assert len(place.directory().logs) == 3


def test_the_log_says_how_a_directory_was_left(caplog: pytest.LogCaptureFixture) -> None:
    place = Place()

    def line_of_start() -> str:
        caplog.clear()
        with caplog.at_level(logging.INFO, "ottla.startup"):
            place.node.start()
        [line] = [record.getMessage() for record in caplog.records if "loaded" in record.getMessage()]
        return line.rpartition(", ")[2]

    assert line_of_start() == "in a new directory"
    place.node.kill()
    assert line_of_start() == "after an unclean shutdown", "there is no topic yet, but the node has run here"
    place.create_topics(1)
    place.node.kill()
    assert line_of_start() == "after an unclean shutdown"
    place.node.stop()
    assert line_of_start() == "after a clean shutdown"


def test_the_loop_is_let_go_while_logs_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place()
    place.node.start()
    place.create_topics(5)
    place.node.stop()
    monkeypatch.setattr(recovery, "SLICE_NS", 0)
    loaded: list[int] = []
    seen: list[int] = []

    def load(*args: Any) -> Log:
        loaded.append(len(loaded))
        return load_log(*args)

    def look() -> None:
        seen.append(len(loaded))
        if place.node.node is None:
            place.node.machine.call_later_us(1, look)

    monkeypatch.setattr(recovery, "load_log", load)
    place.node.switch_on()
    look()
    place.simulation.run_until(lambda: place.node.node is not None)
    assert {2, 3, 4} <= set(seen), "others had turns in between"


def test_a_node_that_cannot_write_its_metadata_gives_up() -> None:
    from ottla.world.disk import Reason

    place = Place()
    place.node.start()
    place.node.disk.fail("sync", Reason.IO_ERROR, path="__cluster_metadata-0")
    place.simulation.run_until(lambda: place.node.failure is not None)
    assert isinstance(place.node.failure, NodeFailure)
    assert "cannot write the metadata" in str(place.node.failure)
