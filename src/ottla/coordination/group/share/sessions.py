"""How long the coordinator waits for a heartbeat of a member of a share group."""

from collections.abc import Callable
from typing import Any

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

        def over(_now_ms: int) -> None:
            env.member_lost(group_id, member_id, "session", timeout_ms)
            env.submit(lambda: fence(group_id, member_id))

        env.timers.schedule(("heartbeat", group_id, member_id), timeout_ms, over)

    def forget(self, group_id: str, member_id: str) -> None:
        """Expect nothing of a member any more."""
        self._env.timers.cancel(("heartbeat", group_id, member_id))
