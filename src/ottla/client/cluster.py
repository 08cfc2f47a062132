"""A cluster as seen by one client: connections by node, metadata, coordinators.

It finds the cluster through any of the bootstrap addresses, keeps one connection to each broker it talks to,
and goes back to the bootstrap addresses when every broker it knows is gone.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from typing import Any, Final, TypeVar

from ottla.client.backoff import backoff_s
from ottla.client.connection import Address, Authenticate, BrokerConnection, open_connection
from ottla.client.errors import BrokerError, ClientError, ConnectionLost, NoBrokerReached
from ottla.client.topology import PartitionView, Topology
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

T = TypeVar("T")
GROUP = 0
TRANSACTION = 1

# A broker answers one connection in order, and a fetch may wait there for records, a join for other members.
# So each has a lane of its own, and commits and heartbeats do not wait behind them. Two readers that wait
# separately, but share a cluster, need two lanes.
MAIN_LANE = 0
FETCH_LANE = 1
JOIN_LANE = 2
SECOND_FETCH_LANE = 3
_BACKOFF_S_MIN: Final = 0.001


class Cluster:
    """The way to a cluster. Open it with `start`, close it with `close`."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        *,
        client_id: str = "ottla",
        request_timeout_s: float = 30.0,
        setup_timeout_s: float = 10.0,
        retry_timeout_s: float = 60.0,
        retry_backoff_s: tuple[float, float] = (0.1, 1.0),
        max_age_s: float = float("inf"),
        tls: ssl.SSLContext | None = None,
        authenticate: Authenticate | None = None,
        allow_auto_topic_creation: bool = False,
    ) -> None:
        """`retry_backoff_s` is the first pause between tries, and the longest.

        `max_age_s` is for a client that does not look at its topics by itself: after this time it asks where
        the brokers are, though all that it needs is there.
        """
        self.topology = Topology()
        self._bootstrap = tuple(bootstrap)
        self._client_id = client_id
        self._request_timeout_s = request_timeout_s
        self._setup_timeout_s = setup_timeout_s
        self._retry_timeout_s = retry_timeout_s
        # Without any pause, a broker that is away would keep a core busy.
        self._retry_backoff_s = max(retry_backoff_s[0], _BACKOFF_S_MIN), max(retry_backoff_s)
        self._max_age_s = max_age_s
        self._learned_at_s = 0.0
        self._tls = tls
        self._authenticate = authenticate
        self._allow_auto_topic_creation = allow_auto_topic_creation
        self._connections: dict[tuple[int, int], BrokerConnection] = {}
        self._opening: dict[tuple[int, int], asyncio.Lock] = {}
        self._coordinators: dict[tuple[int, str], int] = {}
        self._looking: asyncio.Task[None] | None = None
        self._is_closed = False

    async def start(self) -> None:
        """Find the cluster. Raises NoBrokerReached when no bootstrap address answers."""
        self._is_closed = False
        await self._refresh_from_bootstrap(())

    async def close(self) -> None:
        """Close all connections. One that is just being opened is closed once it is open."""
        self._is_closed = True
        if self._looking is not None:
            self._looking.cancel()
        connections = list(self._connections.values())
        # A caller who is cancelled while one closes must not keep the others open.
        for connection in connections:
            connection.hang_up()
        for connection in connections:
            await connection.close()
        self._connections.clear()

    def open_connection(self, node_id: int, lane: int = MAIN_LANE) -> BrokerConnection | None:
        """Return the connection to a broker if there is one that can be used."""
        connection = self._connections.get((node_id, lane))
        return connection if connection is not None and connection.is_usable else None

    async def connection(self, node_id: int, lane: int = MAIN_LANE) -> BrokerConnection:
        """Return the connection to a broker, opening it if need be. Each lane is a connection of its own."""
        key = node_id, lane
        connection = self.open_connection(node_id, lane)
        if connection is not None:
            return connection
        async with self._opening.setdefault(key, asyncio.Lock()):
            connection = self._connections.get(key)
            if connection is not None and connection.is_open:
                if not connection.is_stale:
                    return connection
                # Requests on two connections could overtake each other.
                await connection.drain()
            address = self.topology.brokers.get(node_id)
            if address is None:
                raise ConnectionLost(f"there is no broker {node_id} in the cluster that clients can reach")
            try:
                self._connections[key] = connection = await self._open(address)
            except ConnectionLost:
                self._look_around()
                raise
            return connection

    def _look_around(self) -> None:
        """Ask a broker that is there where the others are: one that cannot be reached may be elsewhere now.

        Nobody waits for that, since the one that is asked may be slow.
        """
        if self._is_closed or (self._looking is not None and not self._looking.done()):
            return
        there = self._least_busy()
        if there is not None:
            self._looking = asyncio.create_task(self._look_around_from(there))

    async def _look_around_from(self, connection: BrokerConnection) -> None:
        with contextlib.suppress(ClientError):
            await self._refresh_over(connection, ())

    def _least_busy(self) -> BrokerConnection | None:
        open_ones = [
            connection
            for (_, lane), connection in self._connections.items()
            if lane == MAIN_LANE and connection.is_usable
        ]
        return min(open_ones, key=lambda connection: connection.in_flight, default=None)

    async def any_connection(self) -> BrokerConnection:
        """Return a connection to whichever broker is least busy, or any that can be reached."""
        connection = self._least_busy()
        if connection is not None:
            if asyncio.get_running_loop().time() - self._learned_at_s > self._max_age_s:
                self._look_around()
            return connection
        for node_id in list(self.topology.brokers):
            try:
                return await self.connection(node_id)
            except ConnectionLost:
                continue
        await self._refresh_from_bootstrap(())
        return await self.connection(next(iter(self.topology.brokers)))

    async def ask_any(self, request: Any, version: int | None = None) -> Any:
        """Ask whichever broker there is, trying others when one goes away."""

        async def once() -> Any:
            return await (await self.any_connection()).ask(request, version)

        return await self.retry(once)

    async def ask_node(self, node_id: int, request: Any, version: int | None = None) -> Any:
        """Ask one broker."""
        return await (await self.connection(node_id)).ask(request, version)

    async def refresh(self, topics: Collection[str] | None = ()) -> Topology:
        """Learn again about some topics, or about all of them when `topics` is None."""

        async def once() -> Topology:
            return await self._refresh_over(await self.any_connection(), topics)

        return await self.retry(once)

    async def leader(self, where: TopicPartition) -> PartitionView:
        """Return the leader of a partition, asking until there is one."""

        async def once() -> PartitionView:
            view = self.topology.leader_of(where)
            if view is None:
                await self.refresh([where.topic])
                view = self.topology.leader_of(where)
            if view is None:
                topic = self.topology.topics.get(where.topic)
                code = ErrorCode.LEADER_NOT_AVAILABLE
                if topic is None or where.partition not in topic.partitions:
                    code = (topic.error_code if topic else None) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                raise BrokerError(code, f"{where} has no leader")
            return view

        return await self.retry(once)

    async def coordinator(self, key_type: int, key: str) -> int:
        """Return the node that coordinates a group or a transactional id, asking until there is one."""

        async def once() -> int:
            node_id = self._coordinators.get((key_type, key))
            if node_id is None:
                node_id = await self._find_coordinator(key_type, key)
                self._coordinators[key_type, key] = node_id
            return node_id

        return await self.retry(once)

    def note_coordinator(self, key_type: int, key: str, node_id: int) -> None:
        """Remember a coordinator that showed itself, so that nobody has to be asked for it."""
        self._coordinators[key_type, key] = node_id

    def forget_coordinator(self, key_type: int, key: str) -> None:
        """Look for the coordinator again next time: the one we had says it is not, or is gone."""
        self._coordinators.pop((key_type, key), None)

    def waits_s(self) -> Iterator[float]:
        """Yield the pauses between tries, as the settings of the client say."""
        return backoff_s(*self._retry_backoff_s)

    async def retry(self, once: Callable[[], Awaitable[T]]) -> T:
        """Try until it works, an error is final, or the time to retry is over."""
        give_up = asyncio.get_running_loop().time() + self._retry_timeout_s
        for wait_s in self.waits_s():
            try:
                return await once()
            except ClientError as error:
                if not error.retriable or asyncio.get_running_loop().time() + wait_s > give_up:
                    raise
            await asyncio.sleep(wait_s)
        raise AssertionError("waits never end")

    async def _find_coordinator(self, key_type: int, key: str) -> int:
        connection = await self.any_connection()
        version = connection.version_for(FindCoordinatorRequest)
        if version >= 4:
            ask = FindCoordinatorRequest(key_type=key_type, coordinator_keys=(key,))
            found = (await connection.ask(ask, version)).coordinators[0]
        else:
            found = await connection.ask(FindCoordinatorRequest(key=key, key_type=key_type), version)
        if found.error_code is not ErrorCode.NONE:
            raise BrokerError(found.error_code, f"no coordinator for {key!r}", found.error_message)
        node_id: int = found.node_id
        if node_id not in self.topology.brokers:
            await self._refresh_over(connection, ())
        return node_id

    async def _refresh_from_bootstrap(self, topics: Collection[str] | None) -> None:
        reasons = []
        for address in self._bootstrap:
            try:
                connection = await self._open(address)
            except ConnectionLost as error:
                reasons.append(str(error))
                continue
            try:
                await self._refresh_over(connection, topics)
            finally:
                await connection.close()
            if self.topology.brokers:
                return
            reasons.append(f"{address} does not know any broker yet: it may have just started")
        addresses = ", ".join(map(str, self._bootstrap))
        raise NoBrokerReached(
            f"no broker answers at {addresses}; check that it is running and that the address is correct "
            f"({'; '.join(reasons)})"
        )

    async def _refresh_over(self, connection: BrokerConnection, topics: Collection[str] | None) -> Topology:
        wanted = None if topics is None else tuple(MetadataRequestTopic(name=name) for name in sorted(topics))
        version = connection.version_for(MetadataRequest)
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=self._allow_auto_topic_creation)
        answer = await connection.ask(request, version)
        self.topology = self.topology.merge(answer, everything=topics is None)
        self._learned_at_s = asyncio.get_running_loop().time()
        return self.topology

    async def _open(self, address: Address) -> BrokerConnection:
        self._require_open()
        connection = await open_connection(
            address,
            client_id=self._client_id,
            timeout_s=self._request_timeout_s,
            setup_timeout_s=self._setup_timeout_s,
            tls=self._tls,
            authenticate=self._authenticate,
        )
        try:
            self._require_open()
        except ClientError:
            await connection.close()
            raise
        return connection

    def _require_open(self) -> None:
        if self._is_closed:
            raise ClientError("the client was closed")
