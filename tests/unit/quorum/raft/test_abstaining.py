"""A voter whose log was damaged does not vote until it has everything again."""

import pytest
from tests.unit.quorum.raft.quorum_of_three import PATH, Peer, directory, key
from tests.unit.quorum.raft.test_fetching import answered, batch
from tests.unit.quorum.raft.test_voting import begin, result, vote

from ottla.broker.lifecycle import damaged_metadata
from ottla.metadata.configs.load import load_node_config
from ottla.metadata.configs.node import NodeConfig
from ottla.model.uuid import ZERO_UUID
from ottla.quorum.quorum_state import QuorumState
from ottla.quorum.raft.effects import VotesAgain
from ottla.quorum.raft.metadata_log import QuorumStateFile
from ottla.quorum.raft.states import Follower, Leader, Resigned, Unattached
from ottla.wire.messages.fetch import FetchRequest

DIRECTORY = PATH.rpartition("/")[0]


def abstains(peer: Peer) -> bool:
    return peer.replica.abstains


def damaged(peer: Peer) -> Peer:
    """Let a node start again on a log that was set aside."""
    peer.disk.kill()
    damaged_metadata.set_aside(peer.disk, DIRECTORY, as_controller=True)
    peer.start()
    return peer


@pytest.fixture(params=[True, False], ids=["dynamic", "static"])
def peer(request: pytest.FixtureRequest) -> Peer:
    peer = Peer(is_dynamic=request.param)
    assert result(peer.ask(vote(peer, 3, node_id=3))).vote_granted
    return damaged(peer)


def test_it_remembers_its_vote_and_gives_no_other(peer: Peer) -> None:
    kept = directory(3) if peer.settings.bootstrap_servers else ZERO_UUID
    assert QuorumStateFile(peer.disk, PATH).read() == QuorumState(-1, 3, 3, kept)
    peer.ask(begin(peer, 3))
    assert peer.is_a(Follower)
    assert QuorumStateFile(peer.disk, PATH).read() == QuorumState(2, 3, 3, kept)
    for epoch in (3, 4):
        assert not result(peer.ask(vote(peer, epoch, (99, epoch - 1), pre_vote=True))).vote_granted
        assert not result(peer.ask(vote(peer, epoch, (99, epoch - 1)))).vote_granted
    assert peer.state.voted is None


def test_it_does_not_stand_for_election(peer: Peer) -> None:
    for _ in range(3):
        peer.wait(10_000)
        assert peer.is_a(Unattached)
        assert peer.vote_requests() == []
    peer.ask(begin(peer, 4))
    peer.wait(10_000)
    assert peer.is_a(Follower)


def test_it_votes_again_when_the_leader_has_nothing_more(peer: Peer) -> None:
    peer.ask(begin(peer, 4))
    answered(peer, records=batch(0, 4), high_watermark=1)
    assert abstains(peer), "there may be more"
    peer.sync()
    (fetch,) = peer.sent(FetchRequest)
    assert fetch.request.topics[0].partitions[0].fetch_offset == 1
    answered(peer, high_watermark=1)
    assert not abstains(peer)
    assert VotesAgain() in peer.effects
    peer.disk.kill()
    peer.start()
    assert not abstains(peer), "it is so for good"
    assert result(peer.ask(vote(peer, 5, (1, 4)))).vote_granted


def test_it_abstains_when_it_starts_again(peer: Peer) -> None:
    peer.ask(begin(peer, 4))
    answered(peer, records=batch(0, 4), high_watermark=1)
    peer.sync()
    peer.disk.kill()
    peer.start()
    assert abstains(peer)
    assert peer.replica.log.end_offset == 1


def test_a_leader_whose_log_is_damaged_has_resigned() -> None:
    peer = Peer()
    epoch = peer.lead()
    damaged(peer)
    assert peer.is_a(Resigned)
    peer.wait(10_000)
    assert peer.is_a(Unattached)
    assert peer.replica.epoch == epoch + 1
    assert peer.vote_requests() == []


def test_the_only_voter_of_a_part_of_the_log_does_not_lead() -> None:
    peer = Peer((1,))
    assert peer.is_a(Leader)
    peer.disk.kill()
    QuorumStateFile(peer.disk, PATH).abstain()
    peer.start()
    assert peer.replica.voters.keys == (key(1),)
    peer.wait(10_000)
    assert not peer.is_a(Leader)


VOTERS = "controller.quorum.voters=1@localhost:9001,2@localhost:9002"


def config_of(*lines: str) -> NodeConfig:
    return load_node_config("\n".join(["node.id=1", *lines]).encode()).config


@pytest.mark.parametrize(
    ("line", "is_allowed"),
    [
        ("process.roles=broker", True),
        (VOTERS, True),
        ("controller.quorum.voters=1@localhost:9001", False),
        ("controller.quorum.bootstrap.servers=a:1,b:1", True),
        ("", False),
    ],
)
def test_a_controller_fetches_again_what_others_have(line: str, is_allowed: bool) -> None:
    peer = Peer()
    peer.ask(vote(peer, 1))
    config = config_of("process.roles=broker,controller", line)
    assert damaged_metadata.may_fetch_again(config, peer.disk, DIRECTORY) == is_allowed


def test_a_controller_without_its_vote_does_not_begin_again() -> None:
    peer = Peer()
    path, config = f"{PATH}/quorum-state", config_of("process.roles=broker,controller", VOTERS)
    if peer.disk.exists(path):
        peer.disk.remove(path)
    assert not damaged_metadata.may_fetch_again(config, peer.disk, DIRECTORY)
    peer.disk.write_file_atomically(path, b"{")
    assert not damaged_metadata.may_fetch_again(config, peer.disk, DIRECTORY)
