"""Requests of an admin client find the broker that they are for, and go again only where that is safe."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client.admin import routes as module
from ottla.client.admin.routes import ByVersion, OutcomeUnknown, Routes, by_topic, outcome_of
from ottla.client.backoff import backoff_s
from ottla.client.errors import BrokerError, ClientError, ConnectionLost, RequestTimedOut
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
WRONG_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


class Brokers:
    """A cluster whose brokers answer as told. Its own retries go on until they give up after three."""

    def __init__(self, leaders: Mapping[TopicPartition, int]) -> None:
        self.leaders = dict(leaders)
        self.moves: list[dict[TopicPartition, int]] = []
        self.coordinators: dict[str, list[Any]] = {}
        self.refreshed: list[Any] = []
        self.forgotten: list[str] = []
        self.asked: list[tuple[int, Any]] = []
        self.answers: dict[int, list[Any]] = {}
        self.controller = 1
        self.known_errors: dict[str, ErrorCode] = {}
        self.without_leader: set[TopicPartition] = set()

    @property
    def topology(self) -> Any:
        topics: dict[str, Any] = {}
        for where in (*self.leaders, *self.without_leader):
            topics.setdefault(where.topic, SimpleNamespace(partitions=set(), error_code=ErrorCode.NONE))
            topics[where.topic].partitions.add(where.partition)
        for name, code in self.known_errors.items():
            topics[name] = SimpleNamespace(partitions=set(), error_code=code)

        def leader_of(where: TopicPartition) -> Any:
            node_id = self.leaders.get(where)
            return None if node_id is None else SimpleNamespace(leader=node_id)

        return SimpleNamespace(
            topics=topics, leader_of=leader_of, brokers={1: None, 2: None}, controller_id=self.controller
        )

    def waits_s(self) -> Iterator[float]:
        return backoff_s()

    async def refresh(self, names: Any = None) -> Any:
        self.refreshed.append(names)
        if self.moves:
            self.leaders.update(self.moves.pop(0))
        self.controller = 1
        return self.topology

    async def coordinator(self, _kind: int, key: str) -> int:
        found = self.coordinators[key]
        place = found[0] if len(found) == 1 else found.pop(0)
        if isinstance(place, ClientError):
            raise place
        number: int = place
        return number

    def forget_coordinator(self, _kind: int, key: str) -> None:
        self.forgotten.append(key)

    async def any_connection(self) -> Any:
        return await self.connection(1)

    async def connection(self, node_id: int) -> Any:
        def version_for(_kind: Any, at_most: int | None = None) -> int:
            return 9 if at_most is None else min(9, at_most)

        async def ask(request: Any, version: int | None = None) -> Any:
            self.asked.append((node_id, request if version is None else (request, version)))
            told = self.answers.get(node_id, [])
            found = told.pop(0) if told else f"answer of {node_id}"
            if isinstance(found, BaseException):
                raise found
            return found

        return SimpleNamespace(ask=ask, version_for=version_for)

    async def retry(self, once: Callable[[], Awaitable[Any]]) -> Any:
        for _ in range(2):
            try:
                return await once()
            except ClientError as error:
                if not error.retriable:
                    raise
        return await once()


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let no time pass but what is waited for."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    def running() -> Any:
        return SimpleNamespace(time=lambda: sum(waited))

    monkeypatch.setattr(
        module, "asyncio", SimpleNamespace(sleep=sleep, gather=asyncio.gather, get_running_loop=running)
    )
    return waited


def routes(brokers: Any, timeout_ms: int = 60_000) -> Routes:
    return Routes(brokers, timeout_ms, 30_000)


def spread(
    brokers: Brokers, *partitions: TopicPartition, timeout_ms: int = 60_000, outcomes: Any = None
) -> Any:
    """Ask the leaders of partitions. `outcomes` is what each attempt brings, for all."""
    told = iter(outcomes or ())

    async def ask(node_id: int, keys: Sequence[TopicPartition]) -> Mapping[TopicPartition, Any]:
        brokers.asked.append((node_id, tuple(keys)))
        outcome = next(told, "done")
        if isinstance(outcome, ClientError) and not isinstance(outcome, BrokerError):
            raise outcome
        return dict.fromkeys(keys, outcome)

    return asyncio.run(routes(brokers, timeout_ms).ask_leaders(partitions, ask))


def error(code: ErrorCode) -> BrokerError:
    return BrokerError(code, "no")


# Leaders


def test_each_leader_is_asked_once_for_all_that_it_leads() -> None:
    brokers = Brokers({A0: 1, A1: 2, B0: 1})
    found = spread(brokers, A0, B0, A1, A0)
    assert brokers.asked == [(1, (A0, B0)), (2, (A1,))]
    assert list(found.items()) == [(A0, "done"), (B0, "done"), (A1, "done")]
    assert brokers.refreshed == []


def test_a_leader_that_moved_is_looked_for_and_only_what_failed_is_asked_again(waits: list[float]) -> None:
    brokers = Brokers({A0: 1, A1: 2})
    brokers.moves = [{A0: 2}]
    found = spread(brokers, A0, A1, outcomes=[error(WRONG_LEADER)])
    assert brokers.asked == [(1, (A0,)), (2, (A1,)), (2, (A0,))]
    assert brokers.refreshed == [{"a"}]
    assert found.check() == {A0: "done", A1: "done"}
    assert len(waits) == 1


def test_what_is_not_there_is_tried_three_times_and_other_troubles_until_the_time_is_over(
    waits: list[float],
) -> None:
    found = spread(Brokers({}), A0)
    assert found.failed[A0].error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "a-0 does not exist" in str(found.failed[A0])
    assert len(waits) == 2
    waits.clear()
    forever = [error(WRONG_LEADER)] * 1_000
    found = spread(Brokers({A0: 1}), A0, timeout_ms=5_000, outcomes=forever)
    assert found.failed[A0].error_code is WRONG_LEADER
    assert len(waits) > 3
    assert sum(waits) <= 5
    waits.clear()
    spread(Brokers({A0: 1}), A0, outcomes=[error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)])
    assert waits == [], "what will not change is not asked again"


def test_why_there_is_no_leader_is_told_as_far_as_it_is_known() -> None:
    brokers = Brokers({})
    brokers.known_errors = {"a": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert spread(brokers, A0).failed[A0].error_code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    headless = Brokers({A1: 1})
    headless.without_leader = {A0}
    failed = spread(headless, A0, timeout_ms=0).failed[A0]
    assert (failed.error_code, "a-0 has no leader" in str(failed)) == (ErrorCode.LEADER_NOT_AVAILABLE, True)


def test_a_broker_that_is_gone_spoils_no_other_and_one_that_forgets_is_told() -> None:
    found = spread(Brokers({A0: 1, A1: 2}), A0, A1, timeout_ms=0, outcomes=[ConnectionLost("gone")])
    assert isinstance(found.failed[A0], ConnectionLost)
    assert found.succeeded == {A1: "done"}

    async def says_nothing(_node_id: int, _keys: Any) -> Mapping[TopicPartition, Any]:
        return {}

    forgetful = asyncio.run(routes(Brokers({A0: 1}), 0).ask_leaders([A0], says_nothing))
    assert "no entry for this" in str(forgetful.failed[A0])


# Coordinators


def coordinated(brokers: Brokers, outcomes: Sequence[Any], timeout_ms: int = 60_000) -> Any:
    told = iter(outcomes)
    asking = routes(brokers, timeout_ms).ask_coordinator(0, "g", "ask", lambda _answer: next(told))
    return asyncio.run(asking)


def test_a_coordinator_that_moved_is_forgotten_and_found_again() -> None:
    brokers = Brokers({})
    brokers.coordinators = {"g": [1, 2]}
    assert coordinated(brokers, [error(ErrorCode.NOT_COORDINATOR), "done"]) == "done"
    assert [node_id for node_id, _ in brokers.asked] == [1, 2]
    assert brokers.forgotten == ["g"]


def test_a_coordinator_that_cannot_be_found_yet_is_looked_for_again() -> None:
    brokers = Brokers({})
    brokers.coordinators = {"g": [error(ErrorCode.COORDINATOR_NOT_AVAILABLE), 2]}
    assert coordinated(brokers, ["done"]) == "done"
    brokers.coordinators = {"g": [error(ErrorCode.GROUP_AUTHORIZATION_FAILED)]}
    with pytest.raises(BrokerError):
        coordinated(brokers, [])


# The controller, any broker, all brokers


def codes(found: Any) -> list[ErrorCode]:
    return [found] if isinstance(found, ErrorCode) else []


def controller(brokers: Brokers, *, repeatable: bool = False) -> Any:
    return asyncio.run(routes(brokers).ask_controller("ask", codes, repeatable=repeatable))


def test_a_controller_that_is_not_known_is_looked_for() -> None:
    brokers = Brokers({})
    assert controller(brokers) == "answer of 1"
    assert brokers.refreshed == []
    brokers.controller = 7
    assert controller(brokers) == "answer of 1"
    assert brokers.refreshed == [None]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    ],
)
def test_a_controller_that_did_nothing_is_asked_again(code: ErrorCode) -> None:
    brokers = Brokers({})
    brokers.answers = {1: [code, "done"]}
    assert controller(brokers) == "done"
    assert brokers.refreshed == [None]
    # Any other error belongs into the answer.
    brokers.answers = {1: [ErrorCode.TOPIC_ALREADY_EXISTS]}
    assert controller(brokers) is ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize("lost", [ConnectionLost("gone"), RequestTimedOut("late")])
def test_what_may_have_taken_effect_is_not_repeated(lost: ClientError) -> None:
    brokers = Brokers({})
    brokers.answers = {1: [lost]}
    with pytest.raises(
        OutcomeUnknown, match="it is unknown whether str took effect, so check before you repeat"
    ):
        controller(brokers)
    assert len(brokers.asked) == 1
    brokers.answers = {1: [lost, "done"]}
    assert controller(brokers, repeatable=True) == "done"


def test_what_changes_nothing_is_asked_of_any_broker_until_one_answers() -> None:
    brokers = Brokers({})
    brokers.answers = {1: [ConnectionLost("gone"), "done"]}
    assert asyncio.run(routes(brokers).ask_any("ask")) == "done"


def test_all_brokers_are_asked_and_one_that_is_gone_spoils_no_other() -> None:
    brokers = Brokers({})
    brokers.answers = {1: [ConnectionLost("gone")]}
    found = asyncio.run(routes(brokers).ask_all("ask"))
    assert list(found) == [1, 2]
    assert (list(found.failed), found.succeeded) == ([1], {2: "answer of 2"})
    assert brokers.refreshed == [None]


def test_a_request_may_look_different_in_some_versions() -> None:
    brokers = Brokers({})
    asked = ByVersion(str, lambda version: f"made for {version}", at_most=4)
    asyncio.run(routes(brokers).ask_node(2, asked))
    asyncio.run(routes(brokers).ask_node(2, ByVersion(str, lambda version: f"made for {version}")))
    assert brokers.asked == [(2, ("made for 4", 4)), (2, ("made for 9", 9))]


# Small things


def test_an_error_stands_for_the_value_and_partitions_are_grouped_in_order() -> None:
    assert outcome_of(ErrorCode.NONE, "cannot", None, 5) == 5
    refused: Any = outcome_of(ErrorCode.INVALID_REQUEST, "cannot do it", "why", 5)
    assert (refused.error_code, "cannot do it" in str(refused), "why" in str(refused)) == (
        ErrorCode.INVALID_REQUEST,
        True,
        True,
    )
    assert by_topic([A1, B0, A0]) == {"a": [1, 0], "b": [0]}
