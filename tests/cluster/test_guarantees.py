"""Nothing lost, nothing twice, nothing torn, whatever happens to the node: a short campaign."""

import os
import random
from pathlib import Path

from tests.cluster.node_faults import NodeFaults
from tests.ottla_node import OttlaNode

from ottla.testing.guarantees.campaign import run_campaign

OPERATIONS = int(os.environ.get("OPERATIONS", "1200"))
CLIENTS = int(os.environ.get("CLIENTS", "5"))


def test_transactions_keep_their_guarantees_through_kills_and_pauses(tmp_path: Path) -> None:
    seed = int(os.environ.get("SEED", str(random.randrange(1_000_000))))
    with OttlaNode(tmp_path / "node") as node:
        faults = NodeFaults(node, seed, interval_s=4)
        result = run_campaign(node.bootstrap, seed, OPERATIONS, tmp_path / "history.jsonl", faults, CLIENTS)
    print(
        f"seed {seed}: {result.counts}, {faults.kills} kills, {faults.pauses} pauses, {result.seconds:.0f} s"
    )
    assert result.anomalies == [], f"SEED={seed} OPERATIONS={OPERATIONS} make guarantees"
    assert faults.kills + faults.pauses > 0, "something was broken"
    assert result.counts["ok"] > OPERATIONS / 2, "the clients got on"
