"""Campaigns with real processes: three nodes, each in a network of its own, are broken while clients work.

    python -m tests.cluster.campaign --operations 20000 --seed 0 --nodes ottla

The history of the clients is checked as in `tests.cluster.guarantees`. With `--nodes kafka` the same
operations and the same faults are run on three brokers of Apache Kafka, for comparison; with `--nodes mixed`
on two nodes of Ottla and one of Apache Kafka. It takes root, since each node has a network namespace and a
disk of its own.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from tests.cluster.cluster_faults import ClusterFaults, all_replicas_in_sync
from tests.cluster.guarantees import CLIENTS, slices
from tests.cluster.java_processes import java_processes
from tests.cluster.namespaces import Namespaces, address_of, why_not
from tests.support.mixed_cluster import MixedCluster

from ottla.testing.guarantees.campaign import run_campaign
from ottla.testing.guarantees.generator import all_keys, partition_of

TARGET: Final = Path("target/campaign")
JAVA: Final = "java"
KINDS: Final[Mapping[str, str]] = {"ottla": "ooo", "kafka": "aaa", "mixed": "ooa"}
FAULT_INTERVAL_S: Final = 4.0
DISK_MIB: Final = 400
QUICK: Final = {
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "4000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "controlled.shutdown.enable": "true",
    # Producers that crashed on purpose live on in the process of the clients. Those of the last slice would
    # create topics of the next one, with too few partitions.
    "auto.create.topics.enable": "false",
    # So that a few hundred MiB are enough.
    "log.segment.bytes": "16777216",
}
"""Failures are noticed sooner than by default, in both systems."""
STALE: Final = frozenset(
    (
        "nonmonotonic-high-watermark",
        "nonmonotonic-last-stable-offset",
        "high-watermark-behind",
        "last-stable-offset-behind",
    )
)
"""What a leader may tell that does not know yet that another one was elected. Neither system has leases."""


@contextmanager
def small_disk(path: Path) -> Iterator[None]:
    """Have a disk of its own at a path, small enough to be filled."""
    path.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "none", str(path)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def run_slice(network: Namespaces, root: Path, options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Run a slice. This process is where the clients are."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    kinds = KINDS[options.nodes]
    numbers = range(1, len(kinds) + 1)
    with ExitStack() as stack:
        for number in numbers:
            stack.enter_context(small_disk(root / f"node-{number}"))
        cluster = MixedCluster(
            root,
            kinds,
            tuple(numbers),
            QUICK,
            hosts=[address_of(number) for number in numbers],
            prefixes=[network.command_in(number) for number in numbers],
        )
        stack.enter_context(cluster)
        faults = ClusterFaults(cluster, network, seed, FAULT_INTERVAL_S, fills_disks=options.full_disks)
        history = root / "history.jsonl"
        if options.client == JAVA:
            process_class = stack.enter_context(java_processes(cluster.bootstrap))
        else:
            process_class = CLIENTS[options.client]
        result = run_campaign(
            cluster.bootstrap, seed, options.slice, history, faults, options.clients, process_class
        )
        topics = sorted({partition_of(key)[0] for key in all_keys(options.slice)})
        all_replicas_in_sync(cluster, topics)
    stale = [one for one in result.anomalies if one.name in STALE]
    wrong = [one for one in result.anomalies if one.name not in STALE]
    return {
        "seed": seed,
        "nodes": options.nodes,
        "client": options.client,
        "anomalies": [list(one) for one in wrong],
        "stale": len(stale),
        "legal": result.legal,
        "counts": result.counts,
        "errors": result.errors,
        "faults": faults.counts,
        "worst_lag_ms": result.worst_lag_ms,
        "seconds": round(result.seconds),
    }


def run_where_clients_are(network: Namespaces, arguments: list[str]) -> int:
    """Run this module again, in the namespace of the clients."""
    command = [sys.executable, "-m", "tests.cluster.campaign", *arguments]
    with subprocess.Popen(["ip", "netns", "exec", network.hub, *command]) as process:
        try:
            return process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise


def main() -> int:
    """Run a campaign in slices, each with a seed and a cluster of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=20_000)
    parser.add_argument("--slice", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nodes", choices=KINDS, default="ottla")
    parser.add_argument("--client", choices=(*CLIENTS, JAVA), default="confluent")
    parser.add_argument("--clients", type=int, default=16, help="how many work at a time")
    parser.add_argument("--full-disks", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--root", type=Path, default=TARGET)
    parser.add_argument("--network", help=argparse.SUPPRESS)
    options = parser.parse_args()
    # If it is ended early, it must not leave nodes, disks and networks behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.network is None:
        if (reason := why_not()) is not None:
            print(f"a campaign needs network namespaces: {reason}", file=sys.stderr)
            return 2
        with Namespaces(3) as network:
            return run_where_clients_are(network, [*sys.argv[1:], "--network", network.prefix])
    try:
        code = run_slices(Namespaces(3, options.network), options)
    except SystemExit:
        # The threads of the clients would go on.
        os._exit(143)
    return code


def run_slices(network: Namespaces, options: argparse.Namespace) -> int:
    """Run all slices, and print what came of each. Returns the exit code."""
    options.slice = min(options.slice, options.operations)
    is_wrong = False
    for seed, _ in slices(options.operations, options.slice, options.seed):
        found = run_slice(network, options.root / f"{options.nodes}-{seed}", options, seed)
        print(json.dumps({**found, "anomalies": found["anomalies"][:5]}), flush=True)
        is_wrong |= bool(found["anomalies"])
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
