"""The contents of a `.snapshot` file: what a partition knows of its producers at an offset."""

from ottla.wire.declare import i16, i32, i64, message, struct, u32, wire


@struct
class ProducerEntry:
    """A producer: its last batch, and the start of its open transaction or -1."""

    producer_id: i64 = wire("1")
    epoch: i16 = wire("1")
    last_sequence: i32 = wire("1")
    last_offset: i64 = wire("1")
    offset_delta: i32 = wire("1")
    timestamp: i64 = wire("1")
    coordinator_epoch: i32 = wire("1")
    current_txn_first_offset: i64 = wire("1")


@message(versions="1")
class ProducerSnapshot:
    """The producers of a partition as they stood at the offset in the file's name.

    An int16 version, always 1, stands before it. The checksum is CRC-32C of all bytes after it.
    """

    crc: u32 = wire("1")
    producer_entries: tuple[ProducerEntry, ...] = wire("1")
