"""A guess counts before the cluster has answered: many at once do not get past the budget."""

import asyncio
from typing import Any

from ottla.client.errors import AuthenticationFailed, NoBrokerReached
from ottla.console.serving.app import Console
from ottla.console.serving.login import LoggedIn, Refused, log_in
from ottla.console.settings import ClusterSettings, ConsoleSettings

CLUSTER = ClusterSettings.of("c", {"bootstrap.servers": "nowhere:1", "security.protocol": "SASL_SSL"})


class SlowCluster:
    """Answers no login before it is told what to answer."""

    def __init__(self, error: Exception | None) -> None:
        self.asked = 0
        self.answers = asyncio.Event()
        self._error = error

    async def opened(self, *_: Any) -> None:
        self.asked += 1
        await self.answers.wait()
        if self._error is not None:
            raise self._error

    def keep(self, *_: Any) -> None:
        """It keeps nothing."""

    async def end(self, _session_id: str) -> None:
        """It has nothing to end."""


async def many_logins(error: Exception | None, count: int) -> tuple[int, list[Any]]:
    cluster = SlowCluster(error)
    console = Console(ConsoleSettings((CLUSTER,)), cluster, lambda: 0.0)  # type: ignore[arg-type]

    def one(number: int) -> Any:
        form = {"user": ["ann"], "password": [f"guess {number}"]}
        return log_in(console, CLUSTER, f"session {number}", form, "10.0.0.1")

    logins = [asyncio.create_task(one(number)) for number in range(count)]
    # All have begun before the first is answered.
    while not all(login.done() for login in logins[cluster.asked :]):
        await asyncio.sleep(0)
    cluster.answers.set()
    answers = await asyncio.gather(*logins, return_exceptions=True)
    return cluster.asked, [*answers, await one(count)] if error is None else answers


def test_guesses_at_the_same_time_share_one_budget() -> None:
    asked, answers = asyncio.run(many_logins(AuthenticationFailed("refused user 'ann'"), 40))
    assert asked == 10
    statuses = [answer.status for answer in answers if isinstance(answer, Refused)]
    assert (statuses.count(403), statuses.count(429)) == (10, 30)


def test_right_passwords_cost_nothing() -> None:
    _, answers = asyncio.run(many_logins(None, 10))
    assert all(isinstance(answer, LoggedIn) for answer in answers)


def test_a_cluster_that_does_not_answer_costs_no_guess() -> None:
    async def twice() -> list[Any]:
        cluster = SlowCluster(NoBrokerReached("nobody answers"))
        cluster.answers.set()
        console = Console(ConsoleSettings((CLUSTER,)), cluster, lambda: 0.0)  # type: ignore[arg-type]
        form = {"user": ["ann"], "password": ["p"]}
        tries = [log_in(console, CLUSTER, "s", form, "10.0.0.1") for _ in range(30)]
        return [(await asyncio.gather(one, return_exceptions=True))[0] for one in tries]

    assert {type(answer) for answer in asyncio.run(twice())} == {NoBrokerReached}
