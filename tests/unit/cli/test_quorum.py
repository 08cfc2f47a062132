"""`ottla quorum`: who leads, votes and follows, and who is let in and out."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cli.typing import fail, run, succeed

from ottla.cli.admin import quorum
from ottla.client.admin.quorum import ControllerEndpoint, QuorumDescription, QuorumReplica
from ottla.model.uuid import ZERO_UUID, Uuid

ONE, TWO, THREE = (Uuid(number.to_bytes(16)) for number in (1, 2, 3))
NOW_MS = 1_000_000


class Voters:
    """A quorum of two voters, and two that follow."""

    def __init__(self) -> None:
        self.did: list[tuple[Any, ...]] = []
        self.described = QuorumDescription(
            leader=1,
            leader_epoch=7,
            high_watermark=90,
            voters=(
                QuorumReplica(1, ONE, 100, None, None),
                QuorumReplica(2, TWO, 95, NOW_MS - 1_234, NOW_MS + 50),
            ),
            observers=(
                QuorumReplica(3, THREE, -1, NOW_MS - 500, None),
                QuorumReplica(1, ZERO_UUID, 120, None, None),
            ),
            endpoints={1: (ControllerEndpoint("C", "h", 9), ControllerEndpoint("D", "::1", 8))},
        )

    def with_admin(self, _properties: Any, work: Any) -> Any:
        async def describe() -> QuorumDescription:
            return self.described

        async def add(*told: Any) -> None:
            self.did.append(("add", *told))

        async def remove(*told: Any) -> None:
            self.did.append(("remove", *told))

        admin = SimpleNamespace(quorum=SimpleNamespace(describe=describe, add_voter=add, remove_voter=remove))

        async def story() -> Any:
            return await work(admin)

        return asyncio.run(story())


@pytest.fixture
def voters(monkeypatch: pytest.MonkeyPatch) -> Voters:
    found = Voters()
    monkeypatch.setattr(quorum, "with_admin", found.with_admin)
    monkeypatch.setattr(quorum, "time", SimpleNamespace(time=lambda: NOW_MS / 1000))
    return found


def test_each_replica_is_shown_with_its_role_and_how_far_it_is_behind(voters: Voters) -> None:
    leader, voter, observer, former = succeed("quorum", "status", "--json").data
    assert leader == {
        "node": 1,
        "role": "leader",
        "log_end_offset": 100,
        "lag": 0,
        "seconds_since_fetch": None,
        "seconds_since_caught_up": None,
        "directory_id": str(ONE),
        "endpoint": "C://h:9,D://[::1]:8",
    }
    assert (voter["role"], voter["lag"], voter["endpoint"]) == ("voter", 5, None)
    # A clock that is ahead makes nobody younger than now.
    assert (voter["seconds_since_fetch"], voter["seconds_since_caught_up"]) == (1.2, 0.0)
    assert (observer["role"], observer["lag"], observer["seconds_since_fetch"]) == ("observer", None, 0.5)
    # Whoever follows with another directory is no leader, and what is ahead is not behind.
    assert (former["role"], former["lag"], former["directory_id"], former["endpoint"]) == (
        "observer",
        0,
        None,
        None,
    )
    assert succeed("quorum", "status").out.startswith("leader 1, epoch 7, high watermark 90\n")


def test_without_a_known_leader_lag_is_counted_from_the_high_watermark(voters: Voters) -> None:
    import dataclasses

    voters.described = dataclasses.replace(voters.described, leader=-1)
    rows = succeed("quorum", "status", "--json").data
    assert [(row["role"], row["lag"]) for row in rows[:2]] == [("voter", 0), ("voter", 0)]


def test_who_follows_may_vote_with_the_directory_that_it_follows_with(voters: Voters) -> None:
    words = ("quorum", "add", "3", "--endpoint", "C://h:9093", "--endpoint", "D://[::1]:1")
    assert succeed(*words).out == "node 3 votes now\n"
    listeners = [ControllerEndpoint("C", "h", 9093), ControllerEndpoint("D", "::1", 1)]
    assert voters.did == [("add", 3, THREE, listeners)]
    succeed("quorum", "add", "5", "--endpoint", "C://h:65535", "--directory-id", str(TWO))
    assert voters.did[1:] == [("add", 5, TWO, [ControllerEndpoint("C", "h", 65_535)])]


def test_who_votes_may_be_let_out_after_a_yes(voters: Voters) -> None:
    typed = run("quorum", "remove", "2", stdin="n\n")
    assert typed.code != 0
    assert "remove voter 2?" in typed.out + typed.err
    assert voters.did == []
    assert succeed("quorum", "remove", "2", "--yes").out == "node 2 no longer votes\n"
    succeed("quorum", "remove", "2", "--directory-id", str(ONE), "--yes")
    assert voters.did == [("remove", 2, TWO), ("remove", 2, ONE)]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("add", "2", "--endpoint", "C://h:1"),
            "node 2 follows with 0 directories as far as the leader knows",
        ),
        (("remove", "3", "--yes"), "node 3 votes with 0 directories as far as the leader knows"),
        (("remove", "2", "--directory-id", "no id!", "--yes"), "'no id!' is not a directory id"),
    ],
)
def test_a_directory_that_is_not_known_is_asked_for(
    voters: Voters, words: tuple[str, ...], sentence: str
) -> None:
    assert sentence in fail("quorum", *words)
    assert voters.did == []


@pytest.mark.parametrize("text", ["h:9093", "C://h", "C://h:0", "C://h:65536", "C://:1", "://h:1"])
def test_what_is_no_endpoint_is_refused(voters: Voters, text: str) -> None:
    typed = run("quorum", "add", "3", "--endpoint", text)
    assert (typed.code, f"{text!r} is not LISTENER://HOST:PORT" in typed.err) == (2, True)
