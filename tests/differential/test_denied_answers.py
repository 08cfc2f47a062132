"""What clients without rights, or with some of them, get from Apache Kafka and from us: the same.

Every API is sent in every version: by a user that has no rights, and where an API asks for several rights, by
users that have one of them. What it says of a topic that does not exist depends on who may know that.
"""

import json
import re
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.differential.test_admin_answers import essence
from tests.java.apache_kafka import ApacheKafka, free_ports
from tests.java.oracle import Oracle
from tests.support.data_plane import create_topic
from tests.support.filled_requests import request_about
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient
from tests.support.readiness import wait_until_led

from ottla.broker.serving.handlers import declared_of
from ottla.broker.serving.served_apis import SERVED, Listener
from ottla.model.uuid import Uuid
from ottla.security.rights import CLUSTER, Operation, ResourceType, Right, on_topic
from ottla.security.standard_authorizer import CLASS_NAME
from ottla.wire.apis import ApiKey
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

TOPIC = "payments"
ABSENT = "refunds"
ABSENT_ID = Uuid(b"an id of nothing")
DESCRIBE = on_topic(Operation.DESCRIBE)
NOBODY = "nobody"
RIGHTS = sorted({right for key in SERVED for right in declared_of(key).rights})
NOT_COMPARED = {
    # The order of the two checks differs, or Kafka's answer depends on what it has started by itself.
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
}


SERVED_AT_ONCE = {(ApiKey.PRODUCE, "write-topic"), (ApiKey.DELETE_TOPICS, "delete-topic")}
"""One right is enough: other tests compare what is served then."""


def user_with(right: Right) -> str:
    return f"{right.operation.name}-{right.resource_type.name}".lower()


class Side(NamedTuple):
    """One broker: where users log in, and the id of the topic there."""

    address: str
    topic_id: Uuid


def _settings() -> dict[str, str]:
    users = " ".join(f'user_{user}="secret"' for user in (NOBODY, *map(user_with, RIGHTS)))
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": f"{module} required {users};",
        "authorizer.class.name": CLASS_NAME,
        "super.users": "User:ANONYMOUS",
        "auto.create.topics.enable": "false",
    }


@pytest.fixture(scope="module")
def apache_side(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    (port,) = free_ports(1)
    kafka = ApacheKafka(tmp_path_factory.mktemp("apache"))
    kafka.properties.update(_settings())
    for key in ("listeners", "advertised.listeners"):
        kafka.properties[key] += f",LOGIN://127.0.0.1:{port}"
    with kafka:
        yield _prepared(kafka.bootstrap, port)


@pytest.fixture(scope="module")
def ottla_side(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    (port,) = free_ports(1)
    listeners = f"PLAINTEXT://127.0.0.1:0,LOGIN://127.0.0.1:{port}"
    settings = {"node.id": "0", "listeners": listeners, **_settings()}
    with OttlaNode(tmp_path_factory.mktemp("ottla"), settings) as node:
        yield _prepared(node.bootstrap, port)


def _prepared(bootstrap: str, port: int) -> Side:
    with PlainClient(bootstrap) as client:
        topic_id = create_topic(client, TOPIC, 1, None)
        wait_until_led(client, TOPIC, 1)
        rules = tuple(_rule(right, name) for right in RIGHTS for name in (TOPIC, ABSENT))
        answer = client.ask(CreateAclsRequest(creations=rules))
        assert {result.error_code for result in answer.results} == {ErrorCode.NONE}
        _wait_for_coordinators(client)
    return Side(f"127.0.0.1:{port}", topic_id)


def _wait_for_coordinators(client: PlainClient) -> None:
    """Have the topics of the coordinators made, and wait until they are led."""
    for key_type in (0, 1):
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=(TOPIC,))
        for _ in range(300):
            if client.ask(request, 4).coordinators[0].error_code is ErrorCode.NONE:
                break
            time.sleep(0.1)
    fetch = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=TOPIC, topics=None),))
    for _ in range(300):
        if client.ask(fetch, 8).groups[0].error_code is ErrorCode.NONE:
            break
        time.sleep(0.1)


def _rule(right: Right, name: str) -> AclCreation:
    return AclCreation(
        resource_type=right.resource_type,
        resource_name=CLUSTER if right.resource_type is ResourceType.CLUSTER else name,
        principal=f"User:{user_with(right)}",
        host="*",
        operation=right.operation,
        permission_type=3,
    )


def log_in(side: Side, user: str) -> PlainClient:
    client = PlainClient(side.address)
    client.ask(SaslHandshakeRequest(mechanism="PLAIN"))
    answer = client.ask(SaslAuthenticateRequest(auth_bytes=f"\0{user}\0secret".encode()))
    assert answer.error_code is ErrorCode.NONE
    return client


def ask(side: Side, client: PlainClient, key: ApiKey, version: int, topic: str) -> str:
    """Return the answer without what differs between any two brokers; "closed" if there is none."""
    topic_id = side.topic_id if topic == TOPIC else ABSENT_ID
    try:
        answer = client.ask(request_about(key, version, topic, topic_id), version)
    except (ConnectionError, AssertionError, EOFError):
        return "closed"
    text = repr(essence(answer)).replace(repr(side.topic_id), "the topic")
    return re.sub(r"<memory at 0x[0-9a-f]+>", "records", text)


CASES = [
    pytest.param(key, user, id=f"{key.name.lower()}-{user}")
    for key in sorted(SERVED)
    if declared_of(key).rights and Listener.BROKER in SERVED[key].listeners and key not in NOT_COMPARED
    for user in (
        NOBODY,
        *(user_with(right) for right in declared_of(key).rights if len(declared_of(key).rights) > 1),
    )
    if (key, user) not in SERVED_AT_ONCE
]


@pytest.mark.parametrize(("key", "user"), CASES)
def test_denied_answers_are_those_of_apache_kafka(
    request: pytest.FixtureRequest, oracle: Oracle, ottla_side: Side, key: ApiKey, user: str
) -> None:
    def ask_kafka() -> str:
        return json.dumps(ask_all(request.getfixturevalue("apache_side"), user, key))

    versions = SERVED[key].versions
    expected = json.loads(oracle.answer(f"{key.name} {versions} as {user}", ask_kafka))
    assert ask_all(ottla_side, user, key) == expected


ABOUT_TOPICS = [
    pytest.param(key, user, topic, id=f"{key.name.lower()}-{user}-{topic}")
    for key in sorted(SERVED)
    if Listener.BROKER in SERVED[key].listeners and key not in NOT_COMPARED
    for rights in [[right for right in declared_of(key).rights if right.resource_type is ResourceType.TOPIC]]
    if rights
    for user in dict.fromkeys((NOBODY, user_with(DESCRIBE), *map(user_with, rights)))
    for topic in (TOPIC, ABSENT)
    if topic == ABSENT or (user == user_with(DESCRIBE) and DESCRIBE not in rights)
]


@pytest.mark.parametrize(("key", "user", "topic"), ABOUT_TOPICS)
def test_who_may_know_that_a_topic_does_not_exist_is_as_in_apache_kafka(
    request: pytest.FixtureRequest, oracle: Oracle, ottla_side: Side, key: ApiKey, user: str, topic: str
) -> None:
    def ask_kafka() -> str:
        return json.dumps(ask_all(request.getfixturevalue("apache_side"), user, key, topic))

    expected = json.loads(
        oracle.answer(f"{key.name} {SERVED[key].versions} about {topic} as {user}", ask_kafka)
    )
    assert ask_all(ottla_side, user, key, topic) == expected


def ask_all(side: Side, user: str, key: ApiKey, topic: str = TOPIC) -> dict[str, str]:
    """Return the answer to each version."""
    versions = SERVED[key].versions
    answers = {}
    client = log_in(side, user)
    for version in range(versions.first, versions.last + 1):
        answers[str(version)] = answer = ask(side, client, key, version, topic)
        if answer == "closed":
            client.close()
            client = log_in(side, user)
    client.close()
    return answers
