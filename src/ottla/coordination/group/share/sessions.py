"""How long the coordinator waits for a heartbeat of a member of a share group."""

from collections.abc import Callable
from functools import partial
from typing import Any

from ottla.coordination.group.deadlines import decide_later
from ottla.coordination.group.environment import Environment
from ottla.coordination.runtime.decision import Decision

Fence = Callable[[str, str], Decision[Any]]
"""(group id, member id) -> decision"""


class Sessions:
    """The timers of all members of a shard's share groups."""

    def __init__(self, env: Environment, fence: Fence) -> None:
        self._env = env
        self._fence = fence

    def expect_heartbeat(self, group_id: str, member_id: str) -> None:
        """Give a member its session to send the next heartbeat."""
        env, fence = self._env, self._fence
        timeout_ms = env.share_intervals(group_id).session_timeout_ms
        decide_later(
            env,
            ("heartbeat", group_id, member_id),
            timeout_ms,
            lambda _now_ms: fence(group_id, member_id),
            partial(env.member_lost, group_id, member_id, "session", timeout_ms),
        )

    def forget(self, group_id: str, member_id: str) -> None:
        """Expect nothing of a member any more."""
        self._env.timers.cancel(("heartbeat", group_id, member_id))
