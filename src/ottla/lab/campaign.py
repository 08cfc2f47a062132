"""Many scenarios by seed, and how many are explained correctly.

Seeds below 1,000,000 that are even are for tuning the causes. Odd ones are kept out of it: they judge.
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from typing import NamedTuple

from ottla.explain.answer import CAUSE, Answer
from ottla.lab.clients import Clients, installed_clients
from ottla.lab.java import compiled_client
from ottla.lab.scenario import SCENARIOS, Scenario
from ottla.lab.scenarios import members, order, silent, slow, twice
from ottla.lab.stage import Stage

assert all((members, silent, twice, order, slow)), "importing them registers the scenarios"


class Outcome(NamedTuple):
    """What came of one scenario."""

    scenario: Scenario
    seed: int
    is_faulty: bool
    answer: Answer | None
    trouble: str | None = None

    @property
    def is_right(self) -> bool:
        """Say whether the first cause is the right one, or none where there is none."""
        if self.answer is None:
            return False
        if not self.is_faulty:
            return self.answer.verdict != CAUSE
        return bool(self.answer.causes) and self.answer.causes[0].name == self.scenario.cause

    @property
    def is_among_first(self) -> bool:
        """Say whether the right cause is among the first three."""
        if self.answer is None or not self.is_faulty:
            return self.is_right
        return self.scenario.cause in [cause.name for cause in self.answer.causes[:3]]

    def line(self) -> str:
        """Return the outcome for people."""
        kind = "fault" if self.is_faulty else "healthy"
        said = self.trouble
        if self.answer is not None:
            said = ", ".join(cause.name for cause in self.answer.causes) or self.answer.verdict
        mark = "ok" if self.is_right else "WRONG"
        return f"{mark:5}  {self.scenario.name:22} {kind:7} seed={self.seed}  {said}"


def play(scenario: Scenario, seed: int, is_faulty: bool, clients: Clients | None = None) -> Outcome:
    """Play one scenario, with all clients that are installed or with the given ones."""
    try:
        with Stage(seed, scenario.settings, clients) as stage:
            return Outcome(scenario, seed, is_faulty, scenario.play(stage, is_faulty))
    except ModuleNotFoundError as error:
        return Outcome(scenario, seed, is_faulty, None, f"{error}; install it, for example confluent-kafka")
    except Exception as error:
        return Outcome(scenario, seed, is_faulty, None, f"{type(error).__name__}: {error}")


def run(
    count: int,
    first_seed: int,
    names: Sequence[str] = (),
    workers: int = 3,
    clients: Clients | None = None,
) -> list[Outcome]:
    """Play so many scenarios with their healthy twins, in turn, with a seed of its own for each."""
    chosen = [SCENARIOS[name] for name in names] if names else list(SCENARIOS.values())
    plays = [
        (chosen[number % len(chosen)], first_seed + 2 * number, is_faulty, clients)
        for number in range(count)
        for is_faulty in (True, False)
    ]
    outcomes = []
    with ThreadPoolExecutor(workers) as pool:
        for done in as_completed([pool.submit(play, *item) for item in plays]):
            outcomes.append(done.result())
            print(outcomes[-1].line(), flush=True)
    return outcomes


def score(outcomes: Sequence[Outcome]) -> str:
    """Return the score for people."""
    faulty = [item for item in outcomes if item.is_faulty]
    healthy = [item for item in outcomes if not item.is_faulty]
    failed = sum(item.trouble is not None for item in outcomes)
    return (
        f"right cause first: {sum(item.is_right for item in faulty)} of {len(faulty)}; "
        f"among the first three: {sum(item.is_among_first for item in faulty)}; "
        f"false alarms: {sum(item.answer is not None and not item.is_right for item in healthy)} "
        f"of {len(healthy)} healthy ones; not played to the end: {failed}"
    )


def main() -> None:
    """Run scenarios as the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenarios", type=int, default=len(SCENARIOS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--java", help="the folder with the jars of Apache Kafka, for actors in Java too")
    given = parser.parse_args()
    with ExitStack() as stack:
        java = stack.enter_context(compiled_client(given.java)) if given.java else None
        outcomes = run(given.scenarios, given.seed, given.only, given.workers, installed_clients(java))
    print(score(outcomes))
    sys.exit(0 if all(item.is_right for item in outcomes) else 1)


if __name__ == "__main__":
    main()
