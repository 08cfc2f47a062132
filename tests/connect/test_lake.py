"""Topics that become tables of Delta Lake, by commands, and through kills. Other programs write and read."""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import confluent_kafka
import pytest
from tests.cli import typing
from tests.connect.conftest import FEW_PARTITIONS
from tests.registry.conftest import QUICK
from tests.support.connect_process import ConnectProcess
from tests.support.ottla_node import OttlaNode

deltalake = pytest.importorskip("deltalake")
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "tables.md"
_PATIENCE_S = 240.0
_QUICK_SESSION = ("--set", "session.timeout.ms=6000", "--set", "heartbeat.interval.ms=1000")


def wait_for(is_right: Callable[[], bool], what: str) -> None:
    """Look again and again, until it is right."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while not is_right():
        assert time.monotonic() < deadline_s, what
        time.sleep(0.1)


def rows_of(location: Path, *columns: str) -> list[tuple[object, ...]]:
    """Return the cells of a table. None at all: it is not there yet."""
    try:
        table = deltalake.DeltaTable(str(location)).to_pyarrow_table(columns=list(columns))
    except deltalake.exceptions.TableNotFoundError:
        return []
    return list(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


def test_the_commands_of_the_page_make_a_topic_a_table(
    worker: ConnectProcess, node: OttlaNode, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shell,) = re.findall(r"```sh\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    (python,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OTTLA_CONNECT", worker.url)
    for line in shell.replace("payments", name).splitlines():
        written, _, command = line.rpartition("| ")
        stdin = written.removeprefix("echo '").removesuffix("' ") + "\n" if written else None
        words = [word.strip("'") for word in command.split()]
        assert words[0] == "ottla"
        typing.succeed(*words[1:], bootstrap=node.bootstrap, stdin=stdin)
    location = tmp_path / "lake" / name
    wait_for(
        lambda: rows_of(location, "id", "user", "amount") == [(1, "ann", 250)], "the row is not in the table"
    )
    exec(compile(python.replace("payments", name), "tables.md", "exec"), {})
    worker.wait_until_running(f"table-{name}")
    (listed,) = [
        row
        for row in typing.succeed("table", "list", "--json", OTTLA_CONNECT=worker.url).data
        if row["topic"] == name
    ]
    assert (listed["format"], listed["location"], listed["state"]) == ("delta", str(location), "RUNNING")
    typing.succeed("table", "delete", name, "--yes", OTTLA_CONNECT=worker.url)
    assert location.exists()


class _Writing(threading.Thread):
    """A client that nobody here wrote, which counts what was acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__()
        self.stopping = threading.Event()
        self.acknowledged = 0
        self._topic = topic
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5}
        )

    def run(self) -> None:
        number = 0
        while not self.stopping.is_set():
            for _ in range(20):
                self._producer.produce(
                    self._topic,
                    json.dumps({"id": number}).encode(),
                    key=str(number),
                    on_delivery=self._delivered,
                )
                number += 1
            self._producer.poll(0.01)
        assert self._producer.flush(_PATIENCE_S) == 0

    def _delivered(self, error: object, _message: object) -> None:
        assert error is None, error
        self.acknowledged += 1


def run_kills(directory: Path, kills: int, kind: str = "delta", tell: Callable[[str], None] = print) -> int:
    """Kill workers and the node while a topic becomes a table, and compare both. Returns the rows."""
    location = directory / "lake"
    with OttlaNode(directory / "node", QUICK) as node:
        typing.succeed("topic", "create", "payments", "--partitions", "3", bootstrap=node.bootstrap)
        worker = ConnectProcess(node.bootstrap, *FEW_PARTITIONS, *_QUICK_SESSION)
        worker.start()
        writing = _Writing(node.bootstrap, "payments")
        writing.start()
        try:
            options = ("--format", kind, "--location", str(location), "--every-ms", "300", "--tasks", "2")
            facts = ("--set", "table.kafka.columns=true")
            typing.succeed("table", "create", "payments", *options, *facts, OTTLA_CONNECT=worker.url)
            for number in range(kills):
                before = len(rows_of(location, "id"))
                wait_for(lambda seen=before: len(rows_of(location, "id")) > seen, "no row comes any more")  # type: ignore[misc]
                if number % 3 == 2:
                    node.kill()
                    node.start()
                else:
                    worker.kill()
                    worker.start()
                tell(f"kill {number + 1}: {before} rows, {writing.acknowledged} records")
        finally:
            writing.stopping.set()
            writing.join()
        try:
            wait_for(
                lambda: len(rows_of(location, "id")) >= writing.acknowledged,
                "not all records are in the table",
            )
            where = Counter(rows_of(location, "kafka_partition", "kafka_offset"))
            assert [place for place, times in where.items() if times > 1] == []
            assert sorted(rows_of(location, "id")) == [(number,) for number in range(writing.acknowledged)]
            return writing.acknowledged
        finally:
            worker.stop()


@pytest.mark.thorough(guard="tests/unit/connect/test_lake_sink.py")
def test_kills_neither_lose_nor_double_a_row(tmp_path: Path) -> None:
    run_kills(tmp_path, kills=6, tell=lambda _line: None)
