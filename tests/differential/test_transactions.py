"""The same conversations with a live Apache Kafka and with Ottla: the same answers."""

import time

import pytest
from tests.differential.transaction_scenarios import SCENARIOS, Scenario, Told
from tests.java.recorded_broker import RecordedBroker, RecordedClient
from tests.support.data_plane import create_topic
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient
from tests.support.readiness import wait_until_led
from tests.support.transaction_talk import TransactionTalk

from ottla.wire.error_code import ErrorCode

END_OF_TWO_TRANSACTIONS = 3
"""A record and two markers."""


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_answers_are_those_of_apache_kafka(
    scenario: Scenario, kafka: RecordedBroker, ottla_node: OttlaNode
) -> None:
    with kafka.client() as theirs, PlainClient(ottla_node.bootstrap) as ours:
        expected = talk_with(theirs, scenario)
        assert talk_with(ours, scenario) == expected


def test_a_sequence_of_an_aborted_transaction_that_is_used_again_loses_nothing(
    kafka: RecordedBroker, ottla_node: OttlaNode
) -> None:
    """librdkafka does so if it aborts without answers. Apache Kafka acknowledges the record and drops it."""
    with kafka.client() as theirs, PlainClient(ottla_node.bootstrap) as ours:
        assert talk_with(theirs, use_a_sequence_again) == [ErrorCode.NONE, []]
        assert talk_with(ours, use_a_sequence_again) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, []]


def use_a_sequence_again(talk: TransactionTalk) -> Told:
    talk.version = 1
    talk.init()
    talk.add("a")
    assert talk.write("a", b"aborted") is ErrorCode.NONE
    assert talk.end(False).error_code is ErrorCode.NONE
    talk.sequences.clear()
    talk.add("a")
    code = talk.write("a", b"another record")
    assert talk.end(code is ErrorCode.NONE).error_code is ErrorCode.NONE
    while talk.stable_offset("a") < END_OF_TWO_TRANSACTIONS:
        time.sleep(0.05)
    return [code, talk.committed_values("a")]


def talk_with(client: PlainClient | RecordedClient, scenario: Scenario) -> Told:
    prefix = f"transactions.{scenario.__name__}."
    topics = {name: create_topic(client, name) for name in (prefix + "a", prefix + "b")}
    talk = TransactionTalk(client, f"differential-{scenario.__name__}", topics, prefix=prefix)
    talk.find_coordinator()
    for topic in topics:
        wait_until_led(client, topic)
    return scenario(talk)
