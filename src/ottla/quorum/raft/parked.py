"""Fetches that wait for something new: records, a higher high watermark, or the end of their time."""

from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.quorum.raft import serving
from ottla.quorum.raft.effects import Inbound, Reply
from ottla.quorum.raft.settings import Moment
from ottla.quorum.raft.states import NEVER
from ottla.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from ottla.quorum.raft.replica import Replica

PARKED_MAX: Final = 10_000
"""More fetches than that do not wait. They are answered at once, and come again."""


class _Parked(NamedTuple):
    inbound: Inbound
    deadline_ms: int


class ParkedFetches:
    """The fetches of one leader that wait."""

    def __init__(self) -> None:
        self._waiting: list[_Parked] = []
        self.wake_ms = NEVER

    @property
    def is_full(self) -> bool:
        return len(self._waiting) >= PARKED_MAX

    def park(self, inbound: Inbound, deadline_ms: int) -> None:
        self._waiting.append(_Parked(inbound, deadline_ms))
        self.wake_ms = min(self.wake_ms, deadline_ms)

    def wake_all(self, replica: "Replica") -> None:
        """Answer all: there are new records, or more of them are committed."""
        for parked in self._take():
            response = serving.answer_fetch(replica, parked.inbound)
            replica.add(Reply(parked.inbound.token, response))

    def refuse_all(self, replica: "Replica") -> None:
        """Answer all that this replica does not lead any more."""
        for parked in self._take():
            response = serving.refuse_fetch(replica, parked.inbound, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            replica.add(Reply(parked.inbound.token, response))

    def expire(self, replica: "Replica", now: Moment) -> None:
        """Answer those whose time is over, with nothing new."""
        if now.ms < self.wake_ms:
            return
        waiting = self._take()
        for parked in waiting:
            if now.ms < parked.deadline_ms:
                self.park(*parked)
            else:
                response = serving.answer_fetch(replica, parked.inbound)
                replica.add(Reply(parked.inbound.token, response))

    def _take(self) -> list[_Parked]:
        waiting, self._waiting = self._waiting, []
        self.wake_ms = NEVER
        return waiting
