"""Fetch and FetchSnapshot as the leader serves them and as a follower takes them: each rule, each error."""

from typing import Any

import pytest
from tests.unit.quorum.raft.quorum_of_three import PATH, Peer, altered, directory, endpoint, key

from ottla.model.ids import Offset
from ottla.quorum.raft import messages
from ottla.quorum.raft.effects import (
    HighWatermarkMoved,
    LeaderChanged,
    LogTruncated,
    Refused,
    Reply,
    Send,
    SnapshotLoaded,
)
from ottla.quorum.raft.metadata_log import CommittedLost, OffsetAndEpoch
from ottla.quorum.raft.states import Follower
from ottla.quorum.snapshot_file import FORMAT_SNAPSHOT, SnapshotId, encode_snapshot
from ottla.quorum.voters import VoterHistory
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import describe_quorum
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.fetch_snapshot import FetchSnapshotRequest

SNAPSHOT = SnapshotId(Offset(40), 3)


def data(response: Any) -> Any:
    (topic,) = response.responses
    (partition,) = topic.partitions
    return partition


def piece(response: Any) -> Any:
    return response.topics[0].partitions[0]


def changed(request: FetchRequest, **fields: Any) -> Any:
    topic = request.topics[0]
    return altered(request, topics=(altered(topic, partitions=(altered(topic.partitions[0], **fields),)),))


@pytest.fixture
def leader() -> Peer:
    peer = Peer()
    peer.lead()
    return peer


def follower(epoch: int = 4, **settings: Any) -> Peer:
    """Return node 1, which follows node 2 and has a fetch under way."""
    peer = Peer(**settings)
    peer.ask(messages.begin_epoch_request(peer.settings._replace(me=key(2)), key(1), epoch))
    assert peer.is_a(Follower)
    return peer


def answered(peer: Peer, **fields: Any) -> list[Any]:
    """Let the leader answer the fetch that is under way."""
    (send,) = [one for one in peer.effects if isinstance(one, Send)]
    info = messages.LeaderInfo(2, peer.replica.epoch)
    error = fields.pop("error", ErrorCode.NONE)
    high_watermark = fields.pop("high_watermark", None)
    part = messages.fetched_data(info, error, Offset(0), high_watermark, **fields)
    return peer.answer(send, messages.fetch_response(info, 18, part))


def batch(offset: int, epoch: int, payload: bytes = b"x") -> bytes:
    return bytes(build_batch([Record(offset, 0, None, payload)], base_offset=offset, leader_epoch=epoch))


# The leader.


def test_a_fetch_of_another_cluster_is_refused(leader: Peer) -> None:
    response = leader.ask(altered(leader.fetch(2), cluster_id="another"))
    assert response.error_code is ErrorCode.INCONSISTENT_CLUSTER_ID


def test_a_fetch_of_another_topic_is_invalid(leader: Peer) -> None:
    request = leader.fetch(2)
    other = altered(request, topics=(altered(request.topics[0], topic_id=directory(7)),))
    assert leader.ask(other).error_code is ErrorCode.INVALID_REQUEST
    assert leader.ask(altered(request, topics=request.topics * 2)).error_code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "fields", [{"fetch_offset": -1}, {"last_fetched_epoch": -1}, {"last_fetched_epoch": 2}]
)
def test_an_impossible_fetch_is_invalid(leader: Peer, fields: dict[str, int]) -> None:
    request = changed(leader.fetch(2), **fields)
    assert data(leader.ask(request)).error_code is ErrorCode.INVALID_REQUEST


def test_a_negative_wait_is_invalid(leader: Peer) -> None:
    assert data(leader.ask(altered(leader.fetch(2), max_wait_ms=-1))).error_code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("epoch", "error"), [(0, ErrorCode.FENCED_LEADER_EPOCH), (9, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_a_fetch_of_another_epoch_is_refused(leader: Peer, epoch: int, error: ErrorCode) -> None:
    answer = data(leader.ask(leader.fetch(2, 0, 0, current=epoch)))
    assert answer.error_code is error
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (1, 1)


def test_who_does_not_lead_names_the_leader() -> None:
    peer = follower()
    response = peer.ask(peer.fetch(3, 0, 0))
    assert data(response).error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert data(response).current_leader.leader_id == 2
    assert [node.node_id for node in response.node_endpoints] == [2]
    assert peer.ask(peer.fetch(3, 0, 0), version=16).node_endpoints == ()


def test_a_leader_that_stops_is_not_available(leader: Peer) -> None:
    leader.replica.stop_ms = leader.now_ms + 100
    assert data(leader.ask(leader.fetch(2))).error_code is ErrorCode.BROKER_NOT_AVAILABLE


def test_records_are_given_before_they_are_committed(leader: Peer) -> None:
    answer = data(leader.ask(leader.fetch(2, 0, 0)))
    assert answer.high_watermark == -1
    assert len(answer.records) > 0


def test_the_leader_counts_itself_only_when_synced(leader: Peer) -> None:
    leader.ask(leader.fetch(2))
    assert leader.replica.high_watermark is None
    leader.sync()
    assert leader.replica.high_watermark == leader.replica.log.end_offset


def test_nothing_is_committed_without_a_record_of_the_epoch(leader: Peer) -> None:
    leader.sync()
    leader.ask(leader.fetch(2, 0, 0))
    leader.ask(leader.fetch(3, 0, 0))
    assert leader.replica.high_watermark is None


def test_another_directory_of_a_voter_does_not_count(leader: Peer) -> None:
    leader.sync()
    leader.ask(changed(leader.fetch(2), replica_directory_id=directory(9)))
    assert leader.replica.high_watermark is None


def test_a_fetch_waits_for_records(leader: Peer) -> None:
    leader.commit()
    request = changed(leader.fetch(2), high_watermark=leader.replica.high_watermark)
    assert leader.ask(request) is None
    leader.append()
    (reply,) = [one for one in leader.effects if isinstance(one, Reply)]
    assert len(data(reply.response).records) > 0


def test_a_fetch_waits_for_the_high_watermark(leader: Peer) -> None:
    leader.sync()
    assert leader.ask(leader.fetch(3)) is not None or leader.replica.high_watermark is not None
    request = changed(leader.fetch(3), high_watermark=leader.replica.high_watermark)
    assert leader.ask(request) is None
    leader.append()
    assert any(isinstance(one, Reply) for one in leader.effects)


def test_a_fetch_waits_no_longer_than_it_wants(leader: Peer) -> None:
    leader.commit()
    assert leader.ask(changed(leader.fetch(3), high_watermark=99)) is None
    leader.wait(499)
    assert not any(isinstance(one, Reply) for one in leader.effects)
    leader.wait(1)
    (reply,) = [one for one in leader.effects if isinstance(one, Reply)]
    assert data(reply.response).error_code is ErrorCode.NONE


def test_who_waits_is_told_of_a_lost_leadership(leader: Peer) -> None:
    leader.commit()
    assert leader.ask(changed(leader.fetch(3), high_watermark=99)) is None
    leader.take(leader.replica.resign(leader.replica.epoch, leader.now))
    (reply,) = [one for one in leader.effects if isinstance(one, Reply)]
    assert data(reply.response).error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_log_that_departs_is_told_where(leader: Peer) -> None:
    end = leader.replica.log.end
    answer = data(leader.ask(leader.fetch(2, end.offset + 5, end.epoch)))
    assert (answer.diverging_epoch.end_offset, answer.diverging_epoch.epoch) == end


def write_snapshot(peer: Peer, snapshot_id: SnapshotId) -> bytes:
    content = b"".join(encode_snapshot((), 30, snapshot_id.epoch, 0, VoterHistory(), 0))
    peer.disk.write_file_atomically(f"{PATH}/{snapshot_id.file_name}", content)
    peer.replica.snapshots_changed()
    return content


def fetch_piece(peer: Peer, snapshot_id: SnapshotId, position: int, epoch: int | None = None) -> Any:
    settings = peer.settings._replace(me=key(2))
    return messages.fetch_snapshot_request(
        settings, peer.replica.epoch if epoch is None else epoch, snapshot_id, position
    )


def test_an_empty_log_is_sent_to_the_snapshot(leader: Peer) -> None:
    snapshot_id = SnapshotId(leader.replica.log.end_offset, 1)
    content = write_snapshot(leader, snapshot_id)
    answer = data(leader.ask(leader.fetch(3, 0, 0)))
    assert SnapshotId(answer.snapshot_id.end_offset, answer.snapshot_id.epoch) == snapshot_id
    part = piece(leader.ask(fetch_piece(leader, snapshot_id, 10)))
    assert (part.size, part.position, bytes(part.unaligned_records)) == (len(content), 10, content[10:])


def test_refusals_of_snapshots(leader: Peer) -> None:
    snapshot_id = SnapshotId(leader.replica.log.end_offset, 1)
    content = write_snapshot(leader, snapshot_id)

    def error(request: Any) -> ErrorCode:
        found: ErrorCode = piece(leader.ask(request)).error_code
        return found

    assert error(fetch_piece(leader, SnapshotId(Offset(7), 1), 0)) is ErrorCode.SNAPSHOT_NOT_FOUND
    assert error(fetch_piece(leader, SnapshotId(Offset(0), 0), 0)) is ErrorCode.SNAPSHOT_NOT_FOUND
    assert error(fetch_piece(leader, snapshot_id, len(content))) is ErrorCode.POSITION_OUT_OF_RANGE
    assert error(fetch_piece(leader, snapshot_id, -1)) is ErrorCode.POSITION_OUT_OF_RANGE
    assert error(fetch_piece(leader, snapshot_id, 0, epoch=0)) is ErrorCode.FENCED_LEADER_EPOCH
    assert error(fetch_piece(leader, snapshot_id, 0, epoch=9)) is ErrorCode.UNKNOWN_LEADER_EPOCH
    other = altered(fetch_piece(leader, snapshot_id, 0), cluster_id="another")
    assert leader.ask(other).error_code is ErrorCode.INCONSISTENT_CLUSTER_ID


# The follower.


def test_a_follower_fetches_on_when_it_has_synced() -> None:
    peer = follower()
    answered(peer, records=batch(0, 4), high_watermark=1)
    assert peer.replica.high_watermark == 1
    assert peer.sent(FetchRequest) == []
    peer.sync()
    (send,) = peer.sent(FetchRequest)
    assert send.request.topics[0].partitions[0].fetch_offset == 1


def test_an_observer_that_cannot_vote_need_not_sync() -> None:
    peer = follower(voters=(2, 3), can_become_voter=False)
    answered(peer, records=batch(0, 4))
    assert len(peer.sent(FetchRequest)) == 1


@pytest.mark.parametrize(
    "records", [batch(3, 4), batch(0, 5), batch(0, 4) + batch(1, 3), batch(0, 4)[:-1] + b"?", b"\xff" * 80]
)
def test_records_that_cannot_be_right_are_refused(records: bytes) -> None:
    peer = follower()
    answered(peer, records=records)
    assert peer.replica.log.end_offset == 0
    assert any(isinstance(one, Refused) for one in peer.effects)


def test_a_follower_cuts_off_what_the_leader_lacks() -> None:
    peer = follower()
    answered(peer, records=batch(0, 3) + batch(1, 4))
    peer.sync()
    answered(peer, diverging=OffsetAndEpoch(Offset(1), 3))
    assert peer.replica.log.end == (1, 3)
    assert LogTruncated(Offset(1)) in peer.effects


def test_what_is_committed_is_not_cut_off() -> None:
    peer = follower()
    answered(peer, records=batch(0, 3) + batch(1, 4), high_watermark=2)
    peer.sync()
    with pytest.raises(CommittedLost):
        answered(peer, diverging=OffsetAndEpoch(Offset(1), 3))


def loading(bytes_max: int = 1 << 20) -> Peer:
    peer = follower(fetch_snapshot_bytes_max=bytes_max)
    answered(peer, snapshot_id=SNAPSHOT)
    assert len(peer.sent(FetchSnapshotRequest)) == 1
    return peer


def give(peer: Peer, part: messages.Slice, error: ErrorCode = ErrorCode.NONE) -> None:
    (send,) = peer.sent(FetchSnapshotRequest)
    info = messages.LeaderInfo(2, peer.replica.epoch)
    peer.answer(send, messages.fetch_snapshot_response(info, 1, error, part))


CONTENT = b"".join(encode_snapshot((), 30, SNAPSHOT.epoch, 0, VoterHistory(), 0))


def test_a_snapshot_is_loaded_piece_by_piece() -> None:
    peer = loading(bytes_max=50)
    for position in range(0, len(CONTENT), 50):
        give(peer, messages.Slice(SNAPSHOT, len(CONTENT), position, CONTENT[position : position + 50]))
    assert peer.replica.log.end == (40, 3)
    assert SnapshotLoaded(SNAPSHOT) in peer.effects
    assert HighWatermarkMoved(Offset(40)) in peer.effects
    peer.sync()
    (send,) = peer.sent(FetchRequest)
    assert send.request.topics[0].partitions[0].fetch_offset == 40


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(messages.Slice(SNAPSHOT, len(CONTENT), 5, CONTENT[5:]), id="another position"),
        pytest.param(
            messages.Slice(SnapshotId(Offset(41), 3), len(CONTENT), 0, CONTENT), id="another snapshot"
        ),
        pytest.param(messages.Slice(SNAPSHOT, len(CONTENT) - 1, 0, CONTENT), id="more than its size"),
        pytest.param(messages.Slice(SNAPSHOT, 40, 0, CONTENT[:40]), id="cut short"),
        pytest.param(messages.Slice(SNAPSHOT, 100, 0, b""), id="nothing"),
        pytest.param(messages.Slice(SNAPSHOT, 1 << 40, 0, CONTENT), id="huge"),
        pytest.param(messages.Slice(SNAPSHOT, 80, 0, b"\xff" * 80), id="garbage"),
    ],
)
def test_a_bad_snapshot_is_refused(part: messages.Slice) -> None:
    peer = loading()
    give(peer, part)
    assert peer.replica.log.end_offset == 0
    assert any(isinstance(one, Refused) for one in peer.effects)
    assert [one.name for one in peer.disk.list(PATH) if one.name.endswith(".part")] == []


def test_a_snapshot_that_is_gone_is_not_waited_for() -> None:
    peer = loading()
    give(peer, messages.Slice(SNAPSHOT, 0, 0, b""), ErrorCode.SNAPSHOT_NOT_FOUND)
    assert len(peer.sent(FetchRequest)) == 1


@pytest.mark.parametrize(
    "stale", [SnapshotId(Offset(1), 4), SnapshotId(Offset(0), 0), SnapshotId(Offset(9), 5)]
)
def test_a_stale_snapshot_is_refused(stale: SnapshotId) -> None:
    peer = follower()
    answered(peer, records=batch(0, 4) + batch(1, 4), high_watermark=2)
    peer.sync()
    answered(peer, snapshot_id=stale)
    assert peer.sent(FetchSnapshotRequest) == []
    assert any(isinstance(one, Refused) for one in peer.effects)


def test_the_only_server_is_asked_again_if_it_never_answers() -> None:
    peer = Peer((2,), can_become_voter=False)
    assert len(peer.sent(FetchRequest)) == 1
    peer.wait(peer.settings.request_timeout_ms)
    assert len(peer.sent(FetchRequest)) == 1


def test_a_server_that_has_not_heard_of_the_epoch_is_not_asked_again_at_once() -> None:
    peer = Peer((2,), can_become_voter=False)
    (send,) = peer.sent(FetchRequest)
    peer.answer(send, messages.fetch_response(messages.LeaderInfo(3, 2), 18, _refused_as_too_new()))
    assert peer.sent(FetchRequest) == []
    peer.wait(peer.settings.retry_backoff_ms)
    assert len(peer.sent(FetchRequest)) == 1


def _refused_as_too_new() -> Any:
    info = messages.LeaderInfo(3, 2)
    return messages.fetched_data(info, ErrorCode.UNKNOWN_LEADER_EPOCH, Offset(0), None)


def test_who_knows_its_leader_by_id_alone_learns_where_it_is() -> None:
    peer = follower(voters=(3,), can_become_voter=False)
    peer.disk.kill()
    peer.start()
    assert not peer.is_a(Follower)
    (send,) = peer.sent(FetchRequest)
    info = messages.LeaderInfo(2, 4, (peer.settings.endpoints[0],))
    part = messages.fetched_data(info, ErrorCode.NONE, Offset(0), None, batch(0, 4))
    peer.answer(send, messages.fetch_response(info, 18, part))
    assert peer.is_a(Follower)
    assert peer.replica.log.end_offset == 1


def test_the_leader_is_on_disk_before_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = Peer()
    (send,) = peer.sent(FetchRequest)
    info = messages.LeaderInfo(2, 4, (peer.settings.endpoints[0],))
    part = messages.fetched_data(info, ErrorCode.NONE, Offset(0), None, batch(0, 4))
    peer.ask(
        messages.vote_request(
            peer.settings._replace(me=key(3)), key(1), 4, peer.replica.log.end, is_pre_vote=False
        )
    )
    (send,) = peer.sent(FetchRequest)
    order: Any = []
    store, log = peer.replica._store, peer.replica.log
    write, append = store.write, log.append_as_follower
    monkeypatch.setattr(store, "write", lambda *a: order.append("state") or write(*a))
    monkeypatch.setattr(log, "append_as_follower", lambda *a: order.append("records") or append(*a))
    peer.answer(send, messages.fetch_response(info, 18, part))
    assert order == ["state", "records"]


def test_a_leader_describes_its_log_with_what_it_has_not_synced_yet(leader: Peer) -> None:
    """A follower may have it on disk already, and would be ahead of its leader otherwise."""
    partition = describe_quorum.DescribeQuorumPartition(partition_index=0)
    topic = describe_quorum.DescribeQuorumTopic(topic_name="__cluster_metadata", partitions=(partition,))
    end_offset = leader.replica.log.end_offset
    assert end_offset > 0
    answer = leader.ask(describe_quorum.DescribeQuorumRequest(topics=(topic,)))
    (me,) = [one for one in answer.topics[0].partitions[0].current_voters if one.replica_id == 1]
    assert me.log_end_offset == end_offset


def test_it_is_told_when_it_is_known_where_a_leader_is_that_was_known_before() -> None:
    peer = follower()
    peer.disk.remove(f"{PATH}/{FORMAT_SNAPSHOT.file_name}")
    peer.start()
    assert (peer.replica.leader_id, peer.state.leader_endpoints) == (2, ())
    (send,) = peer.sent(FetchRequest)
    info = messages.LeaderInfo(2, peer.replica.epoch, (endpoint(2),))
    part = messages.fetched_data(info, ErrorCode.NOT_LEADER_OR_FOLLOWER, Offset(0), None)
    peer.answer(send, messages.fetch_response(info, 18, part))
    assert peer.is_a(Follower)
    assert LeaderChanged(2, peer.replica.epoch, (endpoint(2),)) in peer.effects
