"""What happens between two clusters in one run: how large they are, what the source does, and what breaks.

All of it follows from the seed.
"""

from random import Random
from typing import Final, NamedTuple

from tests.simulation.cluster.plans import Fault

SOURCE: Final = "source"
TARGET: Final = "target"
FAULTS: Final = (
    "kill",
    "cut-power",
    "cut-power-in-a-write",
    "cut-power-of-all",
    "restart",
    "pause",
    "slow-disk",
    "cut-off",
    "cut-link",
    "slow-link",
    "reset-connections",
    "late-packets",
    "elect",
    "reject",
    "half-open",
    "slow-metadata",
)
"""Kinds of faults that happen to either cluster. What happens to directories and quorums is met elsewhere."""
ENDS: Final = ("quiet", "quiet", "source-dies")
"""Whether the copies become writable when all is copied, or because the source is suddenly gone."""
FAULTS_FROM_MS: Final = 500


class MirrorPlan(NamedTuple):
    """One run."""

    seed: int
    source_nodes: int
    target_nodes: int
    topics: int
    works_ms: int
    faults: tuple[tuple[str, Fault], ...]
    """Each with the cluster that it happens to."""
    mirrors: int
    """How many mirrors do the same work at the same time. More than one is a mistake, and does no harm."""
    transaction_version: int
    end: str


def mirror_plan_of(seed: int) -> MirrorPlan:
    """Return what a seed stands for."""
    rng = Random(f"mirror plan {seed}")
    works_ms = rng.choice((4_000, 8_000, 12_000))
    sizes = {SOURCE: rng.choice((1, 3, 3)), TARGET: rng.choice((1, 3, 3))}
    faults = []
    for _ in range(rng.choice((0, 1, 2, 3, 4))):
        where = rng.choice((SOURCE, TARGET))
        kinds = FAULTS if sizes[where] > 1 else [kind for kind in FAULTS if kind not in _OF_SEVERAL]
        at_ms = FAULTS_FROM_MS + rng.randrange(works_ms)
        lasts_ms = rng.choice((50, 200, 700, 1500, 3000))
        faults.append((where, Fault(at_ms, lasts_ms, rng.choice(kinds), rng.getrandbits(32))))
    return MirrorPlan(
        seed,
        sizes[SOURCE],
        sizes[TARGET],
        topics=rng.choice((1, 2, 3)),
        works_ms=works_ms,
        faults=tuple(faults),
        mirrors=rng.choice((1, 1, 1, 2)),
        transaction_version=rng.choice((1, 2, 2)),
        end=rng.choice(ENDS),
    )


_OF_SEVERAL: Final = frozenset(("cut-off", "cut-link", "slow-link", "elect", "reject", "half-open"))
