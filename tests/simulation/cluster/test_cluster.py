"""Whole clusters in a simulated world: nothing acknowledged is lost, and a seed is one run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.simulation.cluster.campaign import CAMPAIGN
from tests.simulation.cluster.faults.breaking import start
from tests.simulation.cluster.faults.kinds import FAULTS
from tests.simulation.cluster.plan import plan_of, quick_settings
from tests.simulation.cluster.planted.found_wide import FOUND_SOMETHING
from tests.simulation.cluster.run import run_seed

from ottla import Admin, Consumer, Producer
from ottla.model.ids import TopicPartition
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.node import SimulatedNode
from ottla.testing.simulation.simulation import Simulation
from ottla.world.disk import Reason

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/internals/simulation.md").read_text()
SEEDS = (1, 11, 13)
RECORDS = 10


@pytest.mark.parametrize("seed", SEEDS + FOUND_SOMETHING)
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


def test_after_a_power_cut_in_sync_replicas_are_enough_without_the_last_leader() -> None:
    simulation = Simulation(1)
    network = SimulatedNetwork(simulation)
    cluster = SimulatedCluster(simulation, network, settings=quick_settings())
    loop = simulated_loop(simulation, network)
    cluster.start()
    loop.run(_write(cluster.bootstrap))
    simulation.run_for(1000)
    leader, *others = sorted(cluster, key=lambda one: not _leads(one))
    assert _leads(leader)
    for one in cluster:
        one.cut_power()
    for one in others:
        one.switch_on()
    simulation.run_until(lambda: any(map(_leads, others)))
    assert loop.run(_read(cluster.bootstrap)) == RECORDS


def test_a_quorum_keeps_its_leader_also_if_its_fetch_timeout_is_short() -> None:
    simulation = Simulation(1)
    settings = quick_settings() | {"controller.quorum.fetch.timeout.ms": "400"}
    cluster = SimulatedCluster(simulation, SimulatedNetwork(simulation), settings=settings)
    cluster.start()
    simulation.run_for(2_000)
    epochs = _epochs(cluster)
    simulation.run_for(5_000)
    assert _epochs(cluster) == epochs


def test_a_broker_whose_connections_lead_nowhere_is_not_fenced() -> None:
    simulation = Simulation(1)
    network = SimulatedNetwork(simulation)
    cluster = SimulatedCluster(simulation, network, settings=quick_settings())
    cluster.start()
    simulation.run_for(1_000)
    active = next(one for one in cluster if one.node is not None and one.node.parts.quorum.is_active)
    other = next(one for one in cluster if one is not active)
    network.lose_track(other.machine.host)
    for _ in range(30):
        simulation.run_for(100)
        assert active.node is not None
        assert not active.node.broker.image.brokers[other.node_id].fenced


def _epochs(cluster: SimulatedCluster) -> set[int]:
    return {one.node.parts.quorum.driver.replica.epoch for one in cluster if one.node is not None}


def _leads(one: SimulatedNode) -> bool:
    part = None if one.node is None else one.node.broker.partitions.find("orders", 0)
    return part is not None and part.is_leader


async def _write(bootstrap: str) -> None:
    async with Admin(bootstrap) as admin, Producer(bootstrap) as producer:
        await admin.topics.create("orders", partitions=1)
        for _ in range(RECORDS):
            await (await producer.send("orders", b"one"))


async def _read(bootstrap: str) -> int:
    async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        count = 0
        while count < RECORDS:
            count += len(await consumer.poll(timeout_ms=1000))
        return count


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


def test_no_seed_has_a_client_that_would_wait_for_a_feature_that_is_off() -> None:
    for seed in range(100_400, 100_900):
        plan = plan_of(seed)
        assert not ("group.version=0" in plan.features and "consumer" in plan.clients), seed


def test_the_page_names_every_fault_and_every_file() -> None:
    table = re.findall(r"^\| (`.*?`) \|", PAGE, re.MULTILINE)
    named = {name for cell in table for name in re.findall(r"`([\w./-]+)`", cell)}
    assert set(FAULTS) <= named
    folder = Path(__file__).parent
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*.py")} <= named
