"""The metadata that this node acts on: what is committed, with its listeners told.

Whatever acts on a change is on its own. If one part of the node fails, or fails for one partition, that is a
bug of ours: it is reported and counted, and all others act on the change as if nothing had happened. An error
that ended the change would leave the node with half of it for good, for what is published is not published
again. Kafka's brokers do the same (`metadata-apply-error-count`).
"""

import logging
from collections.abc import Callable
from typing import Final, ParamSpec, Protocol

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import EMPTY_IMAGE, MetadataImage

P = ParamSpec("P")

_logger: Final = logging.getLogger("ottla.metadata")


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

    def __init__(self, report: Callable[[str, Exception], None] | None = None) -> None:
        """`report` takes a bug of ours: what failed, and how."""
        self.image: MetadataImage = EMPTY_IMAGE
        self.errors = 0
        """How often a part of the node has failed to act on a change."""
        self._report = _log if report is None else report
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

        for listener in self._listeners:
            is_ready = True
            try:
                is_ready = listener.prepare(image, delta, ready)
            except Exception as error:
                # What it could not prepare is to be made when the image is published.
                self._failed(listener.prepare, error)
            missing += not is_ready
        return missing == 0

    def publish(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Make `image` the one to act on. When this returns, all listeners have acted on it."""
        assert image.offset >= self.image.offset, "metadata goes forward"
        self.image = image
        if delta:
            for listener in self._listeners:
                self.act(listener.metadata_changed, image, delta)

    def act(self, step: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Take one of the steps in which a part of the node acts on a change. If it fails, go on."""
        try:
            step(*args, **kwargs)
        except Exception as error:
            self._failed(step, error)

    def _failed(self, step: Callable[..., object], error: Exception) -> None:
        self.errors += 1
        self._report(f"{step} failed to act on metadata up to offset {self.image.offset}", error)


def _log(message: str, error: Exception) -> None:
    _logger.critical("%s", message, exc_info=error)
