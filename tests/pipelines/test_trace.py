"""The story of a record through a producer, three nodes, two groups and a pipeline, against what was done."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer

from ottla.pipelines import pipeline, topic
from ottla.pipelines.definition import AVAILABLE_NOW
from ottla.pipelines.status import DONE
from ottla.testing.process_cluster import ProcessCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The first test of a process starts Java, which takes minutes where everything else runs as well.
pytestmark = pytest.mark.timeout(900)

TOPIC = "traced-payments"
OFFSET = 7


def trace(bootstrap: str, directory: Path, data: Path) -> dict[str, Any]:
    """Type the command."""
    places = ["--directory", str(directory), "--data", str(data)]
    words = ["trace", f"{TOPIC}/0@{OFFSET}", "-b", bootstrap, *places, "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "ottla", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def read(bootstrap: str, group: str, count: int) -> Consumer:
    """Read some records as a member of a group, and commit each."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": f"{group}-1",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TOPIC])
    deadline = time.monotonic() + 120
    while count:
        assert time.monotonic() < deadline
        message = consumer.poll(1)
        if message is not None and not message.error():
            consumer.commit(message=message, asynchronous=False)
            count -= 1
    return consumer


def test_a_record_through_three_nodes_two_groups_and_a_pipeline(
    spark: "SparkSession", tmp_path: Path
) -> None:
    from ottla.pipelines.spark.runner import RunSettings, run_pipelines

    settings = {
        "ottla.journal.enable": "true",
        "ottla.journal.interval.ms": "1000",
        "offsets.topic.num.partitions": "3",
    }

    @pipeline("traced", to="traced-out", key="id")
    def copied(source: Any = topic(TOPIC, schema="id string, amount double")) -> Any:
        return source.select("id", "amount")

    with ProcessCluster(tmp_path / "cluster", settings=settings) as cluster:
        cluster.create_topic(TOPIC, 1)
        cluster.create_topic("traced-out", 1)
        producer = Producer(
            {"bootstrap.servers": cluster.bootstrap, "client.id": "till-7", "enable.idempotence": True}
        )
        before_ms = int(time.time() * 1000)
        for number in range(20):
            producer.produce(TOPIC, json.dumps({"id": f"{number}", "amount": 1.0}), f"{number}")
        assert producer.flush(60) == 0
        written_ms = int(time.time() * 1000)
        readers = [read(cluster.bootstrap, group, 20) for group in ("billing", "audit")]
        read_ms = int(time.time() * 1000)
        directory = tmp_path / "pipelines"
        data = next((tmp_path / "cluster").rglob(f"{TOPIC}-0")).parent
        run = RunSettings({"bootstrap.servers": cluster.bootstrap}, directory, trigger=AVAILABLE_NOW)
        (status,) = run_pipelines([copied], run, session=spark)
        assert status.state == DONE, status
        deadline = time.monotonic() + 120
        while True:
            story = trace(cluster.bootstrap, directory, data)
            steps = story["steps"]
            kinds = [step["kind"] for step in steps]
            if kinds.count("delivered") >= 2 and "till-7" in steps[0]["text"]:
                break
            assert time.monotonic() < deadline, story
            for reader in readers:
                reader.poll(0.1)
        for reader in readers:
            reader.close()

    assert story["key"] == f"{OFFSET}"
    assert steps[0]["kind"] == "produced"
    assert "till-7 at 127.0.0.1" in steps[0]["text"]
    assert before_ms <= steps[0]["at_ms"] <= written_ms
    by_group = {
        step["actor"]: step for step in steps if step["kind"] == "committed" and step["actor"] != "traced"
    }
    assert set(by_group) == {"billing", "audit"}
    for group, step in by_group.items():
        assert step["text"] == f"group {group} has committed {OFFSET + 1} by {group}-1"
        assert written_ms <= step["at_ms"] <= read_ms
    (appended,) = [step for step in steps if step["kind"] == "appended"]
    assert f"{TOPIC}-0/00000000000000000000.log from byte " in appended["text"]
    (replicated,) = [step for step in steps if step["kind"] == "replicated"]
    assert "to all of its 3 replicas" in replicated["text"]
    (wrote,) = [step for step in steps if step["kind"] == "wrote"]
    assert wrote["text"].startswith("pipeline traced wrote traced-out/0@0 to 19 in batch 0, task 0")
    (batch,) = [step for step in steps if step["kind"] == "pipeline"]
    assert "pipeline traced read it in batch 0" in batch["text"]
    assert batch["text"].endswith("done")
    assert "again" not in kinds
