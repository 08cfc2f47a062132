"""The world of a process: its event loop, clock, disk, network, threads and random numbers."""

import random
import resource
from functools import partial
from typing import Final, NamedTuple

from ottla.runtime.clock import SystemClock
from ottla.runtime.connections.sockets import PlainNetwork
from ottla.runtime.disk import DESCRIPTORS_MAX, RealDisk
from ottla.runtime.loop_scheduler import LoopScheduler
from ottla.runtime.poller import ServingLoop
from ottla.runtime.sync_workers import SyncWorkers
from ottla.runtime.threads import Threads
from ottla.world.world import World

RESERVED_DESCRIPTORS: Final = 200
OPENERS_MAX: Final = 2


class DescriptorShares(NamedTuple):
    """How many descriptors files and connections may have at most. Some are left for everything else."""

    files_max: int
    connections_max: int


def real_world(loop: ServingLoop) -> World:
    """Return what a node needs to run on an event loop of this process."""
    scheduler = LoopScheduler(loop)
    descriptors = share_descriptors(_raise_descriptor_limit())
    return World(
        clock=SystemClock(),
        scheduler=scheduler,
        workers=Threads(scheduler),
        openers=Threads(scheduler, OPENERS_MAX),
        make_syncs=partial(SyncWorkers, loop),
        network=PlainNetwork(loop),
        disk=RealDisk(descriptors.files_max),
        random=random.SystemRandom(),
        connections_max=descriptors.connections_max,
    )


def share_descriptors(limit: int) -> DescriptorShares:
    """Share the descriptors of the process out.

    Without a share of their own, connections could take all of them. Then no file could be opened, and a log
    directory would be taken for a broken one: anybody who can connect could stop the node.
    """
    files_max = min(DESCRIPTORS_MAX, limit // 2)
    return DescriptorShares(files_max, limit - files_max - min(RESERVED_DESCRIPTORS, limit // 4))


def _raise_descriptor_limit() -> int:
    """Allow the process as many descriptors as it may have, and return how many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
