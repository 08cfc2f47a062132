"""The clients of a task, as its worker makes them."""

import pytest

from ottla.connect.catalog import all_plugins
from ottla.connect.running.making import TaskMaker
from ottla.connect.settings import read_settings


@pytest.mark.parametrize(
    ("worker", "connector", "session_ms"),
    [
        ({}, {}, "10000"),
        ({"session.timeout.ms": "6000"}, {}, "6000"),
        ({"consumer.session.timeout.ms": "7000"}, {}, "7000"),
        ({}, {"consumer.override.session.timeout.ms": "8000"}, "8000"),
        # Members of the new protocol have the session that the brokers say.
        ({"consumer.group.protocol": "consumer"}, {}, None),
        ({}, {"consumer.override.group.protocol": "consumer"}, None),
    ],
)
def test_a_dead_sink_is_noticed_when_its_worker_is(
    worker: dict[str, str], connector: dict[str, str], session_ms: str | None
) -> None:
    settings, common = read_settings(worker)
    maker = TaskMaker(all_plugins(), settings, common, None, lambda _unit, _topic: None, str)  # type: ignore[arg-type]
    found = maker._consumer("c", connector)
    assert found.get("session.timeout.ms") == session_ms
    assert (found["group.id"], found["enable.auto.commit"]) == ("connect-c", "false")
