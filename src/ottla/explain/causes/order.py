"""Why is the order not what it should be?

Kafka keeps the order within a partition. So either the records of a key are in several partitions:

    some have no key -> partitions were added meanwhile -> another partitioner -> the partition was chosen
    by the application

or they are in one, and their create times go back:

    clocks that differ -> several producers -> one that sends in another order, or whose batches have changed
    places

or they are where they belong, and a deploy has changed what the key is. No cause speaks of a failed request:
the log does not show one.
"""

import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from ottla.client.producer.partitioner import murmur2
from ottla.explain.answer import Answer, Cause, Evidence, Strength, ranked
from ottla.explain.causes.going_back import AHEAD_MS, going_back
from ottla.explain.causes.keys_changed import keys_changed
from ottla.explain.causes.names import key_text, producer_name, writer_name
from ottla.explain.evidence.cases import TopicCase
from ottla.explain.evidence.logs import RecordFacts


def why_order(case: TopicCase, key: bytes | None = None) -> Answer:
    """Answer for a topic, or for one key of it."""
    records = [item for item in case.sample.records if key is None or item.key in (key, None)]
    causes = ranked(_causes(case, records, key)) if case.partitions else ()
    subject = f"topic {case.topic}" + (f", key {key_text(key)}" if key is not None else "")
    missing = [] if case.sample.is_whole else ["what older records are like: only the newest are read"]
    if not case.journal.exists:
        missing.append(
            "which client wrote what, and when partitions were added: the cluster has no journal, or you may "
            "not read it"
        )
    has_keys = any(item.key is not None for item in records)
    healthy = (
        f"nothing wrong found: each key of {case.topic} is in one partition, in the order of its create times"
        if has_keys
        else f"nothing wrong found: the records of {case.topic} are in the order of their create times"
    )
    return Answer("order", subject, causes, healthy, tuple(missing), journal_ms=case.journal.span_ms)


def _causes(case: TopicCase, records: Sequence[RecordFacts], key: bytes | None) -> Iterator[Cause]:
    by_key: dict[bytes, list[RecordFacts]] = defaultdict(list)
    for record in records:
        if record.key is not None:
            by_key[record.key].append(record)
    if case.partitions > 1:
        yield from _without_keys(case, records, key)
        spread = {one: some for one, some in by_key.items() if len({item.where for item in some}) > 1}
        if spread:
            yield _spread(case, spread)
        yield from keys_changed(case, key)
    yield from going_back(case, by_key, records)


# In several partitions


def _without_keys(case: TopicCase, records: Sequence[RecordFacts], key: bytes | None) -> Iterator[Cause]:
    bare = [item for item in records if item.key is None]
    if not bare or len({item.where for item in bare}) < 2:
        return
    names = case.journal.producer_names()
    who = Counter(writer_name(item, names) for item in bare).most_common(1)[0][0]
    if key is not None and len(bare) == len(records):
        return
    yield Cause(
        "no-key",
        Strength.PROVED,
        f"{len(bare)} of {len(records)} records of {case.topic} have no key, so each may go to any of its "
        f"{case.partitions} partitions, and nothing keeps their order",
        (
            Evidence(f"{bare[0].place} has no key", "the log", bare[0].timestamp),
            Evidence(f"{bare[-1].place} has no key", "the log", bare[-1].timestamp),
            Evidence(f"most of them are from {who}", "the log"),
        ),
        ("send with a key: records of one key keep their order",),
        weight=7 if len(bare) == len(records) else 9,
    )


Partitioner = Callable[[bytes, int], int]


def _murmur2(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def _crc32(key: bytes, partitions: int) -> int:
    return zlib.crc32(key) % partitions


def _fnv1a(key: bytes, partitions: int) -> int:
    value = 0x811C9DC5
    for byte in key:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return (value & 0x7FFFFFFF) % partitions


PARTITIONERS: Mapping[str, Partitioner] = {
    "murmur2, as Java clients do": _murmur2,
    "CRC-32, as librdkafka does by default": _crc32,
    "FNV-1a": _fnv1a,
}


def _spread(case: TopicCase, spread: Mapping[bytes, list[RecordFacts]]) -> Cause:
    key, some = max(spread.items(), key=lambda item: len(item[1]))
    places = sorted({item.where.partition for item in some})
    said = f"key {key_text(key)} is in partitions {', '.join(map(str, places))}"
    evidence = [Evidence(f"{said}: {_first_per_partition(some)}", "the log", some[0].timestamp)]
    # How a producer chooses partitions shows in all keys, also if only one is asked about.
    everything = [record for record in case.sample.records if record.key is not None]
    return (
        _partitions_added(case, spread, evidence)
        or _another_partitioner(case, everything, spread, evidence)
        or Cause(
            "partition-chosen-by-application",
            Strength.LIKELY,
            f"{said}, and no known partitioner explains where: the application chooses partitions itself, or "
            "by chance",
            tuple(evidence),
            ("let the producer's partitioner choose by the key, the same one in all applications",),
            weight=5,
        )
    )


def _partitions_added(
    case: TopicCase,
    spread: Mapping[bytes, list[RecordFacts]],
    evidence: list[Evidence],
) -> Cause | None:
    """Find a smaller number of partitions that explains where the older records are."""
    added = list(case.journal.of("partitions-added", topic=case.topic))
    for partitioner in PARTITIONERS.values():
        for before in range(case.partitions - 1, 0, -1):
            if _was_cut(case, spread, partitioner, before):
                times = [
                    Evidence(
                        f"{case.topic} has {event.facts['partitions']} partitions from now on",
                        f"journal {event.place}",
                        event.at_ms,
                    )
                    for event in added
                ]
                return Cause(
                    "partitions-added",
                    Strength.PROVED if added else Strength.LIKELY,
                    f"{case.topic} got more partitions, {case.partitions} instead of {before}: "
                    f"{len(spread)} keys moved to another partition, and their older records stayed behind",
                    (*evidence, *times),
                    (
                        (
                            "let consumers finish the old records first, or write to a new topic with the "
                            "final number of partitions"
                        ),
                    ),
                    weight=6,
                )
    return None


def _was_cut(
    case: TopicCase,
    spread: Mapping[bytes, list[RecordFacts]],
    partitioner: Partitioner,
    before: int,
) -> bool:
    """Say whether all keys that moved were placed among fewer partitions first, and among all later."""
    for key, some in spread.items():
        old, new = partitioner(key, before), partitioner(key, case.partitions)
        if old == new:
            return False
        if {item.where.partition for item in some} != {old, new}:
            return False
        last_old = max(item.timestamp for item in some if item.where.partition == old)
        first_new = min(item.timestamp for item in some if item.where.partition == new)
        if last_old > first_new + AHEAD_MS:
            return False
    return True


def _another_partitioner(
    case: TopicCase,
    records: Sequence[RecordFacts],
    spread: Mapping[bytes, list[RecordFacts]],
    evidence: list[Evidence],
) -> Cause | None:
    """Find out whether each producer has a partitioner, and they differ."""
    names = case.journal.producer_names()
    by_producer: dict[int, list[RecordFacts]] = defaultdict(list)
    for record in records:
        by_producer[record.batch.producer_id].append(record)
    used: dict[str, list[int]] = defaultdict(list)
    for producer_id, some in by_producer.items():
        keys = {item.key for item in some}
        for name, partitioner in PARTITIONERS.items():
            if len(keys) > 1 and all(
                partitioner(item.key or b"", case.partitions) == item.where.partition for item in some
            ):
                used[name].append(producer_id)
                break
    if len(used) < 2 and not _explains_by_two(case, by_producer.get(-1, [])):
        return None
    if len(used) < 2:
        used = defaultdict(list, {name: [-1] for name in list(PARTITIONERS)[:2]})
    said = " and ".join(
        f"{name} ({', '.join(sorted(producer_name(one, names) for one in some))})"
        for name, some in used.items()
    )
    return Cause(
        "another-partitioner",
        Strength.PROVED,
        f"producers of {case.topic} choose partitions in different ways, so {_keys(len(spread))} in "
        f"several partitions: {said}",
        tuple(evidence),
        ("set the same partitioner everywhere: librdkafka has partitioner=murmur2_random for that of Java",),
        weight=6,
    )


def _keys(count: int) -> str:
    return "one key is" if count == 1 else f"{count} keys are"


def _explains_by_two(case: TopicCase, some: Sequence[RecordFacts]) -> bool:
    """Say whether records without a producer id are where one of two partitioners puts them."""
    first, second = list(PARTITIONERS.values())[:2]
    fits = [
        (
            first(item.key or b"", case.partitions) == item.where.partition,
            second(item.key or b"", case.partitions) == item.where.partition,
        )
        for item in some
    ]
    return bool(fits) and all(map(any, fits)) and len({item.key for item in some}) > 1


def _first_per_partition(some: Sequence[RecordFacts]) -> str:
    first: dict[int, RecordFacts] = {}
    for item in some:
        first.setdefault(item.where.partition, item)
    return ", ".join(item.place for item in first.values())
