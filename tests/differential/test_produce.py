"""Produce: accepted, refused and repeated batches, as Apache Kafka answers them."""

from functools import partial
from typing import Any

from crc32c import crc32c
from tests.differential.side_by_side import Both, Side, produced, versions_of
from tests.support.data_plane import batch_of, produce_request

from ottla.wire.apis import ApiKey
from ottla.wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersTopic


def test_produce_in_every_version(both: Both) -> None:
    both.create("versions")
    for version in versions_of(ApiKey.PRODUCE):
        for acks in (1, -1):
            both.ask(partial(_produce_three, version=version, acks=acks), version, produced)


def _produce_three(side: Side, version: int, acks: int) -> Any:
    return produce_request(side.topic("versions", version >= 13), batch_of(b"a", b"b", b"c"), acks=acks)


def with_attributes(attributes: int, **settings: Any) -> bytearray:
    """Build a batch with attribute bits that no builder would set."""
    batch = batch_of(b"v", **settings)
    batch[21:23] = attributes.to_bytes(2)
    batch[17:21] = crc32c(memoryview(batch)[21:]).to_bytes(4)
    return batch


def test_refused_batches(both: Both) -> None:
    both.create("refused")
    both.create("compacted", configs={"cleanup.policy": "compact"})
    good = batch_of(b"v")
    damaged = bytearray(good)
    damaged[-1] ^= 1
    old_magic = bytearray(good)
    old_magic[16] = 1
    not_at_0 = bytearray(good)
    not_at_0[7] = 5
    for topic, batch in (
        ("no-such-topic", good),
        ("refused", b""),
        ("refused", damaged),
        ("refused", old_magic),
        ("refused", not_at_0),
        ("refused", good + good),
        ("refused", with_attributes(0x20)),
        ("refused", batch_of(b"v", producer_id=5, producer_epoch=0, base_sequence=-1)),
        ("refused", batch_of(b"v" * 2_100_000)),
        ("refused", with_attributes(0x10)),
        ("compacted", good),
    ):
        both.ask(produce_request(topic, batch), 12, produced)
    both.ask(produce_request("refused", good, partition=9), 12, produced)
    both.ask(produce_request("refused", good, acks=2), 12, produced)
    both.ask(produce_request("refused", with_attributes(4)), 6, produced)
    both.ask(lambda side: produce_request(side.topic("nothing", True), good), 13, produced)


def test_idempotent_producers(both: Both) -> None:
    both.create("idempotent")
    for epoch, sequence in ((0, 0), (0, 0), (0, 1), (0, 3), (0, 2), (0, 0), (1, 1), (1, 0), (0, 3), (1, 1)):
        both.ask(
            produce_request(
                "idempotent", batch_of(b"v", producer_id=77, producer_epoch=epoch, base_sequence=sequence)
            ),
            12,
            lambda answer: [
                (part.error_code, part.base_offset) for part in answer.responses[0].partition_responses
            ],
        )
    both.ask(
        DescribeProducersRequest(
            topics=(
                DescribeProducersTopic(name="idempotent", partition_indexes=(0, 9)),
                DescribeProducersTopic(name="no-such-topic", partition_indexes=(0,)),
            )
        ),
        0,
        lambda answer: sorted(
            (
                topic.name,
                part.error_code,
                [(one.producer_id, one.producer_epoch, one.last_sequence) for one in part.active_producers],
            )
            for topic in answer.topics
            for part in topic.partitions
        ),
    )
