"""Whatever is asked by whomever: a guard made of a declaration serves what a plain model of rights allows.

Every API with such a guard is asked in every version, about resources that the user has rights on and about
others, in any order, repeated, and with lists that are empty or null. The handler is an echo.
"""

from collections.abc import Iterator
from itertools import compress
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.filled_requests import request_about

from ottla.broker.authorization.guards import find_guard
from ottla.broker.authorization.refusals import ERROR_OF, refused_part
from ottla.broker.serving.demands import Demand, OfAnswer, OfEach, OfRequest, demand_of
from ottla.broker.serving.handlers import CheckedBy, declared_of
from ottla.broker.serving.in_turns import AT_ONCE, finish
from ottla.broker.serving.replies import is_in_turns, settle
from ottla.broker.serving.served_apis import SERVED
from ottla.model.uuid import Uuid
from ottla.security.rights import CLUSTER, ResourceType, Right
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.layout import empty, layout_of
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.wire.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from ottla.wire.messages.describe_transactions import (
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from ottla.wire.messages.list_groups import ListedGroup, ListGroupsResponse
from ottla.wire.messages.list_transactions import ListedTransaction, ListTransactionsResponse

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NAMES = ("mine", "theirs", "nobody's")
IDS = {name: Uuid(name.encode().ljust(16)) for name in NAMES}
KNOWN = {topic_id: SimpleNamespace(name=name) for name, topic_id in IDS.items() if name != "nobody's"}


def demands_of(key: ApiKey) -> list[Demand]:
    return [demand_of(one) for one in declared_of(key).demands]


DERIVED = [
    key
    for key in sorted(SERVED)
    if declared_of(key).checked_by is CheckedBy.DECLARATION and not declared_of(key).free_because
]
LISTS = [key for key in DERIVED if any(isinstance(one, OfEach) for one in demands_of(key))]
HIDES = [key for key in DERIVED if any(isinstance(one, OfAnswer) for one in demands_of(key))]
VERSIONS = [
    pytest.param(key, version, id=f"{key.name.lower()}-{version}")
    for key in DERIVED
    for version in range(SERVED[key].versions.first, SERVED[key].versions.last + 1)
]
LISTED = [case for case in VERSIONS if case.values[0] in LISTS]


class Context:
    """A client with some rights."""

    def __init__(self, version: int, rights: set[tuple[Right, str]]) -> None:
        self.version = version
        self.rights = rights
        self.portion_of = 0
        self.audited: list[tuple[Right, str]] = []
        topics = SimpleNamespace(find_by_id=KNOWN.get, find=lambda name: None)
        self.node = SimpleNamespace(image=SimpleNamespace(topics=topics))

    def may(self, right: Right, name: str) -> bool:
        return (right, name) in self.rights

    def allows(self, right: Right, name: str) -> bool:
        if not self.may(right, name):
            self.audited.append((right, name))
        return self.may(right, name)


class Asked(NamedTuple):
    """What became of a request."""

    answer: Any
    served: Any
    audited: list[tuple[Right, str]]


def ask(key: ApiKey, request: Any, version: int, rights: set[tuple[Right, str]]) -> Asked:
    served: list[Any] = []
    context: Any = Context(version, rights)

    def echo(allowed: Any) -> Any:
        served.append(allowed)
        answer = empty(api_of(key).response)
        for demand in demands_of(key):
            if isinstance(demand, OfEach):
                listed = demand.named.partition(".")[0]
                (field,) = [one for one in layout_of(type(answer)) if one.name == demand.answered]
                parts = [
                    refused_part(entry, field.struct, ErrorCode.NONE, {})
                    for entry in getattr(allowed, listed)
                ]
                answer = replace(answer, **{demand.answered: tuple(parts)})
        return answer

    guard = find_guard(key)
    assert guard is not None
    answer = finish(settle(guard(request, context, echo)))
    assert len(served) <= 1, "the handler is called once"
    return Asked(answer, served[0] if served else None, context.audited)


def errors_in(part: Any) -> Iterator[ErrorCode]:
    for field in layout_of(type(part)):
        value = getattr(part, field.name)
        if field.kind == "error_code" and field.name == "error_code":
            yield value
        if field.is_array and field.struct is not None:
            for inner in value or ():
                yield from errors_in(inner)


def of_request(key: ApiKey) -> list[OfRequest]:
    return [one for one in demands_of(key) if isinstance(one, OfRequest)]


def of_each(key: ApiKey) -> list[OfEach]:
    return [one for one in demands_of(key) if isinstance(one, OfEach)]


def rights_on_requests(key: ApiKey, request: Any) -> list[tuple[Right, str]]:
    """Return what a plain reader of the declaration would ask for, in its order."""
    asked: list[tuple[Right, str]] = []
    for demand in of_request(key):
        names: Any = CLUSTER
        if demand.named:
            names = demand.named(request) if callable(demand.named) else getattr(request, demand.named)
        asked += [(demand.right, name) for name in ([names] if isinstance(names, str) else names or ())]
    return asked


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_each_right_on_the_request_is_needed(key: ApiKey, version: int) -> None:
    request = request_about(key, version, "mine", IDS["mine"])
    needed = rights_on_requests(key, request)
    for number, missing in enumerate(needed):
        asked = ask(key, request, version, {one for one in needed if one != missing})
        assert asked.served is None
        assert asked.audited == [needed[number]]
        # Some have an error for each part, and some for the request as well.
        assert ERROR_OF[missing[0].resource_type] in set(errors_in(asked.answer)) or errors_elsewhere(
            key, version
        )
        assert set(errors_in(asked.answer)) <= {ERROR_OF[missing[0].resource_type], ErrorCode.NONE}
    asked = ask(key, request, version, set(needed))
    assert of_each(key) or asked.served == request
    for demand in of_request(key):
        if demand.unless is not None:
            spared = {one for one in needed if one[0] != demand.right} | {(demand.unless, CLUSTER)}
            assert ask(key, request, version, spared).served == request


def errors_elsewhere(key: ApiKey, version: int) -> bool:
    """Say whether a version has no place for the error: the first one of ElectLeaders."""
    return (key, version) == (ApiKey.ELECT_LEADERS, 0)


def entry_about(key: ApiKey, version: int, listed: str, name: str, resource_type: int) -> Any:
    (entry,) = getattr(request_about(key, version, name, IDS[name]), listed)
    return replace(entry, resource_type=resource_type) if hasattr(entry, "resource_type") else entry


def is_allowed(
    key: ApiKey, version: int, name: str, resource_type: int, rights: set[tuple[Right, str]]
) -> bool:
    """Say whether an entry about something may be served: the plain model."""
    for demand in of_each(key):
        if demand.types and resource_type not in demand.types:
            continue
        if demand.unless is not None and (demand.unless, CLUSTER) in rights:
            continue
        is_on_cluster = demand.right.resource_type is ResourceType.CLUSTER
        if not is_on_cluster and name == "nobody's" and asks_by_id(key, version):
            # The handler says that there is no such topic.
            continue
        if (demand.right, CLUSTER if is_on_cluster else name) not in rights:
            return False
    return True


def asks_by_id(key: ApiKey, version: int) -> bool:
    return (key, version >= 10) == (ApiKey.OFFSET_COMMIT, True)


ENTRIES = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from((2, 4, 8, 16, 32, 99))), max_size=6)


@pytest.mark.parametrize(("key", "version"), LISTED)
@settings(max_examples=20)
@given(entries=ENTRIES, held=st.sets(st.sampled_from((*NAMES, CLUSTER))), is_spared=st.booleans())
def test_each_entry_is_served_or_refused_by_itself(
    key: ApiKey, version: int, entries: list[tuple[str, int]], held: set[str], is_spared: bool
) -> None:
    (listed,) = {demand.named.partition(".")[0] for demand in of_each(key)}
    parts = [entry_about(key, version, listed, *entry) for entry in entries]
    request = replace(request_about(key, version, "mine", IDS["mine"]), **{listed: tuple(parts)})
    rights = {(demand.right, name) for demand in of_each(key) for name in held}
    rights |= set(rights_on_requests(key, request))
    if is_spared:
        rights |= {(demand.unless, CLUSTER) for demand in of_each(key) if demand.unless is not None}
    if of_each(key)[0].drops_repeated:
        # These are names.
        parts = list(dict.fromkeys(parts))
        entries = [(name, 0) for name in parts]
    fates = [is_allowed(key, version, *entry, rights) for entry in entries]
    asked = ask(key, request, version, rights)
    allowed = tuple(compress(parts, fates))
    if asked.served is None:
        assert not allowed
    else:
        assert getattr(asked.served, listed) == allowed
    answered = getattr(asked.answer, of_each(key)[0].answered)
    assert len(answered) == len(parts)
    refused_first = sorted(fates) if of_each(key)[0].is_request_checked else fates
    for part, fate in zip(answered, refused_first, strict=True):
        errors = set(errors_in(part))
        assert fate == (errors <= {ErrorCode.NONE}), (part, fate)
        assert errors <= {ErrorCode.NONE, *(ERROR_OF[demand.right.resource_type] for demand in of_each(key))}
    assert len(asked.audited) == fates.count(False)


def list_groups(*names: str) -> Any:
    return ListGroupsResponse(groups=tuple(replace(empty(ListedGroup), group_id=name) for name in names))


def list_transactions(*names: str) -> Any:
    states = tuple(replace(empty(ListedTransaction), transactional_id=name) for name in names)
    return replace(empty(ListTransactionsResponse), transaction_states=states)


def describe_transactions(*names: str) -> Any:
    topics = tuple(TopicData(topic=name, partitions=(0,)) for name in names)
    state = replace(empty(TransactionState), transactional_id="mine", topics=topics)
    return DescribeTransactionsResponse(transaction_states=(state, state))


def create_topics(*names: str) -> Any:
    made = replace(empty(CreatableTopicResult), num_partitions=9)
    return CreateTopicsResponse(topics=tuple(replace(made, name=name) for name in names))


def shown_in(answer: Any) -> list[str]:
    if isinstance(answer, ListGroupsResponse):
        return [group.group_id for group in answer.groups]
    if isinstance(answer, ListTransactionsResponse):
        return [state.transactional_id for state in answer.transaction_states]
    if isinstance(answer, CreateTopicsResponse):
        return [topic.name for topic in answer.topics if topic.num_partitions == 9]
    first, second = ([topic.topic for topic in state.topics] for state in answer.transaction_states)
    assert first == second
    return first


ANSWERS = {
    ApiKey.LIST_GROUPS: list_groups,
    ApiKey.LIST_TRANSACTIONS: list_transactions,
    ApiKey.DESCRIBE_TRANSACTIONS: describe_transactions,
    ApiKey.CREATE_TOPICS: create_topics,
}


def test_every_api_that_hides_a_part_of_its_answer_is_tried() -> None:
    assert set(HIDES) == set(ANSWERS)


@pytest.mark.parametrize("key", HIDES)
@settings(max_examples=50)
@given(names=st.lists(st.sampled_from(NAMES), max_size=6), held=st.sets(st.sampled_from(NAMES)))
def test_an_answer_shows_what_one_may_see(key: ApiKey, names: list[str], held: set[str]) -> None:
    version = SERVED[key].versions.last
    request = request_about(key, version, "mine", IDS["mine"])
    (hiding,) = [one for one in demands_of(key) if isinstance(one, OfAnswer)]
    needed = {(demand.right, "mine") for demand in of_each(key)}
    guard = find_guard(key)
    assert guard is not None

    def shown_to(rights: set[tuple[Right, str]]) -> list[str]:
        context: Any = Context(version, needed | rights)
        answer = finish(settle(guard(request, context, lambda _: ANSWERS[key](*names))))
        assert not context.audited, "nobody has asked for what is left out"
        return shown_in(answer)

    assert shown_to({(hiding.right, name) for name in held}) == [name for name in names if name in held]
    if hiding.unless is not None:
        assert shown_to({(hiding.unless, CLUSTER)}) == names


def test_many_names_of_one_request_are_checked_in_turns() -> None:
    names = tuple(f"topic-{number}" for number in range(3 * AT_ONCE))
    request = replace(empty(ConsumerGroupHeartbeatRequest), group_id="g", subscribed_topic_names=names)
    key = ApiKey.CONSUMER_GROUP_HEARTBEAT
    of_group, of_topics = (demand.right for demand in of_request(key))
    guard = find_guard(key)
    assert guard is not None
    rights = {(of_topics, name) for name in names} | {(of_group, "g")}
    for held, answered in ((rights, ErrorCode.NONE), (rights - {(of_topics, names[-1])}, DENIED)):
        context: Any = Context(1, held)
        work = guard(request, context, lambda _: empty(ConsumerGroupHeartbeatResponse))
        assert is_in_turns(work)
        turns = [*steps_of(work)]
        assert turns[-1].error_code is answered
        assert turns[:2] == [None, None]


def steps_of(work: Any) -> Iterator[Any]:
    """Give what a guard yields, and then what it returns."""
    yield (yield from work)
