"""The server that satellites share."""

import asyncio
import socket
import ssl

import httpx
from tests.unit.satellite.echo_api import EchoApi, serving

from ottla.satellite.instances import Instances
from ottla.satellite.process import behind_doors
from ottla.satellite.server import listening
from ottla.satellite.settings import HttpSettings
from ottla.satellite.users import Users


def test_clients_do_not_choose_the_address_that_their_guesses_are_counted_by() -> None:
    async def run() -> list[int]:
        tls = ssl.create_default_context()
        instances = Instances("http://127.0.0.1", tuple, tls, lambda: 0, timeout_s=60)
        app = behind_doors(EchoApi(), instances, HttpSettings(), Users({"ann": "secret"}))
        async with serving(app) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            answers = [
                await client.get(
                    "/things/a", auth=(f"user{number}", "x"), headers={"X-Forwarded-For": f"10.0.0.{number}"}
                )
                for number in range(11)
            ]
        await instances.close()
        return [answer.status_code for answer in answers]

    assert asyncio.run(run()) == [401] * 10 + [429]


def test_answers_are_sent_at_once() -> None:
    with (
        listening(HttpSettings()) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
