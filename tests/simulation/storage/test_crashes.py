"""Whatever crashes, what was acknowledged is there, and nothing is that never was."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.simulation.storage.campaign import CAMPAIGN
from tests.simulation.storage.crashes import OPERATIONS, run_seed

SEEDS = 300
SEEDS_PER_TEST = 50


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_logs_survive_crashes(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        failure = CAMPAIGN.find_failure(seed)
        assert failure is None, f"{failure}\n{failure.details}"


@pytest.mark.parametrize("hash_seed", ["0", "1", "42"])
def test_a_seed_is_one_life_whatever_the_hash_seed(hash_seed: str) -> None:
    seeds = range(0, 300, 20)
    traces = [f"{seed} {run_seed(seed).disk.trace}" for seed in seeds]
    program = "from tests.simulation.storage.crashes import run_seed\n" + "".join(
        [f"print({seed}, run_seed({seed}).disk.trace)\n" for seed in seeds]
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    printed = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True
    )
    assert printed.stdout.splitlines() == traces


def test_every_operation_happens() -> None:
    assert len({operation.do for operation in OPERATIONS}) == len(OPERATIONS)
    assert all(operation.weight > 0 for operation in OPERATIONS)


def test_the_page_about_it_names_every_file() -> None:
    here = Path(__file__).parent
    page = (here.parents[2] / "docs/internals/storage-crashes.md").read_text()
    table = page.split("## File map")[1].split("Beside it")[0]
    named = re.findall(r"^\| `([a-z_]+\.py)`", table, re.MULTILINE)
    files = [path.name for path in here.glob("*.py") if not path.name.startswith("test_")]
    assert sorted(named) == sorted(files)
