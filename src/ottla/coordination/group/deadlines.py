"""What the coordinator decides when a time has passed.

While too few replicas are in sync, nothing can be written. No client would ask for the same again, so the
decision is made again after a while. Otherwise a member whose session ended at that time would stay for good,
and keep its partitions.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final

from ottla.coordination.group.environment import Environment
from ottla.coordination.runtime.decision import Decision
from ottla.wire.error_code import ErrorCode

RETRY_MS: Final = 500
"""After how long a decision that could not be written is made again, as in Kafka."""


def decide_later(
    env: Environment,
    name: Hashable,
    delay_ms: int,
    decide: Callable[[int], Decision[Any]],
    notice: Callable[[], None] | None = None,
) -> None:
    """Write what is decided when a time has passed. `decide` gets the wall time; `notice` is called once."""

    def over(now_ms: int) -> None:
        if notice is not None:
            notice()
        attempt(now_ms)

    def attempt(now_ms: int) -> None:
        env.submit(lambda: decide(now_ms), refuse=try_again)

    def try_again(error: ErrorCode) -> None:
        # A shard that serves no more has forgotten its timers. Another one gives its members new sessions.
        if error is not ErrorCode.NOT_COORDINATOR and name not in env.timers:
            env.timers.schedule(name, RETRY_MS, attempt)

    env.timers.schedule(name, delay_ms, over)
