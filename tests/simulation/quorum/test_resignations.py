"""Whenever a controller loses its leadership, nothing that was acknowledged is undone.

A node leads, resigns in the midst of its decisions, is elected again, and loses power now and then. Requests
come all the while, syncs and listeners take their time. After a resignation the log either keeps what was not
committed, and the next election commits it, or loses it, as that of a follower of another leader does.
Invariants:

- AcknowledgedStays: what was acknowledged is published at once, and there in every later life.
- NothingByHalves: a topic has all its partitions and configs, or does not exist.
- AnsweredOnce: every request is answered once, at the latest when the controller resigns.
- LostIsLost: what was not acknowledged and not kept by the log is nowhere.
- ControllerIsTheLog: a controller that takes over knows what the log holds, and nothing else.
- EpochsGoUp: no epoch is used twice.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
from tests.support.deciding import new_topic
from tests.support.quorum_node import START_MS, QuorumNode
from tests.unit.metadata.images import have_same_content

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.errors import MetadataError
from ottla.metadata.image import MetadataImage
from ottla.metadata.loader import MetadataLoader
from ottla.model.ids import Offset
from ottla.model.uuid import ZERO_UUID
from ottla.quorum.controller.active_controller import ActiveController
from ottla.quorum.load import load_metadata
from ottla.quorum.metadata_follower import MetadataFollower
from ottla.quorum.metadata_quorum import MetadataQuorum
from ottla.quorum.quorum_protocols import CommittedRecords
from ottla.quorum.raft.effects import BecameLeader, Effect
from ottla.quorum.raft_driver import RaftDriver
from ottla.quorum.snapshots import Snapshots
from ottla.testing.simulated_disk import SimulatedDisk
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

STEPS = 250
CONFIGS = {"metadata.log.max.record.bytes.between.snapshots": "20000"}

State = tuple[int, str] | None
"""A topic as a user sees it: number of partitions and the value of a config. None: there is none."""


class Pending:
    """A request that waits, and what the topic will be if it is done."""

    def __init__(self, name: str, state: State) -> None:
        self.name = name
        self.state = state
        self.end = Offset(0)
        """Where the records of the decision end, once it is made."""
        self.answers: list[ErrorCode] = []


class World:
    """A node on a simulated disk, its user, and what the user knows."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = Random(seed)
        self.disk = SimulatedDisk(seed)
        self.disk.now_ms = START_MS
        self.known: dict[str, State] = {}
        self.pending: dict[str, Pending] = {}
        # Requests that were refused or never answered after they were decided: either state is right.
        self.uncertain: dict[str, Pending] = {}
        self.epochs: list[int] = []
        self.preparing: list[Callable[[], None]] = []
        self.seen: dict[str, int] = {}
        self.numbers = iter(range(1_000_000))
        self.start()

    def count(self, what: str) -> None:
        self.seen[what] = self.seen.get(what, 0) + 1

    # A listener of the node's metadata, which is slow now and then

    def prepare(self, _image: MetadataImage, _delta: MetadataDelta, done: Callable[[], None]) -> bool:
        if self.chance.random() < 0.3:
            self.preparing.append(done)
            return False
        return True

    def metadata_changed(self, image: MetadataImage, delta: MetadataDelta) -> None:
        assert image.offset < self.node.driver.high_watermark, self.why("published before it was committed")

    # Steps

    def step(self) -> None:
        leads = self.node.quorum.controller is not None
        match self.chance.randrange(20):
            case 0 if leads:
                self.resign()
            case 1 if self.chance.random() < 0.3:
                self.crash()
            case 2 | 3:
                self.node.tick(self.node.now_ms + 200)
            case 4 | 5 | 6 | 7 | 8:
                self.node.driver.flush()
            case 9 | 10 if self.preparing:
                self.preparing.pop()()
            case 11 if not leads:
                self.elect()
            case _:
                self.ask()

    def ask(self) -> None:
        names = sorted(self.known.keys() - self.pending.keys() - self.uncertain.keys())
        topics = [name for name in names if self.known[name] is not None]
        ask: Any
        if not topics or self.chance.random() < 0.5:
            partitions = self.chance.choice((1, 3, 20))
            pending = Pending(f"t{next(self.numbers)}", (partitions, "1"))
            topic = new_topic(pending.name, partitions, 1, configs={"retention.ms": "1"})
            ask = CreateTopicsRequest(topics=(topic,))
        elif self.chance.random() < 0.5:
            pending = Pending(self.chance.choice(topics), None)
            gone = DeleteTopicState(name=pending.name, topic_id=ZERO_UUID)
            ask = DeleteTopicsRequest(topics=(gone,), timeout_ms=0)
        else:
            name, value = self.chance.choice(topics), str(self.chance.randrange(2, 1000))
            known = self.known[name]
            assert known is not None
            pending = Pending(name, (known[0], value))
            config = AlterableConfig(name="retention.ms", config_operation=0, value=value)
            resource = AlterConfigsResource(resource_type=2, resource_name=name, configs=(config,))
            ask = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        self.pending[pending.name] = pending
        leads = self.node.quorum.controller is not None
        self.node.quorum.ask(ask, None, lambda response: self.answered(pending, response, leads))
        pending.end = self.node.driver.log_end_offset

    def answered(self, pending: Pending, response: Any, was_decided: bool) -> None:
        (result,) = getattr(response, "topics", None) or response.responses
        pending.answers.append(result.error_code)
        assert len(pending.answers) == 1, self.why(f"AnsweredOnce: {pending.name} got {pending.answers}")
        del self.pending[pending.name]
        if result.error_code is ErrorCode.NOT_CONTROLLER:
            self.count("refused" if was_decided else "found no controller")
            if was_decided:
                self.uncertain[pending.name] = pending
            return
        assert result.error_code is ErrorCode.NONE, self.why(f"{pending.name} got {result.error_code}")
        self.count("acknowledged")
        self.known[pending.name] = pending.state
        found = self.topics_of(self.node.image).get(pending.name)
        assert found == pending.state, self.why(f"AcknowledgedStays: {pending.name} is {found}")

    def resign(self) -> None:
        self.node.driver.resign()
        assert not self.pending, self.why(f"AnsweredOnce: {sorted(self.pending)} wait for nobody")
        log = self.node.driver.log
        if log.high_watermark < log.log_end_offset:
            self.count("resigned in the midst of decisions")
        if self.chance.random() < 0.5:
            # As a follower does whose leader does not have these records.
            for deletion in log.truncate_to(log.high_watermark, self.node.now_ms):
                deletion.run(self.disk)
            self.count("lost the tail")
            self.publish_all()
            for name, pending in self.uncertain.items():
                if pending.end <= log.high_watermark:
                    # It was committed, and only its answer was missing.
                    self.known[name] = pending.state
            self.uncertain.clear()
            self.settle(self.node.image, "LostIsLost")

    def elect(self) -> None:
        while self.node.quorum.controller is None:
            self.node.now_ms += 1000
            self.node.driver._wake()
            self.node.driver.flush()
        self.took_over()

    def crash(self) -> None:
        self.count("lost power")
        self.disk.cut_power(self.chance)
        self.start()

    def start(self) -> None:
        self.uncertain.update(self.pending)
        self.pending.clear()
        self.preparing.clear()
        self.node = QuorumNode(self.disk, seed=self.chance.randrange(1 << 30), configs=CONFIGS)
        self.took_over()
        self.node.come_up()
        self.node.published.listen(self)

    # Checks

    def took_over(self) -> None:
        """Look at what a new controller knows. It is known then what became of what was uncertain."""
        self.epochs.append(self.node.driver.epoch)
        assert self.epochs == sorted(set(self.epochs)), self.why(f"EpochsGoUp: {self.epochs}")
        loaded = load_metadata(self.node.driver.log, Snapshots(self.disk, self.node.metadata_path))
        image, _ = loaded.loader.take()
        ours = self.node.controller.image
        assert have_same_content(ours, image), self.why("ControllerIsTheLog")
        self.settle(image, "AcknowledgedStays")

    def settle(self, image: MetadataImage, invariant: str) -> None:
        """Compare an image with all that is known, and learn the rest from it."""
        found = self.topics_of(image)
        for name in found.keys() | self.known.keys() | self.uncertain.keys():
            allowed = {self.known.get(name)}
            if name in self.uncertain:
                allowed.add(self.uncertain[name].state)
            assert found.get(name) in allowed, self.why(f"{invariant}: {name} is {found.get(name)}")
        self.known = dict(found)
        self.uncertain.clear()

    def publish_all(self) -> None:
        while self.preparing:
            self.preparing.pop()()

    def topics_of(self, image: MetadataImage) -> dict[str, State]:
        found: dict[str, State] = {}
        for topic in image.topics:
            config = image.topic_config(topic.name).get("retention.ms", "")
            assert config, self.why(f"NothingByHalves: {topic.name} has no config")
            found[topic.name] = (len(topic.partitions), config)
        return found

    def why(self, text: str) -> str:
        return f"{text}, replay with seed={self.seed}"


def run(seed: int) -> World:
    world = World(seed)
    for _ in range(STEPS):
        world.step()
    if world.node.quorum.controller is None:
        world.elect()
    world.node.quorum.flush()
    world.publish_all()
    assert not world.pending, world.why("AnsweredOnce")
    world.settle(world.node.image, "AcknowledgedStays")
    return world


@pytest.mark.parametrize("seed", range(30))
def test_a_controller_that_loses_undoes_nothing_that_was_acknowledged(seed: int) -> None:
    run(seed)


def test_the_simulation_goes_through_what_it_is_about() -> None:
    seen: dict[str, int] = {}
    for seed in range(10):
        for what, count in run(seed).seen.items():
            seen[what] = seen.get(what, 0) + count
    assert seen["acknowledged"] > 200
    for what in (
        "found no controller",
        "refused",
        "resigned in the midst of decisions",
        "lost the tail",
        "lost power",
    ):
        assert seen[what] > 20, f"{what}: {seen}"


# Mistakes, each of which the simulation has to find.


def _keeps_who_waits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ActiveController, "resign", lambda self: None)


def _answers_before_it_publishes(patch: pytest.MonkeyPatch) -> None:
    committed = MetadataQuorum.committed

    def answer_first(quorum: MetadataQuorum, batches: Sequence[CommittedRecords]) -> None:
        quorum._when_published(batches[-1].position.offset)
        committed(quorum, batches)

    patch.setattr(MetadataQuorum, "committed", answer_first)


def _answers_before_it_commits(patch: pytest.MonkeyPatch) -> None:
    append = ActiveController.append

    def forget(controller: ActiveController, records: Sequence[Any]) -> None:
        append(controller, records)
        controller._published = controller._appended

    patch.setattr(ActiveController, "append", forget)


def _goes_on_with_the_old_image(patch: pytest.MonkeyPatch) -> None:
    resigned, fork = MetadataQuorum.resigned, MetadataFollower.fork_loader
    kept: list[MetadataLoader] = []

    def keep(quorum: MetadataQuorum) -> None:
        if quorum.controller is not None:
            kept.append(quorum.controller._loader)
        resigned(quorum)

    def reuse(follower: MetadataFollower) -> MetadataLoader:
        return kept.pop() if kept else fork(follower)

    patch.setattr(MetadataQuorum, "resigned", keep)
    patch.setattr(MetadataFollower, "fork_loader", reuse)


def _keeps_records_that_it_appended_as_a_leader(patch: pytest.MonkeyPatch) -> None:
    lose = RaftDriver._lose_leadership

    def keep(driver: RaftDriver) -> None:
        appended = list(driver._appended)
        lose(driver)
        driver._appended.extend(appended)

    patch.setattr(RaftDriver, "_lose_leadership", keep)


def _skips_what_an_earlier_leader_appended(patch: pytest.MonkeyPatch) -> None:
    do = RaftDriver._do

    def skip(driver: RaftDriver, effect: Effect) -> None:
        if isinstance(effect, BecameLeader):
            driver._next_offset = driver.log_end_offset
        do(driver, effect)

    patch.setattr(RaftDriver, "_do", skip)


@pytest.mark.parametrize(
    ("plant", "finding"),
    [
        (_keeps_who_waits, "AnsweredOnce"),
        (_answers_before_it_publishes, "AcknowledgedStays"),
        (_answers_before_it_commits, "AcknowledgedStays"),
        (_goes_on_with_the_old_image, "ControllerIsTheLog"),
        # The follower sees that the offsets or the topics cannot be right, unless they are by chance.
        (_keeps_records_that_it_appended_as_a_leader, "comes after|is to be removed|ControllerIsTheLog"),
        (_skips_what_an_earlier_leader_appended, "ControllerIsTheLog"),
    ],
)
def test_the_simulation_finds_a_planted_mistake(
    plant: Callable[[pytest.MonkeyPatch], None], finding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, MetadataError), match=finding):
        _run_all(range(10))


def _run_all(seeds: range) -> None:
    for seed in seeds:
        run(seed)
