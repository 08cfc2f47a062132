"""The options of a source mean what they mean in Spark's own Kafka source, and nothing else passes."""

import pytest

from ottla.client.fetching import IsolationLevel
from ottla.client.list_offsets import EARLIEST, LATEST
from ottla.model.ids import TopicPartition
from ottla.pipelines.properties import InvalidOption, client_properties
from ottla.pipelines.source.options import Position, SourceOptions, Subscription, parse_source_options

BASE = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "a"}
ZERO = TopicPartition("a", 0)


def parse(is_streaming: bool = True, **more: str) -> SourceOptions:
    return parse_source_options({**BASE, **more}, is_streaming=is_streaming)


def test_defaults_are_those_of_spark() -> None:
    stream, batch = parse(), parse(is_streaming=False)

    assert stream.subscription == Subscription(topics=("a",))
    assert (stream.starting, batch.starting) == (Position(place=LATEST), Position(place=EARLIEST))
    assert batch.ending == Position(place=LATEST)
    assert stream.fail_on_data_loss
    assert not stream.include_headers
    assert stream.max_offsets_per_trigger is None
    assert stream.isolation is IsolationLevel.READ_UNCOMMITTED


def test_names_are_not_sensitive_to_case() -> None:
    given = {
        "KAFKA.Bootstrap.Servers": "127.0.0.1:9092",
        "SubscribePattern": "pay.*",
        "MAXOFFSETSPERTRIGGER": "7",
    }
    options = parse_source_options(given, is_streaming=True)

    assert options.subscription == Subscription(pattern="pay.*")
    assert options.max_offsets_per_trigger == 7


def test_offsets_may_be_given_for_each_partition() -> None:
    options = parse(startingOffsets='{"a": {"0": 23, "1": -2, "2": -1}}')
    assert options.starting.offsets == {
        ZERO: 23,
        TopicPartition("a", 1): EARLIEST,
        TopicPartition("a", 2): LATEST,
    }

    options = parse(is_streaming=False, endingOffsets='{"a": {"0": 50}}')
    assert options.ending.offsets == {ZERO: 50}


def test_times_win_over_offsets() -> None:
    assert parse(startingTimestamp="1000", startingOffsets="earliest").starting == Position(timestamp_ms=1000)
    options = parse(startingOffsetsByTimestamp='{"a": {"0": 5}}', startingOffsets="earliest")
    assert options.starting == Position(timestamps_ms={ZERO: 5})
    assert parse(is_streaming=False, endingTimestamp="9").ending == Position(timestamp_ms=9)


@pytest.mark.parametrize(
    ("is_streaming", "given", "message"),
    [
        (True, {"subscribe": ""}, "exactly one of"),
        (True, {"assign": '{"a":[0]}'}, "exactly one of"),
        (True, {"startingOffsets": "soon"}, "neither a known keyword nor JSON"),
        (True, {"startingOffsets": '{"a": 3}'}, "must look like"),
        (True, {"startingOffsets": '{"a": {"0": -3}}'}, "-3 for a-0"),
        (False, {"startingOffsets": "latest"}, "nothing would be read"),
        (False, {"startingOffsets": '{"a": {"0": -1}}'}, "nothing would be read"),
        (False, {"endingOffsets": "earliest"}, "nothing would be read"),
        (True, {"maxOffsetsPerTrigger": "0"}, "positive number"),
        (True, {"failOnDataLoss": "maybe"}, "true or false"),
        (True, {"maxTriggerDelay": "soon"}, "maxTriggerDelay"),
        (True, {"kafka.isolation.level": "some"}, "read_committed"),
        (True, {"startingOfsets": "earliest"}, "unknown option 'startingofsets'"),
        (True, {"subscribePattern": "("}, "exactly one of"),
        (True, {"startingOffsetsByTimestampStrategy": "x"}, "'error' or 'latest'"),
    ],
)
def test_what_makes_no_sense_is_refused(is_streaming: bool, given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        parse(is_streaming, **given)


def test_address_of_a_broker_is_needed() -> None:
    with pytest.raises(InvalidOption, match="bootstrap"):
        parse_source_options({"subscribe": "a"}, is_streaming=True)


def test_properties_for_java_are_understood_or_left_out(caplog: pytest.LogCaptureFixture) -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p w";'
    properties = client_properties(
        {
            "kafka.bootstrap.servers": "h:1",
            "kafka.sasl.jaas.config": jaas,
            "kafka.max.poll.records": "5",
            "kafka.security.protocol": "SASL_PLAINTEXT",
        }
    )
    assert properties == {
        "bootstrap.servers": "h:1",
        "sasl.username": "u",
        "sasl.password": "p w",
        "security.protocol": "SASL_PLAINTEXT",
    }
    assert "max.poll.records" in caplog.text
