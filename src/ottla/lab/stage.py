"""Where a scenario is played: a throw-away node with a journal, members in processes, producers.

Everything that may vary is drawn from one seed: names, numbers, sizes, clients. Scenarios wait for what they
have caused, never for a time.
"""

import asyncio
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from ottla.client.admin.group_offsets import CommittedOffset
from ottla.explain.access import Access, open_access
from ottla.explain.evidence.journal import JournalEvent, read_journal
from ottla.lab.clients import JAVA, Clients, installed_clients
from ottla.lab.java import Line
from ottla.lab.writing import write, write_steadily
from ottla.model.ids import TopicPartition
from ottla.testing.node import ThreadNode

T = TypeVar("T")

PATIENCE_S: Final = 90.0
SETTINGS: Final = {
    "ottla.journal.enable": "true",
    "ottla.journal.interval.ms": "1000",
    "auto.create.topics.enable": "false",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
}
_WORDS: Final = ("orders", "payments", "parcels", "clicks", "rides", "meters", "trades", "visits")
# The broker sets them for groups of the newer protocol.
_QUICK_SESSIONS: Final = {"session.timeout.ms": "10000", "heartbeat.interval.ms": "500"}


class Gone(Exception):
    """What a scenario waited for did not come."""


class Member:
    """A consumer in a process."""

    def __init__(self, plan: dict[str, Any], command: Sequence[str]) -> None:
        self.client_id: str = plan["properties"]["client.id"]
        self.seen: list[tuple[str, int, int]] = []
        self.lines: list[str] = []
        self._process = subprocess.Popen(  # noqa: S603 - a program of our own
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line)
            if not line.startswith("#"):
                topic, partition, offset = line.split()
                self.seen.append((topic, int(partition), int(offset)))

    def order(self, text: str) -> None:
        """Tell the member to do something."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{text}\n")
        self._process.stdin.flush()

    @property
    def is_alive(self) -> bool:
        """Say whether the process still runs."""
        return self._process.poll() is None

    def freeze(self) -> None:
        """Stop the process where it is. Its connections stay open."""
        self._process.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        """End the process without a warning."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Let the member leave in order."""
        self.order("close")
        self._process.wait(PATIENCE_S)

    def end(self) -> None:
        """End the process, whatever it does."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class Stage:
    """One scenario's world."""

    def __init__(
        self, seed: int, settings: Mapping[str, str] | None = None, clients: Clients | None = None
    ) -> None:
        self.rng = random.Random(seed)
        self._clients = clients or installed_clients()
        self._directory = tempfile.TemporaryDirectory(prefix="ottla-lab-")
        self.node = ThreadNode(Path(self._directory.name), {**SETTINGS, **(settings or {})})
        self._members: list[Member] = []
        self._streams: list[threading.Event] = []
        self._threads: list[threading.Thread] = []
        number = self.rng.randrange(1000)
        self.topic = f"{self.rng.choice(_WORDS)}-{number}"
        self.group = f"{self.rng.choice(('billing', 'audit', 'alerts', 'search'))}-{number}"

    def __enter__(self) -> Self:
        self.node.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        for stop in self._streams:
            stop.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
        for member in self._members:
            member.end()
        self.node.stop()
        self._directory.cleanup()

    # Actors

    def create(self, partitions: int = 1, name: str | None = None) -> str:
        """Create a topic."""
        name = name or self.topic
        self.node.create_topic(name, partitions)
        return name

    def client(self) -> str:
        """Draw which client an actor is written with."""
        return self.rng.choice(self._clients.kinds)

    def member(
        self,
        *,
        group: str | None = None,
        topics: Iterable[str] | None = None,
        name: str | None = None,
        client: str | None = None,
        commits: str = "each",
        work_ms: float = 0,
        assigns: bool = False,
        dies_at: int | None = None,
        **properties: Any,
    ) -> Member:
        """Start a member. Underscores in properties are dots. One that `assigns` reads without joining.

        One that `dies_at` an offset is gone when it gets that record.
        """
        client = client or self.client()
        name = name or f"reader-{len(self._members) + 1}"
        plan = {
            "client": client,
            "topics": list(topics or [self.topic]),
            "commits": commits,
            "work_ms": work_ms,
            "assigns": assigns,
            "dies_at": dies_at,
            "properties": {
                "bootstrap.servers": self.node.bootstrap,
                "group.id": group or self.group,
                "client.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": "false",
                **({} if properties.get("group_protocol") == "consumer" else _QUICK_SESSIONS),
                **{key.replace("_", "."): str(value) for key, value in properties.items()},
            },
        }
        command = [sys.executable, "-m", "ottla.lab.member", json.dumps(plan)]
        if client == JAVA:
            command = self._clients.the_java.member_command(plan)
        member = Member(plan, command)
        self._members.append(member)
        return member

    def values(self, count: int) -> list[bytes]:
        """Draw values that are all different."""
        return [f"{number:06}-{self.rng.getrandbits(64):016x}".encode() for number in range(count)]

    def write(
        self,
        values: Iterable[bytes],
        *,
        topic: str | None = None,
        keys: Callable[[int], bytes | None] = lambda _: None,
        partition: Callable[[int], int | None] = lambda _: None,
        timestamp: Callable[[int], int | None] = lambda _: None,
        name: str = "writer",
        client: str | None = None,
        **properties: Any,
    ) -> None:
        """Write records with a producer of any kind, and wait until they are acknowledged."""
        settings = {
            "bootstrap.servers": self.node.bootstrap,
            "client.id": name,
            **{key.replace("_", "."): str(value) for key, value in properties.items()},
        }
        lines = [
            Line(partition(number), timestamp(number), keys(number), value)
            for number, value in enumerate(values)
        ]
        write(self._clients, client or self.client(), settings, topic or self.topic, lines, PATIENCE_S)

    @contextmanager
    def stream(
        self,
        per_second: float,
        *,
        topic: str | None = None,
        keys: Callable[[int], bytes | None] = lambda _: None,
        partition: Callable[[int], int | None] = lambda _: None,
        name: str = "writer",
        **properties: Any,
    ) -> Iterator[None]:
        """Write for as long as the block takes."""
        stop = threading.Event()
        self._streams.append(stop)
        settings = {
            "bootstrap.servers": self.node.bootstrap,
            "client.id": name,
            "linger.ms": "20",
            **{key.replace("_", "."): str(value) for key, value in properties.items()},
        }
        thread = threading.Thread(
            target=write_steadily,
            args=(settings, topic or self.topic, per_second, keys, partition, stop, self.rng.getrandbits(32)),
            daemon=True,
        )
        self._threads.append(thread)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(PATIENCE_S)

    # Waiting

    def until(self, holds: Callable[[], object], what: str) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > deadline:
                raise Gone(f"waited too long for {what}")
            time.sleep(0.05)

    def until_seen(self, member: Member, count: int = 1) -> None:
        """Wait until a member has read this many records."""
        self.until(lambda: len(member.seen) >= count, f"{member.client_id} to read {count} records")

    def until_journal(self, kind: str, since_ms: int = 0, **facts: Any) -> JournalEvent:
        """Wait for an event in the journal."""
        found: list[JournalEvent] = []

        def look() -> bool:
            view = self.ask(lambda access: read_journal(access, since_ms))
            found.extend(view.of(kind, **facts))
            return bool(found)

        self.until(look, f"the journal to tell {kind}")
        return found[-1]

    def count_journal(self, kind: str, **facts: Any) -> int:
        """Return how many events of a kind the journal has."""
        return sum(1 for _ in self.ask(read_journal).of(kind, **facts))

    def journal_end(self) -> int:
        """Return where the first partition of the topic ended when the journal last looked."""
        place = f"{self.topic}/0"
        events = self.ask(read_journal).of("appended-at")
        return max((event.facts["ends"].get(place, 0) for event in events), default=0)

    def until_position(self, member: Member, offset: int) -> None:
        """Wait until the journal has seen a member at an offset of the first partition."""
        place = {f"{self.topic}/0": offset}
        self.until(
            lambda: self.count_journal("fetch-position", client=member.client_id, at=place),
            f"{member.client_id} at {offset}",
        )

    def until_joined(self, count: int, group: str | None = None) -> None:
        """Wait until a group is stable with this many members."""

        def joined() -> bool:
            description = self.ask(lambda access: _describe(access, group or self.group))
            return (
                description is not None
                and description.state.lower() == "stable"
                and len(description.members) == count
            )

        self.until(joined, f"{count} members")

    def until_committed(self, offset: int, topic: str | None = None, group: str | None = None) -> None:
        """Wait until a group has committed at least this sum of offsets in a topic."""
        wanted = topic or self.topic

        def done() -> bool:
            found = self.committed(group)
            return sum(item.offset for where, item in found.items() if where.topic == wanted) >= offset

        self.until(done, f"{offset} committed")

    def committed(self, group: str | None = None) -> dict[TopicPartition, CommittedOffset]:
        """Return what a group has committed."""
        return self.ask(lambda access: access.admin.group_offsets.list(group or self.group))

    def ask(self, work: Callable[[Access], Awaitable[T]]) -> T:
        """Do some work with the node as any client does."""

        async def run() -> T:
            async with open_access({"bootstrap.servers": self.node.bootstrap}) as access:
                return await work(access)

        return asyncio.run(run())


async def _describe(access: Access, group: str) -> Any:
    from ottla.client.errors import ClientError

    try:
        return await access.admin.groups.describe(group)
    except ClientError:
        return None
