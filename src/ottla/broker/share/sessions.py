"""Share sessions: a member names its partitions once, and later only what changed.

    epoch 0    a new session begins, with the partitions of the request
    epoch n    the session goes on; the next request must have the next epoch
    epoch -1   the session ends, and what the member has acquired is released

There is at most one session for a member of a group. It ends with its connection too, because nobody else
would release what the member has before the locks are over.
"""

from collections.abc import Iterable
from typing import Final

from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = (1 << 31) - 1

TopicIdPartition = tuple[Uuid, int]


class ShareSession:
    """What one member reads from this node."""

    def __init__(self, group_id: str, member_id: str, partitions: Iterable[TopicIdPartition]) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.epoch = 1
        """The epoch that the next request must have."""
        self.partitions = dict.fromkeys(partitions)

    def check_epoch(self, epoch: int) -> ErrorCode:
        """Go on to the next epoch, or say why not."""
        if epoch != self.epoch:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        self.epoch = 1 if epoch == _EPOCH_MAX else epoch + 1
        return ErrorCode.NONE

    def update(self, added: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]) -> None:
        """Take over what has changed."""
        self.partitions.update(dict.fromkeys(added))
        for one in forgotten:
            self.partitions.pop(one, None)

    def move_to_end(self, served: Iterable[TopicIdPartition]) -> None:
        """Read these last the next time, so that others have their turn."""
        for one in served:
            if one in self.partitions:
                del self.partitions[one]
                self.partitions[one] = None


class ShareSessions:
    """The sessions of a node."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._counts: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, group_id: str, member_id: str) -> ShareSession | None:
        """Return the session of a member."""
        return self._sessions.get((group_id, member_id))

    def begin(self, session: ShareSession, sessions_max: int) -> bool:
        """Begin a session, in place of the one that the member had. False if there are too many."""
        self.end(session.group_id, session.member_id)
        if len(self._sessions) >= sessions_max:
            return False
        self._sessions[session.group_id, session.member_id] = session
        self._counts[session.group_id] = self._counts.get(session.group_id, 0) + 1
        return True

    def end(self, group_id: str, member_id: str) -> ShareSession | None:
        """End a session, if there is one."""
        session = self._sessions.pop((group_id, member_id), None)
        if session is not None:
            self._counts[group_id] -= 1
            if not self._counts[group_id]:
                del self._counts[group_id]
        return session

    def has_group(self, group_id: str) -> bool:
        """Say whether a member of the group has a session here."""
        return group_id in self._counts
