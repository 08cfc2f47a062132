"""The first signal asks to stop in order, the second stops at once."""

import asyncio
import os
import signal

import pytest

from ottla.runtime.signals import STOPPED_AT_ONCE, StopSignals, stop_signals


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


def test_a_terminal_that_is_closed_is_never_the_second_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    loop = asyncio.new_event_loop()
    signals = StopSignals(loop, lambda: None)
    signals.received(signal.SIGHUP)
    signals.received(signal.SIGHUP)
    assert ended == []
    signals.received(signal.SIGTERM)
    assert ended == [STOPPED_AT_ONCE]
    loop.close()


def test_what_is_to_outlive_its_terminal_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert signal.SIGHUP in stop_signals()
    monkeypatch.setattr(signal, "getsignal", lambda _number: signal.SIG_IGN)
    assert signal.SIGHUP not in stop_signals()
