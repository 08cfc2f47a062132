"""One JVM for each test process. It runs the programs that lie beside this file, whichever is asked."""

import subprocess
from functools import cache
from pathlib import Path

from tests.java.jars import compiled, java_classpath, java_command

_MIRROR = "mirror/MirrorMakerClasses.java"
PROGRAMS = (
    "AvroSchemas", "ConfigDefinitions", "ConfigProviders", "ConsumerAssignors", "ControlManagers",
    "ErrorCodes", "GeneratedMessages", "GroupAssignors", "GroupShards", "KeyPartitions", "LoadProperties",
    "PartitionLogs", "RecordBatches", "ShareShards",
)  # fmt: skip
_PACKAGES = {
    "ControlManagers": "org.apache.kafka.controller.",
    "GroupShards": "org.apache.kafka.coordinator.group.",
    "MirrorMakerClasses": "org.apache.kafka.connect.mirror.",
    "PartitionLogs": "org.apache.kafka.storage.internals.log.",
    "ShareShards": "org.apache.kafka.coordinator.share.",
}
"""Programs that lie in Kafka's packages: they need what is not public."""


class JavaHost:
    """A JVM that answers one question at a time."""

    def __init__(self, class_path: str) -> None:
        self._process = subprocess.Popen(
            java_command(class_path, "ottla.Host"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )

    def ask(self, program: str, question: str) -> str:
        """Have a program answer a question. Both are lines."""
        assert "\n" not in question
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{_PACKAGES.get(program, '')}{program}\t{question}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the JVM ended when {program} was asked"
        return answer.removesuffix("\n")

    def close(self) -> None:
        """End the JVM."""
        self._process.communicate()


_running: list[JavaHost] = []


def ask_java(program: str, question: str) -> str:
    """Ask a program of this directory. The first question starts the JVM."""
    return (_mirror_host() if program == "MirrorMakerClasses" else _host()).ask(program, question)


def close_hosts() -> None:
    """End the JVMs of this process."""
    while _running:
        _running.pop().close()
    _host.cache_clear()
    _mirror_host.cache_clear()


@cache
def _host() -> JavaHost:
    sources = [f"{name}.java" for name in ("Host", "Json", *PROGRAMS)]
    return _started(compiled(*sources, libraries=f"{java_classpath()}:{_avro_jar()}"))


@cache
def _mirror_host() -> JavaHost:
    from tests.java.mirror_maker import mirror_classpath

    return _started(compiled("Host.java", _MIRROR, libraries=mirror_classpath()))


def _started(class_path: str) -> JavaHost:
    host = JavaHost(class_path)
    _running.append(host)
    return host


def _avro_jar() -> Path:
    """Return the jar of Avro's own classes, which comes with Spark."""
    import pyspark

    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("avro-1.*.jar")
    return jar
