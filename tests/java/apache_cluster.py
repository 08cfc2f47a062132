"""Three nodes of Apache Kafka that are one cluster."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.java.apache_kafka import ApacheKafka


@contextmanager
def apache_cluster(root: Path, properties: Mapping[str, str] | None = None) -> Iterator[list[ApacheKafka]]:
    """Run node 0, which is the controller too, and brokers 1 and 2."""
    given = dict(properties or {})
    with ExitStack() as stack:
        first = stack.enter_context(ApacheKafka(root / "0", {**given, "broker.rack": "a"}))
        nodes = [first]
        for number in (1, 2):
            node = ApacheKafka(root / str(number), format_options=("--no-initial-controllers",))
            listener = f"PLAINTEXT://{node.bootstrap}"
            node.properties |= {
                **given,
                "process.roles": "broker",
                "node.id": str(number),
                "broker.rack": "ab"[number % 2],
                "controller.quorum.bootstrap.servers": f"127.0.0.1:{first.controller_port}",
                "listeners": listener,
                "advertised.listeners": listener,
            }
            nodes.append(stack.enter_context(node))
        yield nodes
