"""Whether Apache Kafka sees in a data directory what Ottla sees: each opens a copy, and both are asked.

Compared are: topics with ids, partitions and configs; first and next offsets, for readers of committed
records and for all; every record, by a hash over offset, timestamp, key, value and headers; groups with their
offsets; transactional ids with their states.
"""

import asyncio
import hashlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla.cli.failure import Failure
from ottla.cli.output import progress

if TYPE_CHECKING:
    from ottla.cli.directories.directory_checks import Contents
    from ottla.client.admin import Admin
    from ottla.client.admin.topics import TopicDescription

_START_SECONDS_MAX: Final = 120
_STOP_SECONDS_MAX: Final = 60
_LOADING_SECONDS_MAX: Final = 30
_ANSWERING_SECONDS_MAX: Final = 300
_PAUSE_S: Final = 0.5
_INT_MAX: Final = str((1 << 31) - 1)

# Neither server may clean up what is compared, nor end a transaction. Topics may have configs of their own,
# so what cleans up does not begin.
_FROZEN: Final = {
    "log.initial.task.delay.ms": _INT_MAX,
    "log.cleaner.enable": "false",
    "log.cleaner.backoff.ms": _INT_MAX,
    "offsets.retention.minutes": "2147483",
    "offsets.retention.check.interval.ms": _INT_MAX,
    "transactional.id.expiration.ms": _INT_MAX,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": _INT_MAX,
    "auto.create.topics.enable": "false",
}

# What the node is asked for would be noted in the topic that is compared.
_WITHOUT_JOURNAL: Final = {"ottla.journal.enable": "false"}


def compare_with_kafka(directory: Path, contents: "Contents", java: str, classpath: str) -> list[str]:
    """Return what differs, as sentences; nothing if all is the same."""
    from ottla.testing.node import ProcessNode

    with tempfile.TemporaryDirectory(prefix="ottla-graduate-") as scratch:
        root = Path(scratch)
        with progress(4, "comparing") as bar:
            for name in ("ottla/data", "kafka/data"):
                shutil.copytree(directory, root / name)
            bar.update(1)
            kafka = _Kafka(root / "kafka", contents, java, classpath)
            # While they are compared, the copies are open to everybody on this machine.
            options = ("--insecure",)
            with ProcessNode(root / "ottla", {**_FROZEN, **_WITHOUT_JOURNAL}, options=options) as node:
                bar.update(1)
                try:
                    bootstrap = kafka.start()
                    bar.update(1)
                    differences = _ask_until_same(node.bootstrap, bootstrap)
                finally:
                    kafka.stop()
            bar.update(1)
    return differences


def _ask_until_same(ottla: str, kafka: str) -> list[str]:
    """Compare, and compare again: a server loads groups and transactions after it has begun to serve."""
    deadline: float | None = None
    while True:
        ours = ask_until_answered("Ottla", ottla)
        differences = _differences(ours, ask_until_answered("Apache Kafka", kafka))
        # The time counts from the first answers: on a slow machine these take long enough.
        deadline = deadline or time.monotonic() + _LOADING_SECONDS_MAX
        if not differences or time.monotonic() > deadline:
            return differences
        time.sleep(_PAUSE_S)


def ask_until_answered(server: str, bootstrap: str) -> dict[str, Any]:
    """Return everything that is compared, by names that a sentence can use.

    A server that is not ready to tell is asked again.
    """
    from ottla.client.errors import ClientError

    deadline = time.monotonic() + _ANSWERING_SECONDS_MAX
    while True:
        try:
            return asyncio.run(_state(bootstrap))
        except ClientError as error:
            if not error.retriable or time.monotonic() > deadline:
                raise Failure(f"{server} does not tell what it has read from its copy: {error}") from error
        time.sleep(_PAUSE_S)


class _Kafka:
    """Apache Kafka on a copy of the directory."""

    def __init__(self, root: Path, contents: "Contents", java: str, classpath: str) -> None:
        self._root = root
        self._contents = contents
        self._command = [java, "-Xmx512m", "-cp", classpath, "kafka.Kafka"]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Start it, and return its address once it accepts connections."""
        from ottla.cli.directories.graduate import server_properties
        from ottla.model.properties import encode_settings
        from ottla.testing.ports import free_port

        port, controller_port = free_port(), free_port()
        settings = server_properties(self._root / "data", self._contents, port, controller_port)
        properties = self._root / "server.properties"
        properties.write_bytes(encode_settings(settings | _FROZEN))
        with (self._root / "kafka.log").open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                [*self._command, str(properties)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + _START_SECONDS_MAX
        while time.monotonic() < deadline and self._process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return f"127.0.0.1:{port}"
            time.sleep(0.1)
        last_words = (self._root / "kafka.log").read_text(errors="replace").strip()[-500:]
        raise Failure(f"Apache Kafka did not start on the copy: {last_words or 'it printed nothing'}")

    def stop(self) -> None:
        """Stop it."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


async def _state(bootstrap: str) -> dict[str, Any]:
    from ottla.broker.logs.partition import UNLISTED_TOPICS
    from ottla.client.admin import Admin
    from ottla.wire.config_kinds import ConfigSource, ResourceType

    state: dict[str, Any] = {}
    async with Admin(bootstrap) as admin:
        for topic in await _all_topics(admin):
            state[f"id of topic {topic.name}"] = str(topic.topic_id)
            state[f"partitions of topic {topic.name}"] = len(topic.partitions)
            configs = await admin.configs.describe(ResourceType.TOPIC, topic.name)
            state[f"configs of topic {topic.name}"] = {
                item.name: item.value
                for item in configs.values()
                # Apache Kafka does not show configs that it does not know.
                if item.source is ConfigSource.TOPIC and not item.name.startswith("ottla.")
            }
            # What is internal each server compacts when it likes. The journal is internal to Ottla only.
            if not topic.is_internal or topic.name in UNLISTED_TOPICS:
                await _add_records(admin, bootstrap, topic, state)
        for group in await admin.groups.list():
            offsets = await admin.group_offsets.list(group.group_id)
            state[f"type of group {group.group_id}"] = group.type.lower()
            state[f"offsets of group {group.group_id}"] = {
                str(where): (found.offset, found.metadata) for where, found in offsets.items()
            }
        for transaction in await admin.transactions.list():
            state[f"state of transactional id {transaction.transactional_id}"] = transaction.state
    return state


async def _all_topics(admin: "Admin") -> "list[TopicDescription]":
    """Return all topics, also those that only Apache Kafka lists and Ottla has to be asked for by name."""
    from ottla.broker.logs.partition import UNLISTED_TOPICS
    from ottla.client.errors import BrokerError
    from ottla.wire.error_code import ErrorCode

    listed = {topic.name for topic in await admin.topics.list(internal=True)}
    topics = []
    for name in sorted(listed | UNLISTED_TOPICS):
        try:
            topics.append(await admin.topics.describe(name))
        except BrokerError as error:
            if name in listed or error.error_code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
    return topics


async def _add_records(
    admin: "Admin", bootstrap: str, topic: "TopicDescription", state: dict[str, Any]
) -> None:
    from ottla.client.admin.offsets import OffsetSpec

    partitions = topic.topic_partitions
    for read_committed in (False, True):
        for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST):
            found = await admin.offsets.list(dict.fromkeys(partitions, spec), read_committed=read_committed)
            for where, place in found.check().items():
                kind = "committed " if read_committed else ""
                state[f"{kind}{spec.name.lower()} offset of {where}"] = place.offset
    for where in partitions:
        start = state[f"earliest offset of {where}"]
        end = state[f"latest offset of {where}"]
        state[f"records of {where}"] = await _hash(bootstrap, where, start, end)


async def _hash(bootstrap: str, where: Any, start: int, end: int) -> str:
    from ottla.client.admin.settings import AdminSettings
    from ottla.client.fetching import read_range
    from ottla.client.security import cluster_for
    from ottla.records.batch import iter_batches
    from ottla.records.batch_records import iter_batch_records

    digest = hashlib.sha256()
    cluster = cluster_for(AdminSettings.of({"bootstrap.servers": bootstrap}))
    await cluster.start()
    try:
        async for fetched in read_range(cluster, where, start, end):
            for batch in iter_batches(fetched.records):
                for record in iter_batch_records(batch):
                    if start <= record.offset < end:
                        digest.update(repr(tuple(record)).encode("utf-8", "backslashreplace"))
    finally:
        await cluster.close()
    return digest.hexdigest()


def _differences(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    return [
        f"{name}: {ours.get(name, 'none')} here, {theirs.get(name, 'none')} there"
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]
