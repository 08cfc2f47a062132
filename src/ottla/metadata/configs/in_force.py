"""The configs in force on a node: those of its file, and above them what the metadata says at this moment.

They are asked for and never handed on: a part that kept a copy would need to learn of each change, and of
what was set before it was made. That is forgotten once, and then a node obeys its file again after a restart.
"""

from collections.abc import Callable, Mapping

from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.image import EMPTY_IMAGE, MetadataImage


class ConfigsInForce:
    """What holds on one node. `image` returns the metadata to go by."""

    def __init__(self, static: EffectiveConfigs, node_id: int, image: Callable[[], MetadataImage]) -> None:
        self._node_id = node_id
        self._image = image
        # An image shares with the one before it what has not changed, so that looking costs nothing.
        self._seen = EMPTY_IMAGE.configs
        self._overrides: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})
        self._found = static

    def now(self) -> EffectiveConfigs:
        """Return what is in force."""
        image = self._image()
        if image.configs is not self._seen:
            self._seen = image.configs
            overrides = (image.default_broker_config(), image.broker_config(self._node_id))
            if overrides != self._overrides:
                self._overrides = overrides
                self._found = self._found.with_dynamic(*overrides)
        return self._found
