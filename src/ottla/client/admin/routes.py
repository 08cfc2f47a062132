"""The way of an admin request to the broker that can answer it.

Some requests go anywhere, some to the controller, some to the coordinator of a group or of a transactional
id, some to the leader of a partition, some to every broker. Who that is changes while one asks: a request
that came to the wrong broker, or too early, is sent again to the right one.

A request that changes something is not repeated once its answer got lost, unless repeating it is harmless:
`OutcomeUnknown` tells the caller to look.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from ottla.client.admin.results import Results
from ottla.client.cluster import Cluster
from ottla.client.connection import BrokerConnection
from ottla.client.errors import BrokerError, ClientError, ConnectionLost, RequestTimedOut
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode

K = TypeVar("K")
V = TypeVar("V")

_NOT_THERE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
# A topic that was just created may not be known everywhere yet. One that never existed is reported in half a
# second.
_TRIES_FOR_A_TOPIC = 3


MISPLACED = (
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)
"""By these a broker says that it did nothing, and that the request belongs elsewhere or comes too early."""


class OutcomeUnknown(ClientError):
    """A request that changes something was sent, and its answer never came."""


class ByVersion(NamedTuple):
    """A request that looks different in some versions: `make` builds it for the one that was settled."""

    kind: type[Any]
    make: Callable[[int], Any]
    at_most: int | None = None


class Routes:
    """Knows where requests go. One for an admin client, shared by its nouns."""

    def __init__(self, cluster: Cluster, timeout_ms: int, request_timeout_ms: int) -> None:
        self.cluster = cluster
        self.request_timeout_ms = request_timeout_ms
        self._timeout_s = timeout_ms / 1000

    async def ask_any(self, request: Any) -> Any:
        """Ask whichever broker there is. Repeats, so only for requests that change nothing."""

        async def once() -> Any:
            return await self._ask(await self.cluster.any_connection(), request, repeatable=True)

        return await self.cluster.retry(once)

    async def ask_controller(
        self, request: Any, codes_of: Callable[[Any], Iterable[ErrorCode]], *, repeatable: bool = False
    ) -> Any:
        """Ask the controller, or a broker that hands the request on to it (any does since KRaft)."""

        async def once() -> Any:
            topology = self.cluster.topology
            node_id = topology.controller_id
            if node_id not in topology.brokers:
                node_id = (await self.cluster.refresh()).controller_id
            try:
                connection = await self.cluster.connection(node_id)
                answer = await self._ask(connection, request, repeatable)
                _raise_if_misplaced(codes_of(answer))
            except ClientError as error:
                if error.retriable:
                    await self.cluster.refresh()
                raise
            return answer

        return await self.cluster.retry(once)

    async def ask_node(self, node_id: int, request: Any, *, repeatable: bool = True) -> Any:
        """Ask one broker, once."""
        return await self._ask(await self.cluster.connection(node_id), request, repeatable)

    async def ask_all(self, request: Any) -> Results[int, Any]:
        """Ask every broker. One that cannot be reached spoils no other."""
        await self.cluster.refresh()

        async def one(node_id: int) -> Any:
            try:
                return await self.ask_node(node_id, request)
            except ClientError as error:
                return error

        nodes = sorted(self.cluster.topology.brokers)
        return Results(dict(zip(nodes, await asyncio.gather(*map(one, nodes)), strict=True)))

    async def ask_leaders(
        self,
        partitions: Collection[TopicPartition],
        ask: Callable[[int, Sequence[TopicPartition]], Awaitable[Mapping[TopicPartition, V | ClientError]]],
    ) -> Results[TopicPartition, V]:
        """Ask each partition's leader; `ask` sends the request for those that one broker leads."""

        async def place(keys: list[TopicPartition], attempt: int) -> dict[TopicPartition, int | ClientError]:
            topology = self.cluster.topology
            if attempt or any(topology.leader_of(key) is None for key in keys):
                topology = await self.cluster.refresh({key.topic for key in keys})
            return {key: self._leader(key) for key in keys}

        return await self._spread(partitions, place, ask)

    async def ask_coordinators(
        self,
        key_type: int,
        keys: Collection[str],
        ask: Callable[[int, Sequence[str]], Awaitable[Mapping[str, V | ClientError]]],
    ) -> Results[str, V]:
        """Ask the coordinator of each group or transactional id; `ask` sends the request for those of one."""

        async def place(wanted: list[str], attempt: int) -> dict[str, int | ClientError]:
            async def find(key: str) -> int | ClientError:
                if attempt:
                    self.cluster.forget_coordinator(key_type, key)
                try:
                    return await self.cluster.coordinator(key_type, key)
                except ClientError as error:
                    return error

            return dict(zip(wanted, await asyncio.gather(*map(find, wanted)), strict=True))

        return await self._spread(keys, place, ask)

    async def ask_coordinator(
        self,
        key_type: int,
        key: str,
        request: Any,
        outcome: Callable[[Any], V | ClientError],
        *,
        repeatable: bool = True,
    ) -> V:
        """Ask the coordinator of one group or transactional id; `outcome` reads its answer."""

        async def ask(node_id: int, keys: Sequence[str]) -> dict[str, V | ClientError]:
            return dict.fromkeys(keys, outcome(await self.ask_node(node_id, request, repeatable=repeatable)))

        return (await self.ask_coordinators(key_type, [key], ask))[key]

    async def _spread(
        self,
        keys: Collection[K],
        place: Callable[[list[K], int], Awaitable[dict[K, int | ClientError]]],
        ask: Callable[[int, Sequence[K]], Awaitable[Mapping[K, V | ClientError]]],
    ) -> Results[K, V]:
        """Place keys on brokers and ask each, again for what came to the wrong one, until nothing is left."""
        give_up_s = asyncio.get_running_loop().time() + self._timeout_s
        done: dict[K, V | ClientError] = {}
        pending = list(dict.fromkeys(keys))
        waits = self.cluster.waits_s()
        attempt = 0
        while pending:
            outcomes = await _ask_where_placed(await place(pending, attempt), ask)
            attempt += 1
            wait_s = next(waits)
            late = asyncio.get_running_loop().time() + wait_s > give_up_s
            retried = {
                key for key, outcome in outcomes.items() if not late and _is_worth_a_retry(outcome, attempt)
            }
            done.update((key, outcome) for key, outcome in outcomes.items() if key not in retried)
            pending = [key for key in pending if key in retried]
            if pending:
                await asyncio.sleep(wait_s)
        return Results({key: done[key] for key in dict.fromkeys(keys)})

    async def _ask(self, connection: BrokerConnection, request: Any, repeatable: bool) -> Any:
        version = None
        if isinstance(request, ByVersion):
            version = connection.version_for(request.kind, request.at_most)
            request = request.make(version)
        elif not repeatable:
            connection.version_for(type(request))
        try:
            return await connection.ask(request, version)
        except (ConnectionLost, RequestTimedOut) as error:
            if repeatable:
                raise
            name = type(request).__name__.removesuffix("Request")
            raise OutcomeUnknown(
                f"it is unknown whether {name} took effect, so check before you repeat it: {error}"
            ) from error

    def _leader(self, where: TopicPartition) -> int | ClientError:
        view = self.cluster.topology.leader_of(where)
        if view is not None:
            return view.leader
        topic = self.cluster.topology.topics.get(where.topic)
        if topic is not None and where.partition in topic.partitions:
            return BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, f"{where} has no leader")
        code = topic.error_code if topic is not None else ErrorCode.NONE
        return BrokerError(code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{where} does not exist")


async def _ask_where_placed(
    placed: Mapping[K, int | ClientError],
    ask: Callable[[int, Sequence[K]], Awaitable[Mapping[K, V | ClientError]]],
) -> dict[K, V | ClientError]:
    outcomes: dict[K, V | ClientError] = {}
    by_node: dict[int, list[K]] = {}
    for key, node in placed.items():
        if isinstance(node, ClientError):
            outcomes[key] = node
        else:
            by_node.setdefault(node, []).append(key)

    async def one(node_id: int, keys: list[K]) -> Mapping[K, V | ClientError]:
        try:
            return await ask(node_id, keys)
        except ClientError as error:
            return dict.fromkeys(keys, error)

    for answers in await asyncio.gather(*(one(node_id, keys) for node_id, keys in by_node.items())):
        outcomes.update(answers)
    silent = BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker's response has no entry for this")
    return {key: outcomes.get(key, silent) for key in placed}


def _is_worth_a_retry(outcome: object, attempt: int) -> bool:
    if not isinstance(outcome, ClientError) or not outcome.retriable:
        return False
    if isinstance(outcome, BrokerError) and outcome.error_code in _NOT_THERE:
        return attempt < _TRIES_FOR_A_TOPIC
    return True


def _raise_if_misplaced(codes: Iterable[ErrorCode]) -> None:
    """Raise what makes the whole request go again: the broker refused it as a whole, nothing was done."""
    for code in codes:
        if code in MISPLACED:
            raise BrokerError(code, "the broker cannot serve this request now")


def outcome_of(code: ErrorCode, what: str, detail: str | None, value: V) -> V | ClientError:
    """Return the value, or the error that a code stands for."""
    return value if code is ErrorCode.NONE else BrokerError(code, what, detail)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions by topic, as requests want them."""
    grouped: dict[str, list[int]] = {}
    for where in partitions:
        grouped.setdefault(where.topic, []).append(where.partition)
    return grouped
