"""An instance that cannot write lets another one write."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from ottla.client.errors import ClientError
from ottla.registry.deciding.decision import Decision
from ottla.registry.errors import RegistryError
from ottla.registry.leading.election import Election
from ottla.registry.leading.protocol import (
    Assignment,
    Identity,
    decode_identity,
    elect,
    encode_assignment,
)
from ottla.registry.service import Registry, RegistrySettings
from ottla.satellite.settings import HttpSettings

ONE, OTHER = Identity("a", 1), Identity("b", 1)
CLUSTER: Any = None


def _said(election: Election) -> Identity:
    ((_, metadata),) = election.protocols()
    return decode_identity(metadata)


def test_an_instance_that_was_chosen_and_cannot_write_is_not_chosen_again_at_once() -> None:
    told: list[Identity | None] = []
    fails = True

    async def chosen(leader: Identity | None) -> None:
        told.append(leader)
        if leader == ONE and fails:
            raise ClientError("the cluster does not want it")

    async def run() -> None:
        nonlocal fails
        election = Election(CLUSTER, "g", ONE, chosen)
        share = encode_assignment(Assignment("m1", ONE))
        await election.assigned("m1", 1, share)
        assert told == [ONE, None]
        assert not _said(election).is_eligible
        assert election._group._wants_to_join.is_set()
        assert elect({"m1": _said(election), "m2": OTHER}).leader == OTHER
        # Alone, it comes back after a while, and may be chosen.
        async with asyncio.timeout(60):
            while not _said(election).is_eligible:
                await asyncio.sleep(0.05)
        fails = False
        await election.assigned("m1", 2, share)
        assert _said(election).is_leader

    asyncio.run(run())


@pytest.mark.parametrize("error", [ClientError("the cluster does not want it"), asyncio.CancelledError()])
def test_a_writer_that_cannot_begin_again_steps_back(monkeypatch: Any, error: BaseException) -> None:
    async def run() -> None:
        properties = {"bootstrap.servers": "127.0.0.1:1"}
        registry = Registry(properties, RegistrySettings(), ONE, HttpSettings().tls_to_others())

        async def fail(_leader: Identity | None) -> None:
            raise error

        monkeypatch.setattr(registry, "_chosen", fail)
        writer: Any = object()
        registry._writer, registry.leader = writer, ONE
        with suppress(asyncio.CancelledError):
            await registry._resign(writer)
        assert not registry.is_leader
        assert not _said(registry._election).is_eligible
        await registry.instances.close()

    asyncio.run(run())


def _registry(**settings: Any) -> Registry:
    properties = {"bootstrap.servers": "127.0.0.1:1"}
    return Registry(properties, RegistrySettings(**settings), ONE, HttpSettings().tls_to_others())


def test_who_waits_in_vain_to_write_does_not_end_the_writer_that_others_use() -> None:
    async def run() -> None:
        registry = _registry(timeout_s=0.01)
        writer: Any = object()
        registry._writer, registry.leader = writer, ONE
        async with registry._write_lock:
            with pytest.raises(RegistryError, match="timed out"):
                await registry.change(lambda: Decision(None))
        assert registry._writer is writer
        await registry.instances.close()

    asyncio.run(run())


def test_who_was_named_while_this_instance_began_again_is_the_writer(monkeypatch: Any) -> None:
    begins, goes_on = asyncio.Event(), asyncio.Event()

    class SlowWriter:
        def __init__(self, *_: Any) -> None:
            """It needs nothing."""

        async def start(self) -> None:
            begins.set()
            await goes_on.wait()

    async def run() -> None:
        monkeypatch.setattr("ottla.registry.service.TopicWriter", SlowWriter)
        registry = _registry()
        writer: Any = object()
        registry._writer, registry.leader = writer, ONE
        resigning = asyncio.create_task(registry._resign(writer))
        await begins.wait()
        await registry._chosen(OTHER)
        goes_on.set()
        await resigning
        assert (registry.is_leader, registry.leader) == (False, OTHER)
        await registry.instances.close()

    asyncio.run(run())
