"""Instances of the registry beside a simulated node. Requests reach their applications without a network."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar
from unittest.mock import patch
from urllib.parse import quote

from tests.support.satellite_network import SatelliteNetwork

from ottla.registry import service
from ottla.registry.checking.questions import (
    Answerer,
    Question,
    decode_answer,
    decode_question,
    encode_answer,
    encode_question,
)
from ottla.registry.leading.protocol import Identity
from ottla.registry.service import Registry, RegistrySettings
from ottla.registry.serving.app import RegistryApi
from ottla.satellite.process import behind_doors
from ottla.satellite.settings import HttpSettings
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.simulation import Simulation

T = TypeVar("T")

WAIT_S: Final = 120
_NODE: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class _NoProcesses:
    """Answers questions about schemas as the processes do that check them, and as bytes, too."""

    def __init__(self) -> None:
        self._answerer = Answerer()

    async def start(self) -> None:
        """Nothing is to be started."""

    async def stop(self) -> None:
        """Nothing is to be stopped."""

    async def ask(self, question: Question) -> Any:
        """Return the answer to a question."""
        answer = self._answerer.answer(decode_question(encode_question(question)))
        return decode_answer(question.kind, encode_answer(answer))


class Site:
    """A node, and instances of a registry beside it."""

    def __init__(self, seed: int = 1) -> None:
        self.simulation = Simulation(seed)
        network = SimulatedNetwork(self.simulation)
        self.cluster = SimulatedCluster(self.simulation, network, 1, settings=_NODE)
        self.bootstrap = self.cluster.bootstrap
        self.loop = simulated_loop(self.simulation, network)
        self.cluster.start()
        self.network = SatelliteNetwork()

    def run(self, story: Coroutine[Any, Any, T], within_ms: int = 600_000) -> T:
        """Let a story happen."""
        return self.loop.run(story, within_ms)

    def cut_power(self) -> None:
        """Let the node lose its power."""
        self.run(self._do(self.cluster.nodes[0].cut_power))

    def switch_on(self) -> None:
        """Give the node its power back."""
        self.run(self._do(self.cluster.nodes[0].switch_on))

    async def _do(self, change: Callable[[], None]) -> None:
        change()

    def instance(self, port: int = 8081, *, is_eligible: bool = True) -> "SimulatedRegistry":
        """Start an instance, and wait until one writes."""
        return self.run(self._start(port, is_eligible))

    async def _start(self, port: int, is_eligible: bool) -> "SimulatedRegistry":
        http = HttpSettings()
        host = f"127.0.0.1:{port}"
        with patch.object(service, "WorkerPool", _NoProcesses):
            registry = Registry(
                {"bootstrap.servers": self.bootstrap},
                RegistrySettings(is_eligible=is_eligible),
                Identity("127.0.0.1", port, "http", is_eligible=is_eligible),
                http.tls_to_others(),
            )
        await registry.instances.close()
        client: Any = self.network
        registry.instances._client = client
        await registry.start()
        await registry.wait_for_leader()
        self.network.apps[host] = behind_doors(RegistryApi(registry), registry.instances, http, None)
        return SimulatedRegistry(self, registry, host)


class SimulatedRegistry:
    """An instance that serves."""

    def __init__(self, site: Site, registry: Registry, host: str) -> None:
        self.site = site
        self.registry = registry
        self.host = host
        self.headers: dict[str, str] = {}
        """Of the last answer."""

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Send a request, and wait for the answer. Returns its status and what it says."""
        return self.site.run(self.send(method, path, body, **headers))

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Do what `ask` does, beside others."""
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {"content-type": "application/json"} | {
            name.replace("_", "-").lower(): value for name, value in headers.items()
        }
        status, answer, self.headers = await self.site.network.send(
            method, f"http://{self.host}{path}", data, named
        )
        try:
            return status, json.loads(answer) if answer else None
        except ValueError:
            return status, answer.decode()

    def register(self, subject: str, schema: Any, schema_type: str = "AVRO", **more: Any) -> Any:
        """Register a schema, which must work."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        body = {"schema": text, "schemaType": schema_type, **more}
        status, answer = self.ask("POST", f"/subjects/{quote(subject, safe='')}/versions", body)
        assert status == 200, answer
        return answer

    def stop(self) -> None:
        """Leave the others in order."""
        self.site.network.apps.pop(self.host)
        self.site.run(self.registry.stop())

    def vanish(self) -> None:
        """Be gone for requests of others, without a word. It still is a member of its group."""
        self.site.network.apps.pop(self.host)

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Let time pass until something holds."""
        until_us = self.site.simulation.now_us + WAIT_S * 1_000_000
        while not is_so():
            assert self.site.simulation.now_us < until_us, f"it did not become so within {WAIT_S} s"
            self.site.run(asyncio.sleep(0.1))
