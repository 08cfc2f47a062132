"""What the parts of a broker are called for: new metadata, new configs of the node, its end.

A part that has to know adds itself where it is made, also if it is made late. If one of them fails, that is a
bug of ours: it is reported, and the others are called as if nothing had happened.
"""

from collections.abc import Callable

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import MetadataImage
from ottla.metadata.published import PublishedMetadata


class NodeEvents:
    """Those who are called, in the order in which they were added."""

    def __init__(self, metadata: PublishedMetadata, report: Callable[[str, Exception], None]) -> None:
        """`report` takes what went wrong at the end. `metadata` counts and reports what goes wrong before."""
        self._metadata = metadata
        self._report = report
        self.of_metadata: list[Callable[[MetadataImage, MetadataDelta], object]] = []
        self.of_configs: list[Callable[[], object]] = []
        self.of_stop: list[Callable[[], object]] = []

    def metadata_changed(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Let all act on new metadata."""
        for part in tuple(self.of_metadata):
            self._metadata.act(part, image, delta)

    def configs_changed(self) -> None:
        """Let the configs hold that were set while the node is running."""
        for part in tuple(self.of_configs):
            self._metadata.act(part)

    def stop(self) -> None:
        """Stop all."""
        for part in tuple(self.of_stop):
            try:
                part()
            except Exception as error:
                self._report("a part of the node that stops", error)
