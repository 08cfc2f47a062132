"""AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter and kraft.version: each check, in Kafka's order."""

from typing import Any

import pytest
from tests.unit.quorum.raft.quorum_of_three import (
    CLUSTER_ID,
    LISTENER,
    Peer,
    altered,
    directory,
    endpoint,
    key,
)

from ottla.metadata.features import KRAFT_VERSION
from ottla.model.uuid import ZERO_UUID
from ottla.quorum.raft import messages
from ottla.quorum.raft.effects import Reply
from ottla.quorum.raft.states import Leader, Resigned
from ottla.quorum.voters import DYNAMIC
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, SupportedFeatureKey
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest


def add(node_id: int = 4, **fields: Any) -> Any:
    _, host, port = endpoint(node_id)
    request = AddRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        timeout_ms=1000,
        voter_id=node_id,
        voter_directory_id=directory(node_id),
        listeners=(Listener(name=LISTENER, host=host, port=port),),
    )
    return altered(request, **fields)


def remove(node_id: int, **fields: Any) -> Any:
    request = RemoveRaftVoterRequest(
        cluster_id=CLUSTER_ID, voter_id=node_id, voter_directory_id=directory(node_id)
    )
    return altered(request, **fields)


def levels(highest: int = 1) -> ApiVersionsResponse:
    feature = SupportedFeatureKey(name=KRAFT_VERSION, min_version=0, max_version=highest)
    return ApiVersionsResponse(error_code=ErrorCode.NONE, api_keys=(), supported_features=(feature,))


def replies(peer: Peer) -> list[ErrorCode]:
    """Return how changes were answered, whatever fetches were."""
    found = [one.response for one in peer.effects if isinstance(one, Reply)]
    return [one.error_code for one in found if hasattr(one, "error_message")]


def update(peer: Peer, node_id: int, **fields: Any) -> Any:
    settings = peer.settings._replace(me=key(node_id), endpoints=(endpoint(node_id + 10),))
    request = messages.update_voter_request(settings, peer.replica.epoch, peer.replica.me_as_voter())
    return altered(request, **fields)


@pytest.fixture
def leader() -> Peer:
    peer = Peer()
    peer.lead()
    peer.commit()
    return peer


@pytest.mark.parametrize("make", [add, remove])
def test_the_head_of_a_change(make: Any, leader: Peer) -> None:
    another = leader.ask(make(2, cluster_id="another"))
    assert another.error_code is ErrorCode.INCONSISTENT_CLUSTER_ID
    assert leader.ask(make(2, voter_directory_id=ZERO_UUID)).error_code is ErrorCode.INVALID_REQUEST
    assert leader.ask(make(2, voter_id=-1)).error_code is ErrorCode.INVALID_REQUEST
    assert Peer().ask(make(2)).error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("make", [add, remove])
def test_no_change_before_the_epoch_has_committed(make: Any) -> None:
    peer = Peer()
    peer.lead()
    assert peer.ask(make(2)).error_code is ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("make", [add, remove])
def test_a_static_quorum_does_not_change(make: Any) -> None:
    peer = Peer(is_dynamic=False)
    peer.lead()
    peer.commit()
    assert peer.ask(make(2)).error_code is ErrorCode.UNSUPPORTED_VERSION


def test_refusals_of_a_new_voter(leader: Peer) -> None:
    assert leader.ask(add(listeners=())).error_code is ErrorCode.INVALID_REQUEST
    assert leader.ask(add(2)).error_code is ErrorCode.DUPLICATE_VOTER
    assert leader.ask(add(2, voter_directory_id=directory(9))).error_code is ErrorCode.DUPLICATE_VOTER


def test_a_voter_is_added_when_it_has_caught_up(leader: Peer) -> None:
    leader.ask(leader.fetch(4))
    assert leader.ask(add()) is None
    (send,) = leader.sent(ApiVersionsRequest)
    leader.answer(send, levels())
    assert leader.replica.voters.ids == (1, 2, 3, 4)
    assert replies(leader) == []
    leader.sync()
    leader.ask(leader.fetch(2))
    assert leader.ask(add(5)).error_code is ErrorCode.REQUEST_TIMED_OUT
    leader.ask(leader.fetch(3))
    assert ErrorCode.NONE in replies(leader)


def test_who_does_not_wait_is_answered_when_the_voter_is_in_the_log(leader: Peer) -> None:
    leader.ask(leader.fetch(4))
    leader.ask(add(ack_when_committed=False))
    leader.answer(leader.sent(ApiVersionsRequest)[0], levels())
    assert replies(leader) == [ErrorCode.NONE]


def test_a_new_voter_that_lags_or_does_not_know_the_level_is_refused(leader: Peer) -> None:
    leader.ask(add())
    leader.answer(leader.sent(ApiVersionsRequest)[0], levels())
    assert replies(leader) == [ErrorCode.REQUEST_TIMED_OUT]
    leader.ask(leader.fetch(4))
    leader.ask(add())
    leader.answer(leader.sent(ApiVersionsRequest)[0], levels(0))
    assert replies(leader) == [ErrorCode.INVALID_REQUEST]
    leader.ask(add())
    (send,) = leader.sent(ApiVersionsRequest)
    leader.take(leader.replica.fail(send.correlation_id, send.request, leader.now))
    assert replies(leader) == [ErrorCode.REQUEST_TIMED_OUT]
    assert leader.replica.voters.ids == (1, 2, 3)


def test_a_change_that_takes_too_long_is_answered(leader: Peer) -> None:
    leader.ask(remove(3))
    leader.wait(1999)
    leader.ask(leader.fetch(3))
    assert replies(leader) == []
    leader.wait(1)
    assert ErrorCode.REQUEST_TIMED_OUT in replies(leader)
    assert leader.replica.voters.ids == (1, 2)


def test_a_voter_is_removed_by_its_exact_key(leader: Peer) -> None:
    assert leader.ask(remove(3, voter_directory_id=directory(9))).error_code is ErrorCode.VOTER_NOT_FOUND
    assert leader.ask(remove(4)).error_code is ErrorCode.VOTER_NOT_FOUND
    assert leader.ask(remove(3)) is None
    leader.sync()
    leader.ask(leader.fetch(2))
    assert ErrorCode.NONE in replies(leader)


def test_the_last_voter_stays() -> None:
    peer = Peer((1,))
    peer.sync()
    assert peer.ask(remove(1)).error_code is ErrorCode.VOTER_NOT_FOUND


def test_a_leader_that_is_removed_leads_until_that_is_committed(leader: Peer) -> None:
    assert leader.ask(remove(1)) is None
    leader.sync()
    leader.ask(leader.fetch(2))
    assert leader.is_a(Leader)
    leader.ask(leader.fetch(3))
    assert ErrorCode.NONE in replies(leader)
    assert leader.is_a(Resigned)


def test_a_removed_leader_that_crashed_may_have_to_be_elected_again() -> None:
    peer = Peer((1, 2))
    peer.lead()
    peer.commit()
    peer.ask(remove(1))
    peer.sync()
    peer.disk.kill()
    peer.start()
    assert not peer.replica.is_voter
    assert peer.replica.may_stand
    peer.wait(2000)
    assert peer.lead() > 1
    peer.commit()
    assert peer.is_a(Resigned)


def test_a_voter_is_updated(leader: Peer) -> None:
    assert leader.ask(update(leader, 2)).error_code is ErrorCode.NONE
    assert leader.replica.voters.endpoints_of(2) == (endpoint(12),)
    assert leader.ask(update(leader, 3)).error_code is ErrorCode.REQUEST_TIMED_OUT


def test_refusals_of_an_update(leader: Peer) -> None:
    epoch = leader.replica.epoch

    def error(**fields: Any) -> ErrorCode:
        found: ErrorCode = leader.ask(update(leader, 2, **fields)).error_code
        return found

    assert error(cluster_id="another") is ErrorCode.INCONSISTENT_CLUSTER_ID
    assert error(current_leader_epoch=epoch - 1) is ErrorCode.FENCED_LEADER_EPOCH
    assert error(current_leader_epoch=epoch + 1) is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert error(voter_directory_id=ZERO_UUID) is ErrorCode.INVALID_REQUEST
    assert error(listeners=()) is ErrorCode.INVALID_REQUEST
    assert error(voter_directory_id=directory(9)) is ErrorCode.VOTER_NOT_FOUND
    feature = update(leader, 2).kraft_version_feature
    assert error(kraft_version_feature=altered(feature, max_supported_version=0)) is ErrorCode.INVALID_REQUEST
    assert (
        error(kraft_version_feature=altered(feature, min_supported_version=-1)) is ErrorCode.INVALID_REQUEST
    )


def test_a_static_quorum_becomes_dynamic_when_all_voters_are_known() -> None:
    peer = Peer(is_dynamic=False)
    epoch = peer.lead()
    peer.commit()
    assert peer.replica.upgrade_kraft_version(epoch, DYNAMIC, peer.now)[0] is ErrorCode.INVALID_UPDATE_VERSION
    for node_id in (2, 3):
        assert peer.ask(update(peer, node_id)).error_code is ErrorCode.NONE
    was_dynamic = peer.replica.history.is_dynamic
    assert peer.replica.upgrade_kraft_version(epoch, DYNAMIC, peer.now)[0] is ErrorCode.NONE
    assert (was_dynamic, peer.replica.history.is_dynamic) == (False, True)
    assert peer.replica.voters.keys == (key(1), key(2), key(3))
    assert peer.replica.upgrade_kraft_version(epoch, 0, peer.now)[0] is ErrorCode.INVALID_UPDATE_VERSION
