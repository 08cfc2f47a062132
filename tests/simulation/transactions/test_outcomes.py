"""Whatever crashes, a transaction has one outcome in all its partitions, and an acknowledged one stays."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.simulation.transactions.clients import run
from tests.simulation.transactions.world import World

from ottla.coordination.runtime.shard import Shard
from ottla.coordination.transaction import decide
from ottla.coordination.transaction.coordinator import TransactionCoordinator
from ottla.coordination.transaction.ending import EpochMatch
from ottla.coordination.transaction.environment import Markers, TransactionHost
from ottla.coordination.transaction.outcomes import Outcomes
from ottla.coordination.transaction.settings import TransactionSettings
from ottla.coordination.transaction.state import TransactionShard
from ottla.coordination.transaction.transaction import Transaction
from ottla.storage.errors import AppendError


@pytest.mark.parametrize("seed", range(40))
def test_every_transaction_has_one_outcome_and_acknowledged_ones_stay(seed: int) -> None:
    world = World(seed)
    run(world)
    assert world.check() == [], f"replay with seed={seed}"
    assert len(world.acknowledged) > 50, "the clients got on"


class _EarlyMarkers(Outcomes):
    """Writes markers before the decision is on disk."""

    def decide(self, shard: Any, decide: Any, answer: Any, refuse: Any) -> None:
        def decide_and_mark(state: TransactionShard) -> Any:
            after, reply = decide(state)
            if after is not None:
                self._host.write_markers(0, _markers(shard, after), lambda: None)
            return after, reply

        super().decide(shard, decide_and_mark, answer, refuse)


class _Hasty(Outcomes):
    """Completes a transaction without waiting for its markers."""

    def mark_partitions(self, shard: Shard[TransactionShard], transaction: Transaction) -> None:
        super().mark_partitions(shard, transaction)
        self.complete(shard, transaction)


def _markers(shard: Shard[TransactionShard], transaction: Transaction) -> Markers:
    return Markers(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.is_commit,
        transaction.partitions,
        shard.epoch,
        transaction.client_version,
    )


def _fails_with(outcomes_class: type[Outcomes], seeds: range) -> bool:
    class Coordinator(TransactionCoordinator):
        def __init__(self, settings: TransactionSettings, host: TransactionHost) -> None:
            super().__init__(settings, host)
            self.outcomes = outcomes_class(host, self.waiting)

    for seed in seeds:
        world = World(seed)
        world.coordinator_class = Coordinator
        try:
            run(world)
        except (AppendError, AssertionError):
            # The storage's own rules refuse what should never be written, and so do assertions.
            return True
        if world.check():
            return True
    return False


def test_simulation_notices_markers_before_the_decision() -> None:
    assert _fails_with(_EarlyMarkers, range(10))


def test_simulation_notices_completion_before_the_markers() -> None:
    assert _fails_with(_Hasty, range(10))


def test_simulation_notices_ends_that_do_not_look_at_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    def match(transaction: Transaction, _producer_id: int, _epoch: int) -> EpochMatch:
        return EpochMatch.RETRY if transaction.status.is_ending else EpochMatch.CURRENT

    monkeypatch.setattr(decide, "match_epoch", match)
    assert _fails_with(Outcomes, range(20))


def test_simulation_notices_unsynced_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_once(self: Any, answer: Callable[[Any], None], reply: Any, *_: Any) -> None:
        answer(reply)

    monkeypatch.setattr(Shard, "_when_committed", at_once)
    assert _fails_with(Outcomes, range(20))
