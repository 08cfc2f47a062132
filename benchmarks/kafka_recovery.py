"""How long Apache Kafka takes to load the logs of a directory after an unclean stop, by its own log lines.

`make_directory` lets Apache Kafka make a log directory with an empty topic, and ends it by force. Others may
then fill the partitions. `load` starts it on a directory and ends it once it said how long loading took.
"""

import re
import socket
import subprocess
from pathlib import Path
from time import monotonic, sleep
from typing import Final, NamedTuple

from tests.java.jars import java_classpath

RECOVERY_THREADS: Final = 2

_LOADED: Final = re.compile(r"Loaded (\d+) logs in (\d+) ?ms")
_START_SECONDS_MAX: Final = 300
_CLUSTER_ID: Final = "b3R0bGEtYmVuY2htYXJrLg"
_LOG4J: Final = """<Configuration status="WARN"><Appenders><Console name="C" target="SYSTEM_OUT">
<PatternLayout pattern="%p %m (%c)%n"/></Console></Appenders>
<Loggers><Root level="INFO"><AppenderRef ref="C"/></Root></Loggers></Configuration>
"""


class Loaded(NamedTuple):
    """What the broker said."""

    logs: int
    milliseconds: int


def make_directory(log_directory: Path, work: Path, topic: str, partitions: int) -> str:
    """Let Apache Kafka make a log directory with one empty topic. Returns the text of the topic's id."""
    class_path = java_classpath()
    port, controller_port = _free_port(20000), _free_port(24000)
    properties = _write_properties(log_directory, work, port, controller_port)
    _run_class(
        class_path,
        "kafka.tools.StorageTool",
        "format",
        "--standalone",
        "-t",
        _CLUSTER_ID,
        "-c",
        str(properties),
    )
    broker = _start(class_path, properties, work)
    try:
        _wait_for_line(broker, work / "kafka.log")
        _run_class(
            class_path,
            "org.apache.kafka.tools.TopicCommand",
            *("--bootstrap-server", f"127.0.0.1:{port}", "--create", "--topic", topic),
            *("--partitions", str(partitions), "--replication-factor", "1"),
        )
        metadata = log_directory / f"{topic}-{partitions - 1}" / "partition.metadata"
        deadline = monotonic() + _START_SECONDS_MAX
        while not all((log_directory / f"{topic}-{p}" / metadata.name).exists() for p in range(partitions)):
            if monotonic() > deadline:
                raise RuntimeError("Apache Kafka did not make the logs of its topic")
            sleep(0.1)
        return metadata.read_text().split("topic_id: ")[1].strip()
    finally:
        broker.kill()
        broker.wait()


def load(log_directory: Path, work: Path) -> Loaded:
    """Start Apache Kafka on `log_directory` and return what it says of loading. `work` takes its files."""
    properties = _write_properties(log_directory, work, _free_port(20000), _free_port(24000))
    broker = _start(java_classpath(), properties, work)
    try:
        return _wait_for_line(broker, work / "kafka.log")
    finally:
        broker.kill()
        broker.wait()


def _run_class(class_path: str, main_class: str, *arguments: str) -> None:
    subprocess.run(
        ["java", "-cp", class_path, main_class, *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _start(class_path: str, properties: Path, work: Path) -> "subprocess.Popen[bytes]":
    log4j = work / "log4j2.xml"
    log4j.write_text(_LOG4J)
    with (work / "kafka.log").open("wb") as sink:
        return subprocess.Popen(
            ["java", "-Xms1g", "-Xmx1g", f"-Dlog4j2.configurationFile={log4j}", "-cp", class_path]
            + ["kafka.Kafka", str(properties)],
            stdout=sink,
            stderr=subprocess.STDOUT,
        )


def _wait_for_line(broker: "subprocess.Popen[bytes]", output: Path) -> Loaded:
    deadline = monotonic() + _START_SECONDS_MAX
    while monotonic() < deadline:
        found = _LOADED.search(output.read_text(errors="replace"))
        if found is not None:
            return Loaded(int(found[1]), int(found[2]))
        if broker.poll() is not None:
            raise RuntimeError(f"Apache Kafka ended: {output.read_text(errors='replace')[-2000:]}")
        sleep(0.05)
    raise RuntimeError(f"Apache Kafka loaded nothing within {_START_SECONDS_MAX} s, see {output}")


def _write_properties(log_directory: Path, work: Path, port: int, controller_port: int) -> Path:
    properties = work / "server.properties"
    properties.write_text(f"""process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={log_directory}
num.recovery.threads.per.data.dir={RECOVERY_THREADS}
""")
    return properties


def _free_port(first: int) -> int:
    for port in range(first, first + 2000):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise RuntimeError(f"no free port from {first} on")
