"""The features that ApiVersions lists: what this node supports, and what the cluster has agreed on."""

from typing import NamedTuple

from ottla.metadata.features import KRAFT_VERSION, SUPPORTED
from ottla.metadata.image import MetadataImage
from ottla.quorum.metadata_quorum import MetadataQuorum
from ottla.wire.messages.api_versions import FinalizedFeatureKey, SupportedFeatureKey


class Features(NamedTuple):
    """What this node supports, and what the cluster has agreed on as of a metadata offset."""

    supported: tuple[SupportedFeatureKey, ...]
    finalized: tuple[FinalizedFeatureKey, ...]
    finalized_epoch: int


def features_of(image: MetadataImage, quorum: MetadataQuorum) -> Features:
    """Return the features as of an image. The quorum alone knows kraft.version."""
    finalized = dict(image.features)
    kraft_version = quorum.driver.kraft_version
    if kraft_version > 0:
        finalized[KRAFT_VERSION] = kraft_version
    return Features(
        supported=tuple(
            SupportedFeatureKey(name=name, min_version=levels.min, max_version=levels.max)
            for name, levels in SUPPORTED.items()
        ),
        finalized=tuple(
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in finalized.items()
        ),
        finalized_epoch=image.offset,
    )
