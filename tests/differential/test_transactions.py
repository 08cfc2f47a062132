"""The same conversations with a live Apache Kafka and with Ottla: the same answers."""

import pytest
from tests.differential.transaction_scenarios import SCENARIOS, Scenario, Told
from tests.java.apache_kafka import ApacheKafka
from tests.support.data_plane import create_topic
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient
from tests.support.readiness import wait_until_led
from tests.support.transaction_talk import TransactionTalk


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_answers_are_those_of_apache_kafka(
    scenario: Scenario, apache_kafka: ApacheKafka, ottla_node: OttlaNode
) -> None:
    expected = talk_with(apache_kafka.bootstrap, scenario)
    assert talk_with(ottla_node.bootstrap, scenario) == expected


def talk_with(bootstrap: str, scenario: Scenario) -> Told:
    prefix = f"transactions.{scenario.__name__}."
    with PlainClient(bootstrap) as client:
        topics = {name: create_topic(client, name) for name in (prefix + "a", prefix + "b")}
        talk = TransactionTalk(client, f"differential-{scenario.__name__}", topics, prefix=prefix)
        talk.find_coordinator()
        for topic in topics:
            wait_until_led(client, topic)
        return scenario(talk)
