"""Peers of the quorum that are wrong or mean harm, at the controller listener of a real node."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.java.apache_kafka import CLUSTER_ID
from tests.support.plain_client import PlainClient
from tests.support.quorum_members import OTTLA, Member, QuorumOfProcesses

from ottla.model.uuid import METADATA_TOPIC_ID, ZERO_UUID, Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import (
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    update_raft_voter,
    vote,
)
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest

TOPIC = "__cluster_metadata"
STRANGER = Uuid(b"strange-strange-")


@pytest.fixture(scope="module")
def member(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Member]:
    root: Path = tmp_path_factory.mktemp("quorum")
    with QuorumOfProcesses(root, {1: OTTLA}) as quorum:
        quorum.start()
        quorum.wait_for_leader()
        yield quorum.members[1]


def ask(member: Member, request: Any) -> Any:
    with PlainClient(member.controller, timeout_s=30) as client:
        return client.ask(request)


def vote_of(
    epoch: int, *, cluster_id: str = CLUSTER_ID, voter_id: int = 1, directory: Uuid = ZERO_UUID
) -> vote.VoteRequest:
    partition = vote.VotePartition(
        partition_index=0, replica_epoch=epoch, replica_id=2, replica_directory_id=STRANGER,
        voter_directory_id=directory, last_offset_epoch=0, last_offset=0, pre_vote=False,
    )  # fmt: skip
    topic = vote.VoteTopic(topic_name=TOPIC, partitions=(partition,))
    return vote.VoteRequest(cluster_id=cluster_id, voter_id=voter_id, topics=(topic,))


def fetch_of(**fields: Any) -> fetch.FetchRequest:
    known: dict[str, Any] = {"current_leader_epoch": 1, "last_fetched_epoch": 0, "fetch_offset": 0}
    partition = fetch.FetchPartition(partition=0, partition_max_bytes=0, **{**known, **fields})
    topic = fetch.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(partition,))
    state = fetch.ReplicaState(replica_id=7, replica_epoch=-1)
    return fetch.FetchRequest(
        cluster_id=CLUSTER_ID, replica_state=state, max_wait_ms=0, min_bytes=0, max_bytes=1 << 20,
        topics=(topic,),
    )  # fmt: skip


def test_another_cluster_is_refused_by_every_request(member: Member) -> None:
    wrong = "b3RoZXItY2x1c3Rlci0wMQ"
    levels = update_raft_voter.KRaftVersionFeature(min_supported_version=0, max_supported_version=1)
    requests: list[Any] = [
        vote_of(9, cluster_id=wrong),
        begin_quorum_epoch.BeginQuorumEpochRequest(
            cluster_id=wrong, voter_id=1, topics=(), leader_endpoints=()
        ),
        end_quorum_epoch.EndQuorumEpochRequest(cluster_id=wrong, topics=(), leader_endpoints=()),
        fetch.FetchRequest(cluster_id=wrong, max_wait_ms=0, min_bytes=0, topics=()),
        fetch_snapshot.FetchSnapshotRequest(cluster_id=wrong, topics=()),
        AddRaftVoterRequest(
            cluster_id=wrong, timeout_ms=1, voter_id=2, voter_directory_id=STRANGER, listeners=()
        ),
        RemoveRaftVoterRequest(cluster_id=wrong, voter_id=1, voter_directory_id=STRANGER),
        update_raft_voter.UpdateRaftVoterRequest(
            cluster_id=wrong,
            current_leader_epoch=1,
            voter_id=1,
            voter_directory_id=STRANGER,
            listeners=(),
            kraft_version_feature=levels,
        ),
    ]
    for request in requests:
        assert ask(member, request).error_code is ErrorCode.INCONSISTENT_CLUSTER_ID, type(request).__name__


def test_votes_of_old_epochs_and_for_other_voters_are_refused(member: Member) -> None:
    (result,) = ask(member, vote_of(0)).topics[0].partitions
    assert result.error_code in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_REQUEST)
    (result,) = ask(member, vote_of(1)).topics[0].partitions
    assert not result.vote_granted, "it leads this epoch"
    (result,) = ask(member, vote_of(1, directory=STRANGER)).topics[0].partitions
    assert result.error_code is ErrorCode.INVALID_VOTER_KEY
    (result,) = ask(member, vote_of(1, voter_id=5)).topics[0].partitions
    assert result.error_code is ErrorCode.INVALID_VOTER_KEY


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"fetch_offset": -1}, ErrorCode.INVALID_REQUEST),
        ({"last_fetched_epoch": 9}, ErrorCode.INVALID_REQUEST),
        ({"current_leader_epoch": 99}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"current_leader_epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
    ],
)
def test_a_fetch_that_makes_no_sense_is_refused(
    member: Member, fields: dict[str, Any], error: ErrorCode
) -> None:
    (data,) = ask(member, fetch_of(**fields)).responses[0].partitions
    assert data.error_code is error


def test_a_log_that_departs_is_told_where(member: Member) -> None:
    (data,) = ask(member, fetch_of(fetch_offset=1 << 40, last_fetched_epoch=1)).responses[0].partitions
    assert data.error_code is ErrorCode.NONE
    assert data.diverging_epoch.epoch == 1


def test_a_snapshot_that_is_not_there_is_refused(member: Member) -> None:
    for end_offset, epoch in ((0, 0), (1 << 40, 3), (-5, -5)):
        partition = fetch_snapshot.FetchSnapshotPartition(
            partition=0,
            current_leader_epoch=1,
            snapshot_id=fetch_snapshot.SnapshotId(end_offset=end_offset, epoch=epoch),
            position=0,
        )
        topic = fetch_snapshot.FetchSnapshotTopic(name=TOPIC, partitions=(partition,))
        answer = ask(member, fetch_snapshot.FetchSnapshotRequest(cluster_id=CLUSTER_ID, topics=(topic,)))
        assert answer.topics[0].partitions[0].error_code is ErrorCode.SNAPSHOT_NOT_FOUND


def test_a_voter_that_nobody_can_reach_is_not_added(member: Member) -> None:
    listeners = (Listener(name="CONTROLLER", host="127.0.0.1", port=1),)
    request = AddRaftVoterRequest(
        cluster_id=CLUSTER_ID, timeout_ms=1000, voter_id=2, voter_directory_id=STRANGER, listeners=listeners
    )
    assert ask(member, request).error_code is ErrorCode.REQUEST_TIMED_OUT
    removal = RemoveRaftVoterRequest(cluster_id=CLUSTER_ID, voter_id=1, voter_directory_id=STRANGER)
    assert ask(member, removal).error_code is ErrorCode.VOTER_NOT_FOUND


def test_garbage_closes_its_connection_and_nothing_else(member: Member) -> None:
    for key in (52, 53, 54, 59, 82):
        body = struct.pack(">hhih", key, 0 if key == 82 else 1, 7, -1) + b"\x00" + b"\xff" * 40
        with PlainClient(member.controller, timeout_s=30) as client:
            client._socket.sendall(struct.pack(">i", len(body)) + body)
            assert client._socket.recv(10) == b""
    (result,) = ask(member, vote_of(1)).topics[0].partitions
    assert not result.vote_granted
