"""What tasks and drivers of pipelines do, beside a simulated node and without Spark."""

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import pyarrow as pa

from ottla.client.admin import Admin
from ottla.client.consumer import Consumer
from ottla.client.consumer.record import ConsumerRecord
from ottla.client.producer import Producer
from ottla.model.ids import TopicPartition
from ottla.pipelines.columns.decode import HEADERS_TYPE
from ottla.pipelines.link import Link
from ottla.pipelines.sink.batch import TaskIdentity, TaskOutcome
from ottla.pipelines.sink.options import SinkOptions, parse_sink_options
from ottla.pipelines.sink.task import write_rows
from ottla.testing.simulation.client_loop import SimulatedLoop, simulated_loop
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.simulation import Simulation

T = TypeVar("T")

NOW_MS: Final = 1_800_000_000_000
_NODE: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
ROWS: Final = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
    ]
)
"""What Spark gets."""
ROWS_WITH_HEADERS: Final = ROWS.append(pa.field("headers", HEADERS_TYPE))


class SimulatedLink(Link):
    """A link whose loop is the simulated one."""

    def __init__(self, loop: SimulatedLoop, properties: Mapping[str, str]) -> None:
        self._loop = loop
        with loop.running():
            super().__init__(properties)
        loop.run(self.cluster.start())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run until the work is done."""
        return self._loop.run(work)

    def close(self) -> None:
        """Close the connections."""
        self._loop.run(self.cluster.close())


class World:
    """A node, and whoever reads and writes."""

    def __init__(self) -> None:
        simulation = Simulation(1)
        network = SimulatedNetwork(simulation)
        cluster = SimulatedCluster(simulation, network, 1, settings=_NODE)
        self.bootstrap = cluster.bootstrap
        self.loop = simulated_loop(simulation, network)
        cluster.start()
        self.link = SimulatedLink(self.loop, {"bootstrap.servers": self.bootstrap})

    def run(self, story: Coroutine[Any, Any, T]) -> T:
        """Let a story happen."""
        return self.loop.run(story)

    def admin(self, story: Callable[[Admin], Coroutine[Any, Any, T]]) -> T:
        """Do something as an operator."""

        async def connected() -> T:
            async with Admin(self.bootstrap) as admin:
                return await story(admin)

        return self.run(connected())

    def create(self, topic: str, partitions: int = 1) -> str:
        """Create a topic, and return its name."""
        self.admin(lambda admin: admin.topics.create(topic, partitions=partitions))
        return topic

    def produce(self, topic: str, *values: bytes, partition: int = 0, timestamp_ms: int = NOW_MS) -> None:
        """Write records of the same time."""

        async def story() -> None:
            async with Producer(self.bootstrap) as producer:
                for value in values:
                    await (await producer.send(topic, value, partition=partition, timestamp_ms=timestamp_ms))

        self.run(story())

    def records(self, topic: str, partition: int = 0) -> list[ConsumerRecord]:
        """Return the committed records of a partition."""

        async def story() -> list[ConsumerRecord]:
            found: list[ConsumerRecord] = []
            where = TopicPartition(topic, partition)
            async with Consumer(
                self.bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
            ) as consumer:
                end = (await consumer.end_offsets([where]))[where]
                consumer.assign([where])
                while await consumer.position(where) < end:
                    found += await consumer.poll(500)
            return found

        return self.run(story())

    def values(self, topic: str, partition: int = 0) -> list[bytes | None]:
        """Return the values of the committed records of a partition."""
        return [record.value for record in self.records(topic, partition)]

    def options(self, **given: str) -> SinkOptions:
        """Return the options of a sink. Underscores stand for dots."""
        named = {name.replace("_", "."): text for name, text in given.items()}
        return parse_sink_options({"kafka.bootstrap.servers": self.bootstrap, **named}, is_streaming=False)

    def write(
        self, options: SinkOptions, identity: TaskIdentity | None, *batches: Mapping[str, Sequence[Any]]
    ) -> TaskOutcome:
        """Do what a task does with its rows."""
        return write_rows(self.link, options, identity, _arrow(batches), lambda: NOW_MS)


def _arrow(batches: Sequence[Mapping[str, Sequence[Any]]]) -> Iterator[Any]:
    for batch in batches:
        columns = {
            name: pa.array(column, HEADERS_TYPE) if name == "headers" else pa.array(column)
            for name, column in batch.items()
        }
        yield pa.RecordBatch.from_pydict(columns)
