"""A process that answers questions about schemas, within bounds: `python -m
ottla.registry.checking.worker SECONDS BYTES`.

Questions come on its standard input and answers go to its standard output, each as a length and JSON. A
question that takes too long ends the process, by the kernel: code in C
cannot be interrupted otherwise.
"""

import math
import resource
import signal
import sys
from pathlib import Path
from typing import Any, BinaryIO, Final

from ottla.registry.checking.questions import Answerer, Failure, decode_question, encode_answer

CPU_S: Final = 10
MEMORY_BYTES: Final = 512 * 1024 * 1024
HEADER_BYTES: Final = 8


def run(questions: BinaryIO, answers: BinaryIO, cpu_s: int, memory_bytes: int) -> None:
    """Answer until there are no more questions."""
    answerer = Answerer()
    base = _size_bytes()
    while len(header := questions.read(HEADER_BYTES)) == HEADER_BYTES:
        question = decode_question(questions.read(int.from_bytes(header)))
        if _size_bytes() > base + memory_bytes // 4:
            answerer.forget()
        _limit(cpu_s, memory_bytes)
        try:
            answer: Any = answerer.answer(question)
        except MemoryError:
            answerer.forget()
            answer = Failure(f"it takes more than {memory_bytes // 1024 // 1024} MB of memory")
        data = encode_answer(answer)
        answers.write(len(data).to_bytes(HEADER_BYTES) + data)
        answers.flush()


def _limit(cpu_s: int, memory_bytes: int) -> None:
    """Allow some time and memory beside what was used until now."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = math.ceil(used.ru_utime + used.ru_stime) + cpu_s
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_AS, (_size_bytes() + memory_bytes, resource.RLIM_INFINITY))


def _size_bytes() -> int:
    """Return the size of the address space. 0: the kernel does not tell, and the bound is on all of it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return 0
    return pages * resource.getpagesize()


def main() -> None:
    """Run as a process."""
    # The process that asks decides when this one ends, also after Ctrl-C in a terminal.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    run(sys.stdin.buffer, sys.stdout.buffer, *map(int, sys.argv[1:]))


if __name__ == "__main__":
    main()
