"""Instances send only to instances, and know what comes from them."""

import asyncio
import ssl
from typing import Any

import httpx
import pytest
from tests.unit.satellite.echo_api import EchoApi, serving

from ottla.satellite.instances import Instances, NoInstance, NotSent
from ottla.satellite.process import behind_doors
from ottla.satellite.settings import HttpSettings
from ottla.satellite.users import Users

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
NOW_MS = 1_700_000_000_000
JSON = {"content-type": "application/json"}


def _instances(url: str, *keys: bytes, trusts_group: bool = False) -> Instances:
    tls = ssl.create_default_context()
    return Instances(url, lambda: keys, tls, lambda: NOW_MS, timeout_s=60, trusts_group=trusts_group)


class _Leader:
    """An instance whose port, and so its URL, is known once it listens."""

    def __init__(self, *keys: bytes) -> None:
        self.api = EchoApi()
        self.keys = keys
        self.app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)

    def at(self, port: int) -> str:
        url = f"http://127.0.0.1:{port}"
        instances = _instances(url, *self.keys)
        self.app = behind_doors(self.api, instances, HttpSettings(), Users({"ann": "secret"}))
        return url


async def _send(sender: Instances, url: str) -> httpx.Response:
    try:
        return await sender.send(url, "POST", "/things/a%2Fb?x=1", b'{"a":1}', JSON, "änn")
    finally:
        await sender.close()


def test_an_instance_answers_for_the_user_of_another_one_without_a_password() -> None:
    async def run() -> None:
        leader = _Leader(KEY)
        async with serving(leader) as port:
            answer = await _send(_instances("http://other:1", KEY), leader.at(port))
        assert answer.json() == {"name": "a/b", "user": "änn", "body": '{"a":1}'}
        assert leader.api.received[0].is_forwarded

    asyncio.run(run())


def test_a_key_that_was_replaced_a_moment_ago_still_counts() -> None:
    async def run() -> None:
        leader = _Leader(KEY, OTHER_KEY)
        async with serving(leader) as port:
            url = leader.at(port)
            assert (await _send(_instances("http://other:1", OTHER_KEY, KEY), url)).status_code == 200
            leader.keys, newer = (OTHER_KEY,), _instances("http://other:1", KEY, OTHER_KEY)
            assert (await _send(newer, leader.at(port))).status_code == 200

    asyncio.run(run())


def test_nothing_is_sent_to_whoever_claims_to_be_the_leader() -> None:
    async def run() -> None:
        heard: list[bytes] = []

        async def impostor(scope: Any, receive: Any, send: Any) -> None:
            """Pass all questions on to a real instance, and its answers back."""
            heard.append(scope["raw_path"] + b" " + (await receive()).get("body", b""))
            async with httpx.AsyncClient() as client:
                headers = [(name, value) for name, value in scope["headers"] if name != b"host"]
                answer = await client.request(scope["method"], url + scope["path"], headers=headers)
            named = [(name, value) for name, value in answer.headers.raw if name.startswith(b"x-ottla")]
            await send({"type": "http.response.start", "status": answer.status_code, "headers": named})
            await send({"type": "http.response.body", "body": answer.content})

        leader = _Leader(KEY)
        async with serving(leader) as port, serving(impostor) as strange:
            url = leader.at(port)
            with pytest.raises(NoInstance, match="has not proved"):
                await _send(_instances("http://other:1", KEY), f"http://127.0.0.1:{strange}")
        assert heard == [b"/ottla/instance "]
        assert leader.api.received == []

    asyncio.run(run())


def test_a_signed_request_counts_once_and_only_as_it_was_signed() -> None:
    async def run() -> None:
        leader = _Leader(KEY)
        caught: list[Any] = []

        async def wire(scope: Any, receive: Any, send: Any) -> None:
            caught.append(scope)
            await leader(scope, receive, send)

        async with serving(wire) as port, httpx.AsyncClient() as client:
            url = leader.at(port)
            await _send(_instances("http://other:1", KEY), url)
            signed = dict(caught[-1]["headers"])
            target = url + "/things/a%2Fb?x=1"
            for change in (
                {},
                {b"x-ottla-user": b"root"},
                {b"x-ottla-time": str(NOW_MS + 1).encode()},
                {b"x-ottla-digest": b"0" * 64},
            ):
                again = await client.post(target, content=b'{"a":1}', headers={**signed, **change})
                assert again.status_code == 401
        assert len(leader.api.received) == 1

    asyncio.run(run())


def test_a_body_that_was_not_signed_is_refused() -> None:
    async def run() -> None:
        leader = _Leader(KEY)

        async def wire(scope: Any, receive: Any, send: Any) -> None:
            async def changed() -> Any:
                message = await receive()
                return {**message, "body": message.get("body", b"").replace(b"1", b"2")}

            await leader(scope, changed, send)

        async with serving(wire) as port:
            answer = await _send(_instances("http://other:1", KEY), leader.at(port))
        assert answer.status_code == 401
        assert leader.api.received == []

    asyncio.run(run())


def test_without_a_key_nothing_is_forwarded_and_nothing_is_proved() -> None:
    async def run() -> None:
        leader = _Leader()
        async with serving(leader) as port:
            with pytest.raises(NotSent):
                await _send(_instances("http://other:1"), leader.at(port))
        assert leader.api.received == []

    asyncio.run(run())


def test_a_group_that_is_trusted_gets_requests_without_passwords() -> None:
    async def run() -> None:
        leader = _Leader()
        async with serving(leader) as port:
            answer = await _send(_instances("http://other:1", trusts_group=True), leader.at(port))
        assert answer.status_code == 401

    asyncio.run(run())
