"""The attribute bits of a batch, and the two choices they hold.

bits 0-2   codec
bit  3     timestamp type: 0 the client set it, 1 the broker did on append
bit  4     transactional
bit  5     control batch
bit  6     the base timestamp is a delete horizon
bits 7-15  unused, 0
"""

from enum import IntEnum
from typing import Final

from ottla.records.errors import UnknownCodec

CODEC_MASK = 0x07
APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40


class Codec(IntEnum):
    """How the records of a batch are compressed."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    """Who set the timestamps. NONE is only met in messages of format 0, which have none."""

    NONE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


CODEC_ID_MAX: Final = max(Codec).value
CODEC_NAMES: Final = tuple(codec.name.lower() for codec in Codec)
"""What settings call them."""

# Calling an enum class costs about five times as much as a look-up, and every produced batch asks.
_CODECS = tuple(Codec)


def codec_of(attributes: int) -> Codec:
    """Return the codec that the attribute bits name."""
    codec_id = attributes & CODEC_MASK
    if codec_id >= len(_CODECS):
        raise UnknownCodec(codec_id)
    return _CODECS[codec_id]


def timestamp_type_of(attributes: int) -> TimestampType:
    """Return who set the timestamps of a batch of format 1 or 2."""
    return TimestampType.LOG_APPEND_TIME if attributes & APPEND_TIME_BIT else TimestampType.CREATE_TIME


def pack_attributes(
    codec: Codec, has_append_time: bool, is_transactional: bool, is_control: bool, has_delete_horizon: bool
) -> int:
    """Pack the attribute bits."""
    return (
        codec
        | (APPEND_TIME_BIT if has_append_time else 0)
        | (TRANSACTIONAL_BIT if is_transactional else 0)
        | (CONTROL_BIT if is_control else 0)
        | (DELETE_HORIZON_BIT if has_delete_horizon else 0)
    )
