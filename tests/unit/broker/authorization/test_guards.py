"""Every API is guarded, and a client without rights learns and changes nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.data_plane import batch_of, produce_request
from tests.support.filled_requests import request_about
from tests.support.in_process import InProcessClient, in_process_node

from ottla.broker.authorization.guards import find_guard, written_guards
from ottla.broker.lifecycle.startup import Node
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.dispatch import Session
from ottla.broker.serving.handlers import CheckedBy, declared_of
from ottla.broker.serving.replies import CloseConnection
from ottla.broker.serving.served_apis import SERVED, Listener
from ottla.security.principal import Principal
from ottla.security.standard_authorizer import CLASS_NAME
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.compiling.error_finder import compile_error_finder
from ottla.wire.declare import spec_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.messages.describe_acls import DescribeAclsRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import ACKS_LETTERS, ACKS_MIRRORED, ProduceRequest

BOSS, MALLORY = Principal("User", "boss"), Principal("User", "mallory")
TOPIC = "payments"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    settings = {"authorizer.class.name": CLASS_NAME, "super.users": f"{BOSS}"}
    root: Path = tmp_path_factory.mktemp("node")
    with in_process_node(root, settings) as node:
        ask_as(node, BOSS, CreateTopicsRequest(topics=(creatable(TOPIC),), timeout_ms=1000))
        yield node


@pytest.fixture(autouse=True)
def no_rules_stay(node: Node) -> Iterator[None]:
    """Tests run in any order, and each begins without rules."""
    yield
    ask_as(node, BOSS, DeleteAclsRequest(filters=(rules_of(None),)))


def rules_of(principal: Principal | None) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=principal and str(principal),
        host_filter=None,
        operation=1,
        permission_type=1,
    )


def creatable(name: str) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=())


def ask_as(node: Node, principal: Principal, request: Any, version: int | None = None) -> Any:
    key = spec_of(type(request)).api_key
    assert key is not None
    client = InProcessClient(node)
    if Listener.BROKER not in SERVED[ApiKey(key)].listeners:
        context = RequestContext(node.parts.controller, client, Listener.CONTROLLER)
        client.session = Session(
            context, node.parts.controller.routes, client.session._answer_later, client.session._fail
        )
    client.session.context.principal = principal
    return client.ask(request, version)


def rule(resource_type: int, name: str, operation: int, principal: Principal = MALLORY) -> AclCreation:
    return AclCreation(
        resource_type=resource_type,
        resource_name=name,
        principal=str(principal),
        host="*",
        operation=operation,
        permission_type=3,
    )


@pytest.mark.parametrize("key", sorted(SERVED), ids=lambda key: key.name.lower())
def test_every_api_has_a_guard_or_says_why_not(key: ApiKey) -> None:
    declared = declared_of(key)
    is_guarded = find_guard(key) is not None
    assert is_guarded != bool(declared.checked_by is CheckedBy.HANDLER or declared.free_because)


ODD = {
    ApiKey.PRODUCE,
    ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.DELETE_TOPICS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
}
"""What these ask for depends on more than one field. Tests of each are named after it."""


def test_guards_are_made_of_what_is_declared_but_for_the_odd_ones() -> None:
    assert written_guards() == ODD
    assert {key for key in SERVED if declared_of(key).checked_by is CheckedBy.GUARD} == ODD


WHOLE = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
NOTHING_TO_REFUSE = {ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS, ApiKey.DESCRIBE_LOG_DIRS}
"""A client without rights gets an empty list."""
CASES = [
    pytest.param(key, version, id=f"{key.name.lower()}-{version}")
    for key in sorted(SERVED)
    if declared_of(key).rights and Listener.BROKER in SERVED[key].listeners
    for version in range(SERVED[key].versions.first, SERVED[key].versions.last + 1)
]


@pytest.mark.parametrize(("key", "version"), CASES)
def test_a_client_without_rights_is_refused_in_every_version(node: Node, key: ApiKey, version: int) -> None:
    api = api_of(key)
    topic = node.broker.image.topics.find(TOPIC)
    assert topic is not None
    ask = request_about(key, version, TOPIC, topic.id)
    before = node.broker.image
    answer = ask_as(node, MALLORY, ask, version)
    errors: list[ErrorCode] = []
    compile_error_finder(api.response, version)(answer, errors.append)
    # Time goes on: the controller writes a record of nothing now and then.
    assert node.broker.image._replace(position=before.position) == before
    if key in NOTHING_TO_REFUSE:
        lists = [getattr(answer, name, ()) for name in ("groups", "transaction_states", "results")]
        assert not any(lists)
    else:
        assert WHOLE.intersection(errors), answer


def test_a_rule_opens_what_it_is_about_and_nothing_else(node: Node) -> None:
    named = MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC), MetadataRequestTopic(name="other")))
    everything = MetadataRequest(topics=None)
    assert ask_as(node, MALLORY, everything).topics == ()
    made = ask_as(node, BOSS, CreateAclsRequest(creations=(rule(2, TOPIC, 3),)))
    assert made.results[0].error_code is ErrorCode.NONE
    assert [topic.name for topic in ask_as(node, MALLORY, everything).topics] == [TOPIC]
    codes = {topic.name: topic.error_code for topic in ask_as(node, MALLORY, named).topics}
    assert codes == {TOPIC: ErrorCode.NONE, "other": ErrorCode.TOPIC_AUTHORIZATION_FAILED}

    # Made once more it stays one rule.
    ask_as(node, BOSS, CreateAclsRequest(creations=(rule(2, TOPIC, 3),)))
    listed = ask_as(
        node,
        BOSS,
        DescribeAclsRequest(
            resource_type_filter=2,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        ),
    )
    assert [(resource.resource_name, len(resource.acls)) for resource in listed.resources] == [(TOPIC, 1)]

    gone = ask_as(
        node,
        BOSS,
        DeleteAclsRequest(
            filters=(
                DeleteAclsFilter(
                    resource_type_filter=2,
                    resource_name_filter="payments",
                    pattern_type_filter=2,
                    principal_filter=str(MALLORY),
                    host_filter=None,
                    operation=1,
                    permission_type=1,
                ),
            )
        ),
    )
    assert len(gone.filter_results[0].matching_acls) == 1
    assert ask_as(node, MALLORY, everything).topics == ()


@pytest.mark.parametrize("acks", [ACKS_MIRRORED, ACKS_LETTERS])
def test_only_brokers_may_write_as_brokers_do(node: Node, acks: int) -> None:
    alice = Principal("User", "alice")
    ask_as(node, BOSS, CreateAclsRequest(creations=(rule(2, TOPIC, 4, alice),)))
    for principal, error in (
        (alice, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (BOSS, ErrorCode.INVALID_REQUIRED_ACKS),
    ):
        answer = ask_as(node, principal, produce_request(TOPIC, batch_of(b"v"), acks=acks), 12)
        assert answer.responses[0].partition_responses[0].error_code is error
    answer = ask_as(node, alice, produce_request(TOPIC, batch_of(b"v")), 12)
    assert answer.responses[0].partition_responses[0].error_code is ErrorCode.NONE


def test_a_rule_that_cannot_be_is_refused_alone(node: Node) -> None:
    creations = (rule(4, "another-cluster", 3), rule(2, "", 3), rule(2, TOPIC, 1), rule(3, "g", 3))
    answer = ask_as(node, BOSS, CreateAclsRequest(creations=creations))
    assert [result.error_code for result in answer.results] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
    ]


def test_many_rules_are_one_change(node: Node) -> None:
    """Cut into parts, each part would look at all rules there are: 3,000 took over a minute."""
    version = node.broker.authorizer.version
    bob = Principal("User", "bob")
    creations = tuple(rule(2, f"topic-{number}", 3, bob) for number in range(500))
    answer = ask_as(node, BOSS, CreateAclsRequest(creations=creations))
    assert len(answer.results) == len(creations)
    assert node.broker.authorizer.version == version + 1
    gone = ask_as(node, BOSS, DeleteAclsRequest(filters=(rules_of(bob),)))
    assert len(gone.filter_results[0].matching_acls) == 500


def test_a_producer_that_may_do_nothing_and_sends_nothing_is_let_go(node: Node) -> None:
    with pytest.raises(CloseConnection, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED for no topic"):
        ask_as(node, MALLORY, ProduceRequest(transactional_id="t", acks=0, timeout_ms=1, topic_data=()))
