"""What a consumer and a transactional producer tell each other of a group: who commits, and what."""

from typing import NamedTuple


class OffsetAndMetadata(NamedTuple):
    """The next offset to read, a note, and the leader epoch of the record before it (-1: not known)."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class GroupMetadata(NamedTuple):
    """Who commits: a member in its generation (or epoch), or nobody in particular."""

    group_id: str
    member_id: str = ""
    generation: int = -1
    group_instance_id: str | None = None
