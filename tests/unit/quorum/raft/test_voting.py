"""Vote, BeginQuorumEpoch and EndQuorumEpoch: what is granted, and each error."""

from typing import Any

import pytest
from tests.unit.quorum.raft.quorum_of_three import Peer, altered, directory, endpoint, key

from ottla.model.ids import Offset
from ottla.quorum.raft import messages
from ottla.quorum.raft.effects import Send
from ottla.quorum.raft.metadata_log import OffsetAndEpoch
from ottla.quorum.raft.states import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.wire.messages.end_quorum_epoch import EndQuorumEpochRequest
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.vote import VoteRequest


def vote(
    peer: Peer, epoch: int, end: tuple[int, int] = (0, 0), node_id: int = 2, pre_vote: bool = False
) -> Any:
    settings = peer.settings._replace(me=key(node_id))
    at = OffsetAndEpoch(Offset(end[0]), end[1])
    return messages.vote_request(settings, key(1), epoch, at, is_pre_vote=pre_vote)


def begin(peer: Peer, epoch: int, node_id: int = 2) -> Any:
    settings = peer.settings._replace(me=key(node_id), endpoints=(peer.settings.endpoints[0],))
    return messages.begin_epoch_request(settings, key(1), epoch)


def result(response: Any) -> Any:
    (topic,) = response.topics
    (partition,) = topic.partitions
    return partition


def test_a_vote_is_given_once_and_survives_a_crash() -> None:
    peer = Peer()
    assert result(peer.ask(vote(peer, 1))).vote_granted
    peer.disk.kill()
    peer.start()
    assert not result(peer.ask(vote(peer, 1, node_id=3))).vote_granted
    assert result(peer.ask(vote(peer, 1))).vote_granted


def test_another_directory_of_the_same_node_gets_no_second_vote() -> None:
    peer = Peer()
    assert result(peer.ask(vote(peer, 1))).vote_granted
    settings = peer.settings._replace(me=key(2)._replace(directory_id=directory(9)))
    other = messages.vote_request(settings, key(1), 1, OffsetAndEpoch(Offset(0), 0), is_pre_vote=False)
    assert not result(peer.ask(other)).vote_granted


def test_a_vote_needs_a_log_that_is_as_good() -> None:
    peer = Peer()
    epoch = peer.lead()
    assert not result(peer.ask(vote(peer, epoch + 1, end=(99, epoch - 1)))).vote_granted
    end = peer.replica.log.end
    assert result(peer.ask(vote(peer, epoch + 2, end=(end.offset, end.epoch)))).vote_granted


@pytest.mark.parametrize(
    ("end", "pre_vote"), [((-1, 0), False), ((0, -1), False), ((0, 5), False), ((0, 6), True)]
)
def test_an_impossible_log_is_invalid(end: tuple[int, int], pre_vote: bool) -> None:
    peer = Peer()
    assert result(peer.ask(vote(peer, 5, end, pre_vote=pre_vote))).error_code is ErrorCode.INVALID_REQUEST


def test_a_pre_vote_may_have_records_of_its_epoch() -> None:
    peer = Peer()
    assert result(peer.ask(vote(peer, 5, (3, 5), pre_vote=True))).vote_granted
    assert peer.replica.epoch == 5
    assert peer.state.voted is None


def test_an_old_epoch_is_fenced() -> None:
    peer = Peer()
    peer.ask(vote(peer, 7))
    answer = result(peer.ask(vote(peer, 6)))
    assert (answer.error_code, answer.leader_epoch) == (ErrorCode.FENCED_LEADER_EPOCH, 7)
    assert result(peer.ask(begin(peer, 6))).error_code is ErrorCode.FENCED_LEADER_EPOCH


def test_a_candidate_without_an_id_is_invalid() -> None:
    peer = Peer()
    request = _with_replica(vote(peer, 1), -1)
    assert result(peer.ask(request)).error_code is ErrorCode.INVALID_REQUEST


def _with_replica(request: VoteRequest, replica_id: int) -> Any:
    topic = request.topics[0]
    partition = altered(topic.partitions[0], replica_id=replica_id)
    return altered(request, topics=(altered(topic, partitions=(partition,)),))


@pytest.mark.parametrize("make", [vote, begin])
def test_another_cluster_is_refused(make: Any) -> None:
    peer = Peer()
    response = peer.ask(altered(make(peer, 1), cluster_id="another"))
    assert (response.error_code, response.topics) == (ErrorCode.INCONSISTENT_CLUSTER_ID, ())
    assert peer.ask(altered(make(peer, 1), cluster_id=None)).error_code is ErrorCode.NONE


@pytest.mark.parametrize("make", [vote, begin])
def test_another_topic_is_invalid(make: Any) -> None:
    peer = Peer()
    request = make(peer, 1)
    other = altered(request, topics=(altered(request.topics[0], topic_name="orders"),))
    assert peer.ask(other).error_code is ErrorCode.INVALID_REQUEST
    assert peer.ask(altered(request, topics=())).error_code is ErrorCode.INVALID_REQUEST


def test_a_vote_for_another_voter_key_is_refused() -> None:
    peer = Peer()
    request = vote(peer, 1)
    assert result(peer.ask(altered(request, voter_id=3))).error_code is ErrorCode.INVALID_VOTER_KEY
    topic = request.topics[0]
    partition = altered(topic.partitions[0], voter_directory_id=directory(8))
    other = altered(request, topics=(altered(topic, partitions=(partition,)),))
    assert result(peer.ask(other)).error_code is ErrorCode.INVALID_VOTER_KEY
    assert peer.state.voted is None


def test_who_has_fetched_from_its_leader_refuses_pre_votes() -> None:
    peer = Peer()
    peer.ask(begin(peer, 4))
    assert peer.is_a(Follower)
    assert result(peer.ask(vote(peer, 4, node_id=3, pre_vote=True))).vote_granted
    peer.state.has_fetched = True
    assert not result(peer.ask(vote(peer, 4, node_id=3, pre_vote=True))).vote_granted
    assert not result(peer.ask(vote(peer, 4, node_id=3))).vote_granted


def test_an_observer_that_could_not_fetch_for_a_while_grants_pre_votes() -> None:
    peer = Peer(voters=(2, 3))
    peer.ask(begin(peer, 4))
    peer.state.has_fetched = True
    assert not result(peer.ask(vote(peer, 4, node_id=3, pre_vote=True))).vote_granted
    peer.wait(peer.settings.fetch_timeout_ms)
    assert peer.is_a(Follower)
    assert result(peer.ask(vote(peer, 4, node_id=3, pre_vote=True))).vote_granted


def test_a_leader_refuses_all_votes_of_its_epoch() -> None:
    peer = Peer()
    epoch = peer.lead()
    assert not result(peer.ask(vote(peer, epoch, (99, epoch), pre_vote=True))).vote_granted
    assert peer.is_a(Leader)


def test_an_election_goes_by_pre_vote_and_vote() -> None:
    peer = Peer()
    assert peer.is_a(Unattached)
    peer.wait(2000)
    assert peer.is_a(Prospective)
    assert peer.replica.epoch == 0
    assert {send.request.topics[0].partitions[0].pre_vote for send in peer.vote_requests()} == {True}
    assert peer.lead() == 1
    assert peer.is_a(Leader)


def test_a_voter_without_pre_votes_is_asked_for_its_vote() -> None:
    peer = Peer()
    peer.wait(2000)
    send = peer.vote_requests()[0]
    peer.take(peer.replica.fail(send.correlation_id, send.request, peer.now, ErrorCode.UNSUPPORTED_VERSION))
    assert peer.is_a(Candidate)


def test_answers_to_pre_votes_do_not_count_as_votes() -> None:
    peer = Peer()
    peer.wait(2000)
    first, second = peer.vote_requests()
    info = messages.LeaderInfo(-1, 0)
    granted = messages.vote_response(info, 2, ErrorCode.NONE, is_granted=True)
    peer.answer(first, granted)
    peer.answer(second, granted)
    assert peer.is_a(Candidate)


def stand_without_leader() -> Peer:
    """Return a follower of node 2 that has found nobody where that listened."""
    peer = Peer()
    peer.ask(begin(peer, 4))
    (fetch,) = peer.sent(FetchRequest)
    gone = ErrorCode.BROKER_NOT_AVAILABLE
    peer.take(peer.replica.fail(fetch.correlation_id, fetch.request, peer.now, gone))
    peer.wait(peer.state.deadline_ms - peer.now_ms)
    assert peer.is_a(Prospective)
    return peer


def refuse_vote(peer: Peer, node_id: int) -> None:
    (send,) = [one for one in peer.vote_requests() if one.destination.node_id == node_id]
    info = messages.LeaderInfo(2, peer.replica.epoch)
    peer.answer(send, messages.vote_response(info, 2, ErrorCode.NONE, is_granted=False))


def test_a_voter_that_believes_in_a_leader_that_is_gone_is_asked_again() -> None:
    peer = stand_without_leader()
    refuse_vote(peer, 3)
    assert peer.vote_requests() == []
    peer.wait(peer.settings.retry_backoff_ms)
    assert [one.destination.node_id for one in peer.vote_requests()] == [3]


def test_a_leader_that_answers_is_not_gone() -> None:
    peer = stand_without_leader()
    refused = peer.effects
    refuse_vote(peer, 2)
    peer.effects = refused
    refuse_vote(peer, 3)
    assert peer.is_a(Follower)


def stand_as_candidate(peer: Peer) -> list[Send]:
    """Let a nominee win its pre-vote by the vote of node 3. Returns the requests for votes."""
    (pre_vote,) = [one for one in peer.vote_requests() if one.destination.node_id == 3]
    info = messages.LeaderInfo(-1, peer.replica.epoch)
    peer.answer(pre_vote, messages.vote_response(info, 2, ErrorCode.NONE, is_granted=True))
    assert peer.is_a(Candidate)
    return peer.vote_requests()


@pytest.mark.parametrize("is_gone_first", [True, False])
def test_split_votes_are_tried_again_soon_if_the_others_are_gone(is_gone_first: bool) -> None:
    peer = stand_without_leader()
    requests = {send.destination.node_id: send for send in stand_as_candidate(peer)}
    info = messages.LeaderInfo(-1, peer.replica.epoch)
    refusal = messages.vote_response(info, 2, ErrorCode.NONE, is_granted=False)
    gone, steps = requests[2], [2, 3] if is_gone_first else [3, 2]
    for node_id in steps:
        assert peer.state.deadline_ms >= peer.now_ms + peer.settings.election_timeout_ms
        if node_id == 3:
            peer.answer(requests[3], refusal)
        else:
            error = ErrorCode.BROKER_NOT_AVAILABLE
            peer.take(peer.replica.fail(gone.correlation_id, gone.request, peer.now, error))
    wait_ms = peer.state.deadline_ms - peer.now_ms
    assert wait_ms < peer.settings.election_timeout_ms // 2
    peer.wait(wait_ms)
    assert peer.is_a(Prospective)


def test_split_votes_wait_for_a_voter_that_may_only_be_slow() -> None:
    peer = stand_without_leader()
    requests = {send.destination.node_id: send for send in stand_as_candidate(peer)}
    info = messages.LeaderInfo(-1, peer.replica.epoch)
    peer.answer(requests[3], messages.vote_response(info, 2, ErrorCode.NONE, is_granted=False))
    slow = requests[2]
    peer.take(peer.replica.fail(slow.correlation_id, slow.request, peer.now))
    assert peer.state.deadline_ms >= peer.now_ms + peer.settings.election_timeout_ms


def test_voters_whose_leader_is_gone_take_turns() -> None:
    deadlines = []
    for node_id in (1, 3):
        peer = Peer(me=key(node_id), endpoints=(endpoint(node_id),))
        peer.ask(begin(peer, 4))
        (fetch,) = peer.sent(FetchRequest)
        gone = ErrorCode.BROKER_NOT_AVAILABLE
        peer.take(peer.replica.fail(fetch.correlation_id, fetch.request, peer.now, gone))
        deadlines.append(peer.state.deadline_ms - peer.now_ms)
    turn_ms = peer.settings.election_timeout_ms // 10
    assert deadlines[0] <= turn_ms <= deadlines[1] <= 2 * turn_ms


def test_the_only_voter_leads_at_once() -> None:
    peer = Peer((1,))
    assert peer.is_a(Leader)
    peer.sync()
    assert peer.replica.high_watermark == peer.replica.log.end_offset
    peer.disk.kill()
    peer.start()
    assert peer.is_a(Leader)
    assert peer.replica.epoch == 2


def test_a_leader_that_starts_again_has_resigned() -> None:
    peer = Peer()
    epoch = peer.lead()
    peer.disk.kill()
    peer.start()
    assert peer.is_a(Resigned)
    assert {send.destination.node_id for send in peer.sent(EndQuorumEpochRequest)} == {2, 3}
    assert not result(peer.ask(vote(peer, epoch, (99, epoch - 1)))).vote_granted


def test_a_leader_without_a_majority_resigns() -> None:
    peer = Peer()
    peer.lead()
    peer.wait(2999)
    assert peer.is_a(Leader)
    peer.wait(1)
    assert peer.is_a(Resigned)


def test_fetches_of_a_majority_keep_the_leader() -> None:
    peer = Peer()
    peer.lead()
    peer.wait(2000)
    peer.ask(peer.fetch(2))
    peer.wait(2000)
    assert peer.is_a(Leader)


def test_voters_that_do_not_fetch_are_told_who_leads() -> None:
    peer = Peer()
    epoch = peer.lead()
    assert {send.destination.node_id for send in peer.sent(BeginQuorumEpochRequest)} == {2, 3}
    for send in peer.sent(BeginQuorumEpochRequest):
        info = messages.LeaderInfo(1, epoch)
        peer.answer(send, messages.begin_epoch_response(info, 1, ErrorCode.NONE))
    peer.now_ms += 900
    peer.ask(peer.fetch(2))
    peer.wait(100)
    assert {send.destination.node_id for send in peer.sent(BeginQuorumEpochRequest)} == {3}


@pytest.mark.parametrize(
    ("successors", "backoff_ms"), [((1, 3), 0), ((3, 1), 500), ((3, 4, 1), 500), ((3,), 1000), ((), 0)]
)
def test_the_first_successor_stands_at_once(successors: tuple[int, ...], backoff_ms: int) -> None:
    peer = Peer()
    peer.ask(begin(peer, 4))
    settings = peer.settings._replace(me=key(2))
    request = messages.end_epoch_request(settings, 4, [key(one) for one in successors])
    assert result(peer.ask(request)).error_code is ErrorCode.NONE
    state = peer.state
    if backoff_ms == 0:
        assert isinstance(state, Prospective)
    else:
        assert isinstance(state, Follower)
        assert state.deadline_ms == peer.now_ms + backoff_ms


def test_two_leaders_of_one_epoch_are_refused() -> None:
    peer = Peer()
    peer.ask(begin(peer, 4, node_id=2))
    assert result(peer.ask(begin(peer, 4, node_id=3))).error_code is ErrorCode.INVALID_REQUEST
    assert peer.replica.leader_id == 2
