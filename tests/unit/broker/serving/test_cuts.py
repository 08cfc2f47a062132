"""Large requests are cut into small ones, and the answers to those are merged."""

from collections.abc import Generator
from typing import Any

import pytest

from ottla.broker.serving import cuts
from ottla.broker.serving.cuts import Cut, Merged, Pace, arrange, cut, weigh
from ottla.wire.codec import encode, encode_struct
from ottla.wire.declare import replace
from ottla.wire.encoded_items import as_array
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest

PATH = ("topics", "partitions")


def finish(work: Generator[Any, None, Any]) -> Any:
    try:
        while True:
            next(work)
    except StopIteration as done:
        return done.value


def request(*sizes: int) -> DeleteRecordsRequest:
    return DeleteRecordsRequest(
        topics=tuple(
            DeleteRecordsTopic(
                name=f"t{number}",
                partitions=tuple(DeleteRecordsPartition(partition_index=n, offset=n) for n in range(size)),
            )
            for number, size in enumerate(sizes)
        ),
        timeout_ms=7,
    )


def answer(ask: DeleteRecordsRequest) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=tuple(
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(
                    DeleteRecordsPartitionResult(
                        partition_index=one.partition_index, low_watermark=one.offset
                    )
                    for one in topic.partitions
                ),
            )
            for topic in ask.topics
        )
    )


@pytest.mark.parametrize("size", [2, 3, 7, 100])
@pytest.mark.parametrize("sizes", [(5,), (1, 1, 1), (0, 20, 0), (3, 17, 2, 0, 30)])
def test_merged_answers_are_the_answer_to_the_whole(sizes: tuple[int, ...], size: int) -> None:
    ask = request(*sizes)
    merged = Merged(["partitions"])

    def encode_item(item: Any, add: Any) -> Generator[None, None, None]:
        add(encode_struct(item, DeleteRecordsResponse, 2))
        yield

    for portion, is_continued in cut(ask, PATH, Pace(size)):
        assert portion.timeout_ms == 7
        assert weigh(portion, PATH, 1000) <= max(size, 3) + 2
        finish(merged.add(answer(portion).topics, is_continued, encode_item))
    finish(merged.finish(encode_item))
    whole = answer(ask)
    encoded = replace(whole, topics=as_array(merged.count, b"".join(merged.take())))
    assert encode(encoded, 2) == encode(whole, 2)


def test_an_element_of_many_parts_is_not_copied_for_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    joined: list[object] = []
    monkeypatch.setattr(cuts, "join", lambda *_: joined.append(1))
    merged = Merged(["partitions"])
    encoded: list[Any] = []

    def keep(item: Any, _add: Any) -> Generator[None, None, None]:
        encoded.append(item)
        yield

    for number in range(2_000):
        part = DeleteRecordsPartitionResult(
            partition_index=number, low_watermark=0, error_code=ErrorCode.NONE
        )
        topic = DeleteRecordsTopicResult(name="t", partitions=(part,))
        finish(merged.add((topic,), number > 0, keep))
    finish(merged.finish(keep))
    [whole] = encoded
    assert [part.partition_index for part in whole.partitions] == list(range(2_000))
    assert not joined


def test_a_topic_that_is_named_twice_stays_two() -> None:
    ask = replace(request(2), topics=request(2).topics * 2)
    portions = list(cut(ask, PATH, Pace(3)))
    assert [is_continued for _, is_continued in portions] == [False, False]


def test_repeated_elements_stay_together() -> None:
    plan = Cut("coordinator_keys", "coordinators", key=str)
    ask = FindCoordinatorRequest(coordinator_keys=("a", "b", "a", "c", "d", "d", "a"))
    single, repeated = finish(arrange(ask, plan))
    assert single.coordinator_keys == ("b", "c")
    assert repeated.coordinator_keys == ("a", "a", "d", "d")
    for portion, _ in cut(repeated, ("coordinator_keys",), Pace(2)):
        assert portion.coordinator_keys[0] == portion.coordinator_keys[1]
    (dropped,) = finish(arrange(ask, plan._replace(drops_repeated=True)))
    assert dropped.coordinator_keys == ("b", "c", "a", "d")


def test_the_pace_follows_the_time_that_is_taken() -> None:
    pace = Pace(32)
    pace.took(100_000_000)
    assert pace.size == 16
    for _ in range(20):
        pace.took(100_000_000)
    assert pace.size == 2
    for _ in range(20):
        pace.took(0)
    assert pace.size == 4096
