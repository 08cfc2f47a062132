"""A command that waits for brokers that are gone says so."""

import asyncio

import pytest

from ottla.cli.records import produce


def test_somebody_who_waits_for_an_acknowledgement_is_told_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(produce, "_SILENCE_S", 0.0)

    async def wait(oldest: list[object], turns: int) -> None:
        async with produce._tell_of_silence(lambda: oldest[0] if len(oldest) == 1 else oldest.pop()):
            for _ in range(turns):
                await asyncio.sleep(0)

    stuck = object()
    asyncio.run(wait([stuck], 50))
    assert capsys.readouterr().err.count("no broker has acknowledged a record") == 1
    # Each look finds another record: they are acknowledged, one after the other.
    asyncio.run(wait([None, *(object() for _ in range(60))], 50))
    assert capsys.readouterr().err == ""
