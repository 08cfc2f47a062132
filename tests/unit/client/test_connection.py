"""Whoever waits for an answer, or for the end of a connection, hears of it, whatever the broker does."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.connection import Address, BrokerConnection, open_connection
from ottla.client.errors import ConnectionLost
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.framing import encode_response
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from ottla.wire.messages.metadata import MetadataRequest


class StuckTransport(asyncio.Transport):
    """To a broker that tells its versions, and then reads nothing more: what is written stays here."""

    def __init__(self, receiver: Any) -> None:
        super().__init__()
        self._receiver = receiver
        self._has_told_versions = False
        self.is_aborted = False

    def write(self, _data: object) -> None:
        if not self._has_told_versions:
            self._has_told_versions = True
            key = ApiVersion(api_key=ApiKey.METADATA, min_version=12, max_version=12)
            answer = ApiVersionsResponse(api_keys=(key,))
            api = api_of(ApiKey.API_VERSIONS)
            frame = encode_response(answer, api, api.versions.last, 1)
            asyncio.get_running_loop().call_soon(self.feed, frame)

    def feed(self, data: bytes) -> None:
        self._receiver.get_buffer(-1)[: len(data)] = data
        self._receiver.buffer_updated(len(data))

    def close(self) -> None:
        """Wait for the broker to read, as a transport does."""

    def abort(self) -> None:
        self.is_aborted = True
        asyncio.get_running_loop().call_soon(self._receiver.connection_lost, None)


async def connect(monkeypatch: pytest.MonkeyPatch) -> tuple[BrokerConnection, StuckTransport]:
    made: list[StuckTransport] = []

    async def create_connection(new_receiver: Callable[[], Any], *_: object, **__: object) -> Any:
        receiver = new_receiver()
        made.append(StuckTransport(receiver))
        return made[0], receiver

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", create_connection)
    connection = await open_connection(Address("nowhere", 1), setup_timeout_s=0.01)
    return connection, made[0]


@pytest.mark.parametrize(
    "answer",
    [b"\0\0\0\x02", b"\0\0\0\x63\0\0\0\0\0"],
    ids=["cut short", "of another request"],
)
def test_an_answer_that_makes_no_sense_is_told_to_whom_it_was_for(
    monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    async def run() -> None:
        connection, transport = await connect(monkeypatch)
        first, second = (
            connection.send(MetadataRequest(topics=None)),
            connection.send(MetadataRequest(topics=None)),
        )
        transport.feed(len(answer).to_bytes(4) + answer)
        for waiting in (first, second):
            with pytest.raises(ConnectionLost):
                await waiting
        assert not connection.is_open

    asyncio.run(run())


def test_closing_does_not_wait_for_a_broker_that_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        connection, transport = await connect(monkeypatch)
        waiting = connection.send(MetadataRequest(topics=None))
        await connection.close()
        assert transport.is_aborted
        with pytest.raises(ConnectionLost):
            await waiting

    asyncio.run(run())
