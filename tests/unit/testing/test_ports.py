"""Tests that run at the same time do not take each other's ports."""

import os
import random
import socket
import subprocess
import sys

import pytest

from ottla.testing import ports

TAKE = "from ottla.testing.ports import free_port; print(*(free_port() for _ in range(500)))"


def _take_as_worker(number: int) -> list[int]:
    worker = {"PYTEST_XDIST_WORKER": f"gw{number}", "PYTEST_XDIST_WORKER_COUNT": "2"}
    taken = subprocess.check_output([sys.executable, "-c", TAKE], env={**os.environ, **worker}, text=True)
    return [int(port) for port in taken.split()]


def test_workers_share_no_port() -> None:
    first, second = _take_as_worker(0), _take_as_worker(1)

    assert not set(first) & set(second)
    assert all(20_000 <= port < 32_000 for port in first + second)


def test_no_port_is_given_out_twice_even_if_chance_is_seeded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_untried", [])
    taken = []
    for _ in range(100):
        random.seed(1)
        taken.append(ports.free_port())

    assert len(set(taken)) == len(taken)


def test_a_port_that_somebody_listens_on_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    free = ports.free_port()
    with socket.create_server(("127.0.0.1", ports.free_port())) as server:
        monkeypatch.setattr(ports, "_untried", [free, server.getsockname()[1]])

        assert ports.free_port() == free
