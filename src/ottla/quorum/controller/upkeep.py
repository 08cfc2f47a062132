"""What the active controller does of its own accord, now and then.

Each task looks at the cluster and makes records if there is something to do. One that did as much as it may
at once comes again soon.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from ottla.metadata.configs.node import NodeConfig
from ottla.quorum.controller.brokers.fencing import fence_incarnation
from ottla.quorum.controller.brokers.sessions import BrokerSessions
from ottla.quorum.controller.decision import ControllerView

_SOON_MS: Final = 10
_ELECTIONS_MAX: Final = 1_000
"""How many leaders one run elects."""
_LOOKS_PER_SESSION: Final = 8
_SECOND_MS: Final = 1_000

_logger: Final = logging.getLogger("ottla.controller")


class Acting(Protocol):
    """The controller, as its tasks see it."""

    @property
    def sessions(self) -> BrokerSessions:
        """When it heard from which broker."""

    def view(self) -> ControllerView:
        """Return what a decision made now may look at."""

    def append(self, records: Sequence[Any]) -> None:
        """Append records, as one change."""


class Task(NamedTuple):
    """Something to do at intervals."""

    run: Callable[[Acting], bool]
    """Do it. Returns whether there is more to do."""
    interval_ms: Callable[[NodeConfig], int]
    """How long to wait after it was done. 0 or less: it is not done at all."""


def fence_stale_broker(controller: Acting) -> bool:
    """Fence one broker that was not heard from in time. Others see what that does before the next goes."""
    view = controller.view()
    stale = view.sessions.find_stale(view.monotonic_ms)
    if stale is None:
        return False
    records = fence_incarnation(view, stale)
    if records:
        controller.append(records)
    controller.sessions.end(stale)
    return True


def give_up_unseen_brokers(controller: Acting) -> bool:
    """Give up records where nobody leads, once the sessions of those who seemed to be gone would be over."""
    if controller.sessions.forget_unseen(controller.view().monotonic_ms):
        return elect_unclean(controller)
    return False


def balance_leaders(controller: Acting) -> bool:
    """Give partitions back to their preferred leaders, where those can lead.

    The present ones may take themselves for leaders for a moment after a heartbeat, without a look at the
    metadata (`STANDS_MS`). So that moment is let pass first.
    """
    view, sessions = controller.view(), controller.sessions
    if len(view.image.brokers) < 2 or (sessions.is_held and not sessions.hold(view.monotonic_ms)):
        return sessions.is_held
    # Imported when it is first needed: a node starts without it.
    from ottla.quorum.controller.partitions.elections import elect_preferred_leaders

    records = elect_preferred_leaders(view, _ELECTIONS_MAX)
    if records and not sessions.hold(view.monotonic_ms):
        return True
    sessions.release()
    if records:
        controller.append(records)
    return len(records) >= _ELECTIONS_MAX


def elect_unclean(controller: Acting) -> bool:
    """Elect leaders at the price of records, where nobody leads and the topic allows it."""
    from ottla.quorum.controller.partitions.elections import elect_unclean_leaders

    records = elect_unclean_leaders(controller.view(), _ELECTIONS_MAX)
    if records:
        controller.append(records)
    return len(records) >= _ELECTIONS_MAX


def balance_replicas(controller: Acting) -> bool:
    """Give brokers that have joined their share, and empty those that have left for good."""
    view = controller.view()
    config, now_ms = view.configs.node, view.monotonic_ms
    controller.sessions.note_away(view.image.brokers, now_ms)
    # Imported when it is first needed, too.
    from ottla.quorum.controller.partitions.auto_balance import decide_balance

    left = view.sessions.find_left(config.ottla_balance_leave_ms, now_ms)
    records = decide_balance(view, left, config.ottla_balance_moves_max)
    if records:
        controller.append(records)
        _logger.info("moving %d partition(s) to balance the cluster", len(records))
    return False


def _look_interval_ms(config: NodeConfig) -> int:
    return max(1, config.broker_session_timeout_ms // _LOOKS_PER_SESSION)


def _balance_interval_ms(config: NodeConfig) -> int:
    is_on = config.auto_leader_rebalance_enable
    return config.leader_imbalance_check_interval_seconds * _SECOND_MS if is_on else 0


TASKS: Final = (
    Task(fence_stale_broker, _look_interval_ms),
    Task(give_up_unseen_brokers, _look_interval_ms),
    Task(balance_leaders, _balance_interval_ms),
    Task(
        balance_replicas,
        lambda config: config.ottla_balance_interval_ms if config.ottla_balance_auto else 0,
    ),
    Task(elect_unclean, lambda config: config.unclean_leader_election_interval_ms),
)


class Upkeep:
    """The tasks of one controller, and when each is due."""

    def __init__(self, config: NodeConfig, now_ms: int, tasks: Sequence[Task] = TASKS) -> None:
        intervals = [(task, task.interval_ms(config)) for task in tasks]
        self._tasks = [(task, interval_ms) for task, interval_ms in intervals if interval_ms > 0]
        self._due_ms = [now_ms + interval_ms for _, interval_ms in self._tasks]
        self._late_ms = config.broker_session_timeout_ms // 2
        self._ran_ms = now_ms

    def run(self, controller: Acting, now_ms: int) -> int:
        """Do what is due. Returns after how many milliseconds to come again.

        A node that comes this late was itself stopped for a while, and heard from nobody. Brokers must not be
        fenced for that.
        """
        if now_ms - self._ran_ms > self._late_ms:
            controller.sessions.renew(now_ms)
        self._ran_ms = now_ms
        for number, (task, interval_ms) in enumerate(self._tasks):
            if self._due_ms[number] <= now_ms:
                is_unfinished = task.run(controller)
                self._due_ms[number] = now_ms + (_SOON_MS if is_unfinished else interval_ms)
        return max(0, min(self._due_ms) - now_ms)
