"""A refusal can be drawn from any request of any API, and says its error to all that was asked for."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.messages import examples, message_values

from ottla.broker.serving.served_apis import SERVED
from ottla.testing.refusals import refusal_of
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.framing import decode_response, encode_response
from ottla.wire.layout import layout_of
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

ERROR = ErrorCode.KAFKA_STORAGE_ERROR


def error_codes(part: Any, version: int) -> Iterator[ErrorCode]:
    """Give all error codes of a message that travel in a version."""
    for field in layout_of(type(part)):
        value = getattr(part, field.name)
        if version not in field.versions or value is None:
            continue
        if field.kind == "error_code" and not field.is_array:
            yield value
        elif field.struct is not None:
            for element in value if field.is_array else (value,):
                yield from error_codes(element, version)


@pytest.mark.parametrize("key", sorted(SERVED), ids=lambda key: key.name.lower())
@given(data=st.data())
@examples(5)
def test_any_request_can_be_refused(key: ApiKey, data: st.DataObject) -> None:
    api = api_of(key)
    version = data.draw(st.sampled_from(list(api.stable_versions.all)))
    request = data.draw(message_values(api.request, version))
    answer = refusal_of(api.response, request, version, ERROR)
    _, read = decode_response(api, version, encode_response(answer, api, version, 7)[4:])
    assert set(error_codes(read, version)) <= {ERROR}


def test_each_partition_of_a_write_is_refused() -> None:
    parts = tuple(PartitionProduceData(partition_index=number, records=None) for number in (3, 5))
    request = ProduceRequest(
        acks=1, timeout_ms=1, topic_data=(TopicProduceData(name="t", partition_data=parts),)
    )
    (topic,) = refusal_of(ProduceResponse, request, 9, ERROR).responses
    assert topic.name == "t"
    refused = [(part.partition_index, part.error_code) for part in topic.partition_responses]
    assert refused == [(3, ERROR), (5, ERROR)]


def test_what_is_asked_for_by_its_mere_name_is_refused_by_it() -> None:
    request = FindCoordinatorRequest(coordinator_keys=("a", "b"))
    answer = refusal_of(FindCoordinatorResponse, request, 4, ERROR)
    assert [(found.key, found.error_code) for found in answer.coordinators] == [("a", ERROR), ("b", ERROR)]
    topic = OffsetFetchRequestTopic(name="t", partition_indexes=(1, 2))
    (refused,) = refusal_of(OffsetFetchResponse, OffsetFetchRequest(topics=(topic,)), 7, ERROR).topics
    assert [(part.partition_index, part.error_code) for part in refused.partitions] == [
        (1, ERROR),
        (2, ERROR),
    ]
