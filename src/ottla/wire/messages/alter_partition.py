"""AlterPartition (API key 56): a partition's leader changes its in-sync replicas."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i8, i32, i64, message, struct, wire
from ottla.wire.error_code import ErrorCode


@struct
class BrokerState:
    """A replica's broker and the epoch of its registration (v3+)."""

    broker_id: i32 = wire("3+")
    broker_epoch: i64 = wire("3+", default=-1)


@struct
class AlterPartitionPartition:
    """The in-sync replicas wanted for one partition."""

    partition_index: i32 = wire("0+")
    leader_epoch: i32 = wire("0+")
    new_isr: tuple[i32, ...] = wire("0-2", default=())
    new_isr_with_epochs: tuple[BrokerState, ...] = wire("3+", default=())
    leader_recovery_state: i8 = wire("1+", default=0)
    partition_epoch: i32 = wire("0+")


@struct
class AlterPartitionTopic:
    """A topic and its partitions to change."""

    topic_id: Uuid = wire("2+", ignorable=True)
    partitions: tuple[AlterPartitionPartition, ...] = wire("0+")


@message(api_key=56, versions="2-3", flexible="0+", listeners=("controller",))
class AlterPartitionRequest:
    """A partition's leader asks the controller for a new set of in-sync replicas.

    v2 names each replica by its id; v3+ adds the broker epoch, so a restarted broker is refused.
    """

    broker_id: i32 = wire("0+")
    broker_epoch: i64 = wire("0+", default=-1)
    topics: tuple[AlterPartitionTopic, ...] = wire("0+")


@struct
class AlterPartitionPartitionResult:
    """The leader, in-sync replicas and epochs now in force, or the error."""

    partition_index: i32 = wire("0+")
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    leader_id: i32 = wire("0+")
    leader_epoch: i32 = wire("0+")
    isr: tuple[i32, ...] = wire("0+")
    leader_recovery_state: i8 = wire("1+", default=0, ignorable=True)
    partition_epoch: i32 = wire("0+")


@struct
class AlterPartitionTopicResult:
    """The results of one topic's partitions."""

    topic_id: Uuid = wire("2+", ignorable=True)
    partitions: tuple[AlterPartitionPartitionResult, ...] = wire("0+")


@message(api_key=56, versions="2-3", flexible="0+")
class AlterPartitionResponse:
    """Give the state of each partition as the controller has it after the change."""

    throttle_time_ms: i32 = wire("0+", default=0)
    error_code: ErrorCode = wire("0+", default=ErrorCode.NONE)
    topics: tuple[AlterPartitionTopicResult, ...] = wire("0+")
