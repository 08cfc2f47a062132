"""The field that cannot be written is found."""

from typing import Any

import pytest
from tests.support.declarations import messages_and_versions, populated

from ottla.wire.declare import replace
from ottla.wire.explain import find_bad_field
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

FIND = FindCoordinatorRequest(coordinator_keys=("a", "b"))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"key_type": 200}, "key_type is 200, which is no int8"),
        ({"key_type": None}, "key_type is None, which version 4 does not allow"),
        (
            {"coordinator_keys": None},
            "coordinator_keys is None, which version 4 does not allow",
        ),
        ({"coordinator_keys": "ab"}, "coordinator_keys is 'ab', not a tuple"),
        (
            {"coordinator_keys": ("a", 5)},
            "coordinator_keys[1] is 5, which is no string",
        ),
    ],
)
def test_sentence_names_the_field(changes: dict[str, Any], sentence: str) -> None:
    assert find_bad_field(replace(FIND, **changes), 4) == f"FindCoordinatorRequest.{sentence}"


def test_fields_inside_structs_are_found() -> None:
    records: Any = 5
    partition = PartitionProduceData(partition_index=1, records=records)
    topic = TopicProduceData(name="t", partition_data=(partition,))
    request = ProduceRequest(acks=1, timeout_ms=0, topic_data=(topic,))
    path = "ProduceRequest.topic_data[0].partition_data[0].records"
    assert find_bad_field(request, 9) == f"{path} is 5, which is no records"


def test_fields_that_the_version_lacks_are_not_looked_at() -> None:
    wrong: Any = None
    assert find_bad_field(replace(FIND, coordinator_keys=wrong), 3) is None


def test_nothing_is_found_in_messages_that_can_be_written() -> None:
    for cls, version in messages_and_versions():
        assert find_bad_field(populated(cls, version), version) is None
