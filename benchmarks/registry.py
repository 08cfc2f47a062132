"""What the schema registry and the serializers cost.

    python -m benchmarks.registry

The registry is measured beside nothing: Confluent's is in no package registry. Requests go one after the
other over one connection, so they show the cost of a request and not how many clients it serves. CPU time is
that of the registry's process, without the node. The serializers are measured beside those of
confluent-kafka, in alternating blocks. Columns of a pipeline are decoded here as a worker of Spark does it.
"""

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
from benchmarks.journal import cpu_s
from benchmarks.measure import Noise, cpu_seconds, ratio_of
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirAvroDeserializer
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.support.ottla_node import OttlaNode
from tests.support.registry_process import RegistryProcess

from ottla.client.registry import AvroDeserializer, AvroSerializer, JsonSerializer, RegistryClient
from ottla.pipelines.columns.values import decode_values, find_source

REQUESTS = 200
VALUES = 20_000
BLOCKS = 5
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
VALUE = {"id": 12345, "customer": "ann", "amount": 9.95, "tags": ["new", "gift"]}
SHAPE = {
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "customer": {"type": "string"},
        "amount": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["id"],
}


def measure_requests(registry: RegistryProcess) -> None:
    """Print how long requests take, and how much CPU time."""

    def schema(number: int) -> dict[str, str]:
        return {"schema": json.dumps({**ORDER, "name": f"Order{number}"})}

    with httpx.Client(base_url=registry.url, timeout=60) as client:
        kinds: dict[str, Callable[[int], httpx.Response]] = {
            "register a new schema": lambda n: client.post(f"/subjects/s{n}/versions", json=schema(n)),
            "register a known schema": lambda n: client.post(f"/subjects/s{n}/versions", json=schema(n)),
            "look up an id": lambda n: client.get(f"/schemas/ids/{n + 1}"),
            "check compatibility": lambda n: client.post(
                f"/compatibility/subjects/s{n}/versions/latest", json=schema(n)
            ),
        }
        for name, ask in kinds.items():
            cpu, started = cpu_s(registry.pid), time.perf_counter()
            for number in range(REQUESTS):
                answer = ask(number)
                assert answer.status_code == 200, answer.text
            seconds = time.perf_counter() - started
            used = cpu_s(registry.pid) - cpu
            print(
                f"{name}: {REQUESTS / seconds:.0f} a second, {REQUESTS / used:.0f} for a CPU second",
                flush=True,
            )


def compare(name: str, ours: Callable[[], object], theirs: Callable[[], object]) -> None:
    """Print how many values we handle in a CPU second, and how many times confluent-kafka takes."""
    ours(), theirs()

    def block(work: Callable[[], object]) -> float:
        return cpu_seconds(lambda: [work() for _ in range(VALUES)])

    blocks = [(block(ours), block(theirs)) for _ in range(BLOCKS)]
    own: Sequence[float] = [one for one, _ in blocks]
    others: Sequence[float] = [other for _, other in blocks]
    rate = VALUES / sorted(own)[len(own) // 2]
    print(f"{name}: {rate:,.0f} for a CPU second, {ratio_of(others, own)} times better", flush=True)


def measure_serializers(url: str) -> None:
    """Compare serializers with those of confluent-kafka."""
    theirs = SchemaRegistryClient({"url": url})
    context = SerializationContext("bench", MessageField.VALUE)
    with RegistryClient(url) as registry:
        write = AvroSerializer(registry, json.dumps(ORDER))
        their_write = TheirAvroSerializer(theirs, json.dumps(ORDER))
        data = write("bench", VALUE)
        assert data == their_write(VALUE, context)
        compare("serialize Avro", lambda: write("bench", VALUE), lambda: their_write(VALUE, context))
        read, their_read = AvroDeserializer(registry), TheirAvroDeserializer(theirs)
        compare("deserialize Avro", lambda: read("bench", data), lambda: their_read(data, context))
        write_json = JsonSerializer(registry, json.dumps(SHAPE))
        their_json = JSONSerializer(json.dumps(SHAPE), theirs)
        shaped = SerializationContext("bench-json", MessageField.VALUE)
        compare(
            "serialize JSON with a schema",
            lambda: write_json("bench-json", VALUE),
            lambda: their_json(VALUE, shaped),
        )
        source = find_source(url, "bench-value")
        assert source is not None
        column: Any = pa.array([data] * VALUES, pa.binary())
        decode_values(source, column)
        seconds = cpu_seconds(lambda: decode_values(source, column))
        print(f"decode columns for Spark: {VALUES / seconds:,.0f} rows for a CPU second")


def main() -> None:
    """Measure everything."""
    noise = Noise()
    with (
        tempfile.TemporaryDirectory() as directory,
        OttlaNode(Path(directory)) as node,
        RegistryProcess(node.bootstrap) as registry,
    ):
        measure_requests(registry)
        measure_serializers(registry.url)
    print(f"noise {noise.share():.0%}")


if __name__ == "__main__":
    main()
