"""The contents of the `quorum-state` file: a node's vote and the leader it knows of."""

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.declare import i32, i64, message, struct, wire


@struct
class Voter:
    """A voter of the quorum (v0)."""

    voter_id: i32 = wire("0")


@message(versions="0-1", flexible="0+")
class QuorumStateData:
    """What a node of the metadata quorum must not forget: its epoch, its vote and the leader.

    It is stored as JSON with a `data_version`, not in the binary form. v0 belongs to kraft.version 0.
    """

    cluster_id: str = wire("0", default="")
    leader_id: i32 = wire("0+", default=-1)
    leader_epoch: i32 = wire("0+", default=-1)
    voted_id: i32 = wire("0+", default=-1)
    voted_directory_id: Uuid = wire("1+", default=ZERO_UUID)
    applied_offset: i64 = wire("0", default=0)
    current_voters: tuple[Voter, ...] | None = wire("0", default=())
