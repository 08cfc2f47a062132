"""Whatever the power cut takes, the metadata has everything that was answered, and nothing by halves.

A node lives several lives on one disk. In each it creates and deletes topics, changes configs and writes
snapshots, until the power is cut at some operation of the disk, also while it is starting. Then it starts
again. Invariants, checked after every start:

- AnsweredIsThere: what was answered has happened.
- NothingByHalves: a topic has all its partitions and configs, or does not exist.
- EpochsGoUp: no epoch of the quorum is used in two lives.
- LogAndSnapshotsAgree: replaying the whole log gives what the newest snapshot and the rest of the log give.
"""

from collections.abc import Mapping, Sequence
from random import Random

import pytest
from tests.support.deciding import new_topic
from tests.support.quorum_node import START_MS, QuorumNode

from ottla.metadata.errors import MetadataError
from ottla.metadata.image import EMPTY_IMAGE
from ottla.metadata.loader import MetadataLoader
from ottla.model.uuid import ZERO_UUID
from ottla.quorum.batches import decode_batch
from ottla.records.batch import iter_batches
from ottla.storage.errors import StorageError
from ottla.storage.names import find_segment_file
from ottla.testing.simulated_disk import PowerCut, SimulatedDisk
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.world.disk import DiskError

LIVES = 8
CONFIGS = {
    "metadata.log.max.record.bytes.between.snapshots": "20000",
    "internal.metadata.log.segment.bytes": "100000",
}


# What is old goes at once: each snapshot takes with it some segments before it.
FORGETFUL = {
    "metadata.log.max.record.bytes.between.snapshots": "6000",
    "internal.metadata.log.segment.bytes": "9000",
    "metadata.max.retention.bytes": "10000",
}


class History:
    """What a user knows: what was answered, and what is uncertain because no answer came."""

    def __init__(self) -> None:
        # Partition count and value of the config, by topic.
        self.topics: dict[str, tuple[int, str]] = {}
        self.uncertain: set[str] = set()
        self.epochs: list[int] = []

    def check(self, node: QuorumNode, seed: int) -> None:
        again = f"replay with seed={seed}"
        found = {
            topic.name: (len(topic.partitions), node.image.topic_config(topic.name).get("retention.ms", ""))
            for topic in node.image.topics
        }
        for name, expected in self.topics.items():
            if name not in self.uncertain:
                assert found.get(name) == expected, f"AnsweredIsThere: {name}, {again}"
        for name, (partitions, value) in found.items():
            assert partitions == int(name.split("-")[1]), f"NothingByHalves: {name}, {again}"
            assert value, f"NothingByHalves: {name} has no config, {again}"
            assert name in self.topics or name in self.uncertain, f"{name} came from nowhere, {again}"
        # From now on it is known what became of what was not answered.
        self.topics = found
        self.uncertain.clear()
        epoch = node.driver.epoch
        assert not self.epochs or epoch > self.epochs[-1], f"EpochsGoUp: {epoch}, {again}"
        self.epochs.append(epoch)


def live(node: QuorumNode, history: History, chance: Random, sizes: Sequence[int]) -> None:
    """Do things until the power is cut."""
    for _ in range(60):
        match chance.randrange(5):
            case 0 | 1:
                partitions = chance.choice(sizes)
                name = f"t-{partitions}-{chance.randrange(1000)}"
                if name in history.topics:
                    continue
                history.uncertain.add(name)
                topic = new_topic(name, partitions, 1, configs={"retention.ms": "1"})
                assert node.create(topic) == [ErrorCode.NONE]
                history.topics[name] = (partitions, "1")
                history.uncertain.discard(name)
            case 2 if history.topics:
                name = chance.choice(sorted(history.topics))
                history.uncertain.add(name)
                state = DeleteTopicState(name=name, topic_id=ZERO_UUID)
                reply = node.ask(DeleteTopicsRequest(topics=(state,), timeout_ms=0))
                assert reply.responses[0].error_code is ErrorCode.NONE
                del history.topics[name]
                history.uncertain.discard(name)
            case 3 if history.topics:
                name = chance.choice(sorted(history.topics))
                value = str(chance.randrange(2, 1000))
                history.uncertain.add(name)
                config = AlterableConfig(name="retention.ms", config_operation=0, value=value)
                resource = AlterConfigsResource(resource_type=2, resource_name=name, configs=(config,))
                ask = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
                assert node.ask(ask).responses[0].error_code is ErrorCode.NONE
                history.topics[name] = (history.topics[name][0], value)
                history.uncertain.discard(name)
            case _:
                node.now_ms += 300
                node.tick(node.now_ms)
                node.quorum.flush()


def check_log_and_snapshots(disk: SimulatedDisk, node: QuorumNode, seed: int) -> None:
    """Replay the log from its very beginning, if it still has that."""
    loader = MetadataLoader(EMPTY_IMAGE)
    segments = sorted(
        entry.name
        for entry in disk.list(node.metadata_path)
        if entry.name.endswith(".log") and find_segment_file(entry.name) is not None
    )
    for name in segments:
        for raw in iter_batches(memoryview(disk.read_file(f"{node.metadata_path}/{name}"))):
            batch = decode_batch(raw)
            if batch.is_control:
                loader.skip(batch.position)
            else:
                loader.feed(batch.records, batch.position)
    image, _ = loader.take()
    assert image == node.image, f"LogAndSnapshotsAgree, replay with seed={seed}"


def run(seed: int, configs: Mapping[str, str] = CONFIGS, *, sync_lies: bool = False) -> None:
    chance = Random(seed)
    disk = SimulatedDisk(seed)
    disk.now_ms = START_MS
    history = History()
    cuts = 0
    # The first start formats the directory. Doing that twice is not what is tested here.
    QuorumNode(disk, seed=seed, configs=configs)
    disk.kill()
    disk.sync_lies = sync_lies
    for _ in range(LIVES):
        disk.cut_power_after(chance.choice((5, 20, 60, 200, 1000)))
        try:
            node = QuorumNode(disk, seed=chance.randrange(1 << 30), configs=configs)
            history.check(node, seed)
            node.come_up()
            live(node, history, chance, (1, 3, 40) if configs is CONFIGS else (1,))
            disk.kill()
        except PowerCut:
            cuts += 1
            disk.cut_power(chance)
    node = QuorumNode(disk, seed=seed, configs=configs)
    history.check(node, seed)
    if configs is CONFIGS:
        check_log_and_snapshots(disk, node, seed)
    assert cuts >= 2, "power cuts are what this is about"


@pytest.mark.parametrize("seed", range(24))
def test_metadata_survives_power_cuts(seed: int) -> None:
    run(seed)


@pytest.mark.parametrize("seed", range(24))
def test_metadata_survives_power_cuts_while_it_forgets(seed: int) -> None:
    run(seed, FORGETFUL)


def test_the_simulation_would_see_a_missing_sync() -> None:
    seen = 0
    for seed in range(6):
        try:
            run(seed, sync_lies=True)
        except (AssertionError, MetadataError, StorageError, DiskError):
            seen += 1
    assert seen >= 4
