"""Apache Kafka takes over a directory with transactions in every state, and Ottla one of Apache Kafka's."""

import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.differential.transaction_scenarios import committed_offset, described, until_stable
from tests.java.apache_kafka import ApacheKafka
from tests.support.data_plane import create_topic
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient
from tests.support.readiness import wait_until_led
from tests.support.transaction_talk import TransactionTalk

from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode

# Long enough for the next broker to start and load, also where that takes its time.
TIMEOUT_MS = 30_000
QUICK_ABORTS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}

Broker = ApacheKafka | OttlaNode


def fill(client: PlainClient) -> dict[str, Uuid]:
    """Leave transactions behind: committed, aborted, open, with offsets and without, of both versions."""
    topics = {name: create_topic(client, name) for name in ("done", "open")}
    for topic in topics:
        wait_until_led(client, topic)
    finder = TransactionTalk(client, "finder", topics)
    finder.find_coordinator()
    for version in (1, 2):
        for outcome in (True, False):
            talk = TransactionTalk(client, f"v{version}-{outcome}", topics, version)
            talk.init(timeout_ms=TIMEOUT_MS)
            if version == 1:
                talk.add("done")
                talk.add_offsets(f"group-v{version}")
            assert talk.write("done", f"v{version} {outcome}".encode()) is ErrorCode.NONE
            assert talk.commit_offset(f"group-v{version}", "done", 7 if outcome else 9) is ErrorCode.NONE
            assert talk.end(outcome).error_code is ErrorCode.NONE
    for version in (1, 2):
        talk = TransactionTalk(client, f"open-v{version}", topics, version)
        talk.init(timeout_ms=TIMEOUT_MS)
        if version == 1:
            talk.add("open")
        assert talk.write("open", b"never") is ErrorCode.NONE
    settle(finder)
    return topics


def settle(talk: TransactionTalk) -> None:
    """Wait until what was ended is ended everywhere."""
    for version in (1, 2):
        assert until_stable(talk, f"group-v{version}", "done") == (7, ErrorCode.NONE)
    for _ in range(200):
        if talk.stable_offset("done") == 8:
            return
        time.sleep(0.05)
    raise AssertionError("markers are missing")


def states(talk: TransactionTalk) -> list[object]:
    names = ["v1-True", "v1-False", "v2-True", "v2-False", "open-v1", "open-v2"]
    told: list[object] = [described(talk, name) for name in names]
    told += [committed_offset(talk, f"group-v{version}", "done", True) for version in (1, 2)]
    told += [talk.stable_offset(topic) for topic in ("done", "open")]
    told += [talk.committed_values(topic) for topic in ("done", "open")]
    return told


def wait_until_loaded(client: PlainClient, talk: TransactionTalk) -> None:
    for topic in ("done", "open"):
        wait_until_led(client, topic)
    talk.find_coordinator()
    for name in ("v1-True", "open-v2", "open-v1", "v2-True", "v1-False", "v2-False"):
        for _ in range(400):
            if described(talk, name)[0] is ErrorCode.NONE:
                break
            time.sleep(0.05)
    for version in (1, 2):
        for _ in range(400):
            if committed_offset(talk, f"group-v{version}", "done", True)[0] >= 0:
                break
            time.sleep(0.05)


@pytest.mark.parametrize("first", ["ottla", "ottla killed", "apache kafka"])
@pytest.mark.thorough(guard="tests/golden/test_internal_records.py")
def test_transactions_are_taken_over(first: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    brokers: list[AbstractContextManager[Broker]] = [
        OttlaNode(tmp_path / "ottla", QUICK_ABORTS, data_directory=data),
        ApacheKafka(tmp_path / "kafka", QUICK_ABORTS, data_directory=data),
    ]
    if first == "apache kafka":
        brokers.reverse()
    with brokers[0] as broker, PlainClient(broker.bootstrap) as client:
        topics = fill(client)
        before = states(TransactionTalk(client, "finder", topics))
        if first == "ottla killed":
            assert isinstance(broker, OttlaNode)
            broker.kill()
    with brokers[1] as broker, PlainClient(broker.bootstrap) as client:
        talk = TransactionTalk(client, "finder", topics)
        wait_until_loaded(client, talk)
        assert states(talk) == before
        # The producers go on with the epochs they had, and what was left open is aborted in time.
        for _ in range(1200):
            if talk.stable_offset("open") > 0:
                break
            time.sleep(0.1)
        assert talk.committed_values("open") == []
        again = TransactionTalk(client, "v2-True", topics)
        epoch = described(talk, "v2-True")[2]
        assert again.init().producer_epoch == epoch + 1
        assert again.write("done", b"after") is ErrorCode.NONE
        assert again.end(True).error_code is ErrorCode.NONE
