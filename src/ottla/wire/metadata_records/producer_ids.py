"""Metadata records of producer ids."""

from ottla.wire.declare import i32, i64, message, wire


@message(api_key=15, versions="0", flexible="0+")
class ProducerIdsRecord:
    """Record the first producer id not given out yet, and the broker that got the block before it."""

    broker_id: i32 = wire("0+")
    broker_epoch: i64 = wire("0+", default=-1)
    next_producer_id: i64 = wire("0+")
