"""Makes a failing seed small, and tells what happened as a story.

    python -m tests.simulation.cluster.story SEED [BUG]

Faults are taken away one by one, made shorter, and the work is made less, as long as the same rule is broken.
What is left is told in the order of time: what broke, who was elected, and what was wrong in the end. With a
BUG, the failure of a planted bug is told.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Final, NamedTuple

from tests.simulation.cluster.plan import plan_of
from tests.simulation.cluster.plans import Plan
from tests.simulation.cluster.planted.bugs import BUGS
from tests.simulation.cluster.run import Run, abandon, quietly
from tests.simulation.planting import planted

from ottla.testing.guarantees.generator import partition_of

RUNS_MAX: Final = 40
OPERATIONS_MIN: Final = 10
LASTS_MS_MIN: Final = 100


class Failed(NamedTuple):
    """A run that broke a rule."""

    plan: Plan
    rule: str
    complaint: str
    story: list[str]


def find_failure(plan: Plan) -> Failed | None:
    """Run a plan, and return how it failed, if it did."""
    run = Run(plan)
    try:
        with quietly():
            run.run()
    except Exception as error:
        abandon(run)
        complaint = str(error) or type(error).__name__
        return Failed(plan, complaint.partition(":")[0], complaint, run.story)
    return None


def shrink(failed: Failed, runs_max: int = RUNS_MAX) -> Failed:
    """Return the smallest failure of the same rule that was found in so many runs."""
    runs = 0
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for plan in smaller(failed.plan):
            if runs == runs_max:
                return failed
            runs += 1
            found = find_failure(plan)
            if found is not None and found.rule == failed.rule:
                failed, is_smaller = found, True
                break
    return failed


def smaller(plan: Plan) -> Iterator[Plan]:
    """Give plans that are a little smaller, those first that save most."""
    faults = plan.faults
    if len(faults) > 2:
        half = len(faults) // 2
        yield plan._replace(faults=faults[:half])
        yield plan._replace(faults=faults[half:])
    for place in range(len(faults)):
        yield plan._replace(faults=faults[:place] + faults[place + 1 :])
    if plan.operations // 2 >= OPERATIONS_MIN:
        yield plan._replace(operations=plan.operations // 2)
    for place, fault in enumerate(faults):
        if fault.lasts_ms // 2 >= LASTS_MS_MIN:
            shorter = fault._replace(lasts_ms=fault.lasts_ms // 2)
            yield plan._replace(faults=(*faults[:place], shorter, *faults[place + 1 :]))


def tell(failed: Failed) -> str:
    """Tell a failure to a person."""
    plan = failed.plan
    named = set(re.findall(r"[\w.]+-\d+", failed.complaint))
    named |= {
        "-".join(map(str, partition_of(int(key)))) for key in re.findall(r"key (\d+)", failed.complaint)
    }
    # Of the elections, those matter that concern what is wrong.
    lines = [
        line
        for line in failed.story
        if " leads " not in line or "the quorum" in line or any(f" {one} " in line for one in named)
    ]
    kinds = ", ".join(fault.kind for fault in plan.faults) or "none"
    return "\n".join(
        (
            f"{plan.nodes} nodes, of which {plan.voters} vote; {plan.operations} operations; faults: {kinds}",
            *lines,
            f"broken: {failed.complaint}",
        )
    )


def main() -> int:
    """Make a seed small and tell it."""
    seed = int(sys.argv[1])
    bug = BUGS[sys.argv[2]] if len(sys.argv) > 2 else None
    with planted(bug) if bug is not None else nullcontext():
        failed = find_failure(plan_of(seed))
        if failed is None:
            print(f"seed {seed}: all is well")
            return 0
        print(f"seed {seed} breaks {failed.rule!r}; making it small", file=sys.stderr)
        print(tell(shrink(failed)))
    return 1


if __name__ == "__main__":
    sys.exit(main())
