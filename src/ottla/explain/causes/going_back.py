"""Why do create times go back in a partition? Clocks, several producers, or one whose batches changed places.

No cause speaks of a failed request: the log does not show one.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ottla.explain.answer import Cause, Evidence, Strength, duration_text
from ottla.explain.causes.names import producer_name, writer_name
from ottla.explain.evidence.cases import TopicCase
from ottla.explain.evidence.journal import JournalEvent
from ottla.explain.evidence.logs import RecordFacts
from ottla.explain.evidence.writers import candidates, writers_of

AHEAD_MS: Final = 5_000
"""Clocks that differ by less are not worth a word."""


def going_back(
    case: TopicCase, by_key: Mapping[bytes, list[RecordFacts]], records: Sequence[RecordFacts]
) -> Iterator[Cause]:
    back: list[tuple[RecordFacts, RecordFacts]] = []
    rows: Iterator[list[RecordFacts]] = iter(by_key.values())
    if not by_key:
        rows = iter([list(records)])
    for some in rows:
        last: dict[int, RecordFacts] = {}
        for item in sorted(some, key=lambda one: (one.where, one.offset)):
            if item.batch.has_append_time:
                continue
            before = last.get(item.where.partition)
            if before is not None and item.timestamp < before.timestamp:
                back.append((before, item))
            else:
                last[item.where.partition] = item
    if not back:
        return
    yield _why_back(case, back)


def _why_back(case: TopicCase, back: Sequence[tuple[RecordFacts, RecordFacts]]) -> Cause:
    before, after = max(back, key=lambda pair: pair[0].timestamp - pair[1].timestamp)
    names = case.journal.producer_names()
    by = before.timestamp - after.timestamp
    evidence = (
        Evidence(f"{before.place} by {writer_name(before, names)}", "the log", before.timestamp),
        Evidence(
            f"{after.place} by {writer_name(after, names)}, {duration_text(by)} older",
            "the log",
            after.timestamp,
        ),
    )
    ahead = _clock_ahead_ms(case, before)
    if ahead is not None and ahead > AHEAD_MS:
        return Cause(
            "clocks-differ",
            Strength.PROVED,
            f"the clock of {writer_name(before, names)} is {duration_text(ahead)} ahead: its create times "
            "are later than when the broker got the records, so the log only looks out of order",
            evidence,
            (_NTP,),
            weight=8,
        )
    late = clock_behind(case, back)
    if late is not None:
        return late
    one, other = before.batch.producer_id, after.batch.producer_id
    if one == other == -1:
        return _without_ids(case, back, before, after, evidence)
    if one != other:
        return Cause(
            "several-producers",
            Strength.PROVED,
            f"several producers write the same keys to {case.topic}, and nothing orders them: "
            f"{writer_name(before, names)} and {writer_name(after, names)}",
            evidence,
            (_ONE_WRITER,),
            weight=6,
        )
    return Cause(
        "sent-out-of-order",
        Strength.PROVED,
        f"{writer_name(after, names)} sent records of {case.topic} in another order than their create times",
        evidence,
        ("look at how the application sets timestamps, and whether several threads send",),
        weight=5,
    )


def _without_ids(
    case: TopicCase,
    back: Sequence[tuple[RecordFacts, RecordFacts]],
    before: RecordFacts,
    after: RecordFacts,
    evidence: tuple[Evidence, ...],
) -> Cause:
    """Say what is known of producers that the log does not tell apart."""
    writers = writers_of(case.journal)
    there = {id(one): one for record in (before, after) for one in candidates(case.journal, writers, record)}
    known = tuple(
        Evidence(f"{one.name} writes to {before.where}", f"journal {one.first.place}", one.first.at_ms)
        for one in there.values()
    )
    said = f"{len(back)} records of {case.topic} are behind younger ones"
    if len(there) > 1:
        return Cause(
            "several-producers",
            Strength.LIKELY,
            f"{said}: {len(there)} producers without ids write to {before.where} at the same time, and "
            f"nothing orders them: {', '.join(sorted({one.name for one in there.values()}))}",
            (*evidence, *known[:4]),
            (_ONE_WRITER,),
            weight=6,
        )
    if all(_has_changed_places(*pair) for pair in back):
        return Cause(
            "retry-without-idempotence",
            Strength.LIKELY if there else Strength.POSSIBLE,
            f"{said}: whole batches of a producer without idempotence have changed places, as they do when "
            "it has several requests in flight and sends one of them again",
            (*evidence, *known),
            ("set enable.idempotence=true, or max.in.flight.requests.per.connection=1",),
            weight=6,
        )
    return Cause(
        "sent-out-of-order",
        Strength.LIKELY if there else Strength.POSSIBLE,
        f"{said}, within batches or by more than any retry takes: their producers have no ids, so that it is "
        "not known how many they are; the application sends in another order, or sets the times itself",
        (*evidence, *known),
        ("set enable.idempotence=true: then the log tells producers apart", _ONE_WRITER),
        weight=5,
    )


_RETRY_MAX_MS = 120_000
"""After so long a producer gives a batch up, by default (delivery.timeout.ms)."""


def _has_changed_places(before: RecordFacts, after: RecordFacts) -> bool:
    return (
        before.batch.base_offset != after.batch.base_offset
        and after.batch.max_timestamp <= before.batch.max_timestamp
        and before.timestamp - after.timestamp < _RETRY_MAX_MS
    )


def clock_behind(case: TopicCase, back: Sequence[tuple[RecordFacts, RecordFacts]]) -> Cause | None:
    """Find records that say they are much older than they can be, all by the same time.

    They were appended after a look of the journal at which they were not there. A clock that is behind makes
    all of them late by the same time; an application that sets old times does not.
    """
    late: dict[int, list[tuple[RecordFacts, int, JournalEvent]]] = defaultdict(list)
    for record in {item.place: item for _, item in back}.values():
        look = _not_there_yet(case, record)
        if look is not None and look.at_ms - record.timestamp > AHEAD_MS:
            late[record.batch.producer_id].append((record, look.at_ms - record.timestamp, look))
    for producer_id, some in late.items():
        shifts = [shift for _, shift, _ in some]
        if max(shifts) - min(shifts) > AHEAD_MS:
            continue
        names = case.journal.producer_names()
        writers = writers_of(case.journal)
        there = [candidates(case.journal, writers, record) for record, _, _ in some]
        common = [one.name for one in there[0] if all(one in others for others in there)]
        who = producer_name(producer_id, names) if producer_id >= 0 else " or ".join(sorted(set(common)))
        record, _, look = some[0]
        return Cause(
            "clocks-differ",
            Strength.PROVED if len(some) >= _ENOUGH else Strength.LIKELY,
            f"the clock of {who or 'a producer without an id'} is {duration_text(min(shifts))} behind: "
            f"{len(some)} records say they were made so long before they came, all by the same time, so the "
            "log only looks out of order",
            (
                Evidence(f"{record.place} says it was made then", "the log", record.timestamp),
                Evidence("it was not in the log yet at this time", f"journal {look.place}", look.at_ms),
                Evidence(
                    f"{len(some)} records are late by {duration_text(min(shifts))} to "
                    f"{duration_text(max(shifts))}",
                    "the log and the journal",
                ),
            ),
            (_NTP,),
            weight=8,
        )
    return None


_ENOUGH = 5
_NTP = "set the clocks by NTP, or message.timestamp.type=LogAppendTime for the topic"
_ONE_WRITER = "let one producer write a key, or give records a sequence number of their own"


def _not_there_yet(case: TopicCase, record: RecordFacts) -> JournalEvent | None:
    """Return the last look at the log of a record at which it was not there yet."""
    place = f"{record.where.topic}/{record.where.partition}"
    found = None
    for event in case.journal.of("appended-at"):
        end = event.facts["ends"].get(place)
        if end is not None and end > record.offset:
            return found
        if end is not None:
            found = event
    return None


def _clock_ahead_ms(case: TopicCase, record: RecordFacts) -> int | None:
    """Return how much later a record says it was made than it was there, by the journal."""
    place = f"{record.where.topic}/{record.where.partition}"
    for event in case.journal.of("appended-at"):
        if event.facts.get("ends", {}).get(place, -1) > record.offset:
            return record.timestamp - event.at_ms
    return record.timestamp - case.now_ms if record.timestamp > case.now_ms else None
