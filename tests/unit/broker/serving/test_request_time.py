"""The time that a large request takes is counted: its client's quota holds for it as for small ones."""

import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.in_process import InProcessClient, in_process_node

from ottla.broker.serving.dispatch import Session
from ottla.wire.messages.delete_groups import DeleteGroupsRequest


def test_the_parts_of_a_large_request_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    def count(_session: Session, took_ns: int, response: Any) -> Any:
        counted.append(took_ns)
        return response

    monkeypatch.setattr(Session, "_count_time_if_limited", count)
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        began_ns = time.monotonic_ns()
        names = tuple(f"name-{number}" for number in range(600))
        answer = client.ask(DeleteGroupsRequest(group_names=names))
        elapsed_ns = time.monotonic_ns() - began_ns
    assert len(answer.results) == 600
    (took_ns,) = counted
    assert 0 < took_ns < elapsed_ns
