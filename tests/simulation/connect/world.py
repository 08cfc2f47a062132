"""Workers of connectors beside a simulated node. Requests reach their applications without a network."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from tests.support.satellite_network import SatelliteNetwork

from ottla.client.admin import Admin
from ottla.client.consumer import Consumer
from ottla.client.consumer.record import ConsumerRecord
from ottla.client.producer import Producer
from ottla.connect.configs.providers import read_providers
from ottla.connect.configs.secrets import Secrets
from ottla.connect.serving.app import ConnectApi
from ottla.connect.settings import read_settings
from ottla.connect.worker import Worker
from ottla.model.ids import TopicPartition
from ottla.satellite.process import behind_doors
from ottla.satellite.settings import HttpSettings
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.simulation import Simulation

T = TypeVar("T")

WAIT_S: Final = 120
_EVENTS_MAX: Final = 60_000
"""A story that goes round in circles is noticed."""
_SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
_WORKER: Final = {
    "offset.storage.partitions": "1",
    "status.storage.partitions": "1",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1000",
    "offset.flush.interval.ms": "500",
}


class Site:
    """A node, and the workers beside it."""

    def __init__(self, seed: int = 1, events_max: int = _EVENTS_MAX) -> None:
        self.simulation = Simulation(seed)
        self.simulation.events_max = events_max
        network = SimulatedNetwork(self.simulation)
        self.cluster = SimulatedCluster(self.simulation, network, 1, settings=_SETTINGS)
        self.bootstrap = self.cluster.bootstrap
        self._loop = simulated_loop(self.simulation, network)
        self.cluster.start()
        self.satellites = SatelliteNetwork()

    def run(self, story: Callable[["Site"], Coroutine[Any, Any, T]], within_ms: int = 600_000) -> T:
        """Let a story happen."""
        return self._loop.run(story(self), within_ms)

    @asynccontextmanager
    async def worker(
        self, port: int = 8083, properties: Mapping[str, str] | None = None
    ) -> AsyncIterator["RunningWorker"]:
        """Have a worker meanwhile."""
        given = {"bootstrap.servers": self.bootstrap, **_WORKER, **(properties or {})}
        secrets = Secrets()
        settings, left = read_settings(given)
        host = f"127.0.0.1:{port}"
        http = HttpSettings()
        worker = Worker(
            left, settings, f"http://{host}", read_providers({}, secrets), secrets, http.tls_to_others()
        )
        await worker.instances.close()
        client: Any = self.satellites
        worker.instances._client = client
        await worker.start()
        self.satellites.apps[host] = behind_doors(ConnectApi(worker), worker.instances, http, None)
        try:
            yield RunningWorker(self, worker, host)
        finally:
            self.satellites.apps.pop(host, None)
            await worker.stop()

    async def produce(self, topic: str, *values: bytes, partition: int = 0) -> None:
        """Write records."""
        async with Producer(self.bootstrap) as producer:
            for value in values:
                await (await producer.send(topic, value, partition=partition))

    async def records(self, topic: str, *numbers: int) -> list[ConsumerRecord]:
        """Return all committed records of some partitions of a topic, by default of the first."""
        found: list[ConsumerRecord] = []
        async with Consumer(
            self.bootstrap,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            allow_auto_create_topics=False,
        ) as consumer:
            there = await consumer.partitions_for(topic)
            wanted = [TopicPartition(topic, number) for number in numbers or (0,)]
            for where in (where for where in wanted if where in there):
                end = (await consumer.end_offsets([where]))[where]
                consumer.assign([where])
                while await consumer.position(where) < end:
                    found += await consumer.poll(500)
        return found

    async def values(self, topic: str, *numbers: int) -> list[str]:
        """Return the texts in some partitions of a topic, by default in the first."""
        return [(record.value or b"").decode() for record in await self.records(topic, *numbers)]

    @asynccontextmanager
    async def admin(self) -> AsyncIterator[Admin]:
        """Be connected as an operator."""
        async with Admin(self.bootstrap) as admin:
            yield admin


class RunningWorker:
    """A worker that serves."""

    def __init__(self, site: Site, worker: Worker, host: str) -> None:
        self._site = site
        self.worker = worker
        self.host = host
        self.headers: dict[str, str] = {}
        """Of the last answer."""

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Send a request. Returns the status and the answer."""
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {"content-type": "application/json"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        status, answer, self.headers = await self._site.satellites.send(
            method, f"http://{self.host}{path}", data, named
        )
        return status, json.loads(answer) if answer else None

    async def get(self, path: str) -> Any:
        """Return what is answered, which has to be right."""
        status, answer = await self.ask("GET", path)
        assert status == 200, answer
        return answer

    async def create(self, name: str, **config: str) -> None:
        """Create a connector, or give it another configuration. Underscores in keys stand for dots."""
        body = {key.replace("_", "."): value for key, value in config.items()}
        status, answer = await self.ask("PUT", f"/connectors/{name}/config", body)
        assert status in (200, 201), answer

    async def wait_for(self, path: str, is_right: Callable[[Any], bool]) -> Any:
        """Ask until the answer is right, and return it."""
        answer: Any = None

        async def is_there() -> bool:
            nonlocal answer
            _, answer = await self.ask("GET", path)
            try:
                return is_right(answer)
            except (KeyError, TypeError, IndexError):
                return False

        await until(is_there, lambda: f"{path} answers {answer}")
        return answer

    async def wait_until(self, name: str, *states: str) -> Any:
        """Wait until a connector and its tasks have these states."""

        def has(answer: Any) -> bool:
            found = [answer["connector"]["state"], *(task["state"] for task in answer["tasks"])]
            return found == list(states)

        return await self.wait_for(f"/connectors/{name}/status", has)


async def until(
    find: Callable[[], Coroutine[Any, Any, T]],
    explain: Callable[[], object] = str,
    within_s: float = WAIT_S,
    pause_s: float = 0.1,
) -> T:
    """Wait until there is something, and return it."""
    found: Any = None
    try:
        async with asyncio.timeout(within_s):
            while not (found := await find()):
                await asyncio.sleep(pause_s)
    except TimeoutError:
        raise AssertionError(f"it did not come to hold in time: {explain()}") from None
    result: T = found
    return result
