"""What `__share_group_state` keeps of a share-partition's delivery."""

from ottla.model.uuid import Uuid
from ottla.wire.declare import i8, i16, i32, i64, message, struct, wire


@message(api_key=0, versions="0")
class ShareSnapshotKey:
    """The key of a snapshot of a share-partition's state."""

    group_id: str = wire("0")
    topic_id: Uuid = wire("0")
    partition: i32 = wire("0")


@struct
class StateBatch:
    """Records in a row with the same delivery state and delivery count."""

    first_offset: i64 = wire("0+")
    last_offset: i64 = wire("0+")
    delivery_state: i8 = wire("0+")
    delivery_count: i16 = wire("0+")


@message(api_key=0, versions="0", flexible="0+")
class ShareSnapshotValue:
    """Record the whole delivery state of a share-partition."""

    snapshot_epoch: i32 = wire("0+")
    state_epoch: i32 = wire("0+")
    leader_epoch: i32 = wire("0+")
    start_offset: i64 = wire("0+")
    delivery_complete_count: i32 = wire("0+", default=-1, tag=0)
    create_timestamp: i64 = wire("0+")
    write_timestamp: i64 = wire("0+")
    state_batches: tuple[StateBatch, ...] = wire("0+")


@message(api_key=1, versions="0")
class ShareUpdateKey:
    """The key of a change of a share-partition's state."""

    group_id: str = wire("0")
    topic_id: Uuid = wire("0")
    partition: i32 = wire("0")


@message(api_key=1, versions="0", flexible="0+")
class ShareUpdateValue:
    """Record what changed in a share-partition's state since its last snapshot."""

    snapshot_epoch: i32 = wire("0+")
    leader_epoch: i32 = wire("0+")
    start_offset: i64 = wire("0+")
    delivery_complete_count: i32 = wire("0+", default=-1, tag=0)
    state_batches: tuple[StateBatch, ...] = wire("0+")
