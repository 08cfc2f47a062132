"""The metadata that this node acts on: what is committed, with its listeners told."""

from typing import Protocol

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import EMPTY_IMAGE, MetadataImage


class MetadataListener(Protocol):
    """One who keeps state that follows the metadata, such as the logs of the node's partitions."""

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

    def publish(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Make `image` the one to act on. Who was told of it when this returns has acted on it."""
        assert image.offset >= self.image.offset, "metadata goes forward"
        self.image = image
        if delta:
            for listener in self._listeners:
                listener.metadata_changed(image, delta)
