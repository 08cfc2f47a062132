"""The processes that answer questions about schemas, as the registry's own process sees them."""

import asyncio
import contextlib
import logging
import sys
from asyncio.subprocess import PIPE, Process
from typing import Any, Final

from ottla.registry.checking.fair_places import FairPlaces, TooManyWait
from ottla.registry.checking.questions import Failure, Question, decode_answer, encode_question
from ottla.registry.checking.worker import CPU_S, HEADER_BYTES, MEMORY_BYTES
from ottla.registry.errors import RegistryError

_logger = logging.getLogger(__name__)
_PROCESSES: Final = 2
_WAITING_MAX: Final = 200
# The bound is on computing. This one is for a machine that has no time for the process.
_PATIENCE_S: Final = 180.0
_COMMAND: Final = (sys.executable, "-P", "-m", "ottla.registry.checking.worker")


class WorkerPool:
    """Some processes. Each is started when it is needed first, and again when a question has ended it."""

    def __init__(self, cpu_s: int = CPU_S, memory_bytes: int = MEMORY_BYTES) -> None:
        self._bounds = str(cpu_s), str(memory_bytes)
        self._too_much = (
            f"it takes more than {cpu_s} s of computing or {memory_bytes // 1024 // 1024} MB of memory: "
            "make it simpler"
        )
        self._idle: list[Process] = []
        self._all: set[Process] = set()
        self._places = FairPlaces(_PROCESSES, _WAITING_MAX)

    async def start(self) -> None:
        """Start one process, so that the first question need not wait for it."""
        self._idle.append(await self._spawn())

    async def stop(self) -> None:
        """End all processes, whatever they do."""
        for process in list(self._all):
            await self._end(process)

    async def ask(self, question: Question) -> Any:
        """Return the answer to a question. Raises RegistryError if too many others wait."""
        try:
            async with self._places.place():
                return await self._ask(question)
        except TooManyWait:
            raise RegistryError(503, "Too many schemas wait to be looked at: try again") from None

    async def _ask(self, question: Question) -> Any:
        process = self._idle.pop() if self._idle else await self._spawn()
        try:
            async with asyncio.timeout(_PATIENCE_S):
                answer = await _exchange(process, question)
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError) as error:
            _logger.warning("a schema was given up: %s (%r)", self._too_much, error)
            await self._end(process)
            return Failure(self._too_much)
        except BaseException:
            # Its answer to this question must not become the answer to the next.
            await self._end(process)
            raise
        self._idle.append(process)
        return answer

    async def _spawn(self) -> Process:
        process = await asyncio.create_subprocess_exec(*_COMMAND, *self._bounds, stdin=PIPE, stdout=PIPE)
        self._all.add(process)
        return process

    async def _end(self, process: Process) -> None:
        self._all.discard(process)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _exchange(process: Process, question: Question) -> Any:
    assert process.stdin is not None, "it was asked for"
    assert process.stdout is not None, "it was asked for"
    data = encode_question(question)
    process.stdin.write(len(data).to_bytes(HEADER_BYTES) + data)
    await process.stdin.drain()
    header = await process.stdout.readexactly(HEADER_BYTES)
    return decode_answer(question.kind, await process.stdout.readexactly(int.from_bytes(header)))
