"""The alerts of the guide, asked of a real Prometheus that scrapes a real cluster: silent, and then not.

Prometheus is on the path, or the variable PROMETHEUS names it: Debian has a package of that name.
"""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote
from urllib.request import urlopen

import pytest
import yaml  # type: ignore[import-untyped]
from confluent_kafka import Consumer, TopicPartition
from tests.cli.typing import run, succeed
from tests.cluster.disks import SmallDisk

from ottla.testing.ports import free_port
from ottla.testing.process_cluster import ProcessCluster

PROMETHEUS = os.environ.get("PROMETHEUS") or shutil.which("prometheus")
GUIDE = (Path(__file__).parents[2] / "docs/guide/monitoring.md").read_text()
DASHBOARD: dict[str, Any] = json.loads((Path(__file__).parents[2] / "docs/grafana/ottla.json").read_text())
MIB = 160
_PATIENCE_S = 120

pytestmark = [
    pytest.mark.thorough(guard="tests/docs/test_monitoring.py::test_every_query_finds_something"),
    pytest.mark.skipif(PROMETHEUS is None, reason="there is no Prometheus here"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount file systems"),
]


def rules() -> dict[str, str]:
    """Return the expressions of the guide by the names of their alerts."""
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)]
    return {
        rule["alert"]: rule["expr"]
        for block in blocks
        for group in block.get("groups", ())
        for rule in group["rules"]
    }


class Prometheus:
    """A Prometheus that scrapes every fifth of a second."""

    def __init__(self, directory: Path, targets: list[str]) -> None:
        self._directory = directory
        self._port = free_port()
        scrape = {"job_name": "ottla", "static_configs": [{"targets": targets}]}
        config = {"global": {"scrape_interval": "200ms"}, "scrape_configs": [scrape]}
        (directory / "prometheus.yml").write_text(yaml.safe_dump(config))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        assert PROMETHEUS is not None
        with (self._directory / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    PROMETHEUS,
                    f"--config.file={self._directory / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self._directory / 'tsdb'}",
                    f"--web.listen-address=127.0.0.1:{self._port}",
                ],
                stdout=log,
                stderr=log,
            )
        return self

    def __exit__(self, *exc_info: object) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(_PATIENCE_S)

    def ask(self, expression: str) -> list[dict[str, Any]]:
        """Return what an expression finds now."""
        url = f"http://127.0.0.1:{self._port}/api/v1/query?query={quote(expression)}"
        with urlopen(url, timeout=_PATIENCE_S) as answer:
            found: list[dict[str, Any]] = json.loads(answer.read())["data"]["result"]
        return found

    def firing(self) -> set[str]:
        """Return the alerts whose expressions find something now. How long they have to is left out."""
        return {name for name, expression in rules().items() if self.ask(expression)}


class Watched:
    """A cluster of three nodes, each on a disk of its own, and a Prometheus."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        self.disks = [root / f"node-{number}" for number in (1, 2, 3)]
        for disk in self.disks:
            stack.enter_context(SmallDisk(disk, MIB))
        ports = [free_port() for _ in self.disks]
        self.cluster = ProcessCluster(root)
        for node, port in zip(self.cluster, ports, strict=True):
            node.settings["ottla.metrics.port"] = str(port)
        stack.enter_context(self.cluster)
        self.prometheus = stack.enter_context(Prometheus(root, [f"127.0.0.1:{port}" for port in ports]))
        self.until(lambda: len(self.prometheus.ask("ottla_offline_partitions_count")) == len(ports))

    @staticmethod
    def until(holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                if holds():
                    return
            except OSError:
                # It is still starting.
                pass
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def fires(self, *names: str) -> None:
        """Wait until these alerts fire."""
        self.until(lambda: set(names) <= self.prometheus.firing())

    def is_silent(self) -> None:
        """Wait until no alert fires."""
        self.until(lambda: not self.prometheus.firing())


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    with ExitStack() as stack:
        yield Watched(tmp_path, stack)


def commit(bootstrap: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers"})
    consumer.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
    consumer.close()


def test_alerts_fire_when_they_should_and_only_then(watched: Watched) -> None:
    cluster, prometheus = watched.cluster, watched.prometheus
    bootstrap = cluster.bootstrap
    cluster.create_topic("orders")
    cluster.create_topic("tight", configs={"min.insync.replicas": "3"})
    succeed("topic", "create", "alone", "--partitions", "3", "--replication-factor", "1", bootstrap=bootstrap)
    succeed("produce", "orders", stdin="\n".join(map(str, range(1000))) + "\n", bootstrap=bootstrap)
    commit(bootstrap, 1000)
    watched.until(lambda: bool(prometheus.ask("ottla_group_committed_offset")))
    assert prometheus.firing() == set(), "on a cluster in order"

    # A group that does not read.
    commit(bootstrap, 0)
    watched.fires("ConsumerGroupIsBehind")
    commit(bootstrap, 1000)
    watched.is_silent()

    # A node that is gone.
    cluster[3].kill()
    watched.fires(
        "NodeIsDown", "PartitionsUnderReplicated", "PartitionsBelowMinIsr", "PartitionsWithoutLeader"
    )
    cluster[2].kill()
    watched.fires("NoActiveController")
    cluster.start()
    watched.is_silent()

    # A disk that fills up.
    ballast = watched.disks[0] / "ballast"
    free = os.statvfs(watched.disks[0])
    ballast.write_bytes(bytes(free.f_bavail * free.f_frsize - (MIB << 20) // 20))
    watched.fires("DiskIsFillingUp", "DiskIsNearlyFull")
    assert run("produce", "orders", "-v", "value", bootstrap=bootstrap).code in (0, 1)
    ballast.unlink()
    watched.is_silent()

    # Damage. The copies of other nodes heal it, and the disk is still one that damages.
    cluster[1].kill()
    (log,) = (watched.disks[0] / "data" / "orders-0").glob("*.log")
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    cluster[1].start()
    watched.fires("DamagedRecords")
    watched.until(lambda: prometheus.firing() == {"DamagedRecords"})


def test_the_tiles_of_the_dashboard_show_numbers(watched: Watched) -> None:
    cluster, prometheus = watched.cluster, watched.prometheus
    cluster.create_topic("orders")
    succeed("produce", "orders", stdin="\n".join(map(str, range(1000))) + "\n", bootstrap=cluster.bootstrap)
    commit(cluster.bootstrap, 10)
    wanted = {
        panel["title"]: target["expr"]
        .replace("$__rate_interval", "1m")
        .replace("$instance", ".*")
        .replace("$topic", ".*")
        for panel in DASHBOARD["panels"]
        for target in panel.get("targets", ())
    }
    empty: set[str] = set(wanted)

    def all_show() -> bool:
        empty.intersection_update(title for title in empty if not prometheus.ask(wanted[title]))
        # There were no errors, and no transactions.
        return empty <= {"Errors", "Transactions by state"}

    watched.until(all_show)
    (without_leader,) = prometheus.ask(wanted["Partitions without a leader"])
    assert without_leader["value"][1] == "0"
    watched.until(lambda: _kept(prometheus, wanted["Records that are kept"]) == "1000")


def _kept(prometheus: Prometheus, expression: str) -> str:
    found = [one for one in prometheus.ask(expression) if one["metric"].get("topic") == "orders"]
    return str(found[0]["value"][1]) if found else ""
