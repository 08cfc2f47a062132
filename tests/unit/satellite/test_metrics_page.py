"""Metrics on loopback: for programs of this machine, and for no web page and nobody who only holds on."""

import socket
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Gauge

from ottla.satellite import metrics_page
from ottla.satellite.metrics_page import serve_page

PATIENCE_S = 60


@pytest.fixture
def port() -> Iterator[int]:
    registry = CollectorRegistry()
    Gauge("answer", "What is asked for.", registry=registry).set(42)
    server = serve_page(registry, 0)
    yield server.server_port
    server.shutdown()
    server.server_close()


def ask(port: int, *headers: str) -> str:
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
        lines = ["GET /metrics HTTP/1.0", *headers, "", ""]
        client.sendall("\r\n".join(lines).encode())
        return "".join(iter(lambda: client.recv(65536).decode(), ""))


@pytest.mark.parametrize("headers", [(), ("Host: localhost:1",), ("Host: 127.0.0.1:1",)])
def test_a_program_of_this_machine_gets_them(port: int, headers: tuple[str, ...]) -> None:
    assert "answer 42.0" in ask(port, *headers)


@pytest.mark.parametrize(
    "headers",
    [
        ("Host: rebound.example",),
        ("Host: localhost:1", "Origin: http://evil.example"),
        ("Host: localhost:1", "Sec-Fetch-Site: cross-site"),
    ],
)
def test_a_web_page_gets_nothing(port: int, headers: tuple[str, ...]) -> None:
    answer = ask(port, *headers)
    assert answer.startswith("HTTP/1.0 403")
    assert "answer" not in answer


def test_who_only_holds_on_is_let_go(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_page, "_CONNECTION_S", 0.05)
    holding = [socket.create_connection(("127.0.0.1", port), PATIENCE_S) for _ in range(20)]
    for client in holding:
        client.sendall(b"GET /met")
    assert "answer 42.0" in ask(port)
    for client in holding:
        with client:
            assert client.recv(1) == b""
