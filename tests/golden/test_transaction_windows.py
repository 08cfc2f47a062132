"""Ottla answers as Apache Kafka does at every moment of a transaction, also before its last marker."""

import asyncio
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

from tests.differential.transaction_windows import HEALTHY, STUCK, ask_all, create_on
from tests.golden.transaction_windows import recorded_answers
from tests.simulation.cluster.clients.raw import raw_connection
from tests.simulation.cluster.plan import quick_settings

from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.node import PORT
from ottla.testing.simulation.simulation import Simulation
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest

ALONE = dict.fromkeys(
    (
        "min.insync.replicas",
        "offsets.topic.replication.factor",
        "transaction.state.log.min.isr",
        "transaction.state.log.replication.factor",
    ),
    "1",
)


class Client:
    """A connection to the first of two nodes, which has all coordinators."""

    def __init__(self) -> None:
        self._simulation = Simulation(1)
        network = SimulatedNetwork(self._simulation)
        self.cluster = SimulatedCluster(self._simulation, network, 2, 1, {**quick_settings(), **ALONE})
        self._loop = simulated_loop(self._simulation, network)
        self._open = AsyncExitStack()

    def __enter__(self) -> Self:
        self.cluster[1].start()
        one = self.cluster[1].machine.host
        self._connection = self._loop.run(self._open.enter_async_context(raw_connection(one, PORT)))
        for key_type in (0, 1):
            request = FindCoordinatorRequest(key="any", key_type=key_type)
            while self.ask(request, 3).error_code is not ErrorCode.NONE:
                self.pause()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run(self._open.aclose())

    def ask(self, request: Any, version: int | None = None) -> Any:
        return self._loop.run(self._connection.ask(request, version))

    def pause(self) -> None:
        self._loop.run(asyncio.sleep(0.02))


def test_every_request_is_answered_as_by_apache_kafka() -> None:
    with Client() as client:
        client.cluster[2].start()
        create_on(client, HEALTHY, 1, client.pause)
        create_on(client, STUCK, 2, client.pause)
        client.cluster[2].kill()
        answers = ask_all(client, client.pause)
    recorded = recorded_answers()
    assert answers.keys() == recorded.keys()
    assert {cell: (found, recorded[cell]) for cell, found in answers.items() if found != recorded[cell]} == {}
