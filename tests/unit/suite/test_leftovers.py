"""A process that outlives its test is found, whoever is its parent by now, and ended."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.suite import leftovers
from tests.suite.costs import spent_cpu
from tests.suite.leftovers import TOKEN, end_leftovers, find_leftovers
from tests.suite.selection import ROOT

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


def test_a_run_that_leaves_a_process_behind_fails_and_names_it(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import pytest\n"
        "from tests.suite import leftovers, plugin\n"
        "leftovers._PATIENCE_S = 0.0\n"
        "def pytest_configure(config):\n"
        "    plugin.start(config)\n"
    )
    (tmp_path / "tests" / "some").mkdir(parents=True)
    (tmp_path / "tests" / "some" / "test_one.py").write_text(
        "import subprocess, sys\n"
        "orphan = [sys.executable, '-c', 'import signal; signal.pause()']\n"
        "parent = f'import subprocess; subprocess.Popen({orphan})'\n"
        "def test_one():\n"
        "    subprocess.run([sys.executable, '-c', parent], check=True)\n"
    )
    # The run is not part of this one.
    ours = ("PYTEST_", "COSTS")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    options = ("-q", "-n", "0", "-p", "no:randomly", "--rootdir", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path)],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in done.stdout
    assert "these processes outlived their tests, and were ended:" in done.stdout
    assert re.search(r"^  \d+ \S*python\S* -c import signal; signal\.pause\(\)$", done.stdout, re.MULTILINE)
    assert done.returncode == 1


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
