"""Long campaigns against a node that is killed and paused, in slices; each has a seed and a node of its own.

    python -m tests.cluster.guarantees --operations 100000

What a slice has found is kept in `target/guarantees`, so a campaign that was stopped goes on where it was. If
something is wrong in a slice, its history and the node's files are kept too.
"""

import argparse
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.cluster.node_faults import NodeFaults
from tests.cluster.offset_accounting import check_offsets
from tests.support.ottla_node import OttlaNode

from ottla.testing.guarantees.campaign import ProcessClass, Result, run_campaign
from ottla.testing.guarantees.confluent import ConfluentProcess
from ottla.testing.guarantees.ours import OttlaProcess

TARGET = Path("target/guarantees")
QUICK_ABORTS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000"}
FAULT_INTERVAL_S = 4
CLIENTS: Mapping[str, ProcessClass] = {"confluent": ConfluentProcess, "ottla": OttlaProcess}


def run_slice(
    root: Path, seed: int, operations: int, clients: int, process_class: ProcessClass
) -> tuple[Result, NodeFaults]:
    """Run a campaign against a node of its own."""
    with OttlaNode(root / "node", QUICK_ABORTS) as node:
        faults = NodeFaults(node, seed, FAULT_INTERVAL_S)
        history = root / "history.jsonl"
        result = run_campaign(node.bootstrap, seed, operations, history, faults, clients, process_class)
    return result, faults


def slices(operations: int, slice_size: int, first_seed: int) -> Iterator[tuple[int, int]]:
    """Yield seeds, and how many operations each has."""
    for place, begin in enumerate(range(0, operations, slice_size)):
        yield first_seed + place, min(slice_size, operations - begin)


def run_or_recall(name: str, seed: int, operations: int, clients: int) -> dict[str, Any]:
    """Return what a slice has found, now or earlier."""
    known = TARGET / f"{name}-{seed}-{operations}-{clients}.json"
    if known.exists():
        recalled: dict[str, Any] = json.loads(known.read_text())
        return recalled
    root = TARGET / f"{name}-{seed}"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    result, faults = run_slice(root, seed, operations, clients, CLIENTS[name])
    found: dict[str, Any] = {
        "seed": seed,
        "anomalies": [list(one) for one in result.anomalies],
        "legal": result.legal,
        "counts": result.counts,
        "errors": result.errors,
        "faults": {"kills": faults.kills, "pauses": faults.pauses},
        "records": check_offsets(root / "node" / "data", root / "history.jsonl") if _has_java() else None,
        "worst_lag_ms": result.worst_lag_ms,
        "seconds": round(result.seconds),
    }
    known.write_text(json.dumps(found))
    if not result.anomalies:
        shutil.rmtree(root)
    return found


def _has_java() -> bool:
    return all(shutil.which(program) for program in ("java", "javac", "mvn"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--slice", type=int, default=10_000)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--clients", type=int, default=15, help="how many work at a time")
    parser.add_argument("--client", choices=CLIENTS, default="confluent", help="what they are made of")
    options = parser.parse_args()
    totals: dict[str, Counter[str]] = {name: Counter() for name in ("counts", "errors", "faults", "legal")}
    is_wrong = False
    for seed, operations in slices(options.operations, options.slice, options.first_seed):
        found = run_or_recall(options.client, seed, operations, options.clients)
        print(json.dumps({**found, "anomalies": found["anomalies"][:5]}), flush=True)
        is_wrong |= bool(found["anomalies"])
        for name, total in totals.items():
            total.update(found[name])
    print(json.dumps({"total": totals, "is_wrong": is_wrong}, sort_keys=True))
    sys.exit(is_wrong)


if __name__ == "__main__":
    main()
