"""Appending batches of another cluster: a leader keeps the offsets that they have there.

Everything that the checksum covers stays as it is: timestamps, compression, producers, sequences, markers of
transactions. Only the leader epoch, which lies outside of it, becomes that of this cluster. Its own replicas
go by its epochs, and an epoch of the source could be higher than any that this cluster ever has.
"""

from struct import Struct
from typing import TYPE_CHECKING, Final

from ottla.model.ids import LeaderEpoch, Offset
from ottla.records.batch import LEADER_EPOCH_OFFSET, LegacyBatchView
from ottla.storage.appending.append_checks import no_room
from ottla.storage.appending.append_follower import append_as_follower
from ottla.storage.appending.append_info import AppendInfo
from ottla.storage.appending.write_batches import whole_batches
from ottla.storage.errors import AppendError
from ottla.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from ottla.storage.log import Log

_EPOCH: Final = Struct(">i")


def append_mirrored(log: "Log", records: memoryview, leader_epoch: LeaderEpoch, now_ms: int) -> AppendInfo:
    """Append whole batches. If it raises `AppendError`, nothing was appended.

    The first must begin where the log ends, or later where the source has a gap. What comes a second time is
    refused, so a request that is repeated does not write twice.
    """
    if log.volume.is_short:
        raise no_room()
    end = log.log_end_offset
    size_bytes = 0
    for batch in whole_batches(records):
        if isinstance(batch, LegacyBatchView):
            raise AppendError(
                ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, "batches of an old format cannot be mirrored"
            )
        if batch.base_offset < end:
            raise AppendError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"the log ends at {end}: it has offset {batch.base_offset} already",
            )
        end = Offset(batch.last_offset + 1)
        _EPOCH.pack_into(batch.view, LEADER_EPOCH_OFFSET, leader_epoch)
        size_bytes += len(batch.view)
    if not size_bytes or size_bytes != len(records):
        raise AppendError(ErrorCode.CORRUPT_MESSAGE, "only whole batches can be mirrored")
    info = append_as_follower(log, records, leader_epoch, now_ms)
    assert info is not None, "there are whole batches, none of a later epoch"
    return info
