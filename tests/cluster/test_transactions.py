"""Transactions against a real node: fenced zombies, time that is over, hanging ones, survivors of a kill."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.differential.transaction_scenarios import open_transactions
from tests.java.jars import java_classpath, java_command
from tests.support.data_plane import create_topic
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient
from tests.support.transaction_talk import TransactionTalk

from ottla.wire.error_code import ErrorCode

QUICK_ABORTS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[OttlaNode]:
    with OttlaNode(tmp_path / "node", QUICK_ABORTS) as node:
        yield node


def talk_with(client: PlainClient, name: str, version: int = 2) -> TransactionTalk:
    topics = {topic: create_topic(client, topic) for topic in ("a", "b")}
    talk = TransactionTalk(client, name, topics, version)
    talk.find_coordinator()
    return talk


def wait_for_stable_offset(talk: TransactionTalk, topic: str, offset: int) -> None:
    for _ in range(400):
        if talk.stable_offset(topic) >= offset:
            return
        time.sleep(0.05)
    raise AssertionError(f"{topic} stays at {talk.stable_offset(topic)}")


def test_delayed_end_of_one_transaction_does_not_end_the_next(node: OttlaNode) -> None:
    with PlainClient(node.bootstrap) as client:
        talk = talk_with(client, "delayed")
        talk.init()
        talk.write("a", b"first")
        late = talk.twin()
        assert talk.end(False).error_code is ErrorCode.NONE
        assert talk.write("a", b"second") is ErrorCode.NONE
        for committed in (True, False):
            assert late.end(committed, takes=False).error_code is ErrorCode.PRODUCER_FENCED
        assert talk.write("b", b"third") is ErrorCode.NONE
        assert talk.end(True).error_code is ErrorCode.NONE
        wait_for_stable_offset(talk, "a", 4)
        assert talk.committed_values("a") == [b"second"]


def test_hijacked_id_is_lost_to_its_owner(node: OttlaNode) -> None:
    with PlainClient(node.bootstrap) as client:
        owner = talk_with(client, "hijacked")
        owner.init()
        assert owner.write("a", b"mine") is ErrorCode.NONE
        thief = TransactionTalk(client, "hijacked", owner.topics)
        assert thief.init().error_code is ErrorCode.NONE
        assert owner.write("a", b"mine too") in FENCED
        assert owner.write("b", b"mine too") in FENCED
        assert owner.commit_offset("group", "a", 1) in FENCED
        assert owner.end(True).error_code in FENCED
        assert thief.write("a", b"theirs") is ErrorCode.NONE
        assert thief.end(True).error_code is ErrorCode.NONE
        wait_for_stable_offset(thief, "a", 4)
        assert thief.committed_values("a") == [b"theirs"]


@pytest.mark.parametrize("version", [1, 2])
def test_zombie_after_a_pause_longer_than_its_timeout_is_fenced(node: OttlaNode, version: int) -> None:
    with PlainClient(node.bootstrap) as client:
        zombie = talk_with(client, "zombie", version)
        zombie.init(timeout_ms=300)
        if version == 1:
            zombie.add("a")
        assert zombie.write("a", b"before the pause") is ErrorCode.NONE
        wait_for_stable_offset(zombie, "a", 2)
        assert zombie.write("a", b"after the pause") in FENCED
        assert zombie.write("b", b"after the pause") in FENCED
        # With version 2 its epoch could be that of a retry, but what it asks for is not what happened.
        refusals = (ErrorCode.INVALID_TXN_STATE,) if version == 2 else FENCED
        assert zombie.end(True).error_code in refusals
        assert zombie.committed_values("a") == []
        successor = TransactionTalk(client, "zombie", zombie.topics, version)
        assert successor.init().error_code is ErrorCode.NONE


@pytest.mark.parametrize("version", [1, 2])
def test_producer_recovers_from_an_error_within_its_transaction(node: OttlaNode, version: int) -> None:
    """Come back with the epoch that is known (KIP-360): what was open is aborted, the owner goes on."""
    with PlainClient(node.bootstrap) as client:
        talk = talk_with(client, "recovers", version)
        talk.init()
        if version == 1:
            talk.add("a")
        assert talk.write("a", b"before the error") is ErrorCode.NONE
        known, before = (talk.producer_id, talk.producer_epoch), talk.twin()
        assert talk.init(expected=known).error_code is ErrorCode.NONE
        assert talk.producer_id == known[0]
        assert talk.producer_epoch > known[1]
        assert before.write("a", b"late") in FENCED
        if version == 1:
            talk.add("a")
        assert talk.write("a", b"after the error") is ErrorCode.NONE
        assert talk.end(True).error_code is ErrorCode.NONE
        wait_for_stable_offset(talk, "a", 4)
        assert talk.committed_values("a") == [b"after the error"]
        if version == 2:
            # Its epoch is of long ago. With version 1 the epoch is still that of the recovery, and who comes
            # with the one before could be the owner who lost the answer: so it is in Kafka.
            assert before.init(expected=known).error_code is ErrorCode.PRODUCER_FENCED


def test_open_transaction_survives_a_kill_and_is_ended_by_its_owner(node: OttlaNode) -> None:
    with PlainClient(node.bootstrap) as client:
        talk = talk_with(client, "survivor")
        talk.init()
        assert talk.write("a", b"1") is ErrorCode.NONE
        assert talk.commit_offset("group", "a", 3) is ErrorCode.NONE
    node.kill()
    node.start()
    with PlainClient(node.bootstrap) as client:
        talk.client = client
        assert talk.write("a", b"2") is ErrorCode.NONE
        assert talk.write("b", b"3") is ErrorCode.NONE
        assert talk.end(True).error_code is ErrorCode.NONE
        wait_for_stable_offset(talk, "a", 3)
        wait_for_stable_offset(talk, "b", 2)
        assert (talk.committed_values("a"), talk.committed_values("b")) == ([b"1", b"2"], [b"3"])


@pytest.mark.thorough(
    guard="tests/clients/test_admin_of_ours.py::test_a_transaction_is_ended_in_a_partition_by_hand"
)
def test_hanging_transaction_is_found_and_aborted_by_kafka_transactions(tmp_path: Path) -> None:
    settings = {"transaction.partition.verification.enable": "false"}
    with OttlaNode(tmp_path / "node", settings) as node, PlainClient(node.bootstrap) as client:
        talk = talk_with(client, "hanging", version=1)
        talk.init()
        # Nobody has announced it, and nobody will ever end it.
        assert talk.write("a", b"x", version=9) is ErrorCode.NONE
        assert open_transactions(talk, "a") == [0]
        found = transactions_tool(node, "find-hanging", "--broker-id", "0", "--max-transaction-timeout", "0")
        assert "a " in found.replace("\t", " ")
        transactions_tool(node, "abort", "--topic", "a", "--partition", "0", "--start-offset", "0")
        assert open_transactions(talk, "a") == [-1]
        assert talk.stable_offset("a") == 2


def transactions_tool(node: OttlaNode, *arguments: str) -> str:
    command = java_command(
        java_classpath(),
        "org.apache.kafka.tools.TransactionsCommand",
        "--bootstrap-server",
        node.bootstrap,
        *arguments,
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
