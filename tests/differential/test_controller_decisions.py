"""Let Apache Kafka go through a life with crashes, and decide everything again ourselves."""

from pathlib import Path

import pytest
from tests.golden.metadata_logs import read_log
from tests.java.apache_kafka import ApacheKafka
from tests.support.controller_replay import compare_decisions
from tests.support.plain_client import PlainClient
from tests.support.readiness import ask_once_ready, wait_until_led

from ottla.metadata.image import EMPTY_IMAGE
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

pytestmark = pytest.mark.live_oracle


def wait_until_it_leads(kafka: ApacheKafka) -> None:
    """A server accepts connections before it has registered, and before it leads anything."""
    with PlainClient(kafka.bootstrap) as client:
        for topic in ("a", "b"):
            wait_until_led(client, topic, 3)


def test_a_broker_that_was_killed_is_treated_as_in_kafka(tmp_path: Path) -> None:
    kafka = ApacheKafka(tmp_path)
    with kafka:
        with PlainClient(kafka.bootstrap) as client:
            topics = tuple(
                CreatableTopic(name=name, num_partitions=3, replication_factor=1, assignments=(), configs=())
                for name in ("a", "b")
            )
            ask_once_ready(
                client,
                CreateTopicsRequest(topics=topics, timeout_ms=60_000),
                lambda answer: [topic.error_code for topic in answer.topics],
            )
        for _ in range(2):
            wait_until_it_leads(kafka)
            kafka.kill()
            kafka.start()
        wait_until_it_leads(kafka)

    found = list(compare_decisions(EMPTY_IMAGE, read_log(kafka.data_directory / "__cluster_metadata-0")))

    again = [one for one in found if one.what == "registers again"]
    assert [one.record_count for one in again] == [7, 7], "all six partitions lost their leader, both times"
    assert {one.what for one in found} >= {"is unfenced", "begins to stop", "is fenced"}
    for one in found:
        assert not one.ours, f"only we write at {one.offset}, where a broker {one.what}"
        assert not one.theirs, f"only Kafka writes at {one.offset}, where a broker {one.what}"
