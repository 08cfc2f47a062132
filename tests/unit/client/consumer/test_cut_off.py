"""A poll that is cancelled leaves nothing half done, and two at once are refused."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ottla.client.consumer.assignment import Assignment, Status
from ottla.client.consumer.classic import ClassicMembership, _Joined
from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.membership import Handover, Subscribed
from ottla.client.consumer.settings import ConsumerSettings
from ottla.client.errors import ClientError
from ottla.model.ids import TopicPartition

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
WAITS = 6


class Rebalance:
    """A member of a cooperative group that has lost one of two partitions and got none."""

    def __init__(self) -> None:
        self.happened: list[str] = []
        self.assignment = Assignment(lambda: None)
        self.assignment.replace([P0, P1], Status.READY)
        self.handover = Handover(self.assignment, self._commit)
        self.handover.subscribed = Subscribed(["t"], on_revoked=self._on_revoked)
        settings = ConsumerSettings.of(
            {
                "bootstrap.servers": "nowhere:1",
                "group.id": "g",
                "partition.assignment.strategy": "cooperative-sticky",
            }
        )
        cluster: Any = None
        self.membership = ClassicMembership(cluster, settings, self.handover, lambda: None)
        self.membership._must_join = False
        joining: asyncio.Future[_Joined] = asyncio.get_running_loop().create_future()
        joining.set_result(_Joined(frozenset({P0}), {}))
        self.membership._joining = joining  # type: ignore[assignment]  # as good as a task that is done
        self.membership._prepare = self._prepare  # type: ignore[method-assign]
        self.membership._join = self._join  # type: ignore[method-assign]

    async def _commit(self) -> None:
        await self._wait()
        self.happened.append("committed")

    async def _on_revoked(self, some: frozenset[TopicPartition]) -> None:
        await self._wait()
        self.happened.append(f"revoked {sorted(some)}")

    async def _wait(self) -> None:
        for _ in range(WAITS // 2):
            await asyncio.sleep(0)

    async def _prepare(self) -> None:
        pass

    async def _join(self) -> _Joined:
        return _Joined(frozenset({P0}), {})


@pytest.mark.parametrize("after", range(WAITS + 4))
def test_a_poll_that_is_cancelled_leaves_no_partition_paused(after: int) -> None:
    async def scene() -> None:
        rebalance = Rebalance()
        polling = asyncio.create_task(rebalance.membership.work())
        for _ in range(after):
            await asyncio.sleep(0)
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)
        while rebalance.membership.needs_work:
            await rebalance.membership.work()
            await asyncio.sleep(0)
        assert rebalance.handover.owned == {P0}
        assert not rebalance.assignment.state(P0).is_paused
        assert rebalance.happened == ["committed", f"revoked {[P1]}"]
        await rebalance.membership.stop()

    asyncio.run(scene())


def test_an_error_of_a_step_that_was_cut_off_reaches_the_next_poll() -> None:
    async def scene() -> None:
        rebalance = Rebalance()

        async def fail(_some: frozenset[TopicPartition]) -> None:
            await asyncio.sleep(0)
            raise RuntimeError("no")

        rebalance.handover.subscribed = Subscribed(["t"], on_revoked=fail)
        polling = asyncio.create_task(rebalance.membership.work())
        await asyncio.sleep(0)
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)
        with pytest.raises(RuntimeError, match="no"):
            await rebalance.membership.work()
        assert rebalance.handover.owned == {P0}
        await rebalance.membership.stop()

    asyncio.run(scene())


def _opened(scene: Callable[[Consumer], Awaitable[None]]) -> None:
    async def play() -> None:
        consumer = Consumer("nowhere:1")

        async def found() -> None:
            return None

        consumer._cluster.start = found  # type: ignore[method-assign]
        async with consumer:
            await scene(consumer)

    asyncio.run(play())


def test_two_polls_at_once_are_refused_and_do_no_harm() -> None:
    async def scene(consumer: Consumer) -> None:
        first = asyncio.create_task(consumer.poll(60_000))
        await asyncio.sleep(0)
        with pytest.raises(ClientError, match="only one at a time"):
            await consumer.poll(0)
        with pytest.raises(ClientError, match="only one at a time"):
            await anext(consumer)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert await consumer.poll(0) == []

    _opened(scene)
