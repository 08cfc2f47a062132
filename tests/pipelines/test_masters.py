"""The same file of pipelines runs inside one process, on a master and worker, and through Spark Connect.

Only the URL differs. Master, worker and server come from the package, by the class that starts each.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.pipelines.effort import QUICK_JAVA
from tests.pipelines.records import committed, create_topic, produce
from tests.support.ottla_node import OttlaNode, ottla_command

from ottla.testing.ports import free_port

PIPELINES = """
from pyspark.sql import functions as F
from ottla.pipelines import pipeline, topic

@pipeline("{name}_copied", to="{name}-copies")
def copied(source=topic("{name}-in")):
    return source.select("key", F.upper("value").alias("value"))

@pipeline("{name}_counted", to="{name}-counts", mode="update", key="key")
def counted(source=topic("{name}-in")):
    return source.groupBy("key").agg(F.count("*").alias("records"))
"""
START_TIMEOUT_S = 240


@contextmanager
def spark_class(log: Path, said_when_ready: str, *arguments: str) -> Iterator[None]:
    """Run a main class of Spark's, and wait until it says that it is ready."""
    from ottla.pipelines.spark.session import home_without_archive

    home = home_without_archive(log.parent)
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable,
                   "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "512m",
                   "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA}  # fmt: skip
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-class"), *arguments], stdout=output, stderr=output, env=environment
        )
    try:
        give_up_s = time.monotonic() + START_TIMEOUT_S
        while said_when_ready not in log.read_text():
            assert process.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < give_up_s, log.read_text()[-2000:]
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait()


def local(_stack: ExitStack, _root: Path) -> str:
    return "local[2]"


def standalone(stack: ExitStack, root: Path) -> str:
    port, deploy = str(free_port()), "org.apache.spark.deploy"
    master = [f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0"]
    stack.enter_context(spark_class(root / "master.log", "New state: ALIVE", *master))
    url = f"spark://127.0.0.1:{port}"
    worker = [f"{deploy}.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", "-c", "2", "-m", "1g",
              "-d", str(root / "work"), url]  # fmt: skip
    stack.enter_context(spark_class(root / "worker.log", "Successfully registered with master", *worker))
    return url


def connect(stack: ExitStack, root: Path) -> str:
    port = str(free_port())
    settings = {
        "spark.connect.grpc.binding.port": port,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    server = ["org.apache.spark.deploy.SparkSubmit", "--master", "local[2]"]
    for key, value in settings.items():
        server += ["--conf", f"{key}={value}"]
    server += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    stack.enter_context(spark_class(root / "connect.log", "Spark Connect server started", *server))
    return f"sc://127.0.0.1:{port}"


@pytest.mark.timeout(1800)
@pytest.mark.thorough(guard="tests/unit/pipelines/test_command_line.py")
@pytest.mark.parametrize("master", [local, standalone, connect], ids=lambda start: start.__name__)
def test_same_file_runs_wherever_spark_is(
    node: OttlaNode, tmp_path: Path, master: Callable[[ExitStack, Path], str]
) -> None:
    pytest.importorskip("pyspark")
    name = f"on-{master.__name__}"
    for topic in ("in", "copies", "counts"):
        create_topic(node.bootstrap, f"{name}-{topic}", 2)
    produce(node.bootstrap, f"{name}-in", ((b"k%d" % (number % 5), b"v%d" % number) for number in range(200)))
    file = tmp_path / "same_pipelines.py"
    file.write_text(PIPELINES.format(name=name))
    with ExitStack() as stack:
        url = master(stack, tmp_path)
        # Through Spark Connect nobody starts a driver: there is one.
        quick = [] if url.startswith("sc:") else ["--conf", f"spark.driver.extraJavaOptions={QUICK_JAVA}"]
        done = subprocess.run(
            ottla_command(
                "pipeline", "run", str(file), "--bootstrap", node.bootstrap, "--available-now",
                "--spark", url, "--directory", str(tmp_path / "pipelines"),
                "--conf", "spark.sql.shuffle.partitions=2", *quick,
            ),
            capture_output=True, text=True, check=False, timeout=900,
        )  # fmt: skip

    assert done.returncode == 0, done.stderr[-3000:]
    copies = sorted(message.value() for message in committed(node.bootstrap, f"{name}-copies"))
    assert copies == sorted(b"V%d" % number for number in range(200))
    last = {message.key(): message.value() for message in committed(node.bootstrap, f"{name}-counts")}
    assert last == {b"k%d" % key: b'{"key":"k%d","records":40}' % key for key in range(5)}
