"""Everything that a node takes from outside, in one place: it is enough to run a node."""

from typing import NamedTuple

from ottla.world.clock import Clock
from ottla.world.disk import Disk
from ottla.world.network import Network
from ottla.world.randomness import Randomness
from ottla.world.scheduler import Scheduler
from ottla.world.workers import MakeSyncs, Workers


class World(NamedTuple):
    """The surroundings of one node: those of its process, or simulated ones."""

    clock: Clock
    scheduler: Scheduler
    workers: Workers
    openers: Workers
    """Workers apart, for large batches that have to be opened: each may take seconds of computing."""
    make_syncs: MakeSyncs
    network: Network
    disk: Disk
    random: Randomness
    connections_max: int
    """How many connections there may be at once, whatever the configuration allows."""
