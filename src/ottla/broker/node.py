"""The broker of a node: everything that handlers reach through their context."""

from typing import NamedTuple

from ottla.wire.messages.api_versions import FinalizedFeatureKey, SupportedFeatureKey


class Features(NamedTuple):
    """What this node supports, and what the cluster has agreed on as of a metadata offset."""

    supported: tuple[SupportedFeatureKey, ...]
    finalized: tuple[FinalizedFeatureKey, ...]
    finalized_epoch: int


class Broker:
    """One node's broker."""

    def __init__(self, features: Features) -> None:
        self._features = features

    def features(self) -> Features:
        """Return the features that ApiVersions lists."""
        return self._features
