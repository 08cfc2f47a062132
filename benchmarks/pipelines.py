"""Our source and sink for Spark against Spark's own Kafka connector, on the same node and data.

    python -m benchmarks.pipelines [--rows 1000000] [--seconds 20] [--only ROW ...]

Rows are counted per second of CPU, of the driver, of Java and of all Python workers together; the broker's
CPU is not counted. Each measurement runs in a session of its own, after a warm-up over a part of the data.
Latency is from the timestamp of a record to that of its copy, under a trigger of 0 seconds. Records count
once the query has done some batches: the first ones start processes and compile what later ones have.

`batches` says where the time of a batch goes: a pipeline copies 500 records a second, exactly once, and Spark
tells what each step of a batch took.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.java.spark_connector import NoConnector, connector_jars
from tests.pipelines.records import committed, create_topic, produce
from tests.support.ottla_node import OttlaNode

ROWS = ("source-200", "source-1000", "copy", "latency", "batches")
PARTITIONS = 2
WARM_UP_BATCHES = 10
BATCHES = 30
RECORDS_PER_SECOND = 500
COPYING = """
from ottla.pipelines import pipeline, topic

@pipeline("copying", to="copied", key="key", trigger="0 seconds")
def copying(rows=topic("copied-from", schema="key string, text string")):
    return rows.select("key", "text")
"""


def fill(bootstrap: str, topic: str, rows: int, size: int) -> None:
    """Write rows of random text, keyed, of about `size` bytes."""
    rng = random.Random(1)
    blob = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=size * 64)).encode()
    create_topic(bootstrap, topic, PARTITIONS)
    produce(
        bootstrap,
        topic,
        (
            (b"key-%06d" % (number % 10_000), blob[number * 7 % (size * 63) :][:size])
            for number in range(rows)
        ),
    )


def session(kind: str) -> Any:
    from ottla.pipelines.spark.session import open_session

    settings = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "2g"}
    if kind == "kafka":
        settings["spark.jars"] = connector_jars()
    spark = open_session(f"bench {kind}", "local[2]", settings)
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def cpu_seconds(java_pid: int) -> float:
    """Return the CPU of this process, of Java, and of all that they started."""
    return sum(map(_cpu_of, _tree(os.getpid()) | _tree(java_pid))) / os.sysconf("SC_CLK_TCK")


def _tree(pid: int) -> set[int]:
    found = {pid}
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    queue = [pid]
    while queue:
        for child in parents.get(queue.pop(), ()):
            if child not in found:
                found.add(child)
                queue.append(child)
    return found


def _cpu_of(pid: int) -> int:
    # Its own time, and that of children that have ended.
    return sum(int(value) for value in _fields_of(pid)[11:15])


def _fields_of(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def measure_source(kind: str, bootstrap: str, topic: str, rows: int) -> dict[str, Any]:
    spark = session(kind)
    java_pid = spark.sparkContext._gateway.proc.pid

    def read(limit: int) -> int:
        ends = json.dumps({topic: {str(number): limit // PARTITIONS for number in range(PARTITIONS)}})
        reader = spark.read.format(kind).option("kafka.bootstrap.servers", bootstrap)
        frame = reader.option("subscribe", topic).option("endingOffsets", ends).load()
        # All bytes of keys and values are touched, as a pipeline would.
        row = frame.selectExpr("count(*)", "sum(length(key))", "sum(length(value))", "max(offset)").collect()[
            0
        ]
        return int(row[0])

    smallest = rows * 9 // 10
    read(smallest // 5)
    before = cpu_seconds(java_pid), time.monotonic()
    count = read(smallest)
    cpu_s, wall_s = cpu_seconds(java_pid) - before[0], time.monotonic() - before[1]
    spark.stop()
    return {"rows": count, "rows_per_cpu_s": round(count / cpu_s), "rows_per_s": round(count / wall_s)}


def measure_copy(kind: str, bootstrap: str, topic: str, rows: int, root: Path) -> dict[str, Any]:
    spark = session(kind)
    java_pid = spark.sparkContext._gateway.proc.pid
    output = f"{topic}-{kind}-out"
    create_topic(bootstrap, output, PARTITIONS)

    def copy(checkpoint: Path, starting: str, options: dict[str, str]) -> None:
        reader = spark.readStream.format(kind).option("kafka.bootstrap.servers", bootstrap)
        frame = (
            reader.option("subscribe", topic).option("startingOffsets", starting).options(**options).load()
        )
        writer = frame.select("key", "value").writeStream.format(kind)
        writer = writer.option("kafka.bootstrap.servers", bootstrap).option("topic", output)
        writer.option("checkpointLocation", str(checkpoint)).trigger(
            availableNow=True
        ).start().awaitTermination()

    nearly = rows * 9 // 10 // PARTITIONS
    tail = json.dumps({topic: {str(number): nearly for number in range(PARTITIONS)}})
    copy(root / f"warm-{kind}", tail, {})
    before = cpu_seconds(java_pid), time.monotonic()
    copy(root / f"copy-{kind}", "earliest", {"maxOffsetsPerTrigger": str(rows // 4)})
    cpu_s, wall_s = cpu_seconds(java_pid) - before[0], time.monotonic() - before[1]
    spark.stop()
    return {"rows": rows, "rows_per_cpu_s": round(rows / cpu_s), "rows_per_s": round(rows / wall_s)}


def measure_latency(kind: str, bootstrap: str, root: Path, seconds: int) -> dict[str, Any]:
    spark = session(kind)
    topic, output = f"latency-{kind}", f"latency-{kind}-out"
    for name in (topic, output):
        create_topic(bootstrap, name, 1)
    reader = spark.readStream.format(kind).option("kafka.bootstrap.servers", bootstrap)
    frame = reader.option("subscribe", topic).option("startingOffsets", "earliest").load()
    writer = frame.select("key", "value").writeStream.format(kind).option("topic", output)
    writer = writer.option("kafka.bootstrap.servers", bootstrap)
    query = writer.option("checkpointLocation", str(root / f"latency-{kind}")).start()
    stopping = threading.Event()

    def feed() -> None:
        while not stopping.is_set():
            produce(bootstrap, topic, [(None, b"%d" % time.time_ns()) for _ in range(10)])
            time.sleep(0.05)

    feeder = threading.Thread(target=feed)
    feeder.start()
    while query.isActive and (query.lastProgress is None or query.lastProgress.batchId < WARM_UP_BATCHES):
        time.sleep(0.1)
    warm_ns = time.time_ns()
    time.sleep(seconds)
    stopping.set()
    feeder.join()
    query.processAllAvailable()
    query.stop()
    spark.stop()
    copies = [(int(message.value()), message.timestamp()[1]) for message in committed(bootstrap, output)]
    found = sorted(copied_ms - sent_ns / 1e6 for sent_ns, copied_ms in copies if sent_ns >= warm_ns)
    return {
        "p50_ms": round(statistics.median(found)),
        "p99_ms": round(found[len(found) * 99 // 100]),
        "records": len(found),
    }


def measure_batches(bootstrap: str, root: Path) -> dict[str, Any]:
    """Return what each step of a batch takes by Spark's own clocks, and the CPU of a batch."""
    from ottla.pipelines.loading import load_pipelines
    from ottla.pipelines.spark.runner import RunSettings, run_pipelines

    for name in ("copied-from", "copied"):
        create_topic(bootstrap, name, PARTITIONS)
    (root / "copying.py").write_text(COPYING)
    spark = session("ottla")
    java_pid = spark.sparkContext._gateway.proc.pid
    stopping = threading.Event()
    settings = RunSettings({"bootstrap.servers": bootstrap}, root / "pipelines")
    definitions = load_pipelines(root / "copying.py")
    feeder = threading.Thread(target=_feed_evenly, args=(bootstrap, "copied-from", stopping))
    runner = threading.Thread(
        target=run_pipelines,
        args=(definitions, settings),
        kwargs={"session": spark, "should_stop": stopping.is_set},
    )
    feeder.start()
    runner.start()
    try:
        _more_batches(spark, runner, WARM_UP_BATCHES)
        before = _cpu_of_java_and_workers(java_pid), time.monotonic()
        found = _more_batches(spark, runner, BATCHES)
        cpu_s = [
            after - start for start, after in zip(before[0], _cpu_of_java_and_workers(java_pid), strict=True)
        ]
        seconds = time.monotonic() - before[1]
    finally:
        stopping.set()
        feeder.join()
        runner.join()
        spark.stop()
    steps = sorted({step for batch in found for step in batch["durationMs"]})
    medians = {step: statistics.median(batch["durationMs"].get(step, 0) for batch in found) for step in steps}
    return {
        "batches": len(found),
        "seconds": round(seconds, 1),
        "rows_per_batch": round(statistics.median(batch["numInputRows"] for batch in found)),
        **{f"{step}_ms": round(value) for step, value in medians.items()},
        "java_cpu_ms": round(1000 * cpu_s[0] / len(found)),
        "python_workers_cpu_ms": round(1000 * cpu_s[1] / len(found)),
        "load": os.getloadavg()[0],
    }


def _feed_evenly(bootstrap: str, topic: str, stopping: threading.Event) -> None:
    at_once, number = 10, 0
    begun_s = time.monotonic()
    while not stopping.wait(max(0.0, begun_s + number / RECORDS_PER_SECOND - time.monotonic())):
        rows = [{"key": f"key-{place % 100}", "text": "x" * 100} for place in range(number, number + at_once)]
        produce(bootstrap, topic, [(row["key"].encode(), json.dumps(row).encode()) for row in rows])
        number += at_once


def _more_batches(spark: Any, runner: threading.Thread, count: int) -> list[dict[str, Any]]:
    """Wait for so many more batches with records, and return what Spark tells of them."""
    found: dict[int, dict[str, Any]] = {}
    first: int | None = None
    while len(found) < count:
        time.sleep(0.2)
        if not runner.is_alive():
            raise RuntimeError("the pipeline has ended")
        recent = [json.loads(item.json) for query in spark.streams.active for item in query.recentProgress]
        recent = [item for item in recent if "addBatch" in item["durationMs"]]
        if first is None and recent:
            first = recent[-1]["batchId"]
        found |= {
            item["batchId"]: item
            for item in recent
            if first is not None and item["batchId"] > first and item["numInputRows"]
        }
    return list(found.values())


def _cpu_of_java_and_workers(java_pid: int) -> tuple[float, float]:
    ticks = os.sysconf("SC_CLK_TCK")
    own = sum(int(value) for value in _fields_of(java_pid)[11:13]) / ticks
    # What has ended counts with the one that started it.
    return own, sum(map(_cpu_of, _tree(java_pid))) / ticks - own


def run_one(row: str, kind: str, bootstrap: str, rows: int, seconds: int) -> dict[str, Any]:
    """Measure in a process of its own, so that neither warms the other up."""
    command = [
        sys.executable, "-m", "benchmarks.pipelines", "--one", row, "--kind", kind,
        "--bootstrap", bootstrap, "--rows", str(rows), "--seconds", str(seconds),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1:] or done.returncode}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(row: str, kind: str, bootstrap: str, rows: int, seconds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as root:
        match row:
            case "source-200" | "source-1000":
                return measure_source(kind, bootstrap, row, rows)
            case "copy":
                return measure_copy(kind, bootstrap, "source-200", rows, Path(root))
            case "batches":
                return measure_batches(bootstrap, Path(root))
            case _:
                return measure_latency(kind, bootstrap, Path(root), seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=int, default=20, help="how long latency is measured")
    parser.add_argument("--only", nargs="*", choices=ROWS, default=ROWS)
    parser.add_argument("--one", choices=ROWS)
    parser.add_argument("--kind")
    parser.add_argument("--bootstrap")
    arguments = parser.parse_args()
    if arguments.one:
        found = measure(arguments.one, arguments.kind, arguments.bootstrap, arguments.rows, arguments.seconds)
        print(json.dumps(found))
        return
    kinds = ["ottla"]
    try:
        connector_jars()
        kinds.append("kafka")
    except NoConnector as error:
        print(f"not compared: {error}")
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as root, OttlaNode(Path(root)) as node:
        for row, size in (("source-200", 200), ("source-1000", 1000)):
            if row in arguments.only or (row == "source-200" and "copy" in arguments.only):
                fill(node.bootstrap, row, arguments.rows, size)
        for row in arguments.only:
            for kind in kinds[:1] if row == "batches" else kinds:
                found = run_one(row, kind, node.bootstrap, arguments.rows, arguments.seconds)
                facts = "  ".join(f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}"
                                  for name, value in found.items())  # fmt: skip
                print(f"{row:<12} {kind:<6} {facts}", flush=True)


if __name__ == "__main__":
    main()
