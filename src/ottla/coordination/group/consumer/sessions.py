"""How long the coordinator waits for a member of a consumer or streams group, and for what.

heartbeat    any sign of life, within the session timeout
revocation   that it gives up what it must, within its rebalance timeout
join, sync   for a member of the classic protocol: that it joins again when told to, and then syncs

A member that lets one of these pass is removed from the group.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from ottla.coordination.group.deadlines import decide_later
from ottla.coordination.group.environment import Environment
from ottla.coordination.runtime.decision import Decision

_REASONS = {"heartbeat": "session", "revocation": "rebalance", "join": "rebalance", "sync": "sync"}
"""The reason that is reported for a member that lets a time pass."""

Fence = Callable[[str, str, int | None, int], Decision[Any]]
"""(group id, member id, only if it is in this epoch, now) -> decision"""


class Watched(Protocol):
    """A member, as far as it is watched."""

    @property
    def member_id(self) -> str:
        """Its id."""

    @property
    def epoch(self) -> int:
        """The epoch that it was given."""

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long it may take to give something up."""


class Sessions:
    """The timers of all members of a shard's groups of one kind."""

    def __init__(self, env: Environment, fence: Fence) -> None:
        self._env = env
        self._fence = fence

    def expect_heartbeat(self, group_id: str, member_id: str, timeout_ms: int | None = None) -> None:
        """Give a member its session to send something again. The default is that of a consumer group."""
        if timeout_ms is None:
            timeout_ms = self._env.consumer_intervals(group_id).session_timeout_ms
        self._expect("heartbeat", group_id, member_id, timeout_ms)

    def expect_revocation(self, group_id: str, member: Watched) -> None:
        """Give a member its rebalance timeout to give up what it must."""
        self._expect("revocation", group_id, member.member_id, member.rebalance_timeout_ms, member.epoch)

    def stop_expecting_revocation(self, group_id: str, member_id: str) -> None:
        """A member has given up what it had to."""
        self._env.timers.cancel(("revocation", group_id, member_id))

    def expect_join(self, group_id: str, member: Watched) -> None:
        """Give a classic member its rebalance timeout to join again, counted from the first notice."""
        if ("join", group_id, member.member_id) not in self._env.timers:
            self._expect("join", group_id, member.member_id, member.rebalance_timeout_ms)

    def expect_sync(self, group_id: str, member: Watched) -> None:
        """A classic member has joined: give it its rebalance timeout to ask for its assignment."""
        self._env.timers.cancel(("join", group_id, member.member_id))
        self._expect("sync", group_id, member.member_id, member.rebalance_timeout_ms)

    def stop_expecting_sync(self, group_id: str, member_id: str) -> None:
        """A classic member has got its assignment."""
        self._env.timers.cancel(("sync", group_id, member_id))

    def forget(self, group_id: str, member_id: str) -> None:
        """Expect nothing of a member any more."""
        for what in ("heartbeat", "revocation", "join", "sync"):
            self._env.timers.cancel((what, group_id, member_id))

    def _expect(
        self, what: str, group_id: str, member_id: str, timeout_ms: int, epoch: int | None = None
    ) -> None:
        decide_later(
            self._env,
            (what, group_id, member_id),
            timeout_ms,
            partial(self._fence, group_id, member_id, epoch),
            partial(self._env.member_lost, group_id, member_id, _REASONS[what], timeout_ms),
        )
