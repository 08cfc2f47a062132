"""Slow requests and answers that nobody takes hold no satellite."""

import asyncio

import pytest
from tests.unit.satellite.echo_api import echo_app, serving

from ottla.satellite import bodies
from ottla.satellite.connections import ConnectionLimits

PATIENCE_S = 60
REQUEST = b"GET /things/a HTTP/1.1\r\nHost: localhost\r\n\r\n"
JSON = b"Content-Type: application/json\r\n"
BODY_HEAD = b"POST /things/a HTTP/1.1\r\nHost: localhost\r\n" + JSON + b"Content-Length: 9\r\n\r\n"


async def _drip(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Send a byte again and again, until the other side has enough of it."""
    try:
        while True:
            writer.write(data)
            await writer.drain()
            await asyncio.sleep(0.02)
    except ConnectionError:
        pass


async def _is_closed(port: int, first: bytes, drip: bytes) -> bool:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(first)
    dripping = asyncio.create_task(_drip(writer, drip))
    try:
        async with asyncio.timeout(PATIENCE_S):
            while await reader.read(1000):
                pass
    except ConnectionError:
        pass
    finally:
        dripping.cancel()
        writer.close()
    return True


def test_a_head_that_does_not_end_is_given_up() -> None:
    async def run() -> None:
        async with serving(echo_app(), ConnectionLimits(head_s=0.3)) as port:
            assert await _is_closed(port, REQUEST[:-2], b"X-A: b\r\n")
            # Also the second one of a connection, when the first one was answered.
            assert await _is_closed(port, REQUEST + b"GET ", b"a")

    asyncio.run(run())


def test_a_body_that_does_not_end_is_given_up() -> None:
    async def run() -> None:
        async with serving(echo_app(), ConnectionLimits(request_s=0.3)) as port:
            chunked = BODY_HEAD.replace(b"Content-Length: 9", b"Transfer-Encoding: chunked")
            assert await _is_closed(port, chunked, b"1\r\na\r\n")
            # Also one that was answered before it was there.
            refused = chunked.replace(b"application/json", b"text/plain")
            assert await _is_closed(port, refused, b"1\r\na\r\n")

    asyncio.run(run())


def test_requests_in_time_are_answered_on_one_connection() -> None:
    async def run() -> None:
        limits = ConnectionLimits(head_s=20, request_s=20)
        async with serving(echo_app(), limits) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for part in (REQUEST[:10], REQUEST[10:], BODY_HEAD, b"123", b"456789", REQUEST):
                writer.write(part)
                await asyncio.sleep(0.01)
            answers = b""
            async with asyncio.timeout(PATIENCE_S):
                while answers.count(b"HTTP/1.1 200") < 3:
                    answers += await reader.read(10_000)
            writer.close()

    asyncio.run(run())


def test_an_answer_that_nobody_takes_is_given_up() -> None:
    async def run() -> None:
        async with serving(echo_app(), ConnectionLimits(answer_s=0.3)) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
            writer.write(REQUEST.replace(b"/things/a", b"/large"))
            try:
                async with asyncio.timeout(PATIENCE_S):
                    # Nothing is read, so the only news can be that the connection has ended.
                    while not writer.transport.is_closing():
                        writer.write(b"\r")
                        await asyncio.sleep(0.05)
            finally:
                writer.close()
            del reader

    asyncio.run(run())


def test_many_connections_without_a_request_keep_nobody_out() -> None:
    async def run() -> None:
        async with serving(echo_app(), ConnectionLimits(connections=5)) as port:
            idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(REQUEST)
            async with asyncio.timeout(PATIENCE_S):
                assert b"200" in await reader.read(1000)
                # The oldest ones had to go.
                assert await idle[0][0].read() == b""
            for _, one in [*idle, (reader, writer)]:
                one.close()

    asyncio.run(run())


def test_many_bodies_that_do_not_come_keep_nobody_out() -> None:
    async def run() -> None:
        async with serving(echo_app(), ConnectionLimits(connections=5)) as port:
            begun = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
            for _, writer in begun:
                writer.write(BODY_HEAD + b"1")
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(REQUEST)
            async with asyncio.timeout(PATIENCE_S):
                assert b"200" in await reader.read(1000)
                assert await begun[0][0].read() == b""
                # The others go on.
                begun[-1][1].write(b"23456789")
                assert b"200" in await begun[-1][0].read(1000)
            for _, one in [*begun, (reader, writer)]:
                one.close()

    asyncio.run(run())


def test_small_bodies_are_read_while_large_ones_do_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "_ALL_BYTES_MAX", 1000)
    monkeypatch.setattr(bodies, "_SMALL_BYTES_MAX", 100)

    async def ask(port: int, size: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(BODY_HEAD.replace(b": 9", f": {size}".encode()) + b"x" * size)
        answer = await reader.read(1000)
        writer.close()
        return answer

    async def run() -> None:
        async with serving(echo_app()) as port, asyncio.timeout(PATIENCE_S):
            _, holding = await asyncio.open_connection("127.0.0.1", port)
            holding.write(BODY_HEAD.replace(b": 9", b": 1000000") + b"x" * 950)
            while b"503" not in await ask(port, 200):
                pass
            assert b"200" in await ask(port, 100)
            holding.close()

    asyncio.run(run())
