"""What a newcomer meets first: how large the package is, how quickly a command answers and a test has a node.

    python -m benchmarks.front_door

Start to first acknowledged record and memory at idle are rows of `benchmarks.node`, against Apache Kafka. The
size is compared with the jars that a Kafka server needs, if Maven can fetch them.
"""

import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ottla.cli.main import COMMANDS
from ottla.testing.node import ThreadNode

ROUNDS = 10
START_MS_MAX = 150
ROOT = Path(__file__).parents[1]


def wheel_bytes() -> int:
    """Build the wheel, and return its size."""
    with tempfile.TemporaryDirectory() as directory:
        options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--wheel-dir", directory)
        subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(ROOT)], check=True)
        (wheel,) = Path(directory).glob("ottla-*.whl")
        return wheel.stat().st_size


def jars_bytes() -> int | None:
    """Return the size of a Kafka server's jars, or None where they are not to be had."""
    if not all(map(shutil.which, ("java", "javac", "mvn"))):
        return None
    from tests.java.jars import java_classpath

    libs = Path(java_classpath().removesuffix("/*"))
    return sum(path.stat().st_size for path in libs.glob("*.jar"))


def command_ms(*words: str) -> tuple[float, float]:
    """Return how long a command takes, and how much CPU, as the medians of some rounds.

    It waits for nothing, so on a machine with nothing else to do both are the same.
    """
    command = [str(Path(sys.executable).with_name("ottla")), *words]
    took, used = [], []
    for _ in range(ROUNDS):
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        took.append((time.perf_counter() - started) * 1000)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append((after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1000)
    return statistics.median(took), statistics.median(used)


def node_ms() -> float:
    """Return how long a test waits for a node in its own process."""
    took = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as directory:
            started = time.perf_counter()
            with ThreadNode(Path(directory)):
                took.append((time.perf_counter() - started) * 1000)
    return statistics.median(took)


def main() -> int:
    """Print the rows. Returns an exit code: 1 when a command starts too slowly."""
    wheel, jars = wheel_bytes(), jars_bytes()
    print(f"wheel: {wheel / 1e6:.2f} MB", end="")
    print(
        ""
        if jars is None
        else f"; Apache Kafka's jars: {jars / 1e6:.1f} MB, {jars / wheel:.0f} times as much"
    )
    print(f"a node in a test's own process: {node_ms():.0f} ms")
    slowest = 0.0
    for words in ((), *((name,) for name in COMMANDS)):
        took, used = command_ms(*words, "--help")
        slowest = max(slowest, used)
        print(f"ottla {' '.join(words)} --help".replace("  ", " ") + f": {took:.0f} ms, {used:.0f} ms of CPU")
    print(f"slowest start of a command: {slowest:.0f} ms of CPU, at most {START_MS_MAX}")
    return 0 if slowest <= START_MS_MAX else 1


if __name__ == "__main__":
    sys.exit(main())
