"""Connectors: their states and errors without secrets, and how they are restarted, paused and resumed."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.console.test_acts import commands_of
from tests.console.test_pages import text_of
from tests.support.console_visitor import ConsoleVisitor

from ottla.console.serving.satellites import Satellites
from ottla.console.settings import ClusterSettings, ConsoleSettings

URL = "http://who:secret@127.0.0.1:8083"
CONFIG = {
    "connector.class": "JdbcSink",
    "connection.url": "postgresql://ann:hunter2@db/shop",
    "connection.password": "hunter2",
    "topics": "<b>orders</b>",
}
TRACE = "SomeError: <script>no table</script>\n\tat line 1\nconnection.password=hunter2\n"


class FakeWorker:
    """Answers as a worker does, and remembers what was ordered."""

    def __init__(self) -> None:
        self.orders: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode()
        status = {
            "name": "a/b",
            "type": "sink",
            "connector": {"state": "RUNNING", "worker_id": "w:1"},
            "tasks": [
                {"id": 0, "state": "RUNNING", "worker_id": "w:1"},
                {"id": 1, "state": "FAILED", "worker_id": "w:2", "trace": TRACE},
            ],
        }
        answers: dict[tuple[str, str], Any] = {
            ("GET", "/connectors?expand=status&expand=info"): {
                "a/b": {"status": status, "info": {"config": CONFIG}},
                "new": {"info": {"config": {}}},
            },
            ("GET", "/connectors/a%2Fb/status"): status,
            ("GET", "/connectors/a%2Fb/config"): CONFIG,
        }
        if request.method != "GET":
            self.orders.append(f"{request.method} {path}")
            return httpx.Response(202)
        if (request.method, path) not in answers:
            return httpx.Response(404, text=json.dumps({"error_code": 404, "message": "no such connector"}))
        return httpx.Response(200, json=answers[request.method, path])


def console_with(worker: FakeWorker, bootstrap: str, **properties: str) -> ConsoleVisitor:
    given = {"bootstrap.servers": bootstrap, **properties}
    cluster = ClusterSettings.of("c", given, connect_url=URL)
    looking = ConsoleVisitor(ConsoleSettings((cluster,)))
    looking.console.satellites = Satellites(httpx.MockTransport(worker))
    return looking


@pytest.fixture
def worker() -> FakeWorker:
    """A worker with two connectors."""
    return FakeWorker()


@pytest.fixture
def acting(filled: str, worker: FakeWorker) -> Iterator[ConsoleVisitor]:
    """Somebody who looks at it."""
    with console_with(worker, filled) as looking:
        yield looking


def test_connectors_are_listed_with_their_tasks_and_last_errors(acting: ConsoleVisitor) -> None:
    page = acting.page("/connectors")
    assert "a/b ● RUNNING sink ✕ 1 of 2 JdbcSink SomeError: &lt;script&gt;no table" in text_of(page)
    assert "UNASSIGNED" in page
    assert commands_of(page) == ["ottla connector list --url http://127.0.0.1:8083"]
    assert "secret" not in page


def test_a_connector_shows_its_trace_and_its_config_without_secrets(acting: ConsoleVisitor) -> None:
    page = acting.page("/connectors/a%2Fb")
    assert "at line 1" in page
    assert "<script>no" not in page
    assert "postgresql://ann:(hidden)@db/shop" in page
    assert "hunter2" not in page
    assert acting.get("/connectors/nothing").status_code == 404


@pytest.mark.parametrize(
    ("act", "order"),
    [
        ("restart", "POST /connectors/a%2Fb/restart?includeTasks=true"),
        ("pause", "PUT /connectors/a%2Fb/pause"),
        ("resume", "PUT /connectors/a%2Fb/resume"),
    ],
)
def test_a_connector_is_restarted_paused_and_resumed(
    acting: ConsoleVisitor, worker: FakeWorker, act: str, order: str
) -> None:
    done = acting.post("/connectors/a%2Fb/act", {"act": act})
    assert worker.orders == [order]
    page = acting.page(done.headers["location"].removeprefix("/c/c"))
    assert f"taken the order to {act}" in page
    assert f"ottla connector {act} a/b --url http://127.0.0.1:8083" in commands_of(page)


def test_nothing_else_is_done_with_a_connector(acting: ConsoleVisitor, worker: FakeWorker) -> None:
    assert acting.post("/connectors/a%2Fb/act", {"act": "delete"}).status_code == 400
    assert worker.orders == []


def test_without_a_worker_the_page_says_how_to_name_one(visitor: ConsoleVisitor) -> None:
    assert "--connect URL" in visitor.page("/connectors")
    assert visitor.get("/connectors/x").status_code == 404
