"""Spark's own Kafka connector reads and writes Ottla, and what it writes our source reads."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.java.spark_connector import NoConnector, connector_jars
from tests.pipelines.effort import QUICK_JAVA
from tests.pipelines.records import create_topic, produce
from tests.support.ottla_node import OttlaNode

# The jars must be there when Java starts, so this is a process of its own.
SCRIPT = """
import json, sys
from ottla.pipelines.spark.session import open_session

bootstrap, settings, checkpoint = sys.argv[1:]
spark = open_session("connector", "local[2]", json.loads(settings))
spark.sparkContext.setLogLevel("ERROR")

def source(kind, topic, reader):
    return reader.format(kind).option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)

def values(kind, topic):
    frame = source(kind, topic, spark.read).load()
    columns = "CAST(key AS STRING) k, CAST(value AS STRING) v, partition, offset, timestamp, timestampType"
    frame = frame.selectExpr(*columns.split(", "))
    return sorted(tuple(map(str, row)) for row in frame.collect())

stream = source("kafka", "java-in", spark.readStream).option("startingOffsets", "earliest").load()
sink = stream.select("key", "value").writeStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
sink = sink.option("topic", "java-out").option("checkpointLocation", checkpoint)
sink.trigger(availableNow=True).start().awaitTermination()
topics = ("java-in", "java-out")
found = {f"{kind} {topic}": values(kind, topic) for kind in ("kafka", "ottla") for topic in topics}
spark.stop()
print(json.dumps(found))
"""


@pytest.mark.timeout(900)
@pytest.mark.thorough(guard="tests/pipelines/test_data_source.py")
def test_sparks_own_connector_reads_and_writes_what_ours_does(node: OttlaNode, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    try:
        jars = connector_jars()
    except NoConnector as error:
        pytest.skip(f"{error}: not compared with Spark's own connector")
    for topic in ("java-in", "java-out"):
        create_topic(node.bootstrap, topic, 2)
    expected = [(f"k{number}", f"v{number}") for number in range(500)]
    produce(node.bootstrap, "java-in", ((key.encode(), value.encode()) for key, value in expected))

    settings = {"spark.jars": jars, "spark.sql.shuffle.partitions": "2"}
    settings["spark.driver.extraJavaOptions"] = QUICK_JAVA
    arguments = [sys.executable, "-c", SCRIPT, node.bootstrap, json.dumps(settings), str(tmp_path)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    for topic in ("java-in", "java-out"):
        assert found[f"kafka {topic}"] == found[f"ottla {topic}"]
        assert sorted((row[0], row[1]) for row in found[f"kafka {topic}"]) == sorted(expected)
