"""Processes of a campaign with Apache Kafka's own client. All of them live in one JVM, with a thread each."""

import asyncio
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Final

from tests.java.jars import QUICK_START, compiled

from ottla.testing.guarantees.generator import key_of_partition, partition_of
from ottla.testing.guarantees.process import GROUP, TRANSACTION_TIMEOUT_MS, ClientFailed, Process

ANSWER_S_MAX: Final = 120.0
ENDED: Final = "error _TRANSPORT"
"""What is answered when the JVM is gone."""


class JavaMachine:
    """A JVM with many clients."""

    def __init__(self, bootstrap: str) -> None:
        program = ("-cp", compiled("GuaranteesProcesses.java"), "GuaranteesProcesses")
        self._process = subprocess.Popen(
            ["java", *QUICK_START, "-Xmx512m", *program, bootstrap, GROUP, str(TRANSACTION_TIMEOUT_MS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
        )
        self._numbers = count(1)
        self._lock = Lock()
        self._answers: dict[int, SimpleQueue[str]] = {}
        Thread(target=self._listen, daemon=True).start()

    def new_number(self) -> int:
        """Return a number for a process."""
        with self._lock:
            number = next(self._numbers)
            self._answers[number] = SimpleQueue()
        return number

    def ask(self, number: int, *words: object) -> str:
        """Have a command carried out, and return the answer. Raises `ClientFailed`."""
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(" ".join(map(str, (number, *words))) + "\n")
        kind, _, rest = self._answers[number].get(timeout=ANSWER_S_MAX).partition(" ")
        if kind != "ok":
            raise ClientFailed(rest)
        return rest

    def forget(self, number: int) -> None:
        """Expect no more answers for a process."""
        self._answers.pop(number, None)

    def end(self) -> None:
        """End the JVM."""
        self._process.kill()
        self._process.wait()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            number, _, answer = line.rstrip("\n").partition(" ")
            if (queue := self._answers.get(int(number))) is not None:
                queue.put(answer)
        for queue in list(self._answers.values()):
            queue.put(ENDED)


class JavaProcess(Process):
    """One producer and one consumer in a JVM."""

    def __init__(self, machine: JavaMachine, transactional_id: str | None) -> None:
        """Without a transactional id, the producer is idempotent."""
        super().__init__()
        self._machine = machine
        self._number = machine.new_number()
        self._transactional_id = transactional_id
        self._acknowledge: list[Callable[[int], None]] = []

    async def _ask(self, *words: object) -> str:
        return await asyncio.to_thread(self._machine.ask, self._number, *words)

    async def start(self) -> None:
        """Connect."""
        await self._ask("start", round(self.answer_s * 1000), *filter(None, [self._transactional_id]))

    async def close(self) -> None:
        """Let go of it. An open transaction stays open."""
        try:
            await self._ask("close")
        except ClientFailed:
            pass
        finally:
            self._machine.forget(self._number)

    async def begin(self) -> None:
        """Open a transaction."""
        self._acknowledge.clear()
        await self._ask("begin")

    async def send(self, key: int, value: int, acknowledge: Callable[[int], None]) -> None:
        """Send a value."""
        await self._ask("send", *partition_of(key), value)
        self._acknowledge.append(acknowledge)

    async def flush(self) -> None:
        """Wait for acknowledgements, and tell of all that came."""
        failures: list[str] = []
        acknowledges, self._acknowledge = self._acknowledge, []
        for acknowledge, said in zip(acknowledges, (await self._ask("flush")).split(), strict=True):
            if said.isdigit():
                acknowledge(int(said))
            else:
                failures.append(said)
        if failures:
            raise ClientFailed(failures[0])

    async def poll_records(self) -> Iterable[tuple[int, int, int]]:
        """Read for a moment."""
        return [
            (key_of_partition(topic, int(partition)), int(offset), int(value))
            for topic, partition, offset, value in (
                one.split(":") for one in (await self._ask("poll")).split()
            )
        ]

    async def send_offsets(self, positions: Mapping[int, int]) -> None:
        """Make offsets part of the transaction."""
        await self._ask("offsets", *_places(positions))

    async def commit(self) -> None:
        """Commit."""
        await self._ask("commit")

    async def abort(self) -> None:
        """Abort."""
        await self._ask("abort")

    async def read_from(self, positions: Mapping[int, int]) -> None:
        """Read from these offsets on."""
        await self._ask("read", *_places(positions))

    async def committed_offsets(self, keys: Iterable[int]) -> dict[int, int]:
        """Ask for the group's offsets."""
        answer = await self._ask("committed", *_places(dict.fromkeys(keys, 0)))
        return {
            key_of_partition(topic, int(partition)): int(offset)
            for topic, partition, offset in (one.split(":") for one in answer.split())
        }


def _places(positions: Mapping[int, int]) -> list[str]:
    return [":".join(map(str, (*partition_of(key), at))) for key, at in positions.items()]


@contextmanager
def java_processes(bootstrap: str) -> Iterator[Callable[[str, str | None], Process]]:
    """Have a JVM, and give what makes a process in it."""
    machine = JavaMachine(bootstrap)
    try:
        yield lambda _bootstrap, transactional_id: JavaProcess(machine, transactional_id)
    finally:
        machine.end()
