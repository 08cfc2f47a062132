"""WriteTxnMarkers (API key 27): a transaction's outcome is written into its partitions."""

from ottla.wire.declare import i8, i16, i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class WritableTxnMarkerTopic:
    """A topic and those of its partitions to mark."""

    name: str = wire("0+")
    partition_indexes: tuple[i32, ...] = wire("0+")


@struct
class WritableTxnMarker:
    """The outcome of one producer's transaction, and the partitions to mark."""

    producer_id: i64 = wire("0+")
    producer_epoch: i16 = wire("0+")
    transaction_result: bool = wire("0+")
    topics: tuple[WritableTxnMarkerTopic, ...] = wire("0+")
    coordinator_epoch: i32 = wire("0+")
    transaction_version: i8 = wire("2+", default=0, ignorable=True)


@message(api_key=27, versions="1-2", flexible="1+", listeners=("broker",))
class WriteTxnMarkersRequest:
    """A transaction coordinator asks leaders to write commit or abort markers.

    v2 adds the transaction version to each marker, for it decides which producer epochs are allowed.
    """

    markers: tuple[WritableTxnMarker, ...] = wire("0+")


@struct
class WritableTxnMarkerPartitionResult:
    """Whether one partition was marked."""

    partition_index: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)


@struct
class WritableTxnMarkerTopicResult:
    """The results of one topic's partitions."""

    name: str = wire("0+")
    partitions: tuple[WritableTxnMarkerPartitionResult, ...] = wire("0+")


@struct
class WritableTxnMarkerResult:
    """The results of one producer's transaction."""

    producer_id: i64 = wire("0+")
    topics: tuple[WritableTxnMarkerTopicResult, ...] = wire("0+")


@message(api_key=27, versions="1-2", flexible="1+")
class WriteTxnMarkersResponse:
    """Say for each partition whether its marker was written."""

    markers: tuple[WritableTxnMarkerResult, ...] = wire("0+")
