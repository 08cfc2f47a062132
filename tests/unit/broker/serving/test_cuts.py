"""Large requests are cut into small ones, and the answers to those are merged."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import pytest

from ottla.broker.serving import cuts
from ottla.broker.serving.cuts import Cut, Merged, Pace, arrange, cut, weigh
from ottla.wire.codec import encode, encode_struct
from ottla.wire.declare import replace
from ottla.wire.encoded_items import as_array
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
)

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


@pytest.mark.parametrize("depth", [1, 2])
def test_an_element_of_many_parts_is_not_copied_for_each_of_them(
    depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced: list[Any] = []

    def counted(struct: Any, **changes: Any) -> Any:
        replaced.append(struct)
        return replace(struct, **changes)

    monkeypatch.setattr(cuts, "replace", counted)
    merged = Merged(["topics", "partitions"][-depth:])
    encoded: list[Any] = []

    def keep(item: Any, _add: Any) -> Generator[None, None, None]:
        encoded.append(item)
        yield

    for number in range(2_000):
        part: Any = WritableTxnMarkerPartitionResult(partition_index=number)
        item: Any = WritableTxnMarkerTopicResult(name="t", partitions=(part,))
        if depth == 2:
            item = WritableTxnMarkerResult(producer_id=1, topics=(item,))
        finish(merged.add((item,), number > 0, keep))
    finish(merged.finish(keep))
    [whole] = encoded
    [topic] = whole.topics if depth == 2 else [whole]
    assert [part.partition_index for part in topic.partitions] == list(range(2_000))
    assert len(replaced) == depth


def test_parts_of_topics_in_parts_of_markers_become_whole_again() -> None:
    def marker(producer_id: int, **topics: int) -> WritableTxnMarker:
        return WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=0,
            transaction_result=True,
            topics=tuple(
                WritableTxnMarkerTopic(name=name, partition_indexes=tuple(range(size)))
                for name, size in topics.items()
            ),
            coordinator_epoch=0,
        )

    def answer_to(ask: WriteTxnMarkersRequest) -> tuple[WritableTxnMarkerResult, ...]:
        return tuple(
            WritableTxnMarkerResult(
                producer_id=one.producer_id,
                topics=tuple(
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=tuple(
                            WritableTxnMarkerPartitionResult(partition_index=number)
                            for number in topic.partition_indexes
                        ),
                    )
                    for topic in one.topics
                ),
            )
            for one in ask.markers
        )

    ask = WriteTxnMarkersRequest(
        markers=(marker(1, a=1), marker(2, a=9, b=1, c=20), marker(2, c=1), marker(3), marker(4, a=2, b=2))
    )
    for size in (2, 3, 5, 100):
        merged = Merged(["topics", "partitions"])
        encoded: list[Any] = []

        def keep(item: Any, _add: Any, encoded: list[Any] = encoded) -> Generator[None, None, None]:
            encoded.append(item)
            yield

        for portion, is_continued in cut(ask, ("markers", "topics", "partition_indexes"), Pace(size)):
            finish(merged.add(answer_to(portion), is_continued, keep))
        finish(merged.finish(keep))
        assert tuple(encoded) == answer_to(ask)


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


@dataclass(frozen=True)
class _Branch:
    items: Any


@pytest.mark.parametrize(
    ("items", "weight"),
    [(None, 1), ((), 1), (((),), 2), (((1, 2),), 4), ((None, (1,)), 4), (((1,) * 9, (1,) * 9), 11)],
)
def test_each_element_weighs_one_and_so_does_what_holds_it(items: Any, weight: int) -> None:
    branches = None if items is None else tuple(_Branch(each) for each in items)
    # What weighs too much is not counted to its end.
    assert weigh(_Branch(branches), ("items", "items"), 9) == weight
