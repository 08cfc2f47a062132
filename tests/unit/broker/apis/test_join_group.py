"""JoinGroup, as the node serves it. Expected: what Apache Kafka 4.3.1 answers."""

from pathlib import Path

import pytest
from tests.support.group_requests import join_request
from tests.support.in_process import InProcessClient, in_process_node

from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest


@pytest.mark.parametrize(
    ("version", "protocol", "expected"),
    [(6, "", ""), (7, "", None), (9, "", None), (6, "range", "range"), (9, "range", "range")],
)
def test_an_empty_name_of_a_protocol_is_none_where_none_can_be_said(
    tmp_path: Path, version: int, protocol: str, expected: str | None
) -> None:
    with in_process_node(tmp_path, {"group.initial.rebalance.delay.ms": "0"}) as node:
        client = InProcessClient(node)
        client.ask(FindCoordinatorRequest(coordinator_keys=("g",)))
        # A static member is taken in at once: nobody asks it to come again with an id.
        answer = client.ask(join_request("g", instance_id="i", protocols=((protocol, b""),)), version)
    assert answer.error_code is ErrorCode.NONE
    assert answer.protocol_name == expected
