"""The first signal asks to stop in order, the second stops at once."""

import asyncio
import os

import pytest

from ottla.runtime.signals import STOPPED_AT_ONCE, StopSignals


def test_only_the_second_signal_ends_the_process_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    stopped: list[bool] = []
    loop = asyncio.new_event_loop()
    signals = StopSignals(loop, lambda: stopped.append(True))

    signals.received()
    assert (stopped, ended) == ([True], [])

    signals.received()
    assert ended == [STOPPED_AT_ONCE]
    loop.close()
