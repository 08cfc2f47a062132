"""CreateTopics (API key 19): topics are created."""

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.declare import i8, i16, i32, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class CreatableReplicaAssignment:
    """The brokers that should hold one partition, where the client chooses them."""

    partition_index: i32 = wire("0+", map_key=True)
    broker_ids: tuple[i32, ...] = wire("0+")


@struct
class CreatableTopicConfig:
    """A config override of the new topic."""

    name: str = wire("0+", map_key=True)
    value: str | None = wire("0+")


@struct
class CreatableTopic:
    """A topic to create."""

    name: str = wire("0+", map_key=True)
    num_partitions: i32 = wire("0+")
    replication_factor: i16 = wire("0+")
    assignments: tuple[CreatableReplicaAssignment, ...] = wire("0+")
    configs: tuple[CreatableTopicConfig, ...] = wire("0+")


@message(api_key=19, versions="2-7", flexible="5+", listeners=("broker", "controller"))
class CreateTopicsRequest:
    """Create topics, or only check that they could be created.

    From v4 on -1 asks for the cluster's default number of partitions or replicas.
    From v6 on a client over its mutation quota gets an error instead of a delay.
    """

    topics: tuple[CreatableTopic, ...] = wire("0+")
    timeout_ms: i32 = wire("0+", default=60000)
    validate_only: bool = wire("1+", default=False)


@struct
class CreatableTopicConfigs:
    """A config of the new topic, with the place its value comes from (v5+)."""

    name: str = wire("5+")
    value: str | None = wire("5+")
    read_only: bool = wire("5+")
    config_source: i8 = wire("5+", default=-1, ignorable=True)
    is_sensitive: bool = wire("5+")


@struct
class CreatableTopicResult:
    """What became of one topic."""

    name: str = wire("0+", map_key=True)
    topic_id: Uuid = wire("7+", default=ZERO_UUID, ignorable=True)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    error_message: str | None = wire("1+", ignorable=True)
    topic_config_error_code: ErrorCode = wire("5+", default=ErrorCode.NONE, tag=0, ignorable=True)
    num_partitions: i32 = wire("5+", default=-1, ignorable=True)
    replication_factor: i16 = wire("5+", default=-1, ignorable=True)
    configs: tuple[CreatableTopicConfigs, ...] | None = wire("5+", default=(), ignorable=True)


@message(api_key=19, versions="2-7", flexible="5+")
class CreateTopicsResponse:
    """Say for each topic whether it was created.

    v5+ also gives its size and its configs, v7+ its id.
    """

    throttle_time_ms: i32 = wire("2+", default=0, ignorable=True)
    topics: tuple[CreatableTopicResult, ...] = wire("0+")
