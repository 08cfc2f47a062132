"""What `__transaction_state` keeps of a transactional id."""

from ottla.wire.declare import i8, i16, i32, i64, message, struct, wire


@message(api_key=0, versions="0")
class TransactionLogKey:
    """The key of a transaction's state: its transactional id."""

    transactional_id: str = wire("0")


@struct
class TransactionPartitions:
    """A topic and those of its partitions that take part."""

    topic: str = wire("0+")
    partition_ids: tuple[i32, ...] = wire("0+")


@message(api_key=0, versions="0-1", flexible="1+")
class TransactionLogValue:
    """Record the producer, status and partitions of a transactional id's latest transaction.

    v1 is written from transaction.version 1 on; it adds the ids and epochs before and after this one.
    The partitions are null when there are none.
    """

    producer_id: i64 = wire("0+")
    previous_producer_id: i64 = wire("1+", default=-1, tag=0)
    next_producer_id: i64 = wire("1+", default=-1, tag=1)
    producer_epoch: i16 = wire("0+")
    next_producer_epoch: i16 = wire("1+", default=-1, tag=3)
    transaction_timeout_ms: i32 = wire("0+")
    transaction_status: i8 = wire("0+")
    transaction_partitions: tuple[TransactionPartitions, ...] | None = wire("0+")
    transaction_last_update_timestamp_ms: i64 = wire("0+")
    transaction_start_timestamp_ms: i64 = wire("0+")
    client_transaction_version: i16 = wire("1+", default=0, tag=2)
