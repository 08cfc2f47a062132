"""Metadata records that make several batches of the metadata log take effect together."""

from ottla.wire.declare import message, wire


@message(api_key=23, versions="0", flexible="0+")
class BeginTransactionRecord:
    """Begin a metadata transaction: what follows is hidden until its end."""

    name: str | None = wire("0+", default=None, tag=0)


@message(api_key=24, versions="0", flexible="0+")
class EndTransactionRecord:
    """End a metadata transaction: its records take effect."""


@message(api_key=25, versions="0", flexible="0+")
class AbortTransactionRecord:
    """Abort a metadata transaction: its records never were."""

    reason: str | None = wire("0+", default=None, tag=0)
