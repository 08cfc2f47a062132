"""The metadata that this node acts on: what is committed, with its listeners told."""

from collections.abc import Callable
from typing import Protocol

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import EMPTY_IMAGE, MetadataImage


class MetadataListener(Protocol):
    """A part of the node with state that follows the metadata, such as the logs of its partitions."""

    def prepare(self, image: MetadataImage, delta: MetadataDelta, done: Callable[[], None]) -> bool:
        """Make what takes long before an image is published, such as the logs of new partitions.

        Says whether all is ready. If not, `done` is called when it is, and not before this has returned.
        """

    def metadata_changed(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Act on a new image. `delta` says what is new in it, and `delta.base` is the image before."""


class PublishedMetadata:
    """The newest committed image. Listeners are called in the order in which they were added."""

    def __init__(self) -> None:
        self.image: MetadataImage = EMPTY_IMAGE
        self._listeners: list[MetadataListener] = []

    def listen(self, listener: MetadataListener) -> None:
        """Tell `listener` about everything published from now on."""
        self._listeners.append(listener)

    def prepare(self, image: MetadataImage, delta: MetadataDelta, done: Callable[[], None]) -> bool:
        """Let the listeners prepare for an image. If they need time, `done` is called when all are ready."""
        missing = 0

        def ready() -> None:
            nonlocal missing
            missing -= 1
            if missing == 0:
                done()

        missing = sum(not listener.prepare(image, delta, ready) for listener in self._listeners)
        return missing == 0

    def publish(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Make `image` the one to act on. When this returns, all listeners have acted on it."""
        assert image.offset >= self.image.offset, "metadata goes forward"
        self.image = image
        if delta:
            for listener in self._listeners:
                listener.metadata_changed(image, delta)
