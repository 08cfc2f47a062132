"""From committed records to the metadata that this node acts on. Every node has a follower, leader or not.

    committed records -> replay -> prepare -> publish -> (who waits for it)

The records are replayed in the order of the log. Before an image is published, the node's listeners prepare
for it, which may take a while; what is committed later keeps its place meanwhile.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.difference import difference
from ottla.metadata.image import MetadataImage
from ottla.metadata.loader import MetadataLoader
from ottla.metadata.published import PublishedMetadata
from ottla.model.ids import Offset
from ottla.quorum.quorum_protocols import CommittedRecords


class _Unpublished(NamedTuple):
    """A committed image, and the offset up to which all is in it that may be seen."""

    image: MetadataImage
    delta: MetadataDelta
    offset: Offset


class MetadataFollower:
    """Follows the metadata log as far as it is committed, and publishes what it holds."""

    def __init__(
        self,
        loader: MetadataLoader,
        published: PublishedMetadata,
        when_published: Callable[[Offset], None],
    ) -> None:
        """`loader` has been fed what was loaded. It is published with the first records that are committed.

        `when_published` is called with the offset of the last record whose effects are published.
        """
        self._loader = loader
        self._published = published
        self._when_published = when_published
        self._unpublished: deque[_Unpublished] = deque()
        self._is_preparing = False
        self._is_stopped = False

    def committed(self, batches: Sequence[CommittedRecords]) -> None:
        """Replay records, and publish them as soon as all is prepared for it. Batches are one change."""
        delta = self._replay(batches)
        self._unpublished.append(_Unpublished(self._loader.image, delta, batches[-1].position.offset))
        self._go_on()

    def restart_from(self, loader: MetadataLoader) -> None:
        """Go on from a snapshot that a loader has been fed, and publish it."""
        before = self._loader.image
        image, _ = loader.take()
        self._loader = loader
        self._unpublished.append(_Unpublished(image, difference(before, image), image.offset))
        self._go_on()

    def fork_loader(self) -> MetadataLoader:
        """Return a loader that goes on from everything that is committed."""
        return self._loader.fork()

    def stop(self) -> None:
        """Publish nothing any more."""
        self._is_stopped = True

    def _replay(self, batches: Sequence[CommittedRecords]) -> MetadataDelta:
        """Replay records, and return what is new. What the controller of this node has replayed is done."""
        replay = batches[0].replay
        if len(batches) == 1 and replay is not None and replay.delta.base is self._loader.image:
            self._loader = replay.loader.fork()
            return replay.delta
        for batch in batches:
            if batch.is_control:
                self._loader.skip(batch.position)
            else:
                self._loader.feed(batch.records, batch.position)
        _, delta = self._loader.take()
        return delta

    def _go_on(self) -> None:
        while self._unpublished and not self._is_preparing and not self._is_stopped:
            image, delta, _ = self._unpublished[0]
            if not delta or self._published.prepare(image, delta, self._prepared):
                self._publish_next()
            else:
                self._is_preparing = True

    def _prepared(self) -> None:
        self._is_preparing = False
        if not self._is_stopped:
            self._publish_next()
            self._go_on()

    def _publish_next(self) -> None:
        image, delta, offset = self._unpublished.popleft()
        self._published.publish(image, delta)
        self._when_published(offset)
