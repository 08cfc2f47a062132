"""Quorums of our controllers and Apache Kafka's: leadership moves between them, and the logs are the same."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from tests.java.jars import QUICK_START, java_classpath
from tests.support.deciding import new_topic
from tests.support.plain_client import PlainClient
from tests.support.quorum_members import APACHE, OTTLA, Member, QuorumOfProcesses, wait_until

from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.metadata import MetadataRequest

FEW_BYTES = {"metadata.log.max.record.bytes.between.snapshots": "4000"}
# The leader keeps hardly more of its log than the latest snapshot needs.
SHORT_LOG = FEW_BYTES | {
    "internal.metadata.log.segment.bytes": "8000",
    "metadata.max.retention.bytes": "8000",
}
TURNS_MAX = 24
"""How many leaders are ended until each kind has led. Who is elected is chance; Ottla is often quicker."""
NOT_YET = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER, ErrorCode.INVALID_REPLICATION_FACTOR)


def create_topic(member: Member, name: str) -> None:
    """Create a topic by way of one member. While the leadership moves, that takes more than one try."""

    def create() -> bool:
        with PlainClient(member.bootstrap, timeout_s=30) as client:
            error = client.ask(CreateTopicsRequest(topics=(new_topic(name, 2, 1),))).topics[0].error_code
        assert error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS, *NOT_YET), error
        return error not in NOT_YET

    wait_until(create, f"creating {name} at node {member.node_id}")


def topics_at(member: Member) -> set[str]:
    with PlainClient(member.bootstrap, timeout_s=30) as client:
        return {topic.name for topic in client.ask(MetadataRequest(topics=None)).topics}


def _has_all(member: Member, wanted: set[str]) -> bool:
    return topics_at(member) >= wanted


def quorum_tool(*arguments: str) -> str:
    """Run kafka-metadata-quorum, and return what it printed."""
    main_class = "org.apache.kafka.tools.MetadataQuorumCommand"
    command = ["java", *QUICK_START, "-cp", java_classpath(), main_class, *arguments]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    assert done.returncode == 0, done.stdout
    return done.stdout


def batches_of(member: Member) -> dict[str, bytes]:
    """Return the segments of the metadata log by name."""
    directory = member.data_directory / "__cluster_metadata-0"
    return {path.name: path.read_bytes() for path in sorted(directory.glob("*.log"))}


def check_same_logs(members: Sequence[Member]) -> None:
    """See that the logs have the same bytes as far as all of them have any."""
    first, *others = [batches_of(member) for member in members]
    for other in others:
        for name in first.keys() & other.keys():
            size = min(len(first[name]), len(other[name]))
            assert first[name][:size] == other[name][:size], name
        assert first.keys() & other.keys(), "they have a segment in common"


@pytest.mark.parametrize("kinds", [(OTTLA, APACHE, APACHE), (OTTLA, OTTLA, APACHE)], ids="-".join)
@pytest.mark.thorough(guard="tests/simulation/raft/test_quorum.py")
def test_leadership_moves_between_our_controllers_and_those_of_apache_kafka(
    kinds: Sequence[str], tmp_path: Path
) -> None:
    wanted: set[str] = set()
    led: set[str] = set()
    with QuorumOfProcesses(tmp_path, dict(enumerate(kinds, 1))) as quorum:
        quorum.start()
        leader = quorum.wait_for_leader()
        for turn in range(TURNS_MAX):
            for member in quorum.members.values():
                wanted.add(f"t-{turn}-{member.node_id}")
                create_topic(member, f"t-{turn}-{member.node_id}")
            led.add(quorum.members[leader].kind)
            if len(led) == 2 and turn >= 2:
                break
            old = quorum.members[leader]
            (old.stop if turn % 2 else old.kill)()
            leader = quorum.wait_for_leader(other_than=leader)
            old.start()
        assert led == {OTTLA, APACHE}, "each kind has led"
        for member in quorum.members.values():
            wait_until(partial(_has_all, member, wanted), f"node {member.node_id} has all topics")
        for member in quorum.members.values():
            member.kill()
        check_same_logs(list(quorum.members.values()))


@pytest.mark.thorough(guard="tests/simulation/raft/test_quorum.py")
def test_kafka_metadata_quorum_describes_removes_and_adds_voters_of_both_kinds(tmp_path: Path) -> None:
    with QuorumOfProcesses(tmp_path, {1: OTTLA, 2: OTTLA, 3: APACHE}, settings=FEW_BYTES) as quorum:
        quorum.start()
        leader = quorum.wait_for_leader()
        for number in range(20):
            create_topic(quorum.members[leader], f"t-{number}")
        for member in quorum.members.values():
            # Each forwards it to the leader, or is the leader.
            told = quorum_tool("--bootstrap-server", member.bootstrap, "describe", "--status")
            assert re.search(rf"LeaderId: +{leader}\b", told), told
        for kind in (APACHE, OTTLA):
            leader = replace_voter(quorum, leader, kind, tmp_path)
        wanted = {f"t-{number}" for number in range(20)}
        for member in quorum.members.values():
            wait_until(partial(_has_all, member, wanted), f"node {member.node_id} has all topics")


def replace_voter(quorum: QuorumOfProcesses, leader: int, kind: str, tmp_path: Path) -> int:
    """Take a voter of a kind out, give it an empty disk, and let it vote again. Returns who leads then."""
    member = next(
        one
        for one in quorum.members.values()
        if one.kind == kind and (one.node_id != leader or kind == APACHE)
    )
    controllers = quorum.members[leader].controller
    quorum_tool(
        "--bootstrap-controller", controllers, "remove-controller",
        "--controller-id", str(member.node_id), "--controller-directory-id", str(member.directory_id),
    )  # fmt: skip
    leader = quorum.wait_for_leader(other_than=member.node_id)
    member.stop()
    shutil.rmtree(member.data_directory)
    member.format_options = ["--no-initial-controllers"]
    member.start()
    described = wait_until(
        lambda: next(
            (
                one
                for one in quorum.describe(quorum.members[leader]).observers
                if one.replica_id == member.node_id
            ),
            None,
        ),
        "an observer",
    )
    member.directory_id = described.replica_directory_id
    snapshots = member.data_directory / "__cluster_metadata-0"
    wait_until(lambda: list(snapshots.glob("*[1-9]-*.checkpoint")), "loading a snapshot of the leader")
    config = tmp_path / f"node{member.node_id}.properties"

    def add() -> bool:
        try:
            told = quorum_tool(
                "--command-config", str(config),
                "--bootstrap-controller", quorum.members[leader].controller, "add-controller",
            )  # fmt: skip
        except AssertionError:
            # It may not have caught up yet.
            return False
        return "Added" in told

    wait_until(add, "adding a voter")
    voters = quorum.describe(quorum.members[leader]).current_voters
    assert member.node_id in [voter.replica_id for voter in voters]
    return leader


def first_offset(member: Member) -> int:
    """Return where the metadata log of a member begins."""
    return min(int(name.removesuffix(".log")) for name in batches_of(member))


@pytest.mark.parametrize("kinds", [(APACHE, OTTLA), (OTTLA, APACHE)], ids="-".join)
@pytest.mark.thorough(guard="tests/golden/test_metadata_logs.py")
def test_a_new_node_begins_with_the_snapshot_of_a_leader_of_the_other_kind(
    kinds: Sequence[str], tmp_path: Path
) -> None:
    with QuorumOfProcesses(tmp_path, {1: kinds[0]}, settings=SHORT_LOG) as quorum:
        quorum.start()
        leader = quorum.members[quorum.wait_for_leader()]
        wanted = {f"t-{number}" for number in range(100)}
        for name in wanted:
            create_topic(leader, name)
        # Apache Kafka looks once a minute.
        wait_until(lambda: first_offset(leader) > 0, "the leader deletes old segments")
        new = quorum.add(tmp_path, 2, kinds[1], SHORT_LOG)
        new.start()
        wait_until(partial(_has_all, new, wanted), "the new node has all topics")
        assert first_offset(new) > 0
