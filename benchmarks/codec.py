"""Messages and records, written and read: ours against kio and aiokafka (`make bench WHAT=codec`).

Messages are those a broker and its clients spend their time on. kio reads with compiled Rust and writes in
Python; aiokafka does both in Python, in the newest version it knows, so ours is measured in that one too.
What is compared runs in alternating blocks; a figure is the median of blocks, a ratio the median of the
ratios of neighbouring blocks. The share of the machine that others took meanwhile stands below the table.
"""

import io
from collections.abc import Callable
from pkgutil import resolve_name
from statistics import median
from typing import Any, Final, NamedTuple

from aiokafka.protocol import fetch as aiokafka_fetch
from aiokafka.protocol import metadata as aiokafka_metadata
from aiokafka.protocol import produce as aiokafka_produce
from benchmarks import codec_records
from benchmarks.measure import Noise, Ratio, cpu_seconds, ratio_of, verdict
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.codec import decode, encode
from ottla.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ottla.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

ENCODE_GOAL: Final = 7.0
"""Writing is to be at least this many times faster than kio's."""
DECODE_GOAL: Final = 3.2
"""Reading may take at most this many times as long as kio's, which is compiled."""
RECORDS_READ_GOAL: Final = 0.8e6
RECORDS_WRITTEN_GOAL: Final = 1.0e6

BLOCKS: Final = 25
BLOCK_SECONDS: Final = 0.004

Work = Callable[[], Any]


class Case(NamedTuple):
    """A message to measure: as new protocols have it (topic ids) and as old ones do (names)."""

    title: str
    make: Callable[[bool], Any]
    """Takes whether topics go by name; gives the message."""
    newest: int
    aiokafka_version: int
    aiokafka_class: Any


class Row(NamedTuple):
    """One comparison, in microseconds of CPU time per message."""

    title: str
    ours_us: float
    theirs_us: float
    ratio: Ratio
    """How many times theirs ours takes."""


def rows_against_kio(case: Case) -> tuple[Row, Row]:
    """Measure reading and writing against kio, in the newest version."""
    message, version = case.make(False), case.newest
    data = encode(message, version)
    cls = type(message)
    kio_class = resolve_name(_kio_path(cls.__name__, version))
    read, write = entity_reader(kio_class), entity_writer(kio_class)
    entity, _ = read(data, 0)

    def kio_encode() -> bytes:
        buffer = io.BytesIO()
        write(buffer, entity)
        return buffer.getvalue()

    assert kio_encode() == data, "both must do the same work"
    reading = _compare(f"{case.title} v{version}", lambda: decode(cls, data, version), lambda: read(data, 0))
    writing = _compare(f"{case.title} v{version}", lambda: encode(message, version), kio_encode)
    return reading, writing


def rows_against_aiokafka(case: Case) -> tuple[Row, Row]:
    """Measure reading and writing against aiokafka, in the newest version it has."""
    message, version = case.make(True), case.aiokafka_version
    data = encode(message, version)
    cls = type(message)
    theirs = case.aiokafka_class.decode(data)
    assert theirs.encode() == data, "both must do the same work"
    title = f"{case.title} v{version}"
    reading = _compare(title, lambda: decode(cls, data, version), lambda: case.aiokafka_class.decode(data))
    writing = _compare(title, lambda: encode(message, version), theirs.encode)
    return reading, writing


def _compare(title: str, ours: Work, theirs: Work) -> Row:
    our_calls, their_calls = _calls_per_block(ours), _calls_per_block(theirs)
    our_us, their_us = [], []
    for _ in range(BLOCKS):
        our_us.append(_microseconds(ours, our_calls))
        their_us.append(_microseconds(theirs, their_calls))
    return Row(title, median(our_us), median(their_us), ratio_of(our_us, their_us))


def _calls_per_block(work: Work) -> int:
    work()
    return max(1, int(BLOCK_SECONDS / min(cpu_seconds(work) for _ in range(3))))


def _microseconds(work: Work, calls: int) -> float:
    def block() -> None:
        for _ in range(calls):
            work()

    return cpu_seconds(block) / calls * 1e6


def _kio_path(name: str, version: int) -> str:
    paths = (path for versions in schema_name_map.values() for path in versions.get(version, {}).values())
    return next(path for path in paths if path.endswith(f":{name}"))


def _topic_id(topic: int, by_name: bool) -> Uuid:
    return ZERO_UUID if by_name else Uuid(bytes((topic + 1,)) * 16)


def _metadata_response(_by_name: bool) -> MetadataResponse:
    """1,000 partitions in ten topics, on three brokers."""
    partitions = tuple(
        MetadataResponsePartition(
            partition_index=index,
            leader_id=index % 3,
            leader_epoch=4,
            replica_nodes=(0, 1, 2),
            isr_nodes=(0, 1, 2),
        )
        for index in range(100)
    )
    return MetadataResponse(
        brokers=tuple(
            MetadataResponseBroker(node_id=node, host=f"broker-{node}.example", port=9092, rack="a")
            for node in range(3)
        ),
        cluster_id="b3R0bGEtYmVuY2htYXJrLg",
        controller_id=1,
        topics=tuple(
            MetadataResponseTopic(
                name=f"topic-{topic}", topic_id=_topic_id(topic, by_name=False), partitions=partitions
            )
            for topic in range(10)
        ),
    )


def _fetch_request(by_name: bool) -> FetchRequest:
    """100 partitions in ten topics."""
    partitions = tuple(
        FetchPartition(
            partition=index, current_leader_epoch=4, fetch_offset=1_000, partition_max_bytes=1 << 20
        )
        for index in range(10)
    )
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        topics=tuple(
            FetchTopic(
                topic=f"topic-{topic}" if by_name else "",
                topic_id=_topic_id(topic, by_name),
                partitions=partitions,
            )
            for topic in range(10)
        ),
    )


def _fetch_response(by_name: bool) -> FetchResponse:
    """100 partitions in ten topics, with 1,000 bytes of records each."""
    partitions = tuple(
        PartitionData(
            partition_index=index,
            high_watermark=1_000,
            last_stable_offset=1_000,
            log_start_offset=0,
            aborted_transactions=None,
            records=memoryview(bytes(1_000)),
        )
        for index in range(10)
    )
    return FetchResponse(
        responses=tuple(
            FetchableTopicResponse(
                topic=f"topic-{topic}" if by_name else "",
                topic_id=_topic_id(topic, by_name),
                partitions=partitions,
            )
            for topic in range(10)
        )
    )


def _produce_request(by_name: bool) -> ProduceRequest:
    """Ten partitions in ten topics, with 1,000 bytes of records each."""
    partitions = (PartitionProduceData(partition_index=0, records=memoryview(bytes(1_000))),)
    return ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=tuple(
            TopicProduceData(
                name=f"topic-{topic}" if by_name else "",
                topic_id=_topic_id(topic, by_name),
                partition_data=partitions,
            )
            for topic in range(10)
        ),
    )


def _produce_response(by_name: bool) -> ProduceResponse:
    """Ten partitions in ten topics."""
    partitions = (PartitionProduceResponse(partition_index=0, base_offset=1_000),)
    return ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                name=f"topic-{topic}" if by_name else "",
                topic_id=_topic_id(topic, by_name),
                partition_responses=partitions,
            )
            for topic in range(10)
        )
    )


CASES: Final = (
    Case(
        "Metadata response, 1,000 partitions",
        _metadata_response,
        13,
        5,
        aiokafka_metadata.MetadataResponse_v5,
    ),
    Case("Fetch request, 100 partitions", _fetch_request, 18, 11, aiokafka_fetch.FetchRequest_v11),
    Case("Fetch response, 100 partitions", _fetch_response, 18, 11, aiokafka_fetch.FetchResponse_v11),
    Case("Produce request, 10 partitions", _produce_request, 13, 8, aiokafka_produce.ProduceRequest_v8),
    Case("Produce response, 10 partitions", _produce_response, 13, 8, aiokafka_produce.ProduceResponse_v8),
)


def main() -> None:
    """Print the table."""
    noise = Noise()
    are_met = [_print_messages("kio", [rows_against_kio(case) for case in CASES], has_goal=True)]
    _print_messages("aiokafka", [rows_against_aiokafka(case) for case in CASES], has_goal=False)
    are_met.append(_print_records())
    print(f"\nOther processes took {noise.share():.0%} of the machine. Goals: {verdict(all(are_met))}.")


def _print_messages(project: str, pairs: list[tuple[Row, Row]], has_goal: bool) -> bool:
    print(f"\n{'messages, CPU us each':47} {'ours':>8} {project:>8}   ratio (lowest to highest block)")
    for reading, _ in pairs:
        goal = f"   at most {DECODE_GOAL}: {verdict(reading.ratio.middle <= DECODE_GOAL)}" if has_goal else ""
        print(
            f"read   {reading.title:40} {reading.ours_us:8.1f} {reading.theirs_us:8.1f}   "
            f"takes {reading.ratio} times{goal}"
        )
    for _, writing in pairs:
        faster = _inverse(writing.ratio)
        goal = f"   at least {ENCODE_GOAL}: {verdict(faster.middle >= ENCODE_GOAL)}" if has_goal else ""
        print(
            f"write  {writing.title:40} {writing.ours_us:8.1f} {writing.theirs_us:8.1f}   "
            f"is {faster} times as fast{goal}"
        )
    return all(
        reading.ratio.middle <= DECODE_GOAL and _inverse(writing.ratio).middle >= ENCODE_GOAL
        for reading, writing in pairs
    )


def _print_records() -> bool:
    print(f"\n{'records of 100 bytes, million per CPU-second':44} {'ours':>6} {'theirs':>6}")
    rows = codec_records.rows()
    for row in rows:
        ours, theirs = row.ours / 1e6, row.theirs / 1e6
        print(f"{row.name:44} {ours:6.2f} {theirs:6.2f}   is {row.ratio:.2f} times as fast")
    are_met = []
    for verb, goal in (("build", RECORDS_WRITTEN_GOAL), ("read", RECORDS_READ_GOAL)):
        # Ours was measured in every row. Neighbours only ever slow it down, so the best row comes closest.
        best = max(row.ours for row in rows if row.name.startswith(verb))
        print(f"{verb}: {best / 1e6:.2f} at best, at least {goal / 1e6}: {verdict(best >= goal)}")
        are_met.append(best >= goal)
    return all(are_met)


def _inverse(ratio: Ratio) -> Ratio:
    return Ratio(1 / ratio.middle, 1 / ratio.high, 1 / ratio.low)


if __name__ == "__main__":
    main()
