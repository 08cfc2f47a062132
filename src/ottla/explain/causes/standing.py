"""Members that have partitions: are they there, do they fetch, do they commit, and is there anything to read?

What a member does is what the journal saw of its connections. Without a journal, only commits that go on show
that somebody reads.
"""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from ottla.client.admin.descriptions import MemberDescription
from ottla.explain.answer import Cause, Evidence, Strength, duration_text, time_text
from ottla.explain.causes.hindered import QUIET_MS, moves
from ottla.explain.evidence.cases import GroupCase
from ottla.explain.evidence.group_history import Commit, MemberFacts
from ottla.explain.evidence.journal import JournalEvent
from ottla.explain.evidence.readers import LATEST, Doing, Reader, reader_of
from ottla.explain.lag.outlook import PartitionLook
from ottla.model.ids import TopicPartition


def last_positions(case: GroupCase) -> dict[TopicPartition, tuple[int, JournalEvent]]:
    """Return where members were last seen to fetch, with the event that tells it."""
    found: dict[TopicPartition, tuple[int, JournalEvent]] = {}
    for event in case.journal.of("fetch-position", "fetch-stopped"):
        if event.facts["client"] in case.clients:
            for where, offset in event.positions().items():
                found[where] = (offset, event)
    return found


def reads(readers: Sequence[Reader], item: PartitionLook) -> Reader | None:
    """Return the connection by which the member of a partition reads it, or did so last."""
    member = item.lag.member
    return None if member is None else reader_of(readers, item.lag.where, member.client_id, member.host)


def unread(item: PartitionLook) -> int:
    """Return how many records the group has not committed: all, if it has committed nothing."""
    lag = item.lag
    if lag.lag is not None:
        return lag.lag
    return max((lag.log_end_offset or 0) - (lag.log_start_offset or 0), 0)


# Not there any more


def member_gone(case: GroupCase, readers: Sequence[Reader]) -> Iterator[Cause]:
    """Find a member whose connection is closed, and whose membership still holds its partitions."""
    held: dict[str, list[tuple[PartitionLook, Reader]]] = {}
    for item in case.partitions:
        reader = reads(readers, item)
        if reader is None or item.lag.member is None or moves(item) or not unread(item):
            continue
        if reader.doing is Doing.GONE and case.now_ms - reader.last.at_ms >= QUIET_MS:
            held.setdefault(item.lag.member.member_id, []).append((item, reader))
    for some in held.values():
        member = some[0][0].lag.member
        assert member is not None, "only partitions that a member has are gathered"
        reader = max((one for _, one in some), key=lambda one: one.last.at_ms)
        session_ms = _session_ms(case, member)
        if session_ms is not None and case.now_ms - reader.last.at_ms > session_ms + QUIET_MS:
            # It still sends heartbeats, so it is there. Its connection was closed because nothing was sent.
            continue
        yield _gone(case, member, [item for item, _ in some], reader, session_ms)
        return


def _session_ms(case: GroupCase, member: MemberDescription) -> int | None:
    found: MemberFacts | None = None
    for generation in case.history.generations:
        found = generation.members.get(member.member_id, found)
    return None if found is None else found.session_timeout_ms


def _gone(
    case: GroupCase,
    member: MemberDescription,
    items: Sequence[PartitionLook],
    reader: Reader,
    session_ms: int | None,
) -> Cause:
    where = ", ".join(str(item.lag.where) for item in items)
    since_ms = reader.last.at_ms
    until = "" if session_ms is None else f" until about {time_text(since_ms + session_ms)}"
    is_static = member.instance_id is not None
    membership = f"static membership (group.instance.id {member.instance_id})" if is_static else "membership"
    return Cause(
        "static-member-gone" if is_static else "member-gone",
        Strength.PROVED if reader.was_fetching else Strength.LIKELY,
        f"{member.client_id} is gone since {time_text(since_ms)}, and its {membership} holds {where}{until}, "
        f"with {sum(map(unread, items))} unread records",
        (
            Evidence(
                f"the connection of {member.client_id} at {reader.host} is closed, and it did not come back",
                f"journal {reader.last.place}",
                since_ms,
            ),
            Evidence(
                f"member {member.member_id} still has {where}"
                + ("" if session_ms is None else f", with a session timeout of {duration_text(session_ms)}"),
                f"ottla group describe {case.group_id}",
                case.now_ms,
            ),
        ),
        (
            f"start it again with group.instance.id={member.instance_id}: it gets its partitions back at once"
            if is_static
            else "start it again, or wait for its session to end: others get its partitions then",
            *(
                (
                    f"if not: `ottla group remove-member {case.group_id} {member.instance_id}`",
                    "lower session.timeout.ms: nobody reads for so long after a static member has died",
                )
                if is_static
                else ()
            ),
        ),
        weight=8.5,
    )


# There, but does not fetch


def not_fetching(case: GroupCase, readers: Sequence[Reader]) -> Iterator[Cause]:
    """Find a member that stays in the group and has stopped to fetch a partition with unread records."""
    for item in case.partitions:
        lag = item.lag
        reader = reads(readers, item)
        if not unread(item) or reader is None or lag.member is None or moves(item):
            continue
        if reader.doing is Doing.GONE:
            continue
        is_left_out = reader.doing is Doing.FETCHING and lag.where not in reader.positions
        if reader.doing is Doing.FETCHING and not is_left_out:
            continue
        position, _ = reader.seen[lag.where][-1]
        if lag.committed is None or lag.committed <= (lag.log_start_offset or 0):
            # It has fetched, and was never done with a record: no more is known than that.
            yield _stuck(case, item, reader, position)
            return
        # A fetch names where it begins. What it brought lies behind that, so a commit behind it is evidence
        # of records that were fetched and are being worked on, too.
        if (
            is_left_out
            or position == lag.committed
            or _ends_a_batch(case, lag.where, lag.committed, position)
        ):
            yield _paused(case, item, reader, position)
        else:
            yield _stuck(case, item, reader, position)
        return


def never_fetched(case: GroupCase, readers: Sequence[Reader]) -> Iterator[Cause]:
    """Find a member that has had a partition for a while, and was never seen to fetch it."""
    span = case.journal.span_ms
    for item in case.partitions:
        lag = item.lag
        if lag.member is None or lag.committed is not None or not unread(item) or moves(item):
            continue
        since_ms = _has_since(case, lag.member, lag.where)
        is_seen = any(one.client == lag.member.client_id and lag.where in one.seen for one in readers)
        if since_ms is None or is_seen or case.now_ms - since_ms < 2 * QUIET_MS:
            continue
        if span is None or span[0] > since_ms or case.journal.left_out(since_ms).get("fetch-position"):
            # The journal may not have room for it, or begin later.
            continue
        yield Cause(
            "never-fetched",
            Strength.LIKELY,
            f"{lag.member.client_id} has {lag.where} since {time_text(since_ms)}, and has never fetched it: "
            "it has no offset to begin at (nothing is committed, and auto.offset.reset=none or error), or it "
            "hangs before its first fetch",
            (
                Evidence(f"member {lag.member.member_id} has {lag.where}", "__consumer_offsets", since_ms),
                Evidence(f"nothing is committed, {unread(item)} unread", f"ottla lag {case.group_id}"),
                Evidence(
                    f"no line tells that {lag.member.client_id} has fetched it",
                    f"ottla journal --client {lag.member.client_id}",
                    case.now_ms,
                ),
            ),
            (
                "look for errors in the log of the consumer, NoOffsetForPartition for example",
                "set auto.offset.reset=earliest or latest, or commit where it is to begin",
                "look whether the client reaches the node that leads the partition",
            ),
            weight=6,
        )
        return


def _has_since(case: GroupCase, member: MemberDescription, where: TopicPartition) -> int | None:
    found = None
    for generation in case.history.generations:
        facts = generation.members.get(member.member_id)
        has_it = facts is not None and where in facts.assignment
        found = (generation.at_ms if found is None else found) if has_it else None
    return found


def _ends_a_batch(case: GroupCase, where: TopicPartition, committed: int, position: int) -> bool:
    """Say whether all that a fetch may have brought is committed: whole batches, the last of them too."""
    if committed < position or case.log is None:
        return False
    return any(batch.where == where and batch.base_offset == committed for batch in case.log.batches)


def _paused(case: GroupCase, item: PartitionLook, reader: Reader, position: int) -> Cause:
    lag = item.lag
    assert lag.member is not None, "only partitions that a member has are asked about"
    return Cause(
        "paused",
        Strength.LIKELY,
        f"{lag.member.client_id} has {lag.where}, stays in the group, and does not fetch it: it has paused "
        f"the partition at offset {position}, or hangs there, with {unread(item)} records unread",
        (
            Evidence(
                f"no fetch of {lag.where} since this time", f"journal {reader.last.place}", reader.last.at_ms
            ),
            Evidence(
                f"committed {lag.committed}, last fetched from {position}: what it got before is committed",
                f"ottla lag {case.group_id}",
            ),
        ),
        (
            "look for pause() in the consumer, and call resume()",
            "if there is none: look at what it does instead of polling",
        ),
        weight=6,
    )


def _stuck(case: GroupCase, item: PartitionLook, reader: Reader, position: int) -> Cause:
    lag = item.lag
    assert lag.member is not None, "only partitions that a member has are asked about"
    first = lag.log_start_offset or 0
    offset = first if lag.committed is None else lag.committed
    how = (
        f"it hangs in the processing of a record, soon after offset {offset}, or does not poll"
        if offset <= first
        else f"its processing hangs or takes long, at offset {offset}"
    )
    return Cause(
        "stuck-processing",
        Strength.LIKELY,
        f"{lag.member.client_id} has fetched records of {lag.where} that it has not committed, and asks for "
        f"no more, with {unread(item)} unread: {how}, or it has paused the partition",
        (
            Evidence(
                f"no fetch of {lag.where} since this time", f"journal {reader.last.place}", reader.last.at_ms
            ),
            Evidence(
                f"last fetched from {position}, committed {lag.committed}", f"ottla lag {case.group_id}"
            ),
        ),
        (f"look at what the consumer does with the record {lag.where.topic}/{lag.where.partition}@{offset}",),
        weight=6,
    )


# Fetches, but does not commit


def not_committing(case: GroupCase, readers: Sequence[Reader]) -> Iterator[Cause]:
    """Find a member that fetches up to the end of a partition, while its commits stand still."""
    for item in case.partitions:
        lag = item.lag
        reader = reads(readers, item)
        if reader is None or reader.doing is not Doing.FETCHING or not unread(item) or moves(item):
            continue
        if lag.where not in reader.positions or (lag.committed is None and _began_late(item, reader)):
            continue
        position = reader.positions[lag.where]
        commit = _last_commit(case, lag.where)
        since_ms = case.now_ms - (reader.first.at_ms if commit is None else commit.at_ms)
        is_at_end = position >= (lag.log_end_offset or 0) - 1 or _advances(case, lag.where)
        first = lag.log_start_offset or 0
        if position <= (first if lag.committed is None else lag.committed) or not is_at_end:
            continue
        if since_ms > QUIET_MS * 2:
            yield _stands(case, item, reader, position, commit)
            return


def _stands(
    case: GroupCase, item: PartitionLook, reader: Reader, position: int, commit: Commit | None
) -> Cause:
    lag = item.lag
    assert lag.member is not None, "only partitions that a member has are asked about"
    has_committed = commit is not None and commit.at_ms >= _member_since(case, lag.member)
    evidence = (
        Evidence(f"fetches from {position}", f"journal {reader.last.place}", reader.last.at_ms),
        Evidence(
            f"committed {'nothing' if lag.committed is None else lag.committed}",
            f"ottla lag {case.group_id}",
            None if commit is None else commit.at_ms,
        ),
    )
    who = f"{lag.member.client_id} has fetched {lag.where} up to {position}, and has committed"
    if has_committed and commit is not None:
        return Cause(
            "stopped-polling",
            Strength.LIKELY,
            f"{who} {lag.committed} and nothing since {time_text(commit.at_ms)}, though it did before: it "
            "has stopped polling (librdkafka goes on fetching and sending heartbeats), or does not commit "
            "any more",
            evidence,
            (
                "look at what the consumer does since then: its max.poll.interval.ms is not over yet",
                "if it does process records, look for commits that fail",
            ),
            weight=4,
        )
    return Cause(
        "reads-without-committing",
        Strength.LIKELY,
        f"{who} {'nothing' if lag.committed is None else 'nothing since it has joined'}: it never commits, "
        "or its application does not poll (librdkafka fetches ahead)",
        evidence,
        (
            "commit after processing, or set enable.auto.commit",
            "if that is on: look at what the consumer does instead of polling",
        ),
        weight=3,
    )


def _member_since(case: GroupCase, member: MemberDescription) -> int:
    times = [one.at_ms for one in case.history.generations if member.member_id in one.members]
    return min(times, default=case.now_ms)


def _last_commit(case: GroupCase, where: TopicPartition) -> Commit | None:
    found = None
    for commit in case.history.commits:
        if commit.where == where and commit.offset is not None:
            found = commit
    return found


def _advances(case: GroupCase, where: TopicPartition) -> bool:
    """Say whether a partition was fetched from ever higher offsets of late."""
    seen = [
        event.positions()[where]
        for event in case.journal.of("fetch-position")
        if case.now_ms - event.at_ms <= 4 * QUIET_MS and where in event.positions()
    ]
    return len(seen) >= 2 and seen[-1] > seen[0]


# Began behind the records


def _began_late(item: PartitionLook, reader: Reader) -> bool:
    began = reader.began.get(item.lag.where)
    return began is not None and began[0] == LATEST and began[1] > (item.lag.log_start_offset or 0)


def began_at_end(case: GroupCase, readers: Sequence[Reader]) -> Iterator[Cause]:
    """Find a group that began at the end of a partition, behind records that it never read."""
    skipped: list[tuple[PartitionLook, Reader]] = []
    for item in case.partitions:
        reader = reads(readers, item)
        if reader is None or not _began_late(item, reader):
            continue
        if item.lag.committed is None or item.lag.committed <= reader.began[item.lag.where][1]:
            skipped.append((item, reader))
    if not skipped:
        return
    counts = [one.began[item.lag.where][1] - (item.lag.log_start_offset or 0) for item, one in skipped]
    item, reader = skipped[0]
    where, began = item.lag.where, reader.began[item.lag.where]
    yield Cause(
        "began-at-end",
        Strength.PROVED,
        f"{reader.client} began {where} at its end, at offset {began[1]}: the {sum(counts)} records before "
        "it are not read (auto.offset.reset=latest, and nothing was committed)",
        (
            *(
                Evidence(
                    f"{one.client} asked for the last offset of {part.lag.where}, got "
                    f"{one.began[part.lag.where][1]}, and fetches from there; the log begins at "
                    f"{part.lag.log_start_offset}",
                    f"journal {one.began[part.lag.where][2].place}",
                    one.began[part.lag.where][2].at_ms,
                )
                for part, one in skipped[:4]
            ),
            Evidence(
                f"committed {'nothing' if item.lag.committed is None else item.lag.committed}",
                f"ottla lag {case.group_id}",
            ),
        ),
        (
            "set auto.offset.reset=earliest for a group that has to read what is there already",
            f"to read it now: stop the members, `ottla group reset {case.group_id} --to-earliest`, start",
        ),
        weight=7.5,
    )


def topic_made_again(case: GroupCase) -> Iterator[Cause]:
    """Find a topic that was deleted and made again, with the offsets of the group."""
    topics = {item.lag.where.topic for item in case.partitions}
    topics |= {commit.where.topic for commit in case.history.commits}
    for topic in sorted(topics):
        made = remade(case, topic)
        if made is None:
            continue
        deleted, created = made
        before = [
            one
            for one in case.history.commits
            if one.where.topic == topic and one.offset is not None and one.at_ms < deleted.at_ms
        ]
        after = [
            one for one in case.history.commits if one.where.topic == topic and one.at_ms >= created.at_ms
        ]
        moved = {one.where for one in after if one.offset}
        if not before or moved >= {one.where for one in before if one.offset}:
            continue
        yield Cause(
            "topic-made-again",
            Strength.PROVED,
            f"{topic} was deleted at {time_text(deleted.at_ms)} and made again at {time_text(created.at_ms)}:"
            f" what group {case.group_id} had committed is gone with the old one; the new one begins at 0",
            (
                Evidence(f"{topic} was deleted", f"journal {deleted.place}", deleted.at_ms),
                Evidence(f"{topic} was created", f"journal {created.place}", created.at_ms),
                Evidence(
                    f"the group had committed {before[-1].offset} of {before[-1].where} before",
                    f"__consumer_offsets@{before[-1].log_offset}",
                    before[-1].at_ms,
                ),
            ),
            (
                "restart the members: some clients go on with the topic that is gone",
                f"`ottla group reset {case.group_id} --to-earliest` to read the new topic from its start",
            ),
            weight=8.7,
        )
        return


def remade(case: GroupCase, topic: str) -> tuple[JournalEvent, JournalEvent] | None:
    """Return when a topic was last deleted, and made after that."""
    deleted: JournalEvent | None = None
    found: tuple[JournalEvent, JournalEvent] | None = None
    for event in case.journal.of("topic-deleted", "topic-created", topic=topic):
        if event.kind == "topic-deleted":
            deleted = event
        elif deleted is not None:
            found, deleted = (deleted, event), None
    return found


# Nothing there


def nothing_to_read(case: GroupCase) -> Iterator[Cause]:
    """Find a group that is at the end of everything, while nobody writes."""
    known = [item for item in case.partitions if item.lag.log_end_offset is not None]
    if not known or any(item.lag.lag != 0 for item in known if item.lag.committed is not None):
        return
    if any(item.lag.committed is None and unread(item) for item in known):
        return
    if any(item.velocity is not None and item.velocity.writes > 0 for item in known):
        return
    last = max((case.last_record_ms.get(item.lag.where, 0) for item in known), default=0)
    if last and case.now_ms - last < QUIET_MS:
        return
    names = sorted({item.lag.where.topic for item in known})
    topics = ", ".join(names)
    deleted = sum(item.lag.log_end_offset or 0 for item in known)
    if deleted and all(item.lag.log_start_offset == item.lag.log_end_offset for item in known):
        yield _all_deleted(known, topics, deleted)
        return
    # Brokers before 3.0 do not tell when the last record was written.
    since = f"since {time_text(last)}" if last else "that it has not read" if deleted else "yet"
    yield Cause(
        "end-of-log",
        Strength.PROVED,
        f"there is nothing to read: group {case.group_id} is at the end of all its partitions, and nothing "
        f"was written to {topics} {since}",
        tuple(
            Evidence(
                f"{item.lag.where} ends at {item.lag.log_end_offset}, all of it committed", "ListOffsets"
            )
            for item in known[:4]
        ),
        ("look at the producers of the topic", *(() if deleted else _similar(case, names))),
        weight=1,
    )


def _similar(case: GroupCase, names: Sequence[str]) -> tuple[str, ...]:
    """Say which other topic may have been meant, of one that nobody has written to."""
    for name in names:
        others = {other.casefold(): other for other in case.topics if other not in names}
        for near in get_close_matches(name.casefold(), others, 1, 0.8):
            return (f"compare the names: there is also a topic {others[near]}",)
    return ()


def _all_deleted(known: Sequence[PartitionLook], topics: str, deleted: int) -> Cause:
    return Cause(
        "all-deleted",
        Strength.PROVED,
        f"there is nothing to read: no record is left in {topics}, and the {deleted} that were written are "
        "deleted",
        tuple(
            Evidence(f"{item.lag.where} begins and ends at {item.lag.log_end_offset}", "ListOffsets")
            for item in known[:4]
        ),
        tuple(f"ask who deleted them: `ottla why lost --topic {name}`" for name in topics.split(", ")[:2]),
        weight=1,
    )


# All is well, or is it?


def doubts(case: GroupCase, readers: Sequence[Reader], members: Sequence[MemberDescription]) -> list[str]:
    """Return what keeps one from saying that members read their partitions and keep up."""
    names = {member.member_id for member in members}
    found = [f"{member.client_id} has no partitions" for member in members if not member.assignment]
    for item in case.partitions:
        lag = item.lag
        if lag.member is None:
            if unread(item):
                found.append(f"no member has {lag.where}, which has {unread(item)} unread records")
            continue
        if lag.member.member_id not in names:
            continue
        if lag.committed is None and unread(item):
            found.append(
                f"nothing is committed for {lag.where}, so its lag is not known: "
                f"at most {unread(item)} records"
            )
        if not is_seen_fetching(item, reads(readers, item)):
            found.append(f"{lag.member.client_id} was not seen to fetch {lag.where}")
        elif lag.lag and not moves(item):
            found.append(
                f"{lag.where} has {lag.lag} unread records, and no commit moved in {case.seconds:g} s"
            )
    return found


def is_seen_fetching(item: PartitionLook, reader: Reader | None) -> bool:
    """Say whether a partition was seen to be read: by the journal, or by commits that went on."""
    if reader is not None and reader.doing is Doing.FETCHING and item.lag.where in reader.positions:
        return True
    return moves(item)
