"""What a controller writes when it takes over: the end of a transaction begun by another, the first records.

Into an empty log go the records of `bootstrap.checkpoint`, which formatting wrote, or the newest levels of
all features.
"""

from collections.abc import Sequence
from typing import Any

from ottla.metadata.configs.alter import MIN_ISR
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.features import (
    METADATA_VERSION,
    TRANSACTIONS_FROM,
    default_levels,
    is_elr_enabled,
    metadata_version_of,
)
from ottla.metadata.image import DEFAULT_BROKERS, MetadataImage
from ottla.quorum.snapshot_file import BOOTSTRAP_FILE, decode_snapshot
from ottla.storage.volume import Volume
from ottla.wire.metadata_records.configs import ConfigRecord
from ottla.wire.metadata_records.features import FeatureLevelRecord
from ottla.wire.metadata_records.metadata_transactions import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)


def activation_records(
    image: MetadataImage, volume: Volume, config: NodeConfig, *, is_in_transaction: bool
) -> Sequence[Any]:
    """Return what the controller of this metadata has to write first."""
    records: list[Any] = []
    if is_in_transaction:
        records.append(AbortTransactionRecord(reason="Controller failover"))
    if METADATA_VERSION not in image.features:
        records += _first_records(volume, config)
    return records


def _first_records(volume: Volume, config: NodeConfig) -> list[Any]:
    """Return what an empty log begins with, as one transaction if the metadata.version has them."""
    path = f"{volume.path}/{BOOTSTRAP_FILE}"
    if volume.disk.exists(path):
        records = list(decode_snapshot(volume.disk.read_file(path), BOOTSTRAP_FILE).records)
    else:
        levels = default_levels()
        records = [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()]
    levels = {one.name: one.feature_level for one in records if isinstance(one, FeatureLevelRecord)}
    if is_elr_enabled(levels):
        # With eligible leaders, min.insync.replicas is the cluster's, not each broker's.
        records.append(
            ConfigRecord(
                resource_type=DEFAULT_BROKERS.type,
                resource_name=DEFAULT_BROKERS.name,
                name=MIN_ISR,
                value=str(config.min_insync_replicas),
            )
        )
    if metadata_version_of(levels) < TRANSACTIONS_FROM:
        return records
    return [BeginTransactionRecord(name="Bootstrap records"), *records, EndTransactionRecord()]
