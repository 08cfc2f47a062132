"""A login that expires has to be renewed, by the same user, before it does."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.simulation.cluster.clients.raw import raw_connection

from ottla.client.connection import BrokerConnection
from ottla.client.errors import ConnectionLost
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.node import SimulatedNode
from ottla.testing.simulation.simulation import Simulation
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

HOST, PORT = "10.0.0.1", 9094
LIFETIME_MS = 2500
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SETTINGS = {
    "listeners": f"PLAINTEXT://{HOST}:9092,SOON://{HOST}:{PORT}",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SOON:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.soon.plain.sasl.jaas.config": (
        f'{PLAIN} user_alice="alice-secret" user_bob="bob-secret";'
    ),
    "listener.name.soon.plain.connections.max.reauth.ms": str(LIFETIME_MS),
}


async def log_in(connection: BrokerConnection, user: str) -> Any:
    shaken = await connection.ask(SaslHandshakeRequest(mechanism="PLAIN"))
    assert shaken.error_code is ErrorCode.NONE
    token = f"\0{user}\0{user}-secret".encode()
    return await connection.ask(SaslAuthenticateRequest(auth_bytes=token))


async def is_served(connection: BrokerConnection) -> bool:
    try:
        answer = await connection.ask(MetadataRequest(topics=None))
    except ConnectionLost:
        return False
    return bool(answer.brokers)


def talk(about: Callable[[BrokerConnection], Awaitable[None]]) -> None:
    """Connect to a node whose logins expire soon."""
    simulation = Simulation(1)
    network = SimulatedNetwork(simulation)
    SimulatedNode(simulation, network, settings=SETTINGS).start()

    async def connected() -> None:
        async with raw_connection(HOST, PORT) as connection:
            answer = await log_in(connection, "alice")
            assert answer.session_lifetime_ms == LIFETIME_MS
            await about(connection)

    simulated_loop(simulation, network).run(connected())


def test_a_login_that_is_renewed_goes_on() -> None:
    async def about(connection: BrokerConnection) -> None:
        for _ in range(5):
            await asyncio.sleep(2)
            assert await is_served(connection)
            assert (await log_in(connection, "alice")).session_lifetime_ms == LIFETIME_MS

    talk(about)


def test_nobody_else_may_renew_it() -> None:
    async def about(connection: BrokerConnection) -> None:
        await asyncio.sleep(2)
        assert (await log_in(connection, "bob")).error_code is ErrorCode.SASL_AUTHENTICATION_FAILED
        assert not await is_served(connection)

    talk(about)


@pytest.mark.parametrize(("seconds", "holds"), [(2.4, True), (2.6, False)])
def test_a_login_that_has_expired_ends_the_connection(seconds: float, holds: bool) -> None:
    async def about(connection: BrokerConnection) -> None:
        await asyncio.sleep(seconds)
        assert await is_served(connection) is holds

    talk(about)
