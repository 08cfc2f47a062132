"""Nodes for tests: real ones, on 127.0.0.1, with their data in a directory of the test.

    with ThreadNode(tmp_path) as node:
        node.create_topic("orders", partitions=3)
        node.produce("orders", "coffee", key="alice")
        ...                       # run what is tested, with node.bootstrap as its server
        node.wait_for("orders", 2)
        assert node.values("orders") == [b"coffee", b"tea"]

A `ThreadNode` runs in a thread of the test's own process: it is up in some 30 ms, and can be made to fail
(`node.faults`). A `ProcessNode` runs in a process of its own, as in production: it takes some 300 ms, and can
be killed and paused.

Both are set up for speed: see `QUICK`. What is acknowledged then lies in the memory of the operating system,
as with Apache Kafka: it survives `restart` and `kill`, and only a power cut would lose it. Give
`settings={"ottla.acks.all.sync": "true"}` for what Ottla does in production.
"""

import asyncio
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from ottla.testing.conversation import Conversation, NodeSaid, StoredRecord
from ottla.testing.faults import Faults, FaultySession, SlowSyncs
from ottla.testing.ports import free_port
from ottla.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.lifecycle.process import NodeOnLoop
    from ottla.broker.lifecycle.startup import Node

QUICK: Final[Mapping[str, str]] = {
    # They save syncs, the files of 98 partitions, and three seconds for the first member of a group.
    "ottla.acks.all.sync": "false",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "ottla.journal.enable": "false",
}
"""The settings of a node that nobody gave others."""

HOST: Final = "127.0.0.1"
_ATTEMPTS: Final = 5
_START_TIMEOUT_S: Final = 60.0
_STOP_TIMEOUT_S: Final = 60.0
_PAUSE_MIN_S: Final = 0.002
_PAUSE_MAX_S: Final = 0.1

Text = str | bytes | None


class NodeFailed(Exception):
    """A node did not start, or did not stop."""


class LocalNode(ABC):
    """What both kinds of nodes can do."""

    def __init__(
        self, root: Path, settings: Mapping[str, str] | None = None, *, port: int | None = None
    ) -> None:
        """Prepare a node with its data in `root`/data. It keeps its port over restarts."""
        self.root = root
        self.data_directory = root / "data"
        self.settings = {**QUICK, **(settings or {})}
        self.port = free_port() if port is None else port
        self._conversation: Conversation | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self.is_running:
            self.stop()

    @property
    def bootstrap(self) -> str:
        """The address for clients: what they call `bootstrap.servers`."""
        return f"{HOST}:{self.port}"

    @property
    @abstractmethod
    def is_running(self) -> bool:
        """Say whether the node was started and not stopped since."""

    @abstractmethod
    def start(self) -> None:
        """Start the node, and return when it serves."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the node in order."""

    def restart(self) -> None:
        """Start the node again, with its data and on its port. If it runs, it is stopped first."""
        if self.is_running:
            self.stop()
        self.start()

    # Topics and records

    def create_topic(self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic."""
        self.conversation.create_topic(name, partitions, configs or {})

    def produce(
        self,
        topic: str,
        *values: Text,
        key: Text = None,
        partition: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
    ) -> int:
        """Write records into one partition, acknowledged. Returns the offset of the first.

        A key goes to the partition where Kafka's own clients put it, and records without a key to
        partition 0. A topic that does not exist is created, unless `auto.create.topics.enable` is false.
        """
        pairs = tuple(headers)
        raw_key = _as_bytes(key)
        records = [(raw_key, _as_bytes(value), pairs) for value in values]
        if partition is None:
            partition = 0 if raw_key is None else _partition_of(raw_key, len(self._partitions_of(topic)))
        try:
            return self.conversation.append(topic, partition, records)
        except NodeSaid as said:
            if said.error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
        if partition not in self._partitions_of(topic):
            raise NodeSaid(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic!r} has no partition {partition}")
        return self.conversation.append(topic, partition, records)

    def _partitions_of(self, topic: str) -> list[int]:
        """Return the partitions of a topic, which is created if a client's question would create it."""
        if self.settings.get("auto.create.topics.enable", "true") == "true":
            return self.conversation.make_sure_of(topic)
        return self.conversation.partitions(topic)

    def records(self, topic: str, *, read_committed: bool = True) -> list[StoredRecord]:
        """Return all records that are in a topic now, ordered by partition and offset."""
        return list(self.conversation.read(topic, read_committed=read_committed))

    def values(self, topic: str, *, read_committed: bool = True) -> list[bytes | None]:
        """Return the values of all records that are in a topic now."""
        return [record.value for record in self.records(topic, read_committed=read_committed)]

    def wait_for(
        self, topic: str, count: int, *, timeout_s: float = 30.0, read_committed: bool = True
    ) -> list[StoredRecord]:
        """Wait until a topic has `count` records or more, and return all it has then.

        The topic need not exist yet. Raises `TimeoutError` with what is there when the time is over.
        """
        deadline = time.monotonic() + timeout_s
        pause_s = _PAUSE_MIN_S
        while True:
            found = self._records_so_far(topic, read_committed)
            if found is not None and len(found) >= count:
                return found
            if time.monotonic() >= deadline:
                raise TimeoutError(_too_few(topic, count, timeout_s, found))
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)

    def _records_so_far(self, topic: str, read_committed: bool) -> list[StoredRecord] | None:
        """Return the records of a topic, or None if there is no such topic."""
        try:
            return self.records(topic, read_committed=read_committed)
        except NodeSaid as said:
            if said.error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return None

    def ask(self, request: Any, version: int | None = None) -> Any:
        """Send any request of `ottla.wire.messages`, and return the answer."""
        return self.conversation.ask(request, version)

    @property
    def conversation(self) -> Conversation:
        """The connection that the helpers use."""
        if self._conversation is None:
            self._conversation = Conversation(HOST, self.port)
        return self._conversation

    def _hang_up(self) -> None:
        if self._conversation is not None:
            self._conversation.close()
            self._conversation = None


class ThreadNode(LocalNode):
    """A node in a thread of this process."""

    def __init__(
        self, root: Path, settings: Mapping[str, str] | None = None, *, port: int | None = None
    ) -> None:
        super().__init__(root, settings, port=port)
        self.faults = Faults()
        self._has_own_port = port is None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begin_stop: Callable[[], None] | None = None
        self._failure: Exception | None = None
        self._given_up: Exception | None = None

    @property
    def is_running(self) -> bool:
        """Say whether the node was started and not stopped since."""
        return self._thread is not None

    def start(self) -> None:
        """Start the node, and return when it serves."""
        assert self._thread is None, "the node is already running"
        for attempt in range(_ATTEMPTS):
            started: Future[None] = Future()
            thread = threading.Thread(target=self._run, args=(started,), name="ottla-node", daemon=True)
            thread.start()
            try:
                started.result(_START_TIMEOUT_S)
            except Exception as error:
                thread.join()
                # Between looking for a free port and taking it another process may have been quicker.
                is_port_taken = "cannot listen" in str(error) and self._has_own_port
                if not is_port_taken or attempt == _ATTEMPTS - 1:
                    raise NodeFailed(f"the node did not start: {error}") from error
                self.port = free_port()
            else:
                self._thread = thread
                return

    def stop(self) -> None:
        """Stop the node in order."""
        self._hang_up()
        thread, self._thread = self._thread, None
        if thread is None:
            return
        assert self._loop is not None, "a thread that started has a loop"
        assert self._begin_stop is not None, "and waits for this"
        # If the loop is closed already, the node has failed before.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._begin_stop)
        thread.join(_STOP_TIMEOUT_S)
        if thread.is_alive():
            raise NodeFailed("the node did not stop in time")
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise NodeFailed(f"the node failed: {failure}") from failure

    def _run(self, started: "Future[None]") -> None:
        from ottla.runtime.disk import RealDisk
        from ottla.runtime.poller import ServingLoop

        loop = ServingLoop()
        try:
            on_loop, node = self._start_node(loop)
            self._loop = loop
            self._begin_stop = partial(self._let_go_and_stop, on_loop)
            started.set_result(None)
            self._run_until_over(on_loop, loop)
            for directory in node.broker.directories.directories:
                disk = directory.volume.disk
                if isinstance(disk, RealDisk):
                    disk.close()
        except Exception as error:
            if not started.done():
                started.set_exception(error)
            else:
                self._failure = error
        finally:
            loop.close()

    def _run_until_over(self, on_loop: "NodeOnLoop", loop: Any) -> None:
        from ottla.broker.lifecycle.process import NodeFailure

        try:
            loop.run_until_complete(on_loop.over)
        except NodeFailure as failure:
            # A process would end now. This one lives on, so the threads of the node must not.
            self._failure = failure
            self.faults.let_go()
            on_loop.stop()

    def _let_go_and_stop(self, on_loop: "NodeOnLoop") -> None:
        self.faults.let_go()
        on_loop.begin_stop()

    def _start_node(self, loop: Any) -> "tuple[NodeOnLoop, Node]":
        from ottla.broker.lifecycle.process import NodeOnLoop, NodeOptions
        from ottla.metadata.configs.load import load_node_config
        from ottla.runtime.real_world import real_world

        loaded = load_node_config(b"", {"log.dirs": str(self.data_directory), **self.settings})
        on_loop = NodeOnLoop(loop)
        world = real_world(loop)
        world = world._replace(make_syncs=partial(SlowSyncs, world.make_syncs, self.faults, loop))
        node = on_loop.start(loaded.configs, NodeOptions(host=HOST, port=self.port), world)
        listeners = node.broker.listeners
        new_session = node.broker.new_session
        listeners.make_session = lambda connection: FaultySession(
            new_session(connection), connection, self.faults, loop
        )
        return on_loop, node


class ProcessNode(LocalNode):
    """A node in a process of its own."""

    def __init__(
        self,
        root: Path,
        settings: Mapping[str, str] | None = None,
        *,
        port: int | None = None,
        options: Sequence[str] = (),
    ) -> None:
        """Prepare a node. `options` are further ones of `ottla up`."""
        super().__init__(root, settings, port=port)
        self.options = tuple(options)
        self.port_options: tuple[str, ...] = ("--port", str(self.port))
        self._process: subprocess.Popen[str] | None = None

    @property
    def is_running(self) -> bool:
        """Say whether the node was started and not stopped since."""
        return self._process is not None

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._running().pid

    @property
    def log_path(self) -> Path:
        """Where the node writes what it has to say."""
        return self.root / "ottla.log"

    def start(self) -> None:
        """Start the node, and return when it serves."""
        self.begin_start()
        self.finish_start()

    def begin_start(self) -> None:
        """Start the process. It does not serve yet."""
        assert self._process is None, "the node is already running"
        settings = [f"--set={name}={value}" for name, value in self.settings.items()]
        command = [sys.executable, "-m", "ottla", "up", *self.port_options, *settings, *self.options]
        self.root.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                [*command, "--data", str(self.data_directory)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def finish_start(self) -> None:
        """Wait until the node serves."""
        process = self._running()
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("ready "):
            self._kill()
            raise NodeFailed(f"the node did not start: {self.log_path.read_text()[-2000:]}")

    def stop(self) -> None:
        """Stop the node in order, by SIGTERM."""
        self.begin_stop()
        self.finish_stop()

    def begin_stop(self) -> None:
        """Ask the node to stop in order, by SIGTERM."""
        self._hang_up()
        process = self._running()
        # A process that is paused would not notice SIGTERM.
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGTERM)

    def finish_stop(self) -> None:
        """Wait until the node has stopped."""
        code = self._wait()
        if code != 0:
            raise NodeFailed(f"the node ended with code {code}: {self.log_path.read_text()[-2000:]}")

    def kill(self) -> None:
        """End the process without a warning, by SIGKILL. `start` or `restart` brings it back."""
        code = self._kill()
        if code != -signal.SIGKILL:
            raise NodeFailed(
                f"the node had ended before, with code {code}: {self.log_path.read_text()[-2000:]}"
            )

    def _kill(self) -> int:
        self._hang_up()
        self._running().send_signal(signal.SIGKILL)
        return self._wait()

    def pause(self) -> None:
        """Let the process do nothing until `resume`: how a long pause looks to clients."""
        self._running().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the process go on."""
        self._running().send_signal(signal.SIGCONT)

    def _running(self) -> "subprocess.Popen[str]":
        if self._process is None:
            raise NodeFailed("the node is not running")
        return self._process

    def _wait(self) -> int:
        process = self._running()
        self._process = None
        try:
            code = process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise NodeFailed("the node did not stop in time") from None
        assert process.stdout is not None
        process.stdout.close()
        return code


def _as_bytes(text: Text) -> bytes | None:
    if not isinstance(text, str | bytes | None):
        raise TypeError(f"keys and values are text, bytes or None, not {text!r}: serialize it first")
    return text.encode() if isinstance(text, str) else text


def _partition_of(key: bytes, partitions: int) -> int:
    """Return the partition that Kafka's default partitioner chooses for a key."""
    # Most tests need no client of ours, and its modules take longer to import than a node to start.
    from ottla.client.producer.partitioner import murmur2

    return (murmur2(key) & 0x7FFFFFFF) % partitions


def _too_few(topic: str, count: int, timeout_s: float, found: Sequence[StoredRecord] | None) -> str:
    if found is None:
        return f"topic {topic!r} does not exist after {timeout_s:g} s, but should have {count} records"
    last = f"; the last is {found[-1]}" if found else ""
    return f"topic {topic!r} has {len(found)} records after {timeout_s:g} s, not {count}{last}"
