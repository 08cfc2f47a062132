"""`ottla table`: where a topic is copied to, and why it is copied no more."""

from typing import Any

import pytest
from tests.cli.typing import fail, run, succeed

from ottla.cli import table as module


class Worker:
    """A worker of connectors that remembers what it was asked to do."""

    def __init__(self) -> None:
        self.connectors: dict[str, Any] = {}
        self.asked: list[tuple[str, str]] = []

    def ask(self, _url: str, method: str, path: str, body: Any = None) -> Any:
        self.asked.append((method, path))
        if method == "GET":
            return self.connectors
        return body

    def has(self, topic: str, location: str, *tasks: dict[str, Any]) -> None:
        config = {
            "connector.class": "ottla.connect.TableSinkConnector",
            "topics": topic,
            "table.format": "delta",
            "table.location": location,
        }
        status = {"connector": {"state": "RUNNING"}, "tasks": tasks}
        self.connectors[f"table-{topic}"] = {"info": {"config": config}, "status": status}


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    made = Worker()
    monkeypatch.setattr(module, "_ask", made.ask)
    return made


def test_two_topics_are_not_mixed_in_one_table(worker: Worker) -> None:
    worker.has("orders", "/lake/orders")
    words = ("table", "create", "payments", "--format=delta")
    refused = fail(*words, "--location=/lake/orders")
    assert refused.startswith("topic orders is copied to /lake/orders already")
    assert "`ottla table delete orders`" in refused
    assert [method for method, _ in worker.asked] == ["GET"]
    succeed(*words, "--location=/lake/payments")
    succeed("table", "create", "orders", "--format=delta", "--location=/lake/orders", "--every-ms=5")
    assert [method for method, _ in worker.asked].count("PUT") == 2, "one may be changed"


def test_a_table_that_failed_says_why_and_how_to_go_on(worker: Worker) -> None:
    worker.has("fine", "/lake/fine", {"state": "RUNNING"})
    trace = "a record of orders-0 at offset 7 failed: no JSON\nTraceback ...\nConnectError: no JSON\n"
    worker.has("orders", "/lake/orders", {"state": "RUNNING"}, {"state": "FAILED", "trace": trace})
    words = ("table", "list", "--connect=http://ann:secret@worker:8083")
    listed = run(*words)
    assert listed.err.splitlines() == [
        "orders: a record of orders-0 at offset 7 failed: no JSON",
        "  when that is mended: `ottla connector restart table-orders --url http://worker:8083`",
    ]
    assert "secret" not in listed.out
    rows = run(*words, "--json")
    assert [row["reason"] for row in rows.data] == [None, "a record of orders-0 at offset 7 failed: no JSON"]
    assert rows.err == ""
