"""Why was something processed twice?

The tree:

    written twice: the same batch again (a retry without idempotence), by another producer (a restart),
        by one producer that sent it twice
    delivered twice: the group went back (a reset, or a seek), or its offsets were deleted or expired, or a
        member was gone before it had committed what it had read: it exceeded its poll interval, it crashed,
        it left; or its commit was refused

At-least-once is what Kafka promises without transactions. So each answer says which range was delivered
again, and what makes it harmless.
"""

from collections.abc import Iterator

from ottla.explain.answer import Answer, Cause, Evidence, Strength, duration_text, ranked
from ottla.explain.causes.absent import departure
from ottla.explain.evidence.cases import NO_JOURNAL, GroupCase, TopicCase
from ottla.explain.evidence.group_history import Commit, Generation, MemberFacts
from ottla.explain.evidence.journal import JournalEvent
from ottla.explain.evidence.logs import LogSample, RecordFacts
from ottla.model.ids import TopicPartition

_IDEMPOTENT = "make the processing idempotent, for example by keeping the offset with the result"
_VALUE_BYTES_MIN = 4
"""Shorter values are the same by chance, or on purpose."""
_REPEATED_SHARE_MAX = 0.5
"""If more records than this are repeated, repetition is what the topic is for."""
_COMMITS_REFUSED = ("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "STALE_MEMBER_EPOCH")
_JUST_BEFORE_MS = 3_000


def why_twice(case: GroupCase) -> Answer:
    """Answer for a group."""
    causes = ranked(
        [
            *_delivered_again(case),
            *_went_back(case),
            *_refused(case),
            *([] if case.log is None else _written_twice(case.log, case.journal.producer_names())),
        ]
    )
    missing = []
    if not case.journal.exists:
        missing.append(NO_JOURNAL)
    if not case.history.is_readable:
        missing.append("when the group has committed what: __consumer_offsets cannot be read")
    return Answer(
        "twice",
        f"group {case.group_id}",
        causes,
        f"nothing wrong found: nothing shows that group {case.group_id} got a record twice",
        tuple(missing),
        journal_ms=case.journal.span_ms,
    )


def why_topic_twice(case: TopicCase) -> Answer:
    """Answer for a topic: whether records are in it twice."""
    return Answer(
        "twice",
        f"topic {case.topic}",
        ranked(_written_twice(case.sample, case.journal.producer_names())),
        f"nothing wrong found: no record is in {case.topic} twice",
        () if case.sample.is_whole else ("whether older records are there twice: only the newest are read",),
        journal_ms=case.journal.span_ms,
    )


# Written twice


def _written_twice(sample: LogSample, names: dict[int, str]) -> Iterator[Cause]:
    pairs = list(_repeated(sample))
    if not pairs or len(pairs) > len(sample.records) * _REPEATED_SHARE_MAX:
        return
    retried = [pair for pair in pairs if _is_retry(*pair)]
    if retried:
        first, again = retried[0]
        yield Cause(
            "produced-twice-by-retry",
            Strength.PROVED,
            f"{len(retried)} records are in the log twice: a producer without idempotence sent a batch again "
            "whose first answer got lost",
            (
                Evidence(
                    f"{first.place} and {again.place} are the same, with the same create time, and have no "
                    "producer id",
                    "the log",
                    again.timestamp,
                ),
            ),
            ("set enable.idempotence=true for the producer",),
            weight=7,
        )
        return
    for name, chosen, text, advice in (
        (
            "produced-by-two-producers",
            [pair for pair in pairs if _is_by_another(*pair)],
            (
                "were written again by another producer: it was restarted and sent again what it did not "
                "know to be written, or two run at once"
            ),
            "use a transactional.id, and send from where the last transaction has ended",
        ),
        (
            "produced-twice-by-application",
            [pair for pair in pairs if not _is_by_another(*pair)],
            "were sent twice by the same application",
            "look for a second call of send, or for a retry around it",
        ),
    ):
        if chosen:
            first, again = chosen[0]
            yield Cause(
                name,
                Strength.LIKELY,
                f"{len(chosen)} records are in the log twice: they {text}",
                (
                    Evidence(
                        f"{first.place} ({_writer(first, names)}) and {again.place} "
                        f"({_writer(again, names)}) have the same key and value",
                        "the log",
                        again.timestamp,
                    ),
                ),
                (advice,),
                weight=5 + len(chosen) / (len(pairs) + 1),
            )


def _repeated(sample: LogSample) -> Iterator[tuple[RecordFacts, RecordFacts]]:
    """Give records with the same key, value and headers, each with the one before it."""
    seen: dict[tuple[bytes | None, bytes | None, str], RecordFacts] = {}
    for record in sample.records:
        if record.value is None or len(record.value) < _VALUE_BYTES_MIN:
            continue
        key = (record.key, record.value, repr(record.headers))
        before = seen.get(key)
        if before is not None:
            yield before, record
        seen[key] = record


def _is_retry(first: RecordFacts, again: RecordFacts) -> bool:
    return (
        first.where == again.where
        and first.timestamp == again.timestamp
        and first.batch.producer_id == again.batch.producer_id == -1
        and first.batch.base_offset != again.batch.base_offset
    )


def _is_by_another(first: RecordFacts, again: RecordFacts) -> bool:
    one, other = first.batch, again.batch
    return (one.producer_id, one.producer_epoch) != (other.producer_id, other.producer_epoch)


def _writer(record: RecordFacts, names: dict[int, str]) -> str:
    producer_id = record.batch.producer_id
    if producer_id < 0:
        return "a producer without an id"
    return f"producer {producer_id}" + (f", {names[producer_id]}" if producer_id in names else "")


# Delivered twice


def _went_back(case: GroupCase) -> Iterator[Cause]:
    highest: dict[TopicPartition, Commit] = {}
    deleted: dict[TopicPartition, Commit] = {}
    for commit in case.history.commits:
        before = highest.get(commit.where)
        if commit.offset is None:
            deleted[commit.where] = commit
            continue
        if before is not None and commit.offset < (before.offset or 0):
            gone = deleted.get(commit.where)
            yield _back(case, before, commit) if gone is None else _forgotten(case, before, gone, commit)
            return
        highest[commit.where] = commit
        deleted.pop(commit.where, None)


def _forgotten(case: GroupCase, before: Commit, gone: Commit, commit: Commit) -> Cause:
    """Say that the group had lost its offsets when it began again."""
    retention_ms, idle_ms = case.offsets_retention_ms, gone.at_ms - before.at_ms
    is_expired = retention_ms is not None and idle_ms >= retention_ms
    how = (
        f"had expired, {duration_text(idle_ms)} after the last commit"
        if is_expired
        else "had been deleted by an admin"
    )
    return Cause(
        "offsets-expired" if is_expired else "offsets-deleted",
        Strength.PROVED,
        f"group {case.group_id} began {commit.where} again where auto.offset.reset says, because its "
        f"committed offset {how}",
        (
            Evidence(f"committed {before.offset}", f"__consumer_offsets@{before.log_offset}", before.at_ms),
            Evidence("the offset was deleted", f"__consumer_offsets@{gone.log_offset}", gone.at_ms),
            Evidence(
                f"then committed {commit.offset}", f"__consumer_offsets@{commit.log_offset}", commit.at_ms
            ),
        ),
        (
            "raise offsets.retention.minutes above the longest time that the group is stopped"
            if is_expired
            else "reset offsets on purpose with `ottla group reset`, and do not delete them",
            _IDEMPOTENT,
        ),
        weight=8.2,
    )


def _back(case: GroupCase, before: Commit, commit: Commit) -> Cause:
    generation = _generation_at(case, commit.at_ms)
    is_empty = generation is None or not generation.members
    name = "offsets-reset" if is_empty else "seek-back"
    who = (
        "while the group had no members, so somebody has reset it"
        if is_empty
        else "by a member of the group: it went back (seek), or commits out of order"
    )
    return Cause(
        name,
        Strength.PROVED,
        f"offsets {commit.offset} to {(before.offset or 0) - 1} of {commit.where} were delivered again: the "
        f"committed offset was set back {who}",
        (
            Evidence(f"committed {before.offset}", f"__consumer_offsets@{before.log_offset}", before.at_ms),
            Evidence(
                f"then committed {commit.offset}", f"__consumer_offsets@{commit.log_offset}", commit.at_ms
            ),
        ),
        (_IDEMPOTENT,),
        weight=8,
    )


def _delivered_again(case: GroupCase) -> Iterator[Cause]:
    """Look at each change of hands: what had been fetched, and what had been committed?"""
    for before, after in zip(case.history.generations, case.history.generations[1:], strict=False):
        for member in before.members.values():
            for where in sorted(member.assignment):
                holder = after.holder(where)
                if holder is not None and holder.member_id == member.member_id:
                    continue
                cause = _lost_hand(case, member, where, after)
                if cause is not None:
                    yield cause
                    return


def _lost_hand(
    case: GroupCase, member: MemberFacts, where: TopicPartition, after: Generation
) -> Cause | None:
    left = _left(case, member, after.at_ms)
    commit = case.history.committed_at(where, after.at_ms)
    committed = None if commit is None else commit.offset
    position, seen = _position_before(case, member, where, after.at_ms)
    if position is None or seen is None:
        return None
    position = _reached(case, where, position, seen)
    if position <= (committed or 0):
        return None
    is_orderly = left is None or (left.facts.get("why") == "left" and not left.facts.get("connected"))
    if is_orderly and commit is not None and after.at_ms - commit.at_ms < _JUST_BEFORE_MS:
        # It has committed when it gave the partition up. What it had fetched ahead, nobody has seen.
        return None
    name, how = _how(left)
    if name is None:
        return None
    evidence = [
        Evidence(f"{member.client_id} had fetched up to {position}", f"journal {seen.place}", seen.at_ms),
        Evidence(
            "nothing was committed" if commit is None else f"committed {committed}",
            "__consumer_offsets" if commit is None else f"__consumer_offsets@{commit.log_offset}",
            None if commit is None else commit.at_ms,
        ),
        Evidence(
            f"the partition changed hands in generation {after.number}", "__consumer_offsets", after.at_ms
        ),
    ]
    if left is not None:
        evidence.append(departure(left))
    return Cause(
        name,
        Strength.PROVED if left is not None else Strength.LIKELY,
        f"offsets {committed or 0} to {position - 1} of {where} were delivered again, or may have been: "
        f"{member.client_id} {how} before it had committed them",
        tuple(evidence),
        (
            *_advice(name, member),
            _IDEMPOTENT,
        ),
        weight=8.5,
    )


def _how(left: JournalEvent | None) -> tuple[str | None, str]:
    if left is None:
        return None, ""
    facts = left.facts
    why, is_connected = facts.get("why"), bool(facts.get("connected"))
    after = duration_text(facts.get("after_ms", 0))
    if why == "left" and (is_connected or "poll" in (facts.get("reason") or "")):
        return "poll-interval-exceeded", "exceeded max.poll.interval.ms and was removed from the group"
    if why == "rebalance":
        return "poll-interval-exceeded", f"did not come back to poll within {after}, and was left out"
    if why == "session" and is_connected:
        return "session-expired", f"sent no heartbeat for {after} though it was connected"
    if why == "session":
        return "crash-before-commit", f"was gone without leaving, and expired after {after}"
    return "left-before-commit", "left the group"


def _advice(name: str, member: MemberFacts) -> tuple[str, ...]:
    if name == "poll-interval-exceeded":
        return (
            (
                "process fewer records in each poll (max.poll.records), or raise max.poll.interval.ms "
                f"(for this group {duration_text(member.rebalance_timeout_ms or 0)})"
            ),
        )
    if name == "left-before-commit":
        return ("commit before the consumer closes",)
    return ("commit more often: what lies between two commits is delivered again after a crash",)


def _refused(case: GroupCase) -> Iterator[Cause]:
    for event in case.journal.of("request-refused"):
        client = event.subject.removeprefix("client/").rpartition("@")[0]
        error = event.facts.get("error")
        if client not in case.clients or event.facts.get("api") not in ("offset_commit", "heartbeat"):
            continue
        if error == "FENCED_INSTANCE_ID":
            yield Cause(
                "zombie-fenced",
                Strength.PROVED,
                f"{client} was fenced: another process has joined with its group.instance.id, and both have "
                "read the same partitions for a while",
                (Evidence(f"{event.facts['api']} got {error}", f"journal {event.place}", event.at_ms),),
                ("give each process a group.instance.id of its own",),
                weight=9,
            )
            return
        if error in _COMMITS_REFUSED and event.facts["api"] == "offset_commit":
            yield Cause(
                "commit-refused",
                Strength.PROVED,
                f"a commit of {client} was refused: it was not a member of the group, or not any more "
                f"({error}), so what it had read is read again",
                (
                    Evidence(
                        f"{event.facts['count']} commits got {error}", f"journal {event.place}", event.at_ms
                    ),
                ),
                (
                    "process faster than max.poll.interval.ms",
                    "give a consumer that assigns partitions to itself a group.id of its own",
                    _IDEMPOTENT,
                ),
                weight=7,
            )
            return


def _left(case: GroupCase, member: MemberFacts, at_ms: int) -> JournalEvent | None:
    """Find how a member left around a change of hands. An event is written up to two seconds later."""
    found = None
    for event in case.journal.of("member-left", group=case.group_id, member=member.member_id):
        if event.at_ms <= at_ms + _JUST_BEFORE_MS:
            found = event
    return found


def _position_before(
    case: GroupCase, member: MemberFacts, where: TopicPartition, at_ms: int
) -> tuple[int | None, JournalEvent | None]:
    found: tuple[int | None, JournalEvent | None] = (None, None)
    for event in case.journal.of("fetch-position", "fetch-stopped", client=member.client_id):
        if event.at_ms > at_ms:
            break
        positions = event.positions()
        if where in positions:
            found = (positions[where], event)
    return found


def _reached(case: GroupCase, where: TopicPartition, position: int, seen: JournalEvent) -> int:
    """Return up to where a member has records at least.

    A fetch names where it begins. If it was answered, it has brought the batch that was there when it came.
    """
    was_answered = seen.kind == "fetch-stopped" or seen.facts.get("answered")
    if not was_answered or case.log is None:
        return position
    asked_ms = seen.at_ms - seen.facts.get("for_ms", 0)
    brought = (
        batch.last_offset + 1
        for batch in case.log.batches
        if batch.where == where
        and batch.base_offset <= position <= batch.last_offset
        and batch.max_timestamp <= asked_ms
    )
    return max(brought, default=position)


def _generation_at(case: GroupCase, at_ms: int) -> Generation | None:
    found = None
    for generation in case.history.generations:
        if generation.at_ms > at_ms:
            break
        found = generation
    return found
