"""Evidence that nobody gathered: the cases that questions are asked about, made up piece by piece."""

from typing import Any

from ottla.client.admin.descriptions import GroupDescription, MemberDescription
from ottla.client.admin.group_offsets import PartitionLag
from ottla.explain.answer import Answer
from ottla.explain.evidence.cases import GroupCase, TopicCase
from ottla.explain.evidence.group_history import Commit, Generation, GroupHistory, MemberFacts
from ottla.explain.evidence.journal import JournalEvent, JournalView
from ottla.explain.evidence.logs import BatchFacts, LogSample, RecordFacts
from ottla.explain.lag.looking import GroupLook
from ottla.explain.lag.outlook import PartitionLook, Velocity
from ottla.model.ids import TopicPartition

NOW_MS = 1_000_000
T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
STANDING = Velocity(0.0, 0.0)
NO_HISTORY = GroupHistory()


def event(at_ms: int, kind: str, subject: str = "", **facts: Any) -> JournalEvent:
    return JournalEvent(at_ms, kind, subject, facts, "__ottla_journal/0@1")


def journal(*events: JournalEvent) -> JournalView:
    return JournalView(True, events)


def record(
    where: TopicPartition,
    offset: int,
    key: bytes | None,
    timestamp: int,
    value: bytes = b"value",
    producer_id: int = -1,
) -> RecordFacts:
    batch = BatchFacts(
        where, offset, offset, 1, 70, "none", timestamp, timestamp, False, 0, producer_id, 0, 0, False, False
    )
    return RecordFacts(where, offset, timestamp, key, value, (), batch)


def topic(partitions: int, *records: RecordFacts, view: JournalView | None = None) -> TopicCase:
    sample = LogSample(records, tuple(item.batch for item in records), {}, {}, True)
    return TopicCase("t", NOW_MS, partitions, sample, view or JournalView())


MEMBER = MemberDescription("m-1", None, "reader", "/10.0.0.1", None, None, ("t",), None, (T0,), None)


def group(
    *,
    members: tuple[MemberDescription, ...] = (MEMBER,),
    committed: int | None = 5,
    end: int = 5,
    start: int = 0,
    velocity: Velocity | None = STANDING,
    history: GroupHistory = NO_HISTORY,
    view: JournalView | None = None,
    **facts: Any,
) -> GroupCase:
    lag = None if committed is None else max(end - committed, 0)
    part = PartitionLag(T0, committed, start, end, lag, members[0] if members else None)
    look = GroupLook("g", "classic", "Stable", len(members), (PartitionLook(part, velocity=velocity),))
    description = GroupDescription("g", "classic", "Stable", "consumer", "range", 1, None, None, members)
    known = {"stable_ends": {T0: end}, "last_record_ms": {T0: NOW_MS - 60_000}, **facts}
    return GroupCase("g", NOW_MS, 3.0, look, description, history, view or JournalView(), {"t": 1}, **known)


def first(answer: Answer) -> str | None:
    return answer.causes[0].name if answer.causes else None


def history(*commits: tuple[int, int | None], hands: tuple[tuple[int, str], ...] = ()) -> GroupHistory:
    generations = tuple(
        Generation(
            at_ms,
            number,
            {name: MemberFacts(name, name, "/h", 6_000, 6_000, frozenset({T0}))} if name else {},
        )
        for number, (at_ms, name) in enumerate(hands)
    )
    return GroupHistory(
        tuple(Commit(at_ms, T0, offset, "", False, number) for number, (at_ms, offset) in enumerate(commits)),
        generations,
    )
