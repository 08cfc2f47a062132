"""What clients do under faults: `make crash WHAT=client-faults`, or WITH="--case 'two polls at once'"."""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tests.clients.under_faults.cases import CASES, Site
from tests.clients.under_faults.clients import Client, Java, Librdkafka, Ours
from tests.clients.under_faults.gate import Gate

from ottla.testing.node import ThreadNode

_CLIENTS: Final[dict[str, type[Any]]] = {"ottla": Ours, "java": Java, "librdkafka": Librdkafka}


def main() -> int:
    """Play each case with each client, and print what was seen."""
    parser = argparse.ArgumentParser(prog="python -m tests.clients.under_faults", description=__doc__)
    parser.add_argument("--case", action="append", choices=CASES, help="play only this one")
    parser.add_argument("--client", action="append", choices=_CLIENTS, help="with this one only")
    options = parser.parse_args()
    for name in options.case or CASES:
        print(name, flush=True)
        for kind in options.client or _CLIENTS:
            print(f"  {kind:12} {play(name, _CLIENTS[kind]())}", flush=True)
    return 0


def play(name: str, client: Client) -> str:
    """Play a case before a node of its own."""
    with TemporaryDirectory() as directory, Gate() as gate:
        root = Path(directory)
        node = ThreadNode(root)
        settings = {
            "advertised.listeners": f"PLAINTEXT://{gate.address}",
            "group.initial.rebalance.delay.ms": "0",
        }
        with ThreadNode(root, settings, port=node.port) as running:
            gate.leads_to(running.bootstrap)
            try:
                return CASES[name](Site(running, gate), client)
            finally:
                client.end()


if __name__ == "__main__":
    sys.exit(main())
