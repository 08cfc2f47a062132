"""Whole clusters in a simulated world: nothing acknowledged is lost, and a seed is one run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.simulation.cluster.breaking import start
from tests.simulation.cluster.campaign import CAMPAIGN
from tests.simulation.cluster.faults import FAULTS
from tests.simulation.cluster.plan import plan_of
from tests.simulation.cluster.run import run_seed

from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.simulation import Simulation
from ottla.world.disk import Reason

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/internals/simulation.md").read_text()
SEEDS = (1, 2, 5, 7, 11, 13)
FOUND = (30, 10012, 10142)
"""Seeds that found something."""


@pytest.mark.parametrize("seed", SEEDS + FOUND)
def test_a_cluster_keeps_what_it_has_acknowledged_and_recovers(seed: int) -> None:
    failure = CAMPAIGN.find_failure(seed)
    assert failure is None, f"{failure}\n{failure.details}"


def test_a_machine_whose_sync_has_failed_is_restarted() -> None:
    simulation = Simulation(1)
    cluster = SimulatedCluster(simulation, SimulatedNetwork(simulation), 1, 1)
    cluster.start()
    (one,) = cluster.nodes
    one.disk.fail("sync", Reason.IO_ERROR)
    simulation.run_until(lambda: not one.is_on)
    boots = one.disk.boots
    assert (one.disk.has_forgotten, one.is_on) == (True, False)

    start(one)

    assert (one.disk.has_forgotten, one.disk.boots) == (False, boots + 1)
    simulation.run_until(lambda: one.node is not None)


def test_a_seed_is_one_run_whatever_the_hash_seed() -> None:
    program = "from tests.simulation.cluster.run import run_seed\nprint(run_seed(0).trace)"
    traces = {run_seed(0).trace}
    for hash_seed in ("0", "4242"):
        printed = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        )
        traces.add(printed.stdout.strip())
    assert len(traces) == 1


def test_seeds_stand_for_all_sizes_and_all_faults() -> None:
    plans = [plan_of(seed) for seed in range(300)]
    assert {plan.nodes for plan in plans} == {1, 3, 4, 5}
    assert {fault.kind for plan in plans for fault in plan.faults} == set(FAULTS)


def test_the_page_names_every_fault_and_every_file() -> None:
    table = re.findall(r"^\| (`.*?`) \|", PAGE, re.MULTILINE)
    named = {name for cell in table for name in re.findall(r"`([\w.-]+)`", cell)}
    assert set(FAULTS) <= named
    assert {path.name for path in Path(__file__).parent.glob("*.py")} <= named
