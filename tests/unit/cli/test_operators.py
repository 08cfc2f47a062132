"""`ottla cluster`: what operators see of a cluster, and what their commands do to it."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cli.typing import fail, run, succeed
from tests.support.cluster_of_operators import Operated, broker, partition

from ottla.cli.clusters import commands, moving, survey
from ottla.cli.clusters.moving import carry_out, elect_preferred
from ottla.cli.failure import Failure
from ottla.client.errors import BrokerError
from ottla.metadata.balance_plan import Move
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


@pytest.fixture
def operated(monkeypatch: pytest.MonkeyPatch) -> Operated:
    cluster = Operated(
        (broker(1, "r1"), broker(2, "r2"), broker(3, is_fenced=True)),
        {
            "a": (
                partition(0, (1, 2)),
                partition(1, (2, 3), in_sync=(2,), eligible=(3,)),
            ),
            "b": (partition(0, (3, 1), leader=-1, in_sync=()),),
        },
    )
    cluster.min_in_sync = {"a": "2"}
    cluster.sizes = {A0: [(1, 100), (2, 90)], A1: [(2, 50)], B0: [(1, 7)]}
    monkeypatch.setattr(commands, "with_admin", cluster.with_admin)

    async def sleep(seconds: float) -> None:
        assert seconds in (0.5, 4)

    monkeypatch.setattr(moving, "asyncio", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(survey, "asyncio", SimpleNamespace(sleep=sleep))
    return cluster


# What there is


def test_a_cluster_is_described_by_its_nodes_and_what_is_not_as_it_should_be(operated: Operated) -> None:
    found = succeed("cluster", "describe", "--json").data
    assert {name: found[name] for name in found if name != "nodes"} == {
        "cluster_id": "c",
        "partitions": 3,
        "offline": 1,
        "below_min_in_sync": 2,
        "under_replicated": 2,
    }
    one, two, three = found["nodes"]
    assert one == {
        "node": 1,
        "address": "h1:9091",
        "rack": "r1",
        "state": "up",
        "leaders": 1,
        "preferred": 1,
        "replicas": 2,
        "lagging": 1,
        "bytes": 107,
        "directories": ["/data"],
    }
    assert (two["leaders"], two["preferred"], two["replicas"], two["lagging"], two["bytes"]) == (
        1,
        1,
        2,
        0,
        140,
    )
    assert (three["state"], three["leaders"], three["preferred"], three["replicas"], three["lagging"]) == (
        "fenced",
        0,
        1,
        2,
        2,
    )
    shown = succeed("cluster", "describe").out
    assert "cluster id" in shown
    assert "h3:9093" in shown


def test_directories_that_are_offline_or_cordoned_say_so(operated: Operated) -> None:
    operated.directory_facts = {
        1: {"error_code": ErrorCode.KAFKA_STORAGE_ERROR, "is_cordoned": True},
        2: {"is_cordoned": True},
    }
    nodes = succeed("cluster", "describe", "--json").data["nodes"]
    assert [node["directories"] for node in nodes] == [
        ["/data (offline)"],
        ["/data (cordoned)"],
        ["/data"],
    ]


def test_problems_are_listed_by_the_worst_of_each_partition(operated: Operated) -> None:
    rows = succeed("cluster", "describe", "--problems", "--json").data
    assert rows == [
        {
            "topic": "a",
            "partition": 1,
            "problem": "below min.insync.replicas",
            "leader": 2,
            "replicas": [2, 3],
            "in_sync": [2],
            "eligible_leaders": [3],
        },
        {
            "topic": "b",
            "partition": 0,
            "problem": "offline",
            "leader": None,
            "replicas": [3, 1],
            "in_sync": [],
            "eligible_leaders": [],
        },
    ]
    operated.min_in_sync = {}
    assert succeed("cluster", "describe", "--problems", "--json").data[0]["problem"] == "under-replicated"
    del operated.held["b"]
    operated.held["a"] = operated.held["a"][:1]
    shown = succeed("cluster", "describe", "--problems")
    assert "all partitions have their leaders and all their replicas" in shown.out + shown.err


# Moves


def test_a_partition_is_moved_and_its_first_replica_leads(operated: Operated) -> None:
    done = succeed("cluster", "reassign", "a", "--partition", "0", "--to", "2,1", "--json").data
    assert done["moved"] == [{"topic": "a", "partition": 0, "replicas": [2, 1]}]
    assert operated.did == [
        ("reassign", {A0: (2, 1)}),
        ("look", 1),
        ("look", 0),
        ("elect", "PREFERRED", [A0]),
    ]


def test_what_is_where_it_should_be_is_not_moved(operated: Operated) -> None:
    assert succeed("cluster", "reassign", "a", "--partition", "0", "--to", "1,2").out == (
        "all partitions are where they should be\n"
    )
    assert operated.did == []
    succeed("cluster", "reassign", "a", "--to", "1,2")
    assert operated.did[0] == ("reassign", {A1: (1, 2)})


def test_moves_come_from_a_file_in_the_format_of_kafka(operated: Operated, tmp_path: Path) -> None:
    path = tmp_path / "moves.json"
    wanted = [
        {"topic": "b", "partition": 0, "replicas": [1]},
        {"topic": "a", "partition": 0, "replicas": [1, 2]},
    ]
    path.write_text(json.dumps({"version": 1, "partitions": wanted}))
    assert succeed("cluster", "reassign", "--file", str(path)).out == "moved 1 partition\n"
    assert operated.did[0] == ("reassign", {B0: (1,)})
    wanted.append({"topic": "c", "partition": 4, "replicas": [1]})
    path.write_text(json.dumps({"partitions": wanted}))
    assert fail("cluster", "reassign", "--file", str(path)).startswith("there is no partition c-4;")
    for text in (
        "[]",
        "{",
        '{"partitions": [{"topic": "a"}]}',
        '{"partitions": [{"topic": "a", "partition": "x"}]}',
    ):
        path.write_text(text)
        assert f"{path} is not a list of moves" in fail("cluster", "reassign", "--file", str(path))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("a", "--to", "1,x"), "--to 1,x is not a list of broker ids; write it as 1,2,3"),
        (("c", "--to", "1"), "there is no topic c; `ottla topic list` lists the topics"),
        (
            ("a", "--partition", "7", "--to", "1"),
            "there is no partition a-7; `ottla topic list` lists the topics",
        ),
    ],
)
def test_what_cannot_be_moved_is_told(operated: Operated, words: tuple[str, ...], sentence: str) -> None:
    assert fail("cluster", "reassign", *words) == sentence
    assert operated.did == []


def test_a_move_needs_a_target(operated: Operated, tmp_path: Path) -> None:
    path = tmp_path / "moves.json"
    path.write_text("{}")
    for words in (("a",), ("a", "--to", "1", "--file", str(path))):
        typed = run("cluster", "reassign", *words)
        assert typed.code == 2
        assert "give either TOPIC with --to, or a --file" in typed.err


def test_moves_that_are_under_way_are_listed_and_called_off(operated: Operated) -> None:
    operated.moving = {
        A0: moving_to((1, 2, 3), (3,), (2,)),
        A1: moving_to((1,), (), ()),
        B0: moving_to((2,), (), ()),
    }
    assert succeed("cluster", "reassign", "--json").data[0] == {
        "topic": "a",
        "partition": 0,
        "replicas": [1, 2, 3],
        "adding": [3],
        "removing": [2],
    }
    assert succeed("cluster", "reassign", "--cancel", "a", "--partition", "1").out == "called off 1 move\n"
    assert succeed("cluster", "reassign", "--cancel", "a", "--json").data["called_off"] == ["a-0", "a-1"]
    assert succeed("cluster", "reassign", "--cancel").out == "called off 3 moves\n"
    assert [targets for kind, targets in operated.did if kind == "reassign"] == [
        {A1: None},
        {A0: None, A1: None},
        {A0: None, A1: None, B0: None},
    ]
    operated.refuses = {A0: BrokerError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "cannot call off a-0")}
    assert "cannot call off a-0" in fail("cluster", "reassign", "--cancel")
    operated.moving = {}
    assert succeed("cluster", "reassign", "--cancel").out == "no moves are under way\n"


def moving_to(replicas: tuple[int, ...], adding: tuple[int, ...], removing: tuple[int, ...]) -> Any:
    from ottla.client.admin.replicas import Reassignment

    return Reassignment(replicas, adding, removing)


def carried_out(
    operated: Operated, *moves: Move, at_once: int = 50, throttle: int | None = None
) -> list[Any]:
    shown: list[tuple[int, int]] = []
    asyncio.run(
        carry_out(
            operated.admin,
            moves,
            throttle_bytes=throttle,
            at_once=at_once,
            progress=lambda done, total: shown.append((done, total)),
        )
    )
    return shown


def test_only_so_many_moves_are_under_way_at_a_time(operated: Operated) -> None:
    moves = [Move(TopicPartition("t", number), (1,), (2,), 5) for number in range(5)]
    operated.looks_until_moved = 2
    shown = carried_out(operated, *moves, at_once=2)
    begun = [
        [where.partition for where in targets]
        for kind, *rest in operated.did
        if kind == "reassign"
        for targets in rest
    ]
    assert begun == [[0, 1], [2, 3], [4]]
    assert shown[0] == (0, 5)
    assert shown[-1] == (5, 5)
    assert sorted(shown) == shown
    assert operated.did[-1] == ("elect", "PREFERRED", [move.where for move in moves])


def test_copies_are_throttled_while_they_are_made_and_no_longer(operated: Operated) -> None:
    moves = (Move(A0, (1, 2), (1, 3), 5), Move(A1, (2,), (3,), 5), Move(B0, (1, 2), (2, 1), 5))
    carried_out(operated, *moves, throttle=1_000)
    configs = [did for did in operated.did if len(did) == 4]
    rates = [
        (str(node), f"{who}.replication.throttled.rate")
        for node in (1, 2, 3)
        for who in ("leader", "follower")
    ]
    replicas = [
        ("a", "leader.replication.throttled.replicas", "0:1,0:2,1:2"),
        ("a", "follower.replication.throttled.replicas", "0:3,1:3"),
    ]
    # A change of leaders alone copies nothing.
    assert configs[:8] == [
        *((node, name, "SET", "1000") for node, name in rates),
        *((topic, name, "SET", value) for topic, name, value in replicas),
    ]
    assert configs[8:] == [
        *((node, name, "DELETE", None) for node, name in rates),
        *((topic, name, "DELETE", None) for topic, name, _ in replicas),
    ]
    kinds = [did[0] for did in operated.did]
    assert kinds.index("reassign") == 8
    assert kinds[-1] == "elect", "the throttle is gone before leaders change"


def test_a_throttle_is_taken_back_when_a_move_is_refused_and_is_not_set_for_nothing(
    operated: Operated,
) -> None:
    operated.refuses = {A0: BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no")}
    with pytest.raises(Failure, match="moves that were begun before it go on"):
        carried_out(operated, Move(A0, (1,), (2,), 5), throttle=1)
    assert [did[2] for did in operated.did if len(did) == 4] == ["SET"] * 6 + ["DELETE"] * 6
    operated.did.clear()
    operated.refuses = {}
    carried_out(operated, Move(B0, (1, 2), (2, 1), 5), throttle=1)
    assert [did for did in operated.did if len(did) == 4] == []


def test_no_partition_needs_no_election(operated: Operated) -> None:
    assert asyncio.run(elect_preferred(operated.admin, [])) == 0
    assert operated.did == []
    assert asyncio.run(elect_preferred(operated.admin, [A0, A1])) == 1


# Elections


def test_leaders_are_elected_for_all_for_a_topic_or_for_a_partition(operated: Operated) -> None:
    assert succeed("cluster", "elect").out == "2 partitions led by another node now\n"
    assert succeed("cluster", "elect", "a", "--json").data["elected"] == ["a-0"]
    assert succeed("cluster", "elect", "a", "--partition", "1").out == "no election was needed\n"
    assert [asked for _, _, asked in operated.did] == [None, [A0, A1], [A1]]
    assert {kind for _, kind, _ in operated.did} == {"PREFERRED"}
    operated.refuses = {A0: BrokerError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "cannot elect for a-0")}
    assert "cannot elect for a-0" in fail("cluster", "elect", "a")
    typed = run("cluster", "elect", "--partition", "1")
    assert (typed.code, "--partition needs a TOPIC" in typed.err) == (2, True)


def test_records_are_given_up_only_after_a_yes(operated: Operated) -> None:
    assert run("cluster", "elect", "a", "--unclean", stdin="n\n").code != 0
    assert operated.did == []
    succeed("cluster", "elect", "a", "--unclean", "--yes")
    assert operated.did == [("elect", "UNCLEAN", [A0, A1])]


# Balance


@pytest.fixture
def lopsided(operated: Operated) -> Operated:
    """Two brokers of which one has everything."""
    operated.brokers = (broker(1), broker(2))
    operated.held = {"a": tuple(partition(number, (1,)) for number in range(4))}
    operated.sizes = {TopicPartition("a", number): [(1, 1_000)] for number in range(4)}
    return operated


def test_a_plan_is_shown_and_nothing_is_moved(lopsided: Operated) -> None:
    plan = succeed("cluster", "balance", "--plan", "--json").data
    assert plan["version"] == 1
    assert [row["replicas"] for row in plan["partitions"]] == [[2], [2]]
    shown = succeed("cluster", "balance", "--plan").out
    assert "4 -> 2" in shown
    assert "0 -> 2" in shown
    assert "BYTES PER S" not in shown
    assert lopsided.did == []


def test_what_is_written_is_weighed_where_that_was_measured(lopsided: Operated) -> None:
    shown = succeed("cluster", "balance", "--plan", "--measure", "4").out
    assert "BYTES PER S" in shown


def test_a_plan_is_carried_out_after_a_yes(lopsided: Operated) -> None:
    assert run("cluster", "balance", stdin="n\n").code != 0
    assert lopsided.did == []
    done = succeed("cluster", "balance", "--yes", "--json").data
    assert [row["replicas"] for row in done["partitions"]] == [[2], [2]]
    assert lopsided.did[0][0] == "reassign"
    assert succeed("cluster", "balance", "--yes").out.endswith("moved 2 partitions\n")


def test_a_cluster_in_balance_is_left_alone(lopsided: Operated) -> None:
    lopsided.held = {"a": (partition(0, (1,)), partition(1, (2,)))}
    lopsided.sizes = {}
    assert succeed("cluster", "balance").out == "the cluster is in balance\n"
    assert succeed("cluster", "balance", "--json").data["partitions"] == []
    assert succeed("cluster", "balance", "--plan", "--json").data == {"version": 1, "partitions": []}
    assert lopsided.did == []


def test_a_node_is_emptied_before_it_leaves(lopsided: Operated) -> None:
    plan = succeed("cluster", "drain", "1", "--plan", "--json").data
    assert [row["replicas"] for row in plan["partitions"]] == [[2]] * 4
    assert succeed("cluster", "drain", "2").out == "node 2 holds nothing\n"
    assert fail("cluster", "drain", "9") == "there is no broker 9; `ottla cluster describe` lists them"
    lopsided.held = {"a": (partition(0, (1, 2)),)}
    assert "add a broker first, or give its topic fewer replicas" in fail("cluster", "drain", "1")
