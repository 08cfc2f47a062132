"""Whatever crashes, what was acknowledged is there, and nothing is that never was."""

import os
import subprocess
import sys

import pytest
from tests.simulation.storage.campaign import find_failure
from tests.simulation.storage.crashes import OPERATIONS, run_seed

SEEDS = 300
SEEDS_PER_TEST = 50


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_logs_survive_crashes(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        failure = find_failure(seed)
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
