"""Campaigns with real processes: three nodes, each in a network of its own, are broken while clients work.

    python -m tests.cluster.campaign --operations 20000 --seed 0 --nodes ottla

The history of the clients is checked as in `tests.cluster.guarantees`. With `--nodes kafka` the same
operations and the same faults are run on three brokers of Apache Kafka, for comparison; with `--nodes mixed`
on two nodes of Ottla and one of Apache Kafka. It takes root, since each node has a network namespace and a
disk of its own.

The campaign proper runs in a process namespace, in which it is the first process: if it ends, however, its
nodes and its mounts are gone.
"""

import argparse
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from itertools import count
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, Final

from tests.cluster.campaign_summary import Summary
from tests.cluster.cluster_faults import (
    CHANGES,
    POWER_CUTS,
    ClusterFaults,
    all_replicas_in_sync,
    change_of,
)
from tests.cluster.cluster_faults import KINDS as FAULTS
from tests.cluster.disks import MOUNT_OPTIONS, NodeDisk, SmallDisk, image_directory, why_no_power_cuts
from tests.cluster.guarantees import CLIENTS
from tests.cluster.java_processes import java_processes
from tests.cluster.namespaces import Namespaces, address_of, why_not
from tests.support.mixed_cluster import APACHE, MixedCluster
from tests.support.plain_client import PlainClient

from ottla.testing.guarantees.campaign import Result, run_campaign
from ottla.testing.guarantees.generator import ASSIGNMENTS, all_keys, partition_of
from ottla.wire.config_kinds import ResourceType
from ottla.wire.error_code import ErrorCode

TARGET: Final = Path("target/campaign")
JAVA: Final = "java"
KINDS: Final[Mapping[str, str]] = {"ottla": "ooo", "kafka": "aaa", "mixed": "ooa"}
PLAIN: Final = 0.5
"""The share of the operations that are without transactions."""
PATIENCE_S: Final = (2.0, 10.0)
INTERRUPTED: Final = 143
SHARE_OF_OPERATIONS: Final = 1 - 1.1 * ASSIGNMENTS
"""What a generator gives is a bit more than operations: some of it only says what a client reads."""
QUICK: Final = {
    "broker.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "1500",
    "replica.lag.time.max.ms": "2500",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "controlled.shutdown.enable": "true",
    # Producers that crashed on purpose live on in the process of the clients. Those of the last slice would
    # create topics of the next one, with too few partitions.
    "auto.create.topics.enable": "false",
    # So that a few hundred MiB are enough.
    "log.segment.bytes": "16777216",
}
"""Failures are noticed sooner than by default, in both systems."""
FORGETFUL: Final = {
    "log.retention.ms": "3000",
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
}
"""What the files of nodes say in a wide campaign: a node that obeyed its file would delete what it has."""
KEPT: Final = "-1"
"""How long the metadata has all brokers keep records instead."""
STALE: Final = frozenset(
    (
        "nonmonotonic-high-watermark",
        "nonmonotonic-last-stable-offset",
        "high-watermark-behind",
        "last-stable-offset-behind",
    )
)
"""What a leader may tell that does not know yet that another one was elected. Neither system has leases."""


def run_slice(network: Namespaces, root: Path, options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Run a slice. This process is where the clients are."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    kinds = KINDS[options.nodes]
    numbers = range(1, len(kinds) + 1)
    began = time.monotonic()
    cpu_s = _cpu_seconds()
    result = Result([], Counter(), Counter(), Counter(), 0, 0.0)
    failure: list[Any] = []
    with ExitStack() as stack:
        disks = _add_disks(stack, root, options, seed, numbers)
        cluster = MixedCluster(
            root,
            kinds,
            tuple(numbers),
            {**QUICK, **FORGETFUL} if options.wide else QUICK,
            hosts=[address_of(number) for number in numbers],
            prefixes=[network.command_in(number) for number in numbers],
            directories=2 if options.wide else 1,
        )
        faults_log = stack.enter_context((root / "faults.log").open("w", buffering=1))
        faults = ClusterFaults(
            cluster,
            network,
            seed,
            options.interval,
            options.faults,
            disks,
            lambda line: faults_log.write(f"{time.monotonic_ns()} {line}\n"),
        )
        try:
            with cluster:
                if options.wide:
                    _keep_records(cluster)
                _sync_apache_nodes(cluster, disks)
                result = _run_in(stack, cluster, faults, root / "history.jsonl", options, seed)
                topics = sorted({partition_of(key)[0] for key in all_keys(options.slice)})
                all_replicas_in_sync(cluster, topics)
        except AssertionError as error:
            # A node that does not start, or replicas that differ. The next slice may tell more.
            failure = [["cluster-failed", None, str(error)]]
    stale = Counter(one.name for one in result.anomalies if one.name in STALE)
    wrong = [list(one) for one in result.anomalies if one.name not in STALE]
    return {
        "seed": seed,
        "anomalies": failure + wrong,
        "stale": stale,
        "legal": result.legal,
        "counts": result.counts,
        "errors": result.errors,
        "faults": faults.counts,
        "lost_bytes": faults.lost_bytes,
        "worst_lag_ms": result.worst_lag_ms,
        "seconds": round(time.monotonic() - began, 1),
        "worked_s": round(result.worked_s, 1),
        "cpu_s": round(_cpu_seconds() - cpu_s, 1),
    }


def _add_disks(
    stack: ExitStack, root: Path, options: argparse.Namespace, seed: int, numbers: range
) -> dict[int, NodeDisk]:
    """Give each node a disk. Returns those whose power can be cut."""
    if options.images is None:
        for number in numbers:
            stack.enter_context(SmallDisk(root / f"node-{number}"))
        return {}
    rng = random.Random(seed)
    disks = {}
    for number in numbers:
        image = options.images / f"node-{number}.image"
        disks[number] = NodeDisk(root / f"node-{number}", image, rng.choice(MOUNT_OPTIONS))
        stack.enter_context(disks[number])
    return disks


def _keep_records(cluster: MixedCluster) -> None:
    """Have the metadata say how long records are kept, before there are any."""
    with PlainClient(cluster.address(1)) as client:
        answer = client.ask(change_of(ResourceType.BROKER, "", "log.retention.ms", KEPT), 1)
    assert answer.responses[0].error_code is ErrorCode.NONE, answer


def _sync_apache_nodes(cluster: MixedCluster, disks: Mapping[int, NodeDisk]) -> None:
    """Write back what formatting has left.

    Apache Kafka's tool does not sync `bootstrap.checkpoint`. A power cut in the first seconds would leave an
    empty file, and the broker would never start again. Usually a cluster is older than that.
    """
    for number, disk in disks.items():
        if cluster[number].kind == APACHE:
            disk.sync()


def _run_in(
    stack: ExitStack,
    cluster: MixedCluster,
    faults: ClusterFaults,
    history: Path,
    options: argparse.Namespace,
    seed: int,
) -> Result:
    if options.client == JAVA:
        process_class = stack.enter_context(java_processes(cluster.bootstrap))
    else:
        process_class = CLIENTS[options.client]
    plain_clients = options.clients // 8
    try:
        return run_campaign(
            cluster.bootstrap,
            seed,
            round(options.slice / SHARE_OF_OPERATIONS),
            history,
            faults,
            options.clients,
            process_class,
            plain_clients,
            PLAIN,
            PATIENCE_S,
        )
    except SystemExit:
        faults.abandon()
        raise


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of the nodes that have ended."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def run_where_clients_are(network: Namespaces, arguments: list[str]) -> int:
    """Run this module again, in the namespace of the clients."""
    own_processes = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    command = [sys.executable, "-m", "tests.cluster.campaign", *arguments]
    with subprocess.Popen(["ip", "netns", "exec", network.hub, *own_processes, *command]) as process:
        try:
            return process.wait()
        except BaseException:
            # With it, all processes of the campaign end.
            process.kill()
            process.wait()
            raise


def main() -> int:
    """Run a campaign in slices, each with a seed and a cluster of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=20_000)
    parser.add_argument("--times", type=int, help="go on until there were so many faults")
    parser.add_argument("--slice", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nodes", choices=KINDS, default="ottla")
    parser.add_argument("--client", choices=(*CLIENTS, JAVA), default="confluent")
    parser.add_argument("--clients", type=int, default=24, help="how many work at a time")
    parser.add_argument("--faults", type=_faults, help="kinds to draw from, with commas")
    parser.add_argument(
        "--wide", action="store_true", help="two log directories, and configs that the files do not have"
    )
    parser.add_argument("--interval", type=float, default=3.0, help="seconds that a fault takes, roughly")
    parser.add_argument("--root", type=Path, default=TARGET)
    parser.add_argument("--network", help=argparse.SUPPRESS)
    parser.add_argument("--images", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.faults is None:
        options.faults = (*FAULTS, *CHANGES) if options.wide else FAULTS
    if not options.wide and set(options.faults) & set(CHANGES):
        parser.error(f"{', '.join(CHANGES)} take --wide")
    # If it is ended early, it must not leave nodes, disks and networks behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(INTERRUPTED))
    if options.network is not None:
        return run_slices(Namespaces(3, options.network), options)
    if (reason := why_not()) is not None:
        print(f"a campaign needs network namespaces: {reason}", file=sys.stderr)
        return 2
    with ExitStack() as stack:
        arguments = sys.argv[1:]
        if (reason := why_no_power_cuts()) is None:
            images = tempfile.TemporaryDirectory(prefix="ottla-campaign-", dir=image_directory())
            arguments += ["--images", stack.enter_context(images)]
        elif set(options.faults) & set(POWER_CUTS):
            print(f"without power cuts: {reason}", file=sys.stderr)
        network = stack.enter_context(Namespaces(3))
        return run_where_clients_are(network, [*arguments, "--network", network.prefix])


def _faults(text: str) -> tuple[str, ...]:
    names = tuple(name for name in text.split(",") if name and name != "none")
    known = (*FAULTS, *CHANGES)
    if unknown := set(names) - set(known):
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: not among {', '.join(known)}")
    return names


def run_slices(network: Namespaces, options: argparse.Namespace) -> int:
    """Run all slices, and print what came of each. Returns the exit code."""
    options.slice = min(options.slice, options.operations)
    summary = Summary(options.root / "summary.jsonl", nodes=options.nodes, client=options.client)
    code = 0
    for seed in _seeds(options, summary):
        root = options.root / f"{options.nodes}-{seed}"
        try:
            found = in_a_process(partial(run_slice, network, root, options, seed))
        except EOFError:
            print(f"the slice with seed {seed} failed", file=sys.stderr)
            code = 2
            break
        print(summary.add(found), flush=True)
    print(summary.line(), flush=True)
    return code or int(summary.anomalies > 0)


def in_a_process(call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Carry out a call in a process of its own.

    Clients whose calls never return end with it. Otherwise they would find the cluster of the next slice at
    the same addresses, and go on there. Raises `EOFError` if the call fails.
    """
    receiver, sender = Pipe(duplex=False)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            sender.send(call())
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    sender.close()
    try:
        found: dict[str, Any] = receiver.recv()
    finally:
        os.waitpid(pid, 0)
    return found


def _seeds(options: argparse.Namespace, summary: Summary) -> Iterator[int]:
    """Yield a seed for each slice."""
    if options.times is None:
        yield from range(options.seed, options.seed + -(-options.operations // options.slice))
        return
    for seed in count(options.seed):
        if summary.faults >= options.times:
            return
        yield seed


if __name__ == "__main__":
    sys.exit(main())
