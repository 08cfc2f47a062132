"""A link in MirrorMaker 2's way: its parts, and what runs beside the copying."""

from collections.abc import Coroutine, Iterator
from typing import Any

from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.mirror.link import Link
from ottla.mirror.maker.checkpoints import Checkpoints
from ottla.mirror.maker.forwarding import Forwarding
from ottla.mirror.maker.heartbeats import beat
from ottla.mirror.maker.offset_syncs import OffsetSyncs
from ottla.mirror.maker.options import MakerOptions
from ottla.mirror.progress import Progress


class MirrorMaking:
    """Puts the parts of one link together. Each cluster is given as a client and an admin of it."""

    def __init__(
        self,
        link: Link,
        options: MakerOptions,
        source: tuple[Cluster, Admin],
        target: tuple[Cluster, Admin],
        progress: Progress,
    ) -> None:
        self._link = link
        self._options = options
        self._source_admin, self._target_admin = source[1], target[1]
        self._syncs = OffsetSyncs(link, options, source, target)
        self.forwarding = Forwarding(link, options, source[0], target[0], target[1], progress, self._syncs)
        self._checkpoints = Checkpoints(link, options, source[1], target[1], target[0], progress, self._syncs)

    def work(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Return what runs beside the copying until it is cancelled."""
        options, names = self._options, self._options.names
        if options.emits_offset_syncs:
            yield self._syncs.run()
        if options.checkpoints_s is not None:
            yield self._checkpoints.run()
        if options.heartbeats_s is None:
            return
        there_and_back = (
            (self._target_admin, self._link.target, (names.source, names.target)),
            (self._source_admin, self._link.source, (names.target, names.source)),
        )
        for admin, properties, direction in there_and_back[: 2 if options.returns_heartbeats else 1]:
            yield beat(
                admin, properties, direction, options.heartbeats_s, options.internal_replication_factor
            )
