"""Three controllers of ours as processes: the active one dies again and again while the metadata changes."""

import os
import threading
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support.deciding import new_topic
from tests.support.plain_client import PlainClient
from tests.support.quorum_members import OTTLA, Member, QuorumOfProcesses, wait_until

from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

KILLS = int(os.environ.get("KILLS", "4"))
TOPIC = 2


class Changer:
    """Creates topics and changes their configs at one member, and notes what was acknowledged."""

    def __init__(self, quorum: QuorumOfProcesses) -> None:
        self.quorum = quorum
        self.acknowledged: dict[str, str] = {}
        # What was asked for, and not acknowledged: it may have happened.
        self.uncertain: set[str] = set()
        self.stops = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        number = 0
        while not self.stops.is_set():
            member = self.quorum.members[1 + number % len(self.quorum.members)]
            number += 1
            name = f"t-{number}"
            self.uncertain.add(name)
            try:
                with PlainClient(member.bootstrap, timeout_s=20) as client:
                    self.change(client, name, str(1000 + number))
            except (OSError, EOFError):
                continue

    def has_more_than(self, count: int) -> bool:
        return len(self.acknowledged) > count

    def change(self, client: PlainClient, name: str, value: str) -> None:
        created = client.ask(CreateTopicsRequest(topics=(new_topic(name, 2, 1),)))
        if created.topics[0].error_code is not ErrorCode.NONE:
            return
        config = AlterableConfig(name="retention.ms", config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=(config,))
        ask = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        self.acknowledged[name] = ""
        if client.ask(ask).responses[0].error_code is ErrorCode.NONE:
            self.acknowledged[name] = value
            self.uncertain.discard(name)


def seen_at(member: Member) -> dict[str, tuple[int, str]]:
    """Return the topics that a member knows: number of partitions and retention."""
    with PlainClient(member.bootstrap, timeout_s=60) as client:
        topics = {
            one.name: len(one.partitions)
            for one in client.ask(MetadataRequest(topics=None)).topics
            if one.name.startswith("t-")
        }
        resources = tuple(
            DescribeConfigsResource(
                resource_type=TOPIC, resource_name=name, configuration_keys=("retention.ms",)
            )
            for name in topics
        )
        results = client.ask(DescribeConfigsRequest(resources=resources)).results
        values: dict[str, Any] = {one.resource_name: one.configs[0].value for one in results}
    return {name: (count, values[name]) for name, count in topics.items()}


def _knows(member: Member, names: Iterable[str]) -> bool:
    return seen_at(member).keys() >= set(names)


def _has(log: Path, text: bytes) -> bool:
    return text in log.read_bytes()


@pytest.mark.thorough(guard="tests/simulation/quorum/test_resignations.py")
def test_nothing_that_was_acknowledged_is_lost_when_the_active_controller_is_killed(tmp_path: Path) -> None:
    settings = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    with QuorumOfProcesses(tmp_path, {1: OTTLA, 2: OTTLA, 3: OTTLA}, settings=settings) as quorum:
        quorum.start()
        leader = quorum.wait_for_leader()
        members = quorum.members.values()
        wait_until(lambda: all("ready" in one.read_log() for one in members), "serving")
        changer = Changer(quorum)
        changer.thread.start()
        try:
            for _ in range(KILLS):
                before = len(changer.acknowledged)
                quorum.members[leader].kill()
                old, leader = leader, quorum.wait_for_leader(other_than=leader)
                wait_until(partial(changer.has_more_than, before + 2), "changes go on")
                quorum.members[old].start()
        finally:
            changer.stops.set()
            changer.thread.join()
        wanted = changer.acknowledged
        assert len(wanted) >= 3 * KILLS
        for member in members:
            wait_until(partial(_knows, member, wanted), "all topics everywhere")
        first, *others = [seen_at(member) for member in members]
        assert all(other == first for other in others)
        for name, value in wanted.items():
            partitions, found = first[name]
            assert partitions == 2, f"{name} is there by halves"
            if value and name not in changer.uncertain:
                assert found == value, name
        unknown = first.keys() - wanted.keys() - changer.uncertain
        assert not unknown, "nothing comes from nowhere"


def test_a_static_quorum_becomes_a_dynamic_one(tmp_path: Path) -> None:
    with QuorumOfProcesses(tmp_path, {1: OTTLA, 2: OTTLA, 3: OTTLA}, is_static=True) as quorum:
        quorum.start()
        leader = quorum.wait_for_leader()
        members = quorum.members.values()
        wait_until(lambda: all("ready" in one.read_log() for one in members), "serving")
        update = FeatureUpdateKey(feature="kraft.version", max_version_level=1, upgrade_type=1)

        def upgrade() -> bool:
            # The voters tell the leader their directory ids by and by.
            with PlainClient(quorum.members[leader].bootstrap, timeout_s=60) as client:
                answer = client.ask(UpdateFeaturesRequest(feature_updates=(update,)))
            return bool(answer.error_code is ErrorCode.NONE)

        wait_until(upgrade, "the upgrade")
        for member in members:
            log = member.data_directory / "__cluster_metadata-0" / "00000000000000000000.log"
            wait_until(partial(_has, log, b"CONTROLLER"), "a record that names the voters")
        quorum.members[leader].stop()
        leader = quorum.wait_for_leader(other_than=leader)
        voters = quorum.describe(quorum.members[leader]).current_voters
        assert all(any(bytes(voter.replica_directory_id)) for voter in voters), "their directories are known"
