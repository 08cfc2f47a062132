"""The synchronous face: it has all that the asynchronous one has, and leaves cleanly."""

import asyncio
import inspect
import threading
from concurrent.futures import Future
from typing import Any

import pytest

from ottla.client.admin import Admin as AsyncAdmin
from ottla.client.consumer.consumer import Consumer as AsyncConsumer
from ottla.client.producer import Producer as AsyncProducer
from ottla.client.sync import Admin, Consumer, Producer
from ottla.client.sync.loop_thread import LoopThread

_LIFE = {"start"}


def _public(kind: type[Any]) -> set[str]:
    return {
        name for name, member in inspect.getmembers(kind) if callable(member) and not name.startswith("_")
    }


@pytest.mark.parametrize(
    ("asynchronous", "blocking"), [(AsyncProducer, Producer), (AsyncConsumer, Consumer)], ids=str
)
def test_nothing_is_missing(asynchronous: type[Any], blocking: type[Any]) -> None:
    assert _public(asynchronous) - _LIFE == _public(blocking)


def test_no_noun_of_the_admin_client_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(_self: AsyncAdmin) -> None:
        return None

    monkeypatch.setattr(AsyncAdmin, "start", nothing)
    nouns = {name: value for name, value in vars(AsyncAdmin("host:1")).items() if not name.startswith("_")}
    with Admin("host:1") as admin:
        for name, noun in nouns.items():
            assert _public(type(noun)) == _public(type(getattr(admin, name))), name


def test_an_interrupted_call_is_cancelled_before_it_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    thread = LoopThread("test")
    asked = threading.Event()
    events: list[str] = []

    async def long() -> None:
        asked.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            for _ in range(10):
                await asyncio.sleep(0)
            events.append("cleaned up")

    class Interrupted(Future[None]):
        """Stands for the waiting caller whom Ctrl-C hits once."""

        hits = 1

        def result(self, timeout: float | None = None) -> None:
            asked.wait()
            self.hits -= 1
            if self.hits == 0:
                raise KeyboardInterrupt
            super().result(timeout)

    monkeypatch.setattr("ottla.client.sync.loop_thread.Future", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        thread.run(long())
    assert events == ["cleaned up"]
    thread.stop()


def test_a_callback_that_would_wait_for_itself_is_told() -> None:
    thread = LoopThread("test")

    async def inner() -> None:
        return None

    async def outer() -> None:
        thread.run(inner())

    with pytest.raises(RuntimeError, match="it would wait for itself"):
        thread.run(outer())
    thread.stop()
    with pytest.raises(RuntimeError, match="closed"):
        thread.run(inner())


def test_stopping_cancels_what_still_runs() -> None:
    thread = LoopThread("test")
    ended = []

    async def start() -> None:
        async def forever() -> None:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                ended.append(True)

        thread.loop.left_over = asyncio.create_task(forever())  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    thread.run(start())
    thread.stop()
    assert ended == [True]
    assert not thread.is_running
