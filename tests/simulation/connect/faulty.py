"""Connectors whose every step may fail or take long: real sinks inside, and a source that is only here."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Final

import httpx
import pytest

from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.offsets import CommitFailed
from ottla.client.errors import ClientError
from ottla.client.producer.producer import Producer
from ottla.connect import worker
from ottla.connect.catalog import all_plugins
from ottla.connect.configs.keys import Key, Kind
from ottla.connect.connectors import http
from ottla.connect.data.record import Record
from ottla.connect.data.schema import INT64, STRING, struct
from ottla.connect.errors import ConnectError
from ottla.connect.plugins import Config, ConnectorPlugin, PluginKind, Plugins
from ottla.connect.running.sink import SinkRun
from ottla.connect.running.task import RetryLater, SinkContext, SourceContext, SourceTask
from ottla.model.ids import TopicPartition

PARTITIONS: Final = 3
ROW: Final = struct({"shelf": STRING, "n": INT64})
_AT_ONCE_MAX: Final = 7


class Faults:
    """What goes wrong, by chance."""

    def __init__(self, random: Random, failing: float = 0.03, slow: float = 0.05) -> None:
        self.random = random
        self.failing = failing
        self.slow = slow
        self.met: dict[str, int] = {}

    def end(self) -> None:
        """Have everything go well from now on."""
        self.failing = self.slow = 0.0

    def strikes(self, step: str) -> bool:
        """Say whether a step fails."""
        if self.random.random() >= self.failing:
            return False
        self.met[step] = self.met.get(step, 0) + 1
        return True

    async def pause(self) -> None:
        """Take a while, often."""
        if self.slow and self.random.random() < 0.3:
            await asyncio.sleep(self.random.choice((1, 3, 6)))

    async def step(self, step: str, error: type[Exception] = ConnectError) -> None:
        """Take a while perhaps, and fail perhaps."""
        if self.random.random() < self.slow:
            await asyncio.sleep(self.random.choice((0.1, 1, 8)))
        if self.strikes(step):
            raise error(f"{step} fails")


class Shelves:
    """What the source reads: each shelf has the numbers up to a count."""

    def __init__(self, names: Sequence[str]) -> None:
        self.counts = dict.fromkeys(names, 0)
        self.pauses_s: dict[int, float] = {}
        """How long a task keeps what it has read, by its number."""


class ShelfTask(SourceTask):
    """Reads some of the shelves."""

    def __init__(self, config: Config, shelves: Shelves, faults: Faults) -> None:
        self._names = config["shelves"].split(",")
        self._topic = config["topic"]
        self._shelves = shelves
        self._faults = faults
        self._positions: dict[str, int] = {}
        self._number = 0

    async def start(self, context: SourceContext) -> None:
        """Find where to go on."""
        self._number = context.task
        for name in self._names:
            found = context.position({"shelf": name})
            self._positions[name] = 0 if found is None else found["n"]
        await self._faults.step("start of a source")

    async def poll(self) -> Sequence[Record]:
        """Return the next numbers, sooner or later."""
        records: list[Record] = []
        for name in self._names:
            last = min(self._shelves.counts[name], self._positions[name] + _AT_ONCE_MAX)
            records += [self._record(name, number) for number in range(self._positions[name], last)]
            self._positions[name] = last
        if records:
            # Long enough for others to begin before these are written.
            await self._faults.pause()
        await self._faults.step("poll of a source")
        await asyncio.sleep(self._shelves.pauses_s.get(self._number, 0.1))
        return records

    def _record(self, name: str, number: int) -> Record:
        partition = list(self._shelves.counts).index(name) % PARTITIONS
        return Record(
            self._topic,
            partition,
            None,
            None,
            ROW,
            {"shelf": name, "n": number},
            source_partition={"shelf": name},
            source_offset={"n": number + 1},
        )

    async def committed(self) -> None:
        """Fail perhaps, after all is done."""
        await self._faults.step("after the commit of a source")

    async def stop(self) -> None:
        """Nothing is open."""


def _divide(config: Config, tasks_max: int) -> list[dict[str, str]]:
    names = config["names"].split(",")
    count = min(tasks_max, len(names))
    turn = int(config["turn"]) % len(names)
    turned = [*names[turn:], *names[:turn]]
    return [{**config, "shelves": ",".join(turned[number::count])} for number in range(count)]


class FaultySink:
    """A sink whose steps may fail before or after they were done."""

    def __init__(self, sink: Any, faults: Faults) -> None:
        self._sink = sink
        self.commit_interval_s: float | None = sink.commit_interval_s
        self._faults = faults

    async def start(self, context: SinkContext) -> None:
        """Open the target."""
        await self._faults.step("start of a sink")
        await self._sink.start(context)

    async def opened(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, int]:
        """Take on partitions."""
        found: dict[TopicPartition, int] = await self._sink.opened(partitions)
        await self._faults.step("opening")
        return found

    async def closed(self, partitions: frozenset[TopicPartition]) -> None:
        """Give partitions up."""
        await self._faults.step("closing")
        await self._sink.closed(partitions)

    async def put(self, records: Sequence[Record]) -> None:
        """Write records, some of them perhaps."""
        if self._faults.strikes("a target that cannot be reached"):
            done = self._faults.random.randrange(len(records))
            await self._sink.put(records[:done])
            raise RetryLater("it is away", done=done)
        await self._faults.step("put")
        await self._sink.put(records)
        await self._faults.step("after put")

    async def flush(self) -> None:
        """Make it durable."""
        await self._faults.step("flush")
        await self._sink.flush()
        await self._faults.step("after flush")

    async def stop(self) -> None:
        """Close the target."""
        await self._sink.stop()
        await self._faults.step("stop of a sink")


class Web:
    """What the HTTP sink sends to."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self.bodies: list[Any] = []

    async def request(self, _method: str, url: str, content: bytes, headers: Any) -> httpx.Response:
        """Take a request, or not."""
        if self._faults.strikes("503"):
            return httpx.Response(503, headers={"Retry-After": "1"})
        self.bodies.append(content)
        await asyncio.sleep(0)
        if self._faults.strikes("an answer that is lost"):
            raise httpx.ReadTimeout(f"{url} does not answer: {headers['Idempotency-Key']}")
        return httpx.Response(200)

    @asynccontextmanager
    async def stream(self, method: str, url: str, **parts: Any) -> AsyncIterator[httpx.Response]:
        """Do the same, with an answer that could be read in parts."""
        yield await self.request(method, url, **parts)

    async def aclose(self) -> None:
        """Nothing is open."""


def plant(patch: pytest.MonkeyPatch, faults: Faults, shelves: Shelves, web: Any) -> None:
    """Have all workers run faulty connectors."""
    source = ConnectorPlugin(
        "sim.ShelvesConnector",
        PluginKind.SOURCE,
        lambda config: ShelfTask(config, shelves, faults),
        tuple(Key(name, Kind.STRING, "In a simulation.") for name in ("names", "turn", "topic")),
        task_configs=_divide,
    )

    def wrapped(plugin: Any) -> Any:
        if plugin.kind is not PluginKind.SINK:
            return plugin
        return dataclasses.replace(plugin, make=lambda config: FaultySink(plugin.make(config), faults))

    plugins = Plugins([*map(wrapped, all_plugins().all), source])
    patch.setattr(worker, "all_plugins", lambda: plugins)
    patch.setattr(http, "_client", lambda config: web)
    _surround(patch, faults, SinkRun, "_bury", ConnectError)
    _surround(patch, faults, Consumer, "commit", CommitFailed)
    _surround(patch, faults, Producer, "commit_transaction", ClientError)


def _surround(
    patch: pytest.MonkeyPatch, faults: Faults, owner: type, name: str, error: type[Exception]
) -> None:
    real = getattr(owner, name)

    async def step(self: Any, *arguments: Any) -> None:
        await faults.step(name, error)
        await real(self, *arguments)
        await faults.step(f"after {name}", error)

    patch.setattr(owner, name, step)
