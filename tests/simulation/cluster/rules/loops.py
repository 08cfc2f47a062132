"""Nothing goes round in circles: what a node is asked in a simulated second is bounded, kind by kind.

A run as a whole is bounded, too, but a loop of a few seconds is far below that.
"""

from collections import Counter
from typing import Final

from tests.simulation.cluster.rules.wrong import Wrong

from ottla.broker.serving.routes import Routes
from ottla.testing.simulation.node import SimulatedNode
from ottla.wire.apis import ApiKey

SECOND_US: Final = 1_000_000
REQUESTS_MAX: Final = 1_500
"""In a second, of one kind, at one listener. The most that sound runs had is below half of it."""


class LoopRules:
    """Counts what nodes are asked."""

    def __init__(self) -> None:
        # When a node was last looked at, and what it had been asked by then, by its listeners.
        self._known: dict[int, tuple[object, int, tuple[Counter[ApiKey], ...]]] = {}

    def look(self, one: SimulatedNode, now_us: int) -> None:
        """Look at a node, about once in a second."""
        node = one.node
        assert node is not None
        known = self._known.get(one.node_id)
        if known is not None and known[0] is node and now_us - known[1] < SECOND_US:
            return
        asked = tuple(_count(routes) for routes in (node.broker.routes, node.parts.controller.routes))
        self._known[one.node_id] = (node, now_us, asked)
        if known is None or known[0] is not node:
            return
        seconds = (now_us - known[1]) / SECOND_US
        for before, after in zip(known[2], asked, strict=True):
            for key, count in after.items():
                if count - before[key] > REQUESTS_MAX * seconds:
                    raise Wrong(
                        f"loop: node {one.node_id} was asked {count - before[key]} times for {key.name} "
                        f"in {seconds:.1f} s"
                    )


def _count(routes: Routes) -> Counter[ApiKey]:
    found: Counter[ApiKey] = Counter()
    for route in routes:
        found[route.api.key] += route.requests
    return found
