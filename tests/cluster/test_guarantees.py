"""Nothing lost, nothing twice, nothing torn, whatever happens to the node: a short campaign."""

import os
import random
from pathlib import Path
from time import monotonic, sleep

from tests.cluster.node_faults import NodeFaults
from tests.data_plane import fetch
from tests.ottla_node import OttlaNode
from tests.plain_client import PlainClient

from ottla.records.batch import iter_batches
from ottla.testing.guarantees.campaign import run_campaign

OPERATIONS = int(os.environ.get("OPERATIONS", "800"))
CLIENTS = int(os.environ.get("CLIENTS", "5"))
QUICK_ABORTS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000"}
STABLE_S_MAX = 60


def test_transactions_keep_their_guarantees_through_kills_and_pauses(tmp_path: Path) -> None:
    seed = int(os.environ.get("SEED", str(random.randrange(1_000_000))))
    with OttlaNode(tmp_path / "node", QUICK_ABORTS) as node:
        faults = NodeFaults(node, seed, interval_s=4)
        result = run_campaign(node.bootstrap, seed, OPERATIONS, tmp_path / "history.jsonl", faults, CLIENTS)
    print(
        f"seed {seed}: {result.counts}, {faults.kills} kills, {faults.pauses} pauses, {result.seconds:.0f} s"
    )
    assert [one for one in result.anomalies if not one.is_legal] == [], (
        f"SEED={seed} OPERATIONS={OPERATIONS} make guarantees"
    )
    assert faults.kills + faults.pauses > 0, "something was broken"
    assert result.counts["ok"] > OPERATIONS / 2, "the clients got on"


def check_log(client: PlainClient, topic: str, partition: int) -> None:
    """Check that no offset is missing from a log, and that no transaction hangs in it."""
    wait_until_stable(client, topic, partition)
    offset = 0
    while True:
        data = fetch(client, topic, offset, partition)
        if offset >= data.high_watermark:
            return
        for batch in iter_batches(memoryview(data.records or b"")):
            assert batch.base_offset <= offset, f"{topic}-{partition} has nothing at {offset}"
            offset = max(offset, batch.last_offset + 1)


def wait_until_stable(client: PlainClient, topic: str, partition: int) -> None:
    deadline = monotonic() + STABLE_S_MAX
    while monotonic() < deadline:
        data = fetch(client, topic, 0, partition, isolation_level=1)
        if data.last_stable_offset == data.high_watermark:
            return
        sleep(0.2)
    raise AssertionError(f"a transaction hangs in {topic}-{partition}")
