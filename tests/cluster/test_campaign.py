"""Three nodes in networks and on disks of their own, broken while clients work: very short campaigns."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.disks import why_no_power_cuts
from tests.cluster.namespaces import why_not

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "tests.cluster.campaign", "--clients", "8"]


@pytest.fixture(autouse=True)
def _namespaces() -> None:
    if (reason := why_not()) is not None:
        pytest.skip(f"no network namespaces here: {reason}")


def run(root: Path, *options: str) -> dict[str, Any]:
    """Run a campaign of one slice, and return what came of it."""
    command = [*COMMAND, "--root", str(root), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    found, total = map(json.loads, done.stdout.splitlines())
    assert total["anomalies"] == {}
    assert total["operations"] == found["operations"]
    assert json.loads((root / "summary.jsonl").read_text())["seed"] == found["seed"]
    assert found["faults"], "something was broken"
    assert found["counts"]["final ok"] == 2, "everything could be read in the end"
    return dict(found)


def test_guarantees_hold_while_nodes_are_killed_and_networks_are_cut(tmp_path: Path) -> None:
    found = run(tmp_path, "--operations", "400", "--faults", "kill,pause,cut-off,cut-link")
    # How many of them are transactions is chance: while a node is away, those that only copy may be quicker.
    counts = found["counts"]
    assert counts.get("txn ok", 0) + counts.get("copy ok", 0) > 60, f"the clients got on: {counts}"
    assert counts.get("send ok", 0) > 40, f"the clients got on: {counts}"


@pytest.mark.thorough(guard="tests/simulation/cluster/test_cluster.py")
def test_nothing_is_lost_when_all_nodes_lose_power_at_once(tmp_path: Path) -> None:
    if (reason := why_no_power_cuts()) is not None:
        pytest.skip(f"no power cuts here: {reason}")
    found = run(tmp_path, "--operations", "500", "--faults", "cut-power-of-all", "--interval", "3")
    assert found["faults"]["cut-power-of-all"] > 0
    assert found["outcomes"]["ok"] > 0.5


@pytest.mark.thorough(guard="tests/simulation/cluster/test_cluster.py")
def test_guarantees_hold_while_logs_move_and_configs_change(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        "--wide",
        "--operations",
        "800",
        "--interval",
        "1",
        "--faults",
        "kill,move-logs,change-configs",
    )
    assert found["outcomes"]["ok"] > 0.5


def test_campaign_that_is_interrupted_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [*COMMAND, "--root", str(tmp_path), "--operations", "100000"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        history = tmp_path / "ottla-0" / "history.jsonl"
        deadline = time.monotonic() + 120
        while not (history.exists() and history.stat().st_size):
            assert process.poll() is None, "it ended by itself"
            assert time.monotonic() < deadline, "the clients have not begun"
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
    namespaces = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
    assert f"ottla-{process.pid}-" not in namespaces
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
    assert not [line for line in _command_lines() if str(tmp_path) in line], "nodes are still there"


def _command_lines() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_text())
        except OSError:
            continue
    return found
