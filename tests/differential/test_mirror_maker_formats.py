"""Names and records of MirrorMaker 2, as its own classes have them."""

import itertools

from tests.java.mirror_maker import ask_mirror_maker
from tests.java.oracle import Oracle

from ottla.mirror.maker.formats import (
    Checkpoint,
    OffsetSync,
    decode_checkpoint,
    decode_offset_sync,
    encode_checkpoint,
    encode_heartbeat,
    encode_offset_sync,
)
from ottla.mirror.maker.names import Names
from ottla.model.ids import TopicPartition

TOPICS = (
    "payments", "A.payments", "B.payments", "C.A.payments", "C.B.payments", "B.C.payments", "heartbeats",
    "A.heartbeats", "B.heartbeats", "C.heartbeats", "C.B.heartbeats", "myheartbeats", "a.", ".a", "a..b",
    "..", "__consumer_offsets", "mm2-offsets.A.internal", "mm2x.internal", "x.internal",
    "A.checkpoints.internal",
    "A_payments", "B_payments", "A_checkpoints_internal", "mm2_internal", "_", "A_", "B__x",
)  # fmt: skip


def _pair(key_and_value: tuple[bytes, bytes]) -> str:
    return " ".join(content.hex() for content in key_and_value)


def _java(value: object) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def test_records_have_the_bytes_of_its_own_classes(oracle: Oracle) -> None:
    checkpoint = Checkpoint("grüppe", TopicPartition("A.payments", 7), 1 << 40, 12, "notes")
    bare = Checkpoint("g", TopicPartition("A.p", 0), 0, 0, "")
    sync = OffsetSync(TopicPartition("payments", 3), 500, (1 << 40) + 1)
    answers = ask_mirror_maker(
        oracle,
        ("heartbeat", "A", "B", 1_700_000_000_123),
        ("checkpoint", checkpoint.group, *checkpoint.where, *checkpoint[2:]),
        ("checkpoint", bare.group, *bare.where, *bare[2:]),
        ("sync", *sync.where, sync.upstream, sync.downstream),
    )
    assert answers == [
        _pair(encode_heartbeat("A", "B", 1_700_000_000_123)),
        _pair(encode_checkpoint(checkpoint)),
        _pair(encode_checkpoint(bare)),
        _pair(encode_offset_sync(sync)),
    ]
    read = [[bytes.fromhex(word) for word in answer.split(" ")] for answer in answers]
    assert [decode_checkpoint(*read[1]), decode_checkpoint(*read[2])] == [checkpoint, bare]
    assert decode_offset_sync(*read[3]) == sync


def test_names_and_cycles_are_those_of_its_policies(oracle: Oracle) -> None:
    cases = list(itertools.product(("default", "identity"), (".", "_", "->"), TOPICS))
    answers = ask_mirror_maker(
        oracle, *[("names", policy, separator, "A", "B", topic) for policy, separator, topic in cases]
    )
    for (policy, separator, topic), answer in zip(cases, answers, strict=True):
        names = Names("A", "B", separator, separator, policy == "identity")
        ours = (
            names.remote(topic), names.source_of(topic), names.upstream_of(topic), names.is_internal(topic),
            names.is_heartbeats(topic), names.is_cycle(topic), names.checkpoints, names.offset_syncs("B"),
        )  # fmt: skip
        assert " ".join(map(_java, ours)) == answer, (policy, separator, topic)
