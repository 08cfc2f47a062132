"""Metadata (API key 3): brokers, topics and partition leaders."""

from typing import Final

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.declare import i32, message, struct, wire
from ottla.wire.error_code import ErrorCode

IDS_IN_REQUEST_FROM: Final = 12


@struct
class MetadataRequestTopic:
    """A topic asked about, by name or (v12+) by id."""

    topic_id: Uuid = wire("10+", default=ZERO_UUID, ignorable=True)
    name: str | None = wire("0+", nullable="10+")


@message(api_key=3, versions="0-13", flexible="9+", listeners=("broker",))
class MetadataRequest:
    """Ask for the brokers and for some topics, or all: none in the list (v0), or null (v1+).

    v4 lets the client forbid that an unknown topic is created. v8 can ask for the allowed operations;
    for those on the cluster only up to v10. v10 adds topic ids, but only v12+ may ask by id with a null name.
    """

    topics: tuple[MetadataRequestTopic, ...] | None = wire("0+", nullable="1+")
    allow_auto_topic_creation: bool = wire("4+", default=True)
    include_cluster_authorized_operations: bool = wire("8-10", default=False)
    include_topic_authorized_operations: bool = wire("8+", default=False)


@struct
class MetadataResponseBroker:
    """A living broker and its endpoint on the listener that was asked."""

    node_id: i32 = wire("0+", map_key=True)
    host: str = wire("0+")
    port: i32 = wire("0+")
    rack: str | None = wire("1+", default=None, ignorable=True)


@struct
class MetadataResponsePartition:
    """A partition: its leader, its replicas and those in sync."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    partition_index: i32 = wire("0+")
    leader_id: i32 = wire("0+")
    leader_epoch: i32 = wire("7+", default=-1, ignorable=True)
    replica_nodes: tuple[i32, ...] = wire("0+")
    isr_nodes: tuple[i32, ...] = wire("0+")
    offline_replicas: tuple[i32, ...] = wire("5+", default=(), ignorable=True)


@struct
class MetadataResponseTopic:
    """A topic and its partitions, or why it cannot be described."""

    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    name: str | None = wire("0+", nullable="12+", map_key=True)
    topic_id: Uuid = wire("10+", default=ZERO_UUID, ignorable=True)
    is_internal: bool = wire("1+", default=False, ignorable=True)
    partitions: tuple[MetadataResponsePartition, ...] = wire("0+")
    topic_authorized_operations: i32 = wire("8+", default=-2147483648)


@message(api_key=3, versions="0-13", flexible="9+")
class MetadataResponse:
    """Give the living brokers, and each topic's partitions with their leaders and replicas.

    v5 adds offline replicas, v7 leader epochs, v10 topic ids, v13 an error for the whole request.
    The controller id is that of some living broker: clients cannot reach the controllers.
    """

    throttle_time_ms: i32 = wire("3+", default=0, ignorable=True)
    brokers: tuple[MetadataResponseBroker, ...] = wire("0+")
    cluster_id: str | None = wire("2+", default=None, ignorable=True)
    controller_id: i32 = wire("1+", default=-1, ignorable=True)
    topics: tuple[MetadataResponseTopic, ...] = wire("0+")
    cluster_authorized_operations: i32 = wire("8-10", default=-2147483648)
    error_code: ErrorCode = wire("13+", default=ErrorCode.NONE, ignorable=True)
