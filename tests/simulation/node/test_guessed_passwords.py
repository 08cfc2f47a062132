"""Somebody who tries passwords gets few answers, and keeps nobody at another address out."""

import asyncio

from tests.simulation.cluster.clients.raw import raw_connection
from tests.simulation.node.test_expiring_logins import HOST, PORT, SETTINGS, is_served

from ottla.client.errors import ConnectionLost
from ottla.testing.simulation.client_loop import simulated_loop
from ottla.testing.simulation.network import SimulatedNetwork
from ottla.testing.simulation.node import SimulatedNode
from ottla.testing.simulation.simulation import Simulation
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

SECONDS = 16
AT_ONCE = 8


async def try_password(password: str) -> ErrorCode | None:
    """Return what the node answers, None if it closes the connection instead."""
    async with raw_connection(HOST, PORT) as connection:
        try:
            await connection.ask(SaslHandshakeRequest(mechanism="PLAIN"))
            token = f"\0alice\0{password}".encode()
            answer = await connection.ask(SaslAuthenticateRequest(auth_bytes=token), timeout_s=60)
        except ConnectionLost:
            return None
        if answer.error_code is ErrorCode.NONE:
            assert await is_served(connection)
        return ErrorCode(answer.error_code)


async def guess() -> list[ErrorCode | None]:
    """Try wrong passwords, many at once, for a while."""
    answers: list[ErrorCode | None] = []
    end = asyncio.get_running_loop().time() + SECONDS

    async def go_on(number: int) -> None:
        while asyncio.get_running_loop().time() < end:
            answers.append(await try_password(f"wrong-{number}"))
            await asyncio.sleep(0.05)

    await asyncio.gather(*(go_on(number) for number in range(AT_ONCE)))
    return answers


async def scene() -> None:
    guessing = asyncio.create_task(guess())
    await asyncio.sleep(SECONDS / 2)
    # At the same address the right password waits its turn, or is sent away: otherwise it would be found out.
    assert await try_password("alice-secret") in (None, ErrorCode.NONE)
    answers = await guessing
    failures = answers.count(ErrorCode.SASL_AUTHENTICATION_FAILED)
    assert SECONDS / 2 < failures < SECONDS + 12
    assert len(answers) > 2 * failures, "most of them got no answer"
    await asyncio.sleep(10)
    assert await try_password("alice-secret") is ErrorCode.NONE


def test_few_wrong_passwords_are_answered_and_the_right_one_works_again_soon() -> None:
    simulation = Simulation(1)
    network = SimulatedNetwork(simulation)
    SimulatedNode(simulation, network, settings=SETTINGS).start()
    simulated_loop(simulation, network).run(scene())
