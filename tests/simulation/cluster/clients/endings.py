"""Ends of transactions that nobody should ask for: with nothing open, with the other outcome, with the epoch
of the transaction before, and several at once.

What is asked for wrongly is refused, and changes nothing: a transaction has one outcome, and goes on until
its own end. Nobody else uses the transactional ids here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from tests.simulation.cluster.clients.habits import Habits, begins, go_on_if
from tests.simulation.cluster.clients.raw import raw_cluster
from tests.simulation.cluster.rules.wrong import Wrong

from ottla.client.cluster import Cluster
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.end_txn import EndTxnRequest

_KEEPS_EPOCHS: Final = 4
_RAISES_EPOCHS: Final = 5
Identity = tuple[int, int]


class Endings(Habits):
    """Asks for wrong ends."""

    prefix = "endings"

    def _acts(self) -> tuple[Callable[[str], Awaitable[None]], ...]:
        return (self._keep_epochs, self._raise_epochs)

    async def _keep_epochs(self, name: str) -> None:
        """Use version 1: all transactions have one epoch, so their order tells which one is meant."""
        async with raw_cluster(self._bootstrap) as cluster:
            begun = await self._ask(cluster, name, begins(name))
            go_on_if(begun.error_code is ErrorCode.NONE)
            mine = (begun.producer_id, begun.producer_epoch)
            if begun.producer_epoch == 0:
                # Nothing was ever open.
                await self._refuses(cluster, name, mine, self._rng.random() < 0.5, _KEEPS_EPOCHS)
            for number in range(self._rng.randint(1, 3)):
                go_on_if(await self._write(cluster, name, mine, number))
                committed = self._rng.random() < 0.5
                if self._rng.random() < 0.5:
                    committed = await self._race(cluster, name, mine, committed)
                else:
                    ended = await self._await_end(cluster, name, mine, committed, _KEEPS_EPOCHS)
                    go_on_if(ended.error_code is ErrorCode.NONE)
                if self._rng.random() < 0.5:
                    # Its answer may have been lost.
                    await self._await_end(cluster, name, mine, committed, _KEEPS_EPOCHS)
                await self._refuses(cluster, name, mine, not committed, _KEEPS_EPOCHS)

    async def _race(self, cluster: Cluster, name: str, mine: Identity, committed: bool) -> bool:
        """Ask for both outcomes at once, while the markers of one are written. Returns which one it is."""
        asked = [committed, not committed, committed]
        answers = await asyncio.gather(
            *(self._ask(cluster, name, _ends(name, mine, one), _KEEPS_EPOCHS) for one in asked)
        )
        done = {
            one for one, answer in zip(asked, answers, strict=True) if answer.error_code is ErrorCode.NONE
        }
        if len(done) > 1:
            self._is_wrong(f"{name} was committed and aborted in epoch {mine[1]}")
        go_on_if(len(done) == 1)
        return done.pop()

    async def _raise_epochs(self, name: str) -> None:
        """Use version 2: each end raises the epoch, so the epoch tells which transaction is meant."""
        if self._level() < 2:
            return
        async with raw_cluster(self._bootstrap) as cluster:
            begun = await self._ask(cluster, name, begins(name))
            go_on_if(begun.error_code is ErrorCode.NONE)
            mine = (begun.producer_id, begun.producer_epoch)
            before: Identity | None = None
            if self._rng.random() < 0.4:
                # The next instance of the same producer.
                replaced, begun = mine, await self._ask(cluster, name, begins(name))
                go_on_if(begun.error_code is ErrorCode.NONE)
                mine = (begun.producer_id, begun.producer_epoch)
                await self._refuses(cluster, name, replaced, self._rng.random() < 0.5, _RAISES_EPOCHS)
            for _ in range(self._rng.randint(1, 4)):
                # There is nothing that could be committed.
                await self._refuses(cluster, name, mine, True, _RAISES_EPOCHS)
                if self._rng.random() < 0.3:
                    before, mine = mine, await self._raised(cluster, name, mine, committed=False)
                go_on_if(await self._write(cluster, name, mine))
                if before is not None:
                    # The end of the transaction before comes late, or once more.
                    await self._refuses(cluster, name, before, self._rng.random() < 0.5, _RAISES_EPOCHS)
                committed = self._rng.random() < 0.5
                before, mine = mine, await self._raised(cluster, name, mine, committed=committed)
                if self._rng.random() < 0.5:
                    again = await self._await_end(cluster, name, before, committed, _RAISES_EPOCHS)
                    if again.error_code is ErrorCode.NONE and again.producer_epoch != mine[1]:
                        self._is_wrong(f"{name} was raised to {mine[1]}, and to {again.producer_epoch}")
                await self._refuses(cluster, name, before, not committed, _RAISES_EPOCHS)

    async def _raised(self, cluster: Cluster, name: str, mine: Identity, *, committed: bool) -> Identity:
        ended = await self._await_end(cluster, name, mine, committed, _RAISES_EPOCHS)
        go_on_if(ended.error_code is ErrorCode.NONE)
        return ended.producer_id, ended.producer_epoch

    async def _refuses(
        self, cluster: Cluster, name: str, mine: Identity, committed: bool, version: int
    ) -> None:
        """Ask for what must not be done."""
        answer = await self._await_end(cluster, name, mine, committed, version)
        if answer.error_code is ErrorCode.NONE:
            what = "commit" if committed else "abort"
            self._is_wrong(f"{name} may {what} in epoch {mine[1]}, where nothing is to be ended so")

    async def _await_end(
        self, cluster: Cluster, name: str, mine: Identity, committed: bool, version: int
    ) -> Any:
        """Ask for an end until no markers are being written any more."""
        for _ in range(20):
            answer = await self._ask(cluster, name, _ends(name, mine, committed), version)
            if answer.error_code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                return answer
            await asyncio.sleep(0.02)
        raise TimeoutError

    def _is_wrong(self, what: str) -> None:
        # If clocks jump, it may have timed out. If requests come again, it may have been ended by an old one.
        if not self._may_time_out:
            raise Wrong(f"fencing: {what}")


def _ends(name: str, mine: Identity, committed: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=name, producer_id=mine[0], producer_epoch=mine[1], committed=committed
    )
