"""`ottla pipeline stop`: all queries of a pipeline, the process that ran them, and its Java."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from tests.pipelines.effort import QUICK_JAVA
from tests.pipelines.records import create_topic, produce_json
from tests.support.ottla_node import OttlaNode, ottla_command

from ottla.pipelines.status import RUNNING, is_alive, read_statuses

# A sink of Spark's own has a second query for its dead letters.
PIPELINES = """
from ottla.pipelines import pipeline, spark_sink, topic

@pipeline("stopping", to=spark_sink("parquet", options={{"path": "{path}"}}))
def stopping(source=topic("stopping", schema="id string")):
    return source.select("id")
"""


def children_of(pid: int) -> set[int]:
    """Return the processes that a process has started, and theirs."""
    parents = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


@pytest.mark.timeout(900)
@pytest.mark.thorough(guard="tests/unit/pipelines/test_supervision.py")
def test_stop_ends_all_queries_the_process_and_java(node: OttlaNode, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    create_topic(node.bootstrap, "stopping", 1)
    produce_json(node.bootstrap, "stopping", [{"id": "1"}])
    file, directory = tmp_path / "stopping_pipelines.py", tmp_path / "pipelines"
    file.write_text(PIPELINES.format(path=tmp_path / "files"))
    with (tmp_path / "log").open("wb") as log:
        runner = subprocess.Popen(
            ottla_command(
                "pipeline", "run", str(file), "--bootstrap", node.bootstrap, "--directory", str(directory),
                "--spark", "local[2]", "--conf", f"spark.driver.extraJavaOptions={QUICK_JAVA}",
            ),
            stdout=log, stderr=log, env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )  # fmt: skip
    try:
        wanted = {"stopping", "stopping.dead_letters"}
        while {item.name for item in read_statuses(directory) if item.state == RUNNING} != wanted:
            assert runner.poll() is None, (tmp_path / "log").read_text()[-3000:]
            time.sleep(0.1)
        started = children_of(runner.pid)
        shown = subprocess.run(
            ottla_command("pipeline", "status", "stopping", "--directory", str(directory), "--json"),
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        page = json.loads(shown.stdout)["spark_page"]
        assert page.startswith("http://127.0.0.1:")
        subprocess.run(
            ottla_command("pipeline", "stop", "stopping", "--directory", str(directory), "--timeout", "300"),
            check=True,
        )
        assert {item.state for item in read_statuses(directory)} == {"stopped"}
        assert runner.wait(60) == 0
        assert started, "Java is a child of the runner"
        assert not [pid for pid in started if is_alive(pid)]
    finally:
        if runner.poll() is None:
            runner.kill()
            runner.wait()
