"""Whatever a user asks, and with whatever rights: nothing leaks that the rights do not open.

Every API is asked in every version about things that exist and that do not, with entries once, repeated, left
out and null, by users with no right, with each single right there is, and with all of them. The model is
plain: what an answer may show of a topic needs a right that opens it.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import pytest
from tests.support.data_plane import batch_of, create_topic, produce
from tests.support.filled_requests import request_about
from tests.support.in_process import InProcessClient, in_process_node

from ottla.broker.authorization.refusals import refused
from ottla.broker.deferred import Deferred
from ottla.broker.serving.context import RequestContext
from ottla.broker.serving.handlers import declared_of
from ottla.broker.serving.replies import CloseConnection
from ottla.broker.serving.served_apis import SERVED, Listener
from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.security.principal import ANONYMOUS, Principal
from ottla.security.rights import (
    CLUSTER,
    OPERATIONS_ON,
    Operation,
    ResourceType,
    Right,
    on_group,
    on_topic,
)
from ottla.security.standard_authorizer import CLASS_NAME
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.compiling.error_finder import compile_error_finder
from ottla.wire.declare import fields_of, replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.layout import layout_of
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

SECRET, ABSENT = "payments", "refundss"
"""A topic, and what might be one. Groups of both names have committed offsets of the topic."""
ABSENT_ID = Uuid(b"an id of nothing")
RECORDS, OFFSET, METADATA, CONFIG = 777, 4_242, "how far we are", "1234567"
NOBODY = "nobody"
DESCRIBES = tuple(
    Right(Operation.DESCRIBE, one)
    for one in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
)
SHOWS_TOPICS = {
    on_topic(Operation.READ),
    on_topic(Operation.WRITE),
    on_topic(Operation.DELETE),
    on_topic(Operation.ALTER),
    on_topic(Operation.DESCRIBE),
}
"""The rights by which a user may know that a topic is there, and what it is called."""
NOT_ASKED = {
    # These end the conversation, or are about the connection.
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
}
DRAWS_IDS = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS}
"""No two answers are the same."""
LISTS_GROUPS = (ApiKey.LIST_GROUPS, on_group(Operation.DESCRIBE))
"""The groups here have the names of topics."""
GIVES_IDS = (ApiKey.ALTER_SHARE_GROUP_OFFSETS, on_group(Operation.READ))
"""As Kafka, it gives the id of a topic that it refuses, so that one learns whether the topic exists."""
APIS = [key for key in sorted(SERVED) if Listener.BROKER in SERVED[key].listeners and key not in NOT_ASKED]


class Secrets(NamedTuple):
    """What answers must not show, by the model's name of it."""

    topic: frozenset[Any]
    log: frozenset[Any]
    offsets: frozenset[Any]
    configs: frozenset[Any]


class House:
    """A node with secrets, and clients with one right each."""

    def __init__(self, node: Any) -> None:
        self.node = node
        boss = self.client(ANONYMOUS)
        self.topic_id = create_topic(boss, SECRET)
        for _ in range(7):
            produce(boss, SECRET, batch_of(*(b"v" for _ in range(RECORDS // 7))), acks=1)
        boss.ask(_config_of(SECRET))
        rules = [
            _rule(right, name, user) for user, rights in USERS.items() for right in rights for name in NAMES
        ]
        boss.ask(CreateAclsRequest(creations=tuple(rules)))
        for name in (SECRET, ABSENT):
            boss.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=(name,)))
            self.commit(boss, name)
        self.boss = boss
        self.secrets = Secrets(
            topic=frozenset((SECRET, self.topic_id)),
            log=frozenset((RECORDS, RECORDS - 1)),
            offsets=frozenset((OFFSET, METADATA)),
            configs=frozenset((CONFIG,)),
        )

    def client(self, principal: Principal) -> InProcessClient:
        client = InProcessClient(self.node)
        client.session.context.principal = principal
        return client

    def commit(self, boss: InProcessClient, group_id: str) -> None:
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=OFFSET, committed_metadata=METADATA
        )
        topic = OffsetCommitRequestTopic(name=SECRET, partitions=(partition,))
        answer = boss.ask(
            OffsetCommitRequest(
                group_id=group_id, generation_id_or_member_epoch=-1, member_id="", topics=(topic,)
            ),
            9,
        )
        assert answer.topics[0].partitions[0].error_code is ErrorCode.NONE


def _config_of(topic: str) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name="segment.bytes", config_operation=0, value=CONFIG)
    return IncrementalAlterConfigsRequest(
        resources=(AlterConfigsResource(resource_type=2, resource_name=topic, configs=(config,)),),
        validate_only=False,
    )


def _rule(right: Right, name: str, user: str) -> AclCreation:
    return AclCreation(
        resource_type=right.resource_type,
        resource_name=CLUSTER if right.resource_type is ResourceType.CLUSTER else name,
        principal=str(Principal("User", user)),
        host="*",
        operation=right.operation,
        permission_type=3,
    )


def name_of(right: Right | None) -> str:
    return NOBODY if right is None else f"{right.operation.name}-{right.resource_type.name}".lower()


RIGHTS = [
    Right(operation, resource_type)
    for resource_type in (
        ResourceType.TOPIC,
        ResourceType.GROUP,
        ResourceType.CLUSTER,
        ResourceType.TRANSACTIONAL_ID,
    )
    for operation in OPERATIONS_ON[resource_type]
]
EVERYBODY: list[Right | None] = [None, *RIGHTS]
ALMIGHTY = "almighty"
USERS = {**{name_of(right): [right] for right in RIGHTS}, ALMIGHTY: RIGHTS}
NAMES = (SECRET, ABSENT)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    settings = {
        "authorizer.class.name": CLASS_NAME,
        "super.users": str(ANONYMOUS),
        "auto.create.topics.enable": "false",
    }
    with in_process_node(tmp_path_factory.mktemp("house"), settings) as node:
        yield House(node)


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Keep what would reach the controller, and let nothing come of it."""
    reached: list[Any] = []

    def refuse(_context: RequestContext, ask: Any) -> Deferred[Any]:
        reached.append(ask)
        return Deferred.of(refused(ask, ErrorCode.INVALID_REQUEST))

    monkeypatch.setattr(RequestContext, "ask_controller", refuse)
    return reached


# Requests


def variants(ask: Any, version: int) -> Iterator[Any]:
    """Give a request with the entries of each of its lists once, repeated, left out and null."""
    yield ask
    for path in _lists(type(ask), version):
        yield from _varied(ask, path, version)


def _lists(cls: type[Any], version: int) -> Iterator[tuple[str, ...]]:
    for field in layout_of(cls):
        if version not in field.versions:
            continue
        if field.is_array:
            yield (field.name,)
        if field.is_array and field.struct is not None:
            for inner in _lists(field.struct, version):
                yield (field.name, *inner)


def _varied(struct: Any, path: Sequence[str], version: int) -> Iterator[Any]:
    name, *inner = path
    (field,) = [one for one in layout_of(type(struct)) if one.name == name]
    items = getattr(struct, name)
    if not items:
        return
    if inner:
        several = tuple(_varied(items[0], inner, version))
        for item in several:
            yield replace(struct, **{name: (item,)})
        if len(inner) == 1:
            # The same entry twice, each time with another list inside.
            for pair in permutations((items[0], *several[1:]), 2):
                yield replace(struct, **{name: pair})
        return
    yield replace(struct, **{name: items * 2})
    yield replace(struct, **{name: ()})
    if version in field.nullable:
        yield replace(struct, **{name: None})


def ask_as(house: House, user: str, ask: Any, version: int) -> Any:
    """Return the answer, or the error that ended the connection."""
    client = house.client(Principal("User", user))
    try:
        return client.ask(ask, version)
    except CloseConnection as closed:
        return closed
    finally:
        client.session.close()


def leaves(value: Any) -> Iterator[Any]:
    """Give all values in a message that are no messages."""
    if hasattr(value, "__wire_fields__"):
        for field in fields_of(type(value)):
            yield from leaves(getattr(value, field))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, memoryview | bytes | bytearray):
        yield bytes(value)
    else:
        yield value


# The model


def opened(key: ApiKey, right: Right | None) -> set[str]:
    """Return what a user with one right may see in the answers of an API."""
    if right is None:
        return set()
    shown = set()
    asked = {*declared_of(key).rights, *taken_instead(key)}
    if right in SHOWS_TOPICS:
        shown |= {"topic"}
        if key in (ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.PRODUCE):
            shown |= {"log"}
        if right == on_topic(Operation.READ):
            shown |= {"log"}
        if key is ApiKey.DELETE_RECORDS:
            shown |= {"log"}
    if on_topic(Operation.DESCRIBE_CONFIGS) in meant_by(right) and key is ApiKey.DESCRIBE_CONFIGS:
        shown |= {"configs"}
    if right.resource_type is ResourceType.CLUSTER and asked & meant_by(right):
        # Who may look at the cluster sees what is in it: files, reassignments, resources with configs.
        shown |= {"topic"}
        if key is ApiKey.OFFSET_FOR_LEADER_EPOCH:
            shown |= {"log"}
    if any((key, one) in (LISTS_GROUPS, GIVES_IDS) for one in meant_by(right)):
        shown |= {"topic"}
    return shown


def meant_by(right: Right) -> set[Right]:
    """Return a right with the one that it brings along."""
    describes = {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    meant = {right}
    if right.operation in describes:
        meant |= {Right(Operation.DESCRIBE, right.resource_type)}
    if right.operation is Operation.ALTER_CONFIGS:
        meant |= {Right(Operation.DESCRIBE_CONFIGS, right.resource_type)}
    return meant


def taken_instead(key: ApiKey) -> set[Right]:
    """Return the rights on the cluster that an API takes for those on what it names."""
    unless = {getattr(demand, "unless", None) for demand in declared_of(key).demands}
    return {right for right in unless if right is not None}


DELETES_GROUPS = (ApiKey.DELETE_GROUPS, on_group(Operation.DELETE))


@pytest.mark.parametrize("key", APIS, ids=lambda key: key.name.lower())
def test_answers_show_what_the_rights_open(house: House, controller: list[Any], key: ApiKey) -> None:
    for right in EVERYBODY:
        check_what_is_shown(house, controller, key, right)
        if (key, right) == DELETES_GROUPS:
            house.commit(house.boss, SECRET)


def check_what_is_shown(house: House, controller: list[Any], key: ApiKey, right: Right | None) -> None:
    allowed = opened(key, right)
    for version in range(SERVED[key].versions.first, SERVED[key].versions.last + 1):
        for ask in variants(request_about(key, version, SECRET, house.topic_id), version):
            controller.clear()
            answer = ask_as(house, name_of(right), ask, version)
            named = set(leaves(ask))
            shown = set(leaves(answer)) - named
            for kind, values in house.secrets._asdict().items():
                if kind not in allowed:
                    assert not shown & values, (version, kind, ask, answer)
            if right is None:
                assert not controller or all(not _entries(one) for one in controller), (ask, controller)


@pytest.mark.parametrize("key", APIS, ids=lambda key: key.name.lower())
def test_who_has_all_rights_is_refused_nothing(house: House, controller: list[Any], key: ApiKey) -> None:
    for version in range(SERVED[key].versions.first, SERVED[key].versions.last + 1):
        find_errors = compile_error_finder(api_of(key).response, version)
        for ask in variants(request_about(key, version, SECRET, house.topic_id), version):
            errors: list[ErrorCode] = []
            find_errors(ask_as(house, ALMIGHTY, ask, version), errors.append)
            assert not [error for error in errors if error.name.endswith("AUTHORIZATION_FAILED")], ask
    if key is ApiKey.DELETE_GROUPS:
        house.commit(house.boss, SECRET)


def _entries(ask: Any) -> list[Any]:
    """Return what a request asks the controller to do: requests that lost all entries ask for nothing."""
    return [one for field in layout_of(type(ask)) if field.is_array for one in getattr(ask, field.name) or ()]


NAMED = [
    pytest.param(key, right, id=f"{key.name.lower()}-{name_of(right)}")
    for key in APIS
    for right in dict.fromkeys((None, *declared_of(key).rights, *DESCRIBES))
    if right not in SHOWS_TOPICS
    and key not in DRAWS_IDS
    and (key, right) not in (LISTS_GROUPS, GIVES_IDS)
    # By other rights on topics or the cluster that the API asks for, Kafka says whether the topic is there.
    and (right not in declared_of(key).rights or right.resource_type is ResourceType.GROUP)
]


@pytest.mark.parametrize(("key", "right"), NAMED)
def test_nobody_learns_whether_a_topic_exists_who_may_not_describe_it(
    house: House, controller: list[Any], key: ApiKey, right: Right | None
) -> None:
    """Asked by name, a topic that exists and one that does not get the same answer."""
    for version in range(SERVED[key].versions.first, SERVED[key].versions.last + 1):
        there = request_about(key, version, SECRET, ZERO_UUID)
        missing = request_about(key, version, ABSENT, ZERO_UUID)
        for one, other in zip(variants(there, version), variants(missing, version), strict=True):
            answers = [ask_as(house, name_of(right), ask, version) for ask in (one, other)]
            shown = [
                re.sub("<memory at [^>]*>", "records", repr(answer)).replace(name, "the topic")
                for answer, name in zip(answers, (SECRET, ABSENT), strict=True)
            ]
            assert shown[0] == shown[1], (version, one)
    if (key, right) == DELETES_GROUPS:
        for name in (SECRET, ABSENT):
            house.commit(house.boss, name)
