"""The options of a source mean what they mean in Spark's own Kafka source, and nothing else passes."""

from typing import Any

import pytest

from ottla.client.fetching import IsolationLevel
from ottla.client.list_offsets import EARLIEST, LATEST
from ottla.model.ids import TopicPartition
from ottla.pipelines.properties import InvalidOption, client_properties
from ottla.pipelines.sink.options import check_columns, parse_sink_options
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
        (True, {"subscribe": "", "subscribePattern": "("}, "not a valid regular expression"),
        (True, {"subscribe": " , "}, "names no topic"),
        (True, {"subscribe": "", "assign": '{"a":["x"]}'}, "'x' is not the number of a partition"),
        (True, {"subscribe": "", "assign": '{"a":[null]}'}, "None is not the number of a partition"),
        (True, {"subscribe": "", "assign": "[]"}, "assign must be a JSON object of topics"),
        (True, {"startingOffsets": '{"a": {"x": 1}}'}, "'x' is not the number of a partition"),
        (True, {"startingOffsets": '{"a": {"0": "1"}}'}, "'1' for a-0"),
        (True, {"startingOffsetsByTimestamp": '{"a": {"0": -1}}'}, "-1 for a-0"),
        (True, {"startingTimestamp": "-1"}, "startingTimestamp is '-1': it must be a positive number"),
        (False, {"endingOffsets": '{"a": {"0": -2}}'}, "-2 for a-0"),
        (False, {"endingOffsetsByTimestamp": '{"a": {"0": -1}}'}, "-1 for a-0"),
        (True, {"minPartitions": "many"}, "minPartitions is 'many': it must be a positive number"),
        (True, {"maxTriggerDelay": "5 weeks"}, "write a number and ms, s, m, h or d"),
        (True, {"startingOffsetsByTimestampStrategy": "x"}, "'error' or 'latest'"),
    ],
)
def test_what_makes_no_sense_is_refused(is_streaming: bool, given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        parse(is_streaming, **given)


def test_all_that_may_be_said_is_heard() -> None:
    more: dict[str, Any] = {
        "kafkaConsumer.pollTimeoutMs": "6",
        "kafka.max.partition.fetch.bytes": "7",
        "kafka.isolation.level": "read_committed",
    }
    options = parse(
        subscribe=" b, a,b ",
        startingTimestamp="0",
        startingOffsetsByTimestampStrategy="latest",
        failOnDataLoss="False",
        includeHeaders="true",
        minOffsetsPerTrigger="2",
        maxTriggerDelay="3 min",
        minPartitions="4",
        maxRecordsPerPartition="5",
        path="added by Spark",
        **more,
    )
    assert options.subscription == Subscription(topics=("b", "a"))
    assert options.starting == Position(timestamp_ms=0)
    assert (options.late_timestamp_is_latest, options.fail_on_data_loss, options.include_headers) == (
        True,
        False,
        True,
    )
    assert (options.min_offsets_per_trigger, options.max_trigger_delay_ms) == (2, 180_000)
    assert (options.min_partitions, options.max_records_per_partition) == (4, 5)
    assert (options.poll_timeout_ms, options.partition_fetch_bytes) == (6, 7)
    assert options.isolation is IsolationLevel.READ_COMMITTED
    assert options.ending == Position(place=LATEST)


def test_what_is_not_said_has_a_default() -> None:
    options = parse()
    assert (options.min_offsets_per_trigger, options.max_trigger_delay_ms) == (None, 900_000)
    assert (options.min_partitions, options.max_records_per_partition) == (0, None)
    assert (options.poll_timeout_ms, options.partition_fetch_bytes) == (120_000, 4 << 20)
    assert not options.late_timestamp_is_latest


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("7", 7), ("7ms", 7), ("7 s", 7_000), ("7m", 420_000), ("2h", 7_200_000), ("1D", 86_400_000)],
)
def test_a_delay_has_a_unit_or_is_in_milliseconds(text: str, milliseconds: int) -> None:
    assert parse(maxTriggerDelay=text).max_trigger_delay_ms == milliseconds


def test_partitions_may_be_assigned_one_by_one() -> None:
    options = parse(subscribe="", assign='{"a": [1, "0"], "b": 2}')
    named = (TopicPartition("a", 1), ZERO, TopicPartition("b", 2))
    assert options.subscription == Subscription(partitions=named)


def test_address_of_a_broker_is_needed() -> None:
    with pytest.raises(InvalidOption, match="bootstrap"):
        parse_source_options({"subscribe": "a"}, is_streaming=True)


def test_properties_for_java_are_understood() -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p w";'
    properties = client_properties(
        {
            "kafka.bootstrap.servers": "h:1",
            "kafka.sasl.jaas.config": jaas,
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.ssl.truststore.location": "/ca.pem",
        }
    )
    assert properties == {
        "bootstrap.servers": "h:1",
        "sasl.username": "u",
        "sasl.password": "p w",
        "security.protocol": "SASL_PLAINTEXT",
        "ssl.truststore.location": "/ca.pem",
    }


@pytest.mark.parametrize(
    ("text", "username", "password"),
    [
        ("x.PlainLoginModule required username=u password=p;", "u", "p"),
        ("x.PlainLoginModule required username = 'u v' password = 'p;\"';", "u v", 'p;"'),
        (r'x.ScramLoginModule required username="a\"b" password="c\\d";', 'a"b', "c\\d"),
        ("x.PlainLoginModule required\n  username=u-1@x\n  password=p=q ;", "u-1@x", "p=q"),
    ],
)
def test_a_login_is_read_with_quotes_or_without(text: str, username: str, password: str) -> None:
    found = client_properties({"kafka.bootstrap.servers": "h:1", "kafka.sasl.jaas.config": text})
    assert (found["sasl.username"], found["sasl.password"]) == (username, password)


def test_a_login_without_a_user_is_refused() -> None:
    with pytest.raises(InvalidOption, match="names no user"):
        client_properties({"kafka.bootstrap.servers": "h:1", "kafka.sasl.jaas.config": "x required;"})


# Each option of Spark's own source and sink, and what it does here: nothing is left out silently.
REFUSED_PROPERTIES = (
    ("auto.offset.reset", "earliest", "set startingOffsets instead"),
    ("enable.auto.commit", "true", "the checkpoint of a query keeps its offsets"),
    ("interceptor.classes", "x.Y", "runs no Java classes"),
    ("key.deserializer", "x.Y", "values are bytes here"),
    ("value.deserializer", "x.Y", "values are bytes here"),
    ("key.serializer", "x.Y", "values are bytes here"),
    ("partitioner.class", "x.Y", "add a column `partition` instead"),
    ("transactional.id", "t", "each task has an id of its own"),
    ("sasl.kerberos.service.name", "kafka", "GSSAPI is not supported"),
    ("max.poll.records", "5", "has no meaning for this client: leave it out"),
    ("linger.mss", "5", "did you mean 'kafka.linger.ms'"),
)


@pytest.mark.parametrize(("name", "value", "sentence"), REFUSED_PROPERTIES)
def test_a_property_that_cannot_work_is_refused(name: str, value: str, sentence: str) -> None:
    for parse_options in (
        lambda given: parse_source_options({**given, "subscribe": "a"}, is_streaming=True),
        lambda given: parse_sink_options({**given, "topic": "a"}, is_streaming=False),
    ):
        with pytest.raises(InvalidOption, match=sentence):
            parse_options({"kafka.bootstrap.servers": "h:1", f"kafka.{name}": value})


def test_one_list_of_properties_serves_source_and_sink() -> None:
    both: dict[str, Any] = {
        "kafka.isolation.level": "read_committed",
        "kafka.linger.ms": "5",
        "kafka.group.id": "g",
    }
    assert parse(**both).group == "g"
    sink = parse_sink_options({"kafka.bootstrap.servers": "h:1", "topic": "a", **both}, is_streaming=False)
    assert sink.settings(None).linger_ms == 5


@pytest.mark.parametrize(
    ("is_streaming", "name", "value"),
    [
        (True, "endingOffsets", "latest"),
        (True, "endingTimestamp", "5"),
        (True, "endingOffsetsByTimestamp", "{}"),
        (False, "maxOffsetsPerTrigger", "5"),
        (False, "minOffsetsPerTrigger", "5"),
        (False, "maxTriggerDelay", "5s"),
    ],
)
def test_what_the_other_kind_of_query_has_is_refused(is_streaming: bool, name: str, value: str) -> None:
    with pytest.raises(InvalidOption, match=f"{name} cannot be set here, since"):
        parse_source_options({**BASE, name: value}, is_streaming=is_streaming)


def test_a_prefix_makes_a_group_of_what_is_read() -> None:
    assert parse().group is None
    assert parse(groupIdPrefix="team").group == "team-a"
    assert parse(groupIdPrefix="team", subscribe="b, a").group == "team-b-a"
    own: dict[str, Any] = {"kafka.group.id": "own"}
    assert parse(groupIdPrefix="team", **own).group == "own"


def test_how_long_offsets_are_asked_for_is_heard() -> None:
    assert parse().retry_timeout_ms == 60_000
    more: dict[str, Any] = {"fetchOffset.numRetries": "2"}
    assert parse(**more).retry_timeout_ms == 2_000
    more["fetchOffset.retryIntervalMs"] = "10"
    assert parse(**more).retry_timeout_ms == 20


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (
            {"value": "int"},
            r"column 'value' is int, and it has to be string or binary: .*cast\(value AS STRING\)",
        ),
        ({"value": "string", "partition": "bigint"}, r"'partition' is bigint, .*cast\(partition AS INT\)"),
        ({"value": "string", "timestamp": "timestamp"}, "unknown column 'timestamp'"),
        ({"key": "string"}, 'need a column "value"'),
    ],
)
def test_columns_that_cannot_be_written_are_refused(columns: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidOption, match=sentence):
        check_columns(columns, "a")


def test_weaker_acks_are_refused_where_rows_are_delivered_exactly_once() -> None:
    given = {"kafka.bootstrap.servers": "h:1", "topic": "a", "kafka.acks": "0"}
    with pytest.raises(InvalidOption, match=r"kafka.acks=0 and delivering exactly once do not go together"):
        parse_sink_options(given, is_streaming=True)
    sink = parse_sink_options({**given, "deliveryGuarantee": "at-least-once"}, is_streaming=True)
    assert sink.settings(None).required_acks == 0
