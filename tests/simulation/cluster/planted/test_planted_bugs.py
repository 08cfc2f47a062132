"""The simulated cluster finds bugs: planted ones, with the seeds that are known to find them."""

import pytest
from tests.simulation.cluster.campaign import CAMPAIGN
from tests.simulation.cluster.plan import plan_of
from tests.simulation.cluster.planted.bugs import BUGS
from tests.simulation.cluster.planted.found import FOUND_BY
from tests.simulation.cluster.planted.found_wide import FOUND_SOMETHING, WIDE_FOUND_BY
from tests.simulation.cluster.rules.promises import Promises
from tests.simulation.cluster.story import find_failure, shrink, tell
from tests.simulation.planting import planted

from ottla.broker.logs.partition import Partition
from ottla.quorum.raft.replica import Replica
from ottla.storage.log import Log

# One of each kind that shows soon, so that the suite stays quick. `make sim BUGS=1` runs them all.
QUICK = (
    # What is committed, followers, in-sync replicas, and elections.
    "high-watermark-is-the-log-end",
    "cuts-to-the-high-watermark",
    "stale-proposal",
    "same-epoch-for-a-new-leader",
    # Readers, producers, transactions, and coordinators.
    "reads-open-transactions",
    "session-epoch-is-not-checked",
    "any-sequence",
    "commits-what-was-aborted",
    "answers-before-replicas",
    # The quorum, and storage.
    "quorum-commit-by-minority",
    "quorum-changes-overlap",
    "storage-flush-skips-files",
    # What only a wider world shows.
    "abort-after-commit-is-fenced",
    "configs-stay-what-they-were",
    "moves-forget-leader-epochs",
)


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_bug_is_found(name: str) -> None:
    with planted(BUGS[name]):
        assert find_failure(plan_of(CAMPAIGN.found_by[name])) is not None, BUGS[name].what


def test_every_bug_can_be_planted_and_leaves_no_trace() -> None:
    for bug in BUGS.values():
        right = bug.function.__code__
        with planted(bug):
            assert bug.function.__code__ != right
        assert bug.function.__code__ == right


def test_the_seeds_are_of_bugs_that_exist() -> None:
    assert set(CAMPAIGN.found_by) <= set(BUGS)
    assert max(CAMPAIGN.found_by.values()) < CAMPAIGN.bug_seeds_max


def test_seeds_that_found_something_stay_what_they_are() -> None:
    kept = [plan_of(seed) for seed in (*FOUND_BY.values(), *FOUND_SOMETHING)]
    assert not any(plan.wide for plan in kept)
    assert all(plan_of(seed).wide for seed in WIDE_FOUND_BY.values())


def test_what_is_watched_is_put_back() -> None:
    before = (Log.when_committed, Partition.append, Replica.append_control)
    with Promises().watched():
        assert Log.when_committed is not before[0]
    assert before == (Log.when_committed, Partition.append, Replica.append_control)


def test_a_failure_is_made_small_and_told() -> None:
    name = "high-watermark-is-the-log-end"
    with planted(BUGS[name]):
        failed = find_failure(plan_of(FOUND_BY[name]))
        assert failed is not None
        small = shrink(failed, runs_max=3)
    assert small.rule == failed.rule
    assert len(small.plan.faults) < len(failed.plan.faults) or small.plan.operations < failed.plan.operations
    assert tell(small).splitlines()[-1].startswith(f"broken: {small.rule}")
