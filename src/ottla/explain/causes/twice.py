"""Why was something processed twice?

The tree:

    written twice: the same batch again (a retry without idempotence), by another producer (a restart),
        by one producer that sent it twice
    delivered twice: the group went back (a reset, or a seek), or its offsets were deleted or expired, or a
        member was gone before it had committed what it had read: it exceeded its poll interval, it crashed,
        it left; or its commit was refused; or it commits the offset of the last record, not of the next one

At-least-once is what Kafka promises without transactions. So each answer says which range was delivered
again, and what makes it harmless.
"""

from collections.abc import Iterator
from typing import Final

from ottla.explain.answer import Answer, Cause, Evidence, Strength, duration_text, ranked
from ottla.explain.causes.absent import departure
from ottla.explain.causes.committing import committed_too_low
from ottla.explain.causes.written_twice import written_twice
from ottla.explain.evidence.cases import GroupCase, TopicCase
from ottla.explain.evidence.group_history import Commit, Generation, MemberFacts
from ottla.explain.evidence.journal import JournalEvent
from ottla.explain.evidence.readers import Doing, Reader, reader_of, readers_of, steps_back
from ottla.model.ids import TopicPartition

_IDEMPOTENT = "make the processing idempotent, for example by keeping the offset with the result"
_COMMITS_REFUSED = ("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "STALE_MEMBER_EPOCH")
_JUST_BEFORE_MS = 3_000


def why_twice(case: GroupCase) -> Answer:
    """Answer for a group."""
    causes = ranked(
        [
            *committed_too_low(case),
            *_delivered_again(case),
            *_went_back(case),
            *_refused(case),
            *_sought_back(case),
            *_read_by_other_groups(case),
            *([] if case.log is None else written_twice(case.log, case.journal, _isolations(case))),
        ]
    )
    is_unknown = bool(case.not_seen)
    return Answer(
        "twice",
        f"group {case.group_id}",
        causes,
        f"nothing is proved: nothing that could be seen shows that group {case.group_id} got a record twice"
        if is_unknown
        else f"nothing wrong found: nothing shows that group {case.group_id} got a record twice",
        (
            *case.not_seen,
            "where a client was between two looks of the journal, and what it did with a record",
        ),
        is_unknown,
        case.journal.span_ms,
        case.looked_at,
        (f"`ottla trace TOPIC/PARTITION@OFFSET` of a record that came twice, for group {case.group_id}",),
    )


def _isolations(case: GroupCase) -> frozenset[int]:
    """Return with which isolation the members of a group were seen to read."""
    return frozenset(
        reader.isolation
        for reader in readers_of(case.journal)
        if reader.client in case.clients and reader.isolation is not None
    )


def why_topic_twice(case: TopicCase) -> Answer:
    """Answer for a topic: whether records are in it twice."""
    return Answer(
        "twice",
        f"topic {case.topic}",
        ranked(written_twice(case.sample, case.journal)),
        f"nothing wrong found: no record is in {case.topic} twice",
        () if case.sample.is_whole else ("whether older records are there twice: only the newest are read",),
        journal_ms=case.journal.span_ms,
    )


# Delivered twice

_DEFAULT_CLIENT_IDS: Final = ("aiokafka-", "consumer-", "kafka-python", "ottla", "rdkafka", "sarama")


def _read_by_other_groups(case: GroupCase) -> Iterator[Cause]:
    """Find members that had read the same partitions before, when their group was another one.

    An application that makes up a new group.id at each start begins where auto.offset.reset says, each time.
    """
    began_ms = next((one.at_ms for one in case.history.generations if one.members), None)
    if began_ms is None:
        return
    mine = {item.lag.where for item in case.partitions}
    for client in sorted(case.clients):
        its = [one for one in readers_of(case.journal) if one.client == client and mine & one.seen.keys()]
        before = [one for one in its if one.last.at_ms < began_ms]
        again = {
            where
            for one in its
            if one not in before
            for where in mine & one.seen.keys()
            if any(where in earlier.seen and _low(one, where) < _high(earlier, where) for earlier in before)
        }
        if not again:
            continue
        last = before[-1]
        left = [
            event
            for event in case.journal.of("member-left", client=client)
            if event.facts["group"] != case.group_id and event.at_ms >= before[0].first.at_ms
        ]
        others = sorted({event.facts["group"] for event in left})
        is_named = not client.startswith(_DEFAULT_CLIENT_IDS)
        yield Cause(
            "read-by-other-groups",
            Strength.LIKELY if is_named else Strength.POSSIBLE,
            f"{client} had read {', '.join(map(str, sorted(again)[:4]))} before group {case.group_id} began, "
            f"as a member of {', '.join(others[-3:]) or 'another group, or of none'}: each new group.id "
            "begins where auto.offset.reset says",
            (
                Evidence(
                    f"{client} fetched there, and closed", f"journal {last.last.place}", last.last.at_ms
                ),
                Evidence(f"group {case.group_id} got its first member", "__consumer_offsets", began_ms),
                *map(departure, left[-1:]),
            ),
            (
                "use the same group.id at each start: the group goes on where it has committed",
                _IDEMPOTENT,
            ),
            weight=7,
        )
        return


def _low(reader: Reader, where: TopicPartition) -> int:
    """Return from where a reader has read a partition: where it began, if that is known."""
    began = reader.began.get(where)
    return min([offset for offset, _ in reader.seen[where]] + ([] if began is None else [began[1]]))


def _high(reader: Reader, where: TopicPartition) -> int:
    return max(offset for offset, _ in reader.seen[where])


def _sought_back(case: GroupCase) -> Iterator[Cause]:
    """Find a connection that fetched from a lower offset than before, while the members were the same."""
    for reader in readers_of(case.journal):
        if reader.client not in case.clients:
            continue
        for where in reader.seen:
            for before, then, after, now in steps_back(reader, where):
                if _was_moved(case, reader, where, then, now):
                    continue
                commit = case.history.committed_at(where, now.at_ms)
                is_below = commit is not None and commit.offset is not None and after < commit.offset
                yield Cause(
                    "seek-back",
                    Strength.PROVED if is_below else Strength.POSSIBLE,
                    f"{reader.client} went back in {where} from {before} to {after}, and fetched offsets "
                    f"{after} to {before - 1} again: "
                    + (
                        "below what it had committed, so the application has sought back (seek)"
                        if is_below
                        else "by seek, or by pause and resume, which only drop what was fetched ahead"
                    ),
                    (
                        Evidence(f"fetched from {before}", f"journal {then.place}", then.at_ms),
                        Evidence(
                            f"the same connection fetched from {after}", f"journal {now.place}", now.at_ms
                        ),
                        Evidence(
                            f"committed {'nothing' if commit is None else commit.offset} then",
                            "__consumer_offsets" + ("" if commit is None else f"@{commit.log_offset}"),
                            None if commit is None else commit.at_ms,
                        ),
                    ),
                    ("look for seek() in the application, in its error handling for example", _IDEMPOTENT),
                    weight=7.9,
                )
                return


def _was_moved(
    case: GroupCase, reader: Reader, where: TopicPartition, then: JournalEvent, now: JournalEvent
) -> bool:
    """Say whether something else than its application may have set a reader back."""
    place = f"{where.topic}/{where.partition}"
    return (
        where in now.resets()
        or any(then.at_ms <= one.at_ms <= now.at_ms for one in case.history.generations)
        or any(then.at_ms <= one.at_ms <= now.at_ms for one in case.journal.of("leader-changed", at=place))
        or any(
            then.at_ms <= one.at_ms <= now.at_ms and one.subject.startswith(f"client/{reader.client}@")
            for one in case.journal.of("request-refused", error="OFFSET_OUT_OF_RANGE")
        )
    )


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
    name, how = _how(left, _is_closed(case, member, where, left))
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
        # Clients fetch ahead: what a member had fetched, its application may not have seen.
        Strength.LIKELY,
        f"offsets {committed or 0} to {position - 1} of {where} were delivered again, as far as the "
        f"application had got them before: {member.client_id} {how} before it had committed them",
        tuple(evidence),
        (
            *_advice(name, member),
            _IDEMPOTENT,
        ),
        weight=8.5,
    )


def _is_closed(
    case: GroupCase, member: MemberFacts, where: TopicPartition, left: JournalEvent | None
) -> bool:
    """Say whether the connection was gone by which a member had read: another may have its client id."""
    if left is None:
        return False
    reader = reader_of(readers_of(case.journal.until(left.at_ms)), where, member.client_id, member.host)
    return reader is not None and reader.doing is Doing.GONE


def _how(left: JournalEvent | None, is_closed: bool) -> tuple[str | None, str]:
    if left is None:
        return None, ""
    facts = left.facts
    why, is_connected = facts.get("why"), bool(facts.get("connected")) and not is_closed
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
