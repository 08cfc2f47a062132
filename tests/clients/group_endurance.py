"""Kill members of a group and their broker at random, for minutes, and look for what was skipped.

python -m tests.clients.group_endurance --minutes 5 [--seed 1]
"""

import argparse
import random
import tempfile
import time
from pathlib import Path

from tests.clients.group_traffic import Traffic
from tests.support.ottla_node import OttlaNode

MEMBERS = 4


def run(minutes: float, seed: int) -> None:
    """Cause trouble, then judge."""
    chance = random.Random(seed)
    root = Path(tempfile.mkdtemp(prefix="group-endurance-"))
    with OttlaNode(root / "node", {"group.initial.rebalance.delay.ms": "0"}) as node:
        traffic = Traffic(node.bootstrap, "endurance", root, partitions=8)
        kills = {"member": 0, "broker": 0, "left": 0}
        try:
            with traffic.flowing(records_per_second=500):
                members = [_start(traffic, number) for number in range(MEMBERS)]
                deadline = time.monotonic() + minutes * 60
                while time.monotonic() < deadline:
                    time.sleep(chance.uniform(0, 4))
                    place = chance.randrange(MEMBERS)
                    match chance.choice(("member", "member", "broker", "left")):
                        case "member":
                            traffic.kill_member(members[place])
                            members[place] = _start(traffic, place)
                            kills["member"] += 1
                        case "left":
                            traffic.stop_member(members[place])
                            members[place] = _start(traffic, place)
                            kills["left"] += 1
                        case _:
                            node.kill()
                            node.start()
                            kills["broker"] += 1
            traffic.drain()
            traffic.stop_all()
            repeated = traffic.judge()
        finally:
            traffic.kill_all()
    records = sum(traffic.acknowledged.values())
    print(
        f"seed {seed}: {records} records, none skipped, {repeated} processed more than once, after "
        f"{kills['member']} kills of members, {kills['broker']} of the broker, {kills['left']} departures"
    )


def _start(traffic: Traffic, place: int) -> str:
    """Start a member. Every second one is static."""
    if place % 2 == 0:
        return traffic.start_member(group_instance_id=f"instance-{place}")
    return traffic.start_member()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    run(arguments.minutes, arguments.seed)


if __name__ == "__main__":
    main()
