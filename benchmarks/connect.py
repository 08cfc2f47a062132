"""What connectors cost, beside Kafka Connect: lines of a file to a topic, and a topic to a file.

Both workers run on the same node, and read and write the same lines. Rows are CPU seconds of the worker's
process, in alternating blocks, and how many times Kafka Connect's ours takes. A figure counts only if the
noise beside it is small.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measure import Noise, ratio_of
from tests.java.connect_worker import KafkaConnectWorker
from tests.registry.conftest import QUICK
from tests.support.connect_process import ConnectProcess
from tests.support.ottla_node import OttlaNode

_PACKAGE = "org.apache.kafka.connect.file."
_TICKS = os.sysconf("SC_CLK_TCK")
_PATIENCE_S = 300.0


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _wait(is_done: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + _PATIENCE_S
    while not is_done():
        assert time.monotonic() < deadline_s, "the connector does not come to its end"
        time.sleep(0.1)


def _measured(worker: Any, name: str, config: dict[str, str], is_done: Callable[[], bool]) -> float:
    """Return the CPU seconds that a connector takes for its work."""
    before = _cpu_seconds(worker.pid)
    status, answer = worker.ask("PUT", f"/connectors/{name}/config", config)
    assert status == 201, answer
    _wait(is_done)
    took = _cpu_seconds(worker.pid) - before
    worker.ask("DELETE", f"/connectors/{name}")
    return took


def _source(worker: Any, name: str, lines: Path) -> float:
    config = {"connector.class": f"{_PACKAGE}FileStreamSourceConnector", "file": str(lines), "topic": name}
    size = lines.stat().st_size

    def is_done() -> bool:
        _, answer = worker.ask("GET", f"/connectors/{name}-in/offsets")
        found = answer.get("offsets") or []
        return bool(found) and found[0]["offset"]["position"] == size

    return _measured(worker, f"{name}-in", config, is_done)


def _sink(worker: Any, name: str, lines: Path, copy: Path) -> float:
    config = {"connector.class": f"{_PACKAGE}FileStreamSinkConnector", "file": str(copy), "topics": name}
    size = lines.stat().st_size
    return _measured(worker, f"{name}-out", config, lambda: copy.exists() and copy.stat().st_size >= size)


def main() -> None:
    """Compare both workers, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--blocks", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as text:
        root = Path(text)
        lines = root / "lines"
        lines.write_text("".join(f"{number:09} {'x' * 90}\n" for number in range(given.lines)))
        flush = {"offset.flush.interval.ms": "1000"}
        with (
            OttlaNode(root / "node", QUICK) as node,
            ConnectProcess(node.bootstrap) as ours,
            KafkaConnectWorker(
                root / "java", node.bootstrap, {**_names("java"), **flush}, ("-Xmx1g",)
            ) as theirs,
        ):
            noise = Noise()
            rows: dict[str, dict[str, list[float]]] = {}
            # The first block lets Java compile, and does not count.
            for block in range(given.blocks + 1):
                for who, worker in (("ottla", ours), ("kafka", theirs)):
                    name = f"{who}-{block}"
                    took = {
                        "file to topic": _source(worker, name, lines),
                        "topic to file": _sink(worker, name, lines, root / f"{name}-copy"),
                    }
                    for row, seconds in took.items():
                        if block:
                            rows.setdefault(row, {}).setdefault(who, []).append(seconds)
            _show(rows, given.lines, noise.share())


def _names(prefix: str) -> dict[str, str]:
    return {
        "group.id": prefix,
        "config.storage.topic": f"{prefix}-configs",
        "offset.storage.topic": f"{prefix}-offsets",
        "status.storage.topic": f"{prefix}-status",
        "offset.storage.partitions": "2",
        "status.storage.partitions": "1",
    }


def _show(rows: dict[str, dict[str, list[float]]], lines: int, noise: float) -> None:
    print(f"{'':<16}{'Ottla rows/CPU s':>18}{'Kafka rows/CPU s':>18}  CPU, Ottla / Kafka")
    for row, took in rows.items():
        ours, theirs = took["ottla"], took["kafka"]
        rates = [lines * len(seconds) / sum(seconds) for seconds in (ours, theirs)]
        print(f"{row:<16}{rates[0]:>18,.0f}{rates[1]:>18,.0f}  {ratio_of(ours, theirs)}")
    print(f"noise: {noise:.0%} of the machine was taken by others and by the node")


if __name__ == "__main__":
    main()
