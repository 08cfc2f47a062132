"""Thousands of random requests to Apache Kafka and to Ottla, in all APIs and versions that Ottla serves.

Both get the same requests in the same order, so both are in the same state. Answers are compared by their
error codes and their shape: what is null, what is empty, how many of a thing there are, and every number and
name that both can know. Where they differ, `known_differences.py` has to say why. The environment variable
SEED asks for other requests.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.differential.busy_cluster import commit_offsets, produce_once_ready
from tests.differential.known_differences import is_known, is_no_answer
from tests.differential.random_requests import TOPICS, RequestMaker, with_ids
from tests.java.apache_kafka import ApacheKafka
from tests.java.oracle import Oracle
from tests.java.recorded_broker import RecordedBroker, RecordedClient
from tests.support.data_plane import Asks, batch_of, create_topic
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient
from tests.support.readiness import ask_once_ready

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.apis import Api, api_of
from ottla.wire.declare import fields_of, replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.describe_configs import DescribeConfigsResourceResult, DescribeConfigsResult
from ottla.wire.messages.fetch import FetchableTopicResponse
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest

REQUESTS_PER_VERSION = 12
SEED = int(os.environ.get("SEED", "20261115"))
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "5",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""All that Apache Kafka is told too, if it matters to answers."""

UNFORESEEABLE = frozenset(
    ("api_keys", "batch_index_error_message", "broker_epoch", "cluster_id", "directory_id",
     "documentation", "error_message", "finalized_features", "finalized_features_epoch",
     "high_watermark_epoch", "host", "incarnation_id", "last_caught_up_timestamp", "last_fetch_timestamp",
     "last_timestamp", "leader", "leader_epoch", "log_append_time_ms", "log_dir", "log_end_offset",
     "member_id", "partition_size", "port", "producer_id", "records", "replica_directory_id", "session_id",
     "supported_features", "throttle_time_ms", "timestamp", "total_bytes", "transaction_start_time_ms",
     "usable_bytes")
)  # fmt: skip


CONFIGS_OF_THE_NODE = frozenset(
    ("advertised.listeners", "controller.quorum.bootstrap.servers", "inter.broker.listener.name",
     "listener.security.protocol.map", "listeners", "log.dirs")
)  # fmt: skip
"""What the two are told of themselves: other ports, other directories."""


class Side:
    """One broker, prepared. A connection that it closes is opened again."""

    def __init__(self, connect: Callable[[], PlainClient | RecordedClient]) -> None:
        self._connect = connect
        self._client = connect()
        self.ids = {name: create_topic(self._client, name, *_TOPIC_SETTINGS[name]) for name in TOPICS}
        for name in TOPICS:
            for number in range(3):
                batch = batch_of(b"value", b"other", key=b"%d" % number)
                produce_once_ready(self._client, name, batch)
        commit_offsets(self._client, "any-group", {("any-one", 0): 1})
        for name in ("any-transaction", "other-transaction"):
            start_transactions(self._client, name)

    def ask(self, request: Any, version: int) -> Any:
        """Return the answer, or what came instead of one."""
        try:
            return self._client.ask(with_ids(request, self.ids), version)
        except ConnectionError:
            self.reconnect()
            return "closed the connection"
        except TimeoutError:
            self.reconnect()
            return "did not answer"

    def reconnect(self) -> None:
        self._client.close()
        self._client = self._connect()

    def served(self) -> Iterator[tuple[Api, int]]:
        """Give every version of every API that the broker says it serves."""
        ask = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
        for one in self._client.ask(ask, 4).api_keys:
            api = api_of(one.api_key)
            for version in range(max(one.min_version, api.versions.first), one.max_version + 1):
                yield api, version

    def close(self) -> None:
        self._client.close()


_TOPIC_SETTINGS: dict[str, tuple[int, dict[str, str]]] = {
    "any-one": (1, {}),
    "any-three": (3, {"retention.ms": "100000000"}),
    "any-compacted": (1, {"cleanup.policy": "compact"}),
}


def start_transactions(client: Asks, name: str) -> None:
    """Have a coordinator for a transactional id, and a producer with it."""
    ask_once_ready(
        client,
        FindCoordinatorRequest(key_type=1, coordinator_keys=(name,)),
        lambda answer: [one.error_code for one in answer.coordinators],
        6,
    )
    ask_once_ready(
        client,
        InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000),
        lambda answer: [answer.error_code],
        5,
    )


@pytest.fixture
def fresh_kafka(tmp_path: Path) -> Iterator[str]:
    with ApacheKafka(tmp_path / "kafka", SETTINGS) as kafka:
        yield kafka.bootstrap


@pytest.mark.timeout(900)
def test_random_requests_get_the_answers_of_apache_kafka(
    request: pytest.FixtureRequest, oracle: Oracle, tmp_path: Path
) -> None:
    kafka = RecordedBroker(oracle, lambda: request.getfixturevalue("fresh_kafka"))
    with OttlaNode(tmp_path / "ottla", SETTINGS) as ottla:
        theirs = Side(lambda: kafka.client(timeout_s=8))
        ours = Side(lambda: PlainClient(ottla.bootstrap, timeout_s=8))
        try:
            compared = compare(theirs, ours)
        finally:
            theirs.close()
            ours.close()
    assert compared.requests > 2000
    assert compared.unanswered < compared.requests / 20, "most requests must be worth an answer"
    assert compared.differences == [], "\n".join([f"SEED={SEED}", *compared.differences])


class Comparison(NamedTuple):
    """The differences that nobody explained, of how many requests; and what Apache Kafka did not answer."""

    differences: list[str]
    requests: int
    unanswered: int


def compare(theirs: Side, ours: Side) -> Comparison:
    """Ask both everything."""
    maker = RequestMaker(SEED)
    found: list[str] = []
    count = unanswered = 0
    for api, version in list(ours.served()):
        maker.turn_to(api, version)
        for _ in range(REQUESTS_PER_VERSION):
            request = maker.make(api, version)
            count += 1
            differences = list(
                differing(essence(theirs.ask(request, version)), essence(ours.ask(request, version)))
            )
            if is_no_answer(differences):
                unanswered += 1
                continue
            found += [
                f"{api.key.name} v{version} {place}: {expected} from Apache Kafka, {answered} from Ottla"
                f"\n    {request}"
                for place, expected, answered in differences
                if not is_known(api.key, request, place, expected, answered)
            ]
    return Comparison(found, count, unanswered)


def essence(value: Any) -> Any:
    """Return what is to be compared of an answer: dictionaries, sorted lists and plain values."""
    if isinstance(value, DescribeConfigsResourceResult) and value.name in CONFIGS_OF_THE_NODE:
        return value.name
    if isinstance(value, DescribeConfigsResult):
        # Ottla lists configs of its own beside Kafka's.
        configs = tuple(config for config in value.configs if not config.name.startswith("ottla."))
        value = replace(value, configs=configs)
    if hasattr(type(value), "__wire_fields__"):
        return {
            name: essence(getattr(value, name))
            for name in fields_of(type(value))
            if name not in UNFORESEEABLE
        }
    if isinstance(value, tuple):
        if value and isinstance(value[0], FetchableTopicResponse):
            value = merged(value)
        return sorted((essence(element) for element in value), key=_name_of)
    if isinstance(value, Uuid):
        return "no id" if value == ZERO_UUID else "some id"
    return value.name if isinstance(value, ErrorCode) else value


def merged(topics: tuple[FetchableTopicResponse, ...]) -> tuple[FetchableTopicResponse, ...]:
    """Return every topic once. Apache Kafka names one again when partitions with errors come between."""
    partitions: dict[Any, list[Any]] = {}
    for topic in topics:
        partitions.setdefault((topic.topic, topic.topic_id), []).extend(topic.partitions)
    return tuple(
        FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=tuple(parts))
        for (name, topic_id), parts in partitions.items()
    )


def _name_of(element: Any) -> str:
    """Return what a list is to be sorted by: names and numbers first, and errors last."""
    if not isinstance(element, dict):
        return repr(element)
    names = [repr(value) for name, value in element.items() if "error" not in name]
    return " ".join([*names, repr(element)])


def differing(expected: Any, answered: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Give the places where two answers differ, with what is in each."""
    if expected == answered:
        return
    if isinstance(expected, dict) and isinstance(answered, dict):
        for name in expected:
            yield from differing(expected[name], answered[name], f"{place}.{name}")
    elif isinstance(expected, list) and isinstance(answered, list) and len(expected) == len(answered):
        for one, other in zip(expected, answered, strict=True):
            yield from differing(one, other, f"{place}[]")
    elif isinstance(expected, list) and isinstance(answered, list):
        yield f"{place}.length", len(expected), len(answered)
    else:
        yield place, expected, answered
