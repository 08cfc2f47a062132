"""Kill a node with SIGKILL under producing load, again and again, and see that nothing acknowledged is lost.

    python -m tests.cluster.crashes --kills 100

Prints how long the node took to be ready again after each kill. Each of its partitions takes part in the
load.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from random import Random

from tests.support.acknowledged_load import AcknowledgedLoad
from tests.support.data_plane import create_topic
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

TOPIC = "crashes"
PARTITIONS = 100
_ACKNOWLEDGED_BETWEEN_KILLS_MAX = 3000


class Crashes:
    """What came of it."""

    def __init__(self) -> None:
        self.restarts_ms: list[float] = []
        self.acknowledged = 0

    def __str__(self) -> str:
        times = sorted(self.restarts_ms)
        return (
            f"{len(times)} kills, {self.acknowledged} acknowledged records, none lost, none twice; "
            f"ready again after {statistics.median(times):.0f} ms (median), {times[-1]:.0f} ms (longest)"
        )


def crash(root: Path, kills: int, seed: int) -> Crashes:
    """Run the load, kill and restart the node, and check everything at the end."""
    chance = Random(seed)
    crashes = Crashes()
    with OttlaNode(root) as node:
        with PlainClient(node.bootstrap) as client:
            # Segments are small, so that some kills come while one is rolled.
            create_topic(client, TOPIC, PARTITIONS, {"internal.segment.bytes": "20000"})
        load = AcknowledgedLoad(node.bootstrap, TOPIC, PARTITIONS)
        try:
            for _ in range(kills):
                load.wait_for(chance.randrange(1, _ACKNOWLEDGED_BETWEEN_KILLS_MAX))
                node.kill()
                started = time.perf_counter()
                node.start()
                crashes.restarts_ms.append((time.perf_counter() - started) * 1000)
            load.wait_for(1)
            load.finish()
        except BaseException:
            load.give_up()
            raise
        assert load.failures == [], load.failures[:3]
        load.check(node.bootstrap)
        crashes.acknowledged = len(load.acknowledged)
    return crashes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="ottla-crashes-"))
    print(f"seed {options.seed}, files in {root} if something is wrong", flush=True)
    print(crash(root, options.kills, options.seed))
    shutil.rmtree(root)


if __name__ == "__main__":
    main()
