"""How long tests take that each get a fresh node: 200 of them, by pytest, as a user would run them.

python -m benchmarks.fresh_nodes
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = 200
SECONDS_MAX = 60

_FILE = """
import pytest

@pytest.mark.parametrize("number", range({tests}))
def test_a_fresh_node(kafka, number):
    kafka.create_topic("orders")
    assert kafka.produce("orders", "coffee") == 0
    assert kafka.values("orders") == [b"coffee"]
"""


def main() -> int:
    """Run them, and say how long it took. Returns an exit code: 1 when it took too long."""
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "test_fresh_nodes.py").write_text(_FILE.format(tests=TESTS))
        started = time.perf_counter()
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
        took_s = time.perf_counter() - started
    if not re.search(rf"{TESTS} passed", done.stdout):
        print(done.stdout[-3000:])
        return 1
    print(f"{TESTS} tests with a fresh node each: {took_s:.1f} s, {1000 * took_s / TESTS:.0f} ms each")
    return 0 if took_s < SECONDS_MAX else 1


if __name__ == "__main__":
    sys.exit(main())
