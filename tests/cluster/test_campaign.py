"""Three nodes in networks of their own, broken while clients work: a very short campaign."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cluster.namespaces import why_not

ROOT = Path(__file__).parents[2]


def test_guarantees_hold_while_nodes_are_killed_and_networks_are_cut(tmp_path: Path) -> None:
    if (reason := why_not()) is not None:
        pytest.skip(f"no network namespaces here: {reason}")
    command = [sys.executable, "-m", "tests.cluster.campaign", "--operations", "150", "--clients", "5"]
    done = subprocess.run(
        [*command, "--root", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    found = json.loads(done.stdout)
    assert found["anomalies"] == []
    assert found["faults"], "something was broken"
    # How many of them are transactions is chance: while a node is away, those that only copy may be quicker.
    counts = found["counts"]
    assert counts.get("txn ok", 0) + counts.get("copy ok", 0) > 30, f"the clients got on: {counts}"
    assert found["counts"]["final ok"] == 2, "everything could be read in the end"
