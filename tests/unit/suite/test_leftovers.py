"""A process that outlives its test is found, whoever is its parent by now, and ended."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.suite import leftovers
from tests.suite.costs import spent_cpu
from tests.suite.leftovers import TOKEN, end_leftovers, find_leftovers

_ORPHAN = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'input()'], stdin=0).pid)"


def test_an_orphan_is_found_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "an orphan")
    monkeypatch.setattr(leftovers, "_PATIENCE_S", 0.0)
    with subprocess.Popen(
        [sys.executable, "-c", _ORPHAN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        orphan = int(parent.stdout.readline())
        parent.wait()
        assert [found.pid for found in find_leftovers("an orphan")] == [orphan]
        assert [found.pid for found in end_leftovers("an orphan")] == [orphan]
    while Path(f"/proc/{orphan}").exists():
        if Path(f"/proc/{orphan}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break
    assert not find_leftovers("another run")


def test_the_cpu_of_children_that_still_run_counts() -> None:
    before = spent_cpu()
    work = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert spent_cpu() - before >= 0.25
        child.communicate(b"\n")
