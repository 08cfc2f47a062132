"""Why does a group, or a client of it, get nothing?

The tree, from what is missing to what is in the way:

    no such group -> nobody in it -> nothing subscribed, or a topic that does not exist -> no partitions
    -> refused (rights, offsets that are gone) -> held back (open transaction) -> throttled
    -> has partitions and does not fetch (paused, stuck) -> nothing to read -> reads, and does not commit
"""

from collections.abc import Iterator

from ottla.client.admin.descriptions import MemberDescription
from ottla.explain.answer import Answer, Cause, Evidence, Strength, duration_text, ranked, time_text
from ottla.explain.evidence.cases import NO_JOURNAL, GroupCase, OpenTransaction
from ottla.explain.evidence.journal import JournalEvent
from ottla.explain.lag.outlook import PartitionLook
from ottla.model.ids import TopicPartition

RECENT_MS = 60_000
QUIET_MS = 5_000
"""A partition that got nothing for so long is quiet."""
_RIGHTS = ("TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED")


def why_silent(case: GroupCase, client: str | None = None, topic: str | None = None) -> Answer:
    """Answer for a group, or for one client or topic of it."""
    subject = f"group {case.group_id}" + (f", client {client}" if client else "")
    causes = ranked(_causes(case, client, topic))
    missing = () if case.journal.exists else (NO_JOURNAL,)
    return Answer(
        "silent",
        subject,
        causes,
        f"nothing wrong found: {subject} reads its partitions and keeps up",
        missing,
        journal_ms=case.journal.span_ms,
    )


def _causes(case: GroupCase, client: str | None, topic: str | None) -> Iterator[Cause]:
    if case.look is None:
        yield _no_group(case)
        if client is not None:
            yield from _asks_for_missing_topics(case, client)
        return
    refused = list(_refused(case))
    if case.description is None or not case.description.members:
        yield _no_members(case)
        return
    members = [item for item in case.description.members if client is None or item.client_id == client]
    if not members:
        yield _client_is_not_a_member(case, client or "")
        return
    yield from refused
    yield from _without_topic(case, members, topic)
    yield from _without_partitions(case, members)
    yield from _out_of_range(case)
    yield from _held_back(case)
    yield from _throttled(case)
    yield from _not_fetching(case)
    yield from _not_committing(case)
    yield from _nothing_to_read(case)


# Nobody there


def _no_group(case: GroupCase) -> Cause:
    near = ", ".join(sorted(case.topics)[:5]) or "none"
    return Cause(
        "no-such-group",
        Strength.PROVED,
        f"there is no group {case.group_id}: no consumer has joined or committed under this name",
        (Evidence(f"no broker lists group {case.group_id}; topics: {near}", "ottla group list"),),
        ("compare the group.id of the consumer; `ottla group list` lists the groups that exist",),
    )


def _asks_for_missing_topics(case: GroupCase, client: str) -> Iterator[Cause]:
    """Some clients do not join before one of their topics exists. Then there is no group."""
    for event in case.journal.of("topic-unknown", client=client):
        names = ", ".join(event.facts["topics"])
        if not all(name in case.topics for name in event.facts["topics"]):
            yield Cause(
                "topic-missing",
                Strength.PROVED,
                f"{client} asks for {names}, which does not exist, and joins no group before it does",
                (
                    Evidence(f"asked for {names}", f"journal {event.place}", event.at_ms),
                    Evidence(f"topics: {', '.join(sorted(case.topics)) or 'none'}", "ottla topic list"),
                ),
                ("create the topic, or correct its name in the consumer",),
                weight=10,
            )
            return


def _no_members(case: GroupCase) -> Cause:
    evidence = [Evidence(f"group {case.group_id} has state Empty", f"ottla group describe {case.group_id}")]
    reason = "nobody has joined it"
    last = next((item for item in reversed(case.history.generations) if item.members), None)
    if last is not None:
        names = ", ".join(sorted({item.client_id for item in last.members.values()}))
        reason = f"its last members were {names}"
        evidence.append(Evidence(f"generation {last.number} had {names}", "__consumer_offsets", last.at_ms))
    evidence += map(departure, list(case.journal.of("member-left", group=case.group_id))[-3:])
    return Cause(
        "no-members",
        Strength.PROVED,
        f"group {case.group_id} has no members: {reason}",
        tuple(evidence),
        ("start a consumer with this group.id, and look into the log of the one that ended",),
        weight=9,
    )


def departure(event: JournalEvent) -> Evidence:
    """Say how a member left."""
    facts = event.facts
    how = {
        "left": "left" + (f" ({facts['reason']})" if facts.get("reason") else ""),
        "session": f"sent nothing for {duration_text(facts.get('after_ms', 0))}",
        "rebalance": f"did not join again within {duration_text(facts.get('after_ms', 0))}",
        "sync": "did not ask for its assignment in time",
    }.get(facts.get("why", ""), "is gone")
    stays = {True: ", its client stayed connected", False: ", its client is gone"}.get(
        bool(facts.get("connected")), ""
    )
    return Evidence(f"{facts.get('client')} {how}{stays}", f"journal {event.place}", event.at_ms)


def _client_is_not_a_member(case: GroupCase, client: str) -> Cause:
    names = ", ".join(sorted(case.clients)) or "none"
    return Cause(
        "not-a-member",
        Strength.PROVED,
        f"client {client} is not a member of group {case.group_id}",
        (Evidence(f"clients of its members: {names}", f"ottla group describe {case.group_id}"),),
        ("check the client.id and the group.id of the consumer",),
    )


# Nothing assigned


def _without_topic(case: GroupCase, members: list[MemberDescription], topic: str | None) -> Iterator[Cause]:
    source = f"ottla group describe {case.group_id}"
    for member in members:
        missing = [name for name in member.subscribed_topics if name not in case.topics]
        if missing and not member.assignment:
            yield Cause(
                "topic-missing",
                Strength.PROVED,
                f"{member.client_id} subscribes to {', '.join(missing)}, which does not exist",
                (Evidence(f"topics: {', '.join(sorted(case.topics)) or 'none'}", "ottla topic list"),),
                ("create the topic, or correct its name in the consumer",),
                weight=8,
            )
        elif member.subscribed_regex is not None and not member.assignment:
            yield Cause(
                "pattern-matches-nothing",
                Strength.PROVED,
                f"the pattern {member.subscribed_regex} of {member.client_id} matches no topic",
                (Evidence(f"topics: {', '.join(sorted(case.topics)) or 'none'}", "ottla topic list"),),
                ("correct the pattern: it has to match the whole name of a topic",),
                weight=8,
            )
        elif not member.subscribed_topics and member.subscribed_regex is None and not member.assignment:
            yield Cause(
                "topic-missing",
                Strength.LIKELY,
                f"{member.client_id} is a member, but subscribes to no topic that exists",
                (Evidence(f"member {member.member_id} has no topics and no partitions", source),),
                ("check the topic or the pattern that the consumer subscribes to",),
                weight=8,
            )
    if topic is not None and all(topic not in item.subscribed_topics for item in members):
        subscribed = sorted({name for item in members for name in item.subscribed_topics})
        yield Cause(
            "another-topic",
            Strength.PROVED,
            f"no member of group {case.group_id} subscribes to {topic}",
            (Evidence(f"they subscribe to {', '.join(subscribed) or 'nothing'}", source),),
            ("correct the topics that the consumer subscribes to",),
            weight=8,
        )


def _without_partitions(case: GroupCase, members: list[MemberDescription]) -> Iterator[Cause]:
    assert case.description is not None, "asked only of groups with members"
    idle = [item for item in members if not item.assignment and item.subscribed_topics]
    if not idle or case.description.state not in ("Stable", "stable"):
        return
    topics = {name for item in case.description.members for name in item.subscribed_topics}
    partitions = sum(case.topics.get(name, 0) for name in topics)
    count = len(case.description.members)
    if partitions and count > partitions:
        names = ", ".join(sorted({item.client_id for item in idle}))
        yield Cause(
            "more-members-than-partitions",
            Strength.PROVED,
            f"{len(idle)} of {count} members get nothing: {', '.join(sorted(topics))} "
            f"has only {partitions} partitions",
            (Evidence(f"without partitions: {names}", f"ottla group describe {case.group_id}", case.now_ms),),
            (f"run at most {partitions} members, or add partitions with `ottla topic alter`",),
            weight=7,
        )


# In the way


def _refused(case: GroupCase) -> Iterator[Cause]:
    for event in case.journal.of("request-refused"):
        if case.now_ms - event.at_ms > RECENT_MS:
            continue
        client = event.subject.removeprefix("client/").rpartition("@")[0]
        if client not in case.clients or event.facts.get("error") not in _RIGHTS:
            continue
        yield Cause(
            "not-authorized",
            Strength.PROVED,
            f"{client} is refused: {event.facts['api']} gets {event.facts['error']}",
            (Evidence(f"{event.facts['count']} refusals", f"journal {event.place}", event.at_ms),),
            ("give the client's principal the right to read the topic and to use the group",),
            weight=9,
        )
        return


def _out_of_range(case: GroupCase) -> Iterator[Cause]:
    for item in case.partitions:
        lag = item.lag
        if lag.committed is None or lag.log_start_offset is None or lag.log_end_offset is None:
            continue
        is_below, is_above = lag.committed < lag.log_start_offset, lag.committed > lag.log_end_offset
        if not is_below and not is_above:
            continue
        moves = item.velocity is not None and item.velocity.reads != 0
        if moves:
            continue
        why = (
            f"{lag.log_start_offset - lag.committed} records were deleted before they were read"
            if is_below
            else "the topic was deleted and created again, or lost records"
        )
        evidence = [
            Evidence(
                f"committed {lag.committed}, but the log has {lag.log_start_offset} to {lag.log_end_offset}",
                f"ottla lag {case.group_id}",
            ),
            *_refusals(case, "OFFSET_OUT_OF_RANGE"),
        ]
        yield Cause(
            "offset-out-of-range",
            Strength.PROVED,
            f"group {case.group_id} stands at an offset of {lag.where} that does not exist: {why}",
            tuple(evidence),
            (
                f"move the group with `ottla group reset {case.group_id} --to-earliest`",
                "or set auto.offset.reset of the consumer",
            ),
            weight=8,
        )
        return


def _refusals(case: GroupCase, error: str) -> Iterator[Evidence]:
    for event in list(case.journal.of("request-refused", error=error))[-1:]:
        yield Evidence(
            f"{event.subject.removeprefix('client/')}: {event.facts['api']} was refused "
            f"{event.facts['count']} times with {error}",
            f"journal {event.place}",
            event.at_ms,
        )


def _held_back(case: GroupCase) -> Iterator[Cause]:
    for item in case.partitions:
        lag = item.lag
        stable = case.stable_ends.get(lag.where)
        if stable is None or lag.log_end_offset is None or stable >= lag.log_end_offset:
            continue
        if lag.committed is not None and lag.committed > stable:
            # It reads records of open transactions, so nothing is held back.
            continue
        if lag.committed is not None and lag.committed < stable and _moves(item):
            continue
        holder = next(
            (one for one in case.open_transactions if one.where == lag.where and one.first_offset <= stable),
            None,
        )
        if holder is None or _age_ms(case, holder) < QUIET_MS:
            continue
        yield _open_transaction(case, item, holder, stable)
        return


def _age_ms(case: GroupCase, holder: OpenTransaction) -> int:
    started = holder.started_at_ms if holder.started_at_ms is not None else holder.last_timestamp_ms
    return case.now_ms - started


def _open_transaction(case: GroupCase, item: PartitionLook, holder: OpenTransaction, stable: int) -> Cause:
    where, end = item.lag.where, item.lag.log_end_offset or 0
    who = holder.transactional_id or f"producer {holder.producer_id}"
    names = case.journal.producer_names()
    known = f" of {names[holder.producer_id]}" if holder.producer_id in names else ""
    ends = (
        ""
        if holder.timeout_ms is None or holder.started_at_ms is None
        else f"; it is aborted at {time_text(holder.started_at_ms + holder.timeout_ms)}"
    )
    return Cause(
        "open-transaction",
        Strength.PROVED,
        f"an open transaction of {who} holds back {end - stable} records of {where} from readers that "
        f"read committed records, for {duration_text(_age_ms(case, holder))} so far{ends}",
        (
            Evidence(f"last stable offset {stable}, end {end}", "ListOffsets"),
            Evidence(
                f"producer {holder.producer_id}{known} has a transaction open from offset "
                f"{holder.first_offset} on",
                "DescribeProducers",
                holder.started_at_ms,
            ),
        ),
        (
            f"let {who} commit or abort; if it is gone: `ottla txn abort {holder.transactional_id or 'ID'}`",
            "lower transaction.timeout.ms of the producer",
        ),
        weight=8,
    )


def _throttled(case: GroupCase) -> Iterator[Cause]:
    by_client: dict[str, list[JournalEvent]] = {}
    for event in case.journal.of("throttled"):
        client = event.subject.removeprefix("client/").rpartition("@")[0]
        if client in case.clients and case.now_ms - event.at_ms <= RECENT_MS:
            by_client.setdefault(client, []).append(event)
    for client, events in by_client.items():
        waited = sum(event.facts.get("ms", 0) for event in events)
        if waited < QUIET_MS:
            continue
        yield Cause(
            "throttled",
            Strength.PROVED,
            f"{client} is over its quota {events[-1].facts.get('quota')} and was made to wait for "
            f"{duration_text(waited)} in the last minute",
            tuple(
                Evidence(
                    f"{event.facts.get('ms')} ms by {event.facts.get('quota')}",
                    f"journal {event.place}",
                    event.at_ms,
                )
                for event in events[-3:]
            ),
            ("raise the quota of the client, or let it fetch less",),
            weight=8,
        )


# It has partitions


def last_positions(case: GroupCase) -> dict[TopicPartition, tuple[int, JournalEvent]]:
    """Return where members were last seen to fetch, with the event that tells it."""
    found: dict[TopicPartition, tuple[int, JournalEvent]] = {}
    for event in case.journal.of("fetch-position", "fetch-stopped"):
        if event.facts.get("client") in case.clients:
            for where, offset in event.positions().items():
                found[where] = (offset, event)
    return found


def _moves(item: PartitionLook) -> bool:
    return item.velocity is not None and item.velocity.reads > 0


def _not_fetching(case: GroupCase) -> Iterator[Cause]:
    if not case.journal.exists:
        return
    stopped: dict[tuple[str, str], JournalEvent] = {}
    for event in case.journal.of("fetch-position", "fetch-stopped"):
        key = (event.facts.get("client", ""), event.facts.get("host", ""))
        stopped[key] = event
    positions = last_positions(case)
    for item in case.partitions:
        lag = item.lag
        if not lag.lag or lag.member is None or _moves(item) or lag.committed is None:
            continue
        last = stopped.get((lag.member.client_id, lag.member.host.lstrip("/")))
        if last is None:
            continue
        is_left_out = last.kind == "fetch-position" and lag.where not in last.positions()
        if last.kind != "fetch-stopped" and not is_left_out:
            continue
        position = positions[lag.where][0] if lag.where in positions else lag.committed
        # A fetch names where it begins. What it brought lies behind that, so a commit behind it is evidence
        # of records that were fetched and are being worked on, too.
        if (
            is_left_out
            or position == lag.committed
            or _ends_a_batch(case, lag.where, lag.committed, position)
        ):
            yield _paused(case, item, last, position)
        else:
            yield _stuck(case, item, last, position)
        return


def _ends_a_batch(case: GroupCase, where: TopicPartition, committed: int, position: int) -> bool:
    """Say whether all that a fetch may have brought is committed: whole batches, the last of them too."""
    if committed < position or case.log is None:
        return False
    return any(batch.where == where and batch.base_offset == committed for batch in case.log.batches)


def _paused(case: GroupCase, item: PartitionLook, last: JournalEvent, position: int) -> Cause:
    lag = item.lag
    assert lag.member is not None, "only partitions that a member has are asked about"
    return Cause(
        "paused",
        Strength.LIKELY,
        f"{lag.member.client_id} has {lag.where}, stays in the group, and does not fetch it: it has paused "
        f"the partition at offset {position}, with {lag.lag} records unread",
        (
            Evidence(f"no fetch of {lag.where} since this time", f"journal {last.place}", last.at_ms),
            Evidence(
                f"committed {lag.committed}, last fetched from {position}: what it got, it has processed",
                f"ottla lag {case.group_id}",
            ),
        ),
        ("look for pause() in the consumer, and call resume()",),
        weight=6,
    )


def _stuck(case: GroupCase, item: PartitionLook, last: JournalEvent, position: int) -> Cause:
    lag = item.lag
    assert lag.member is not None, "only partitions that a member has are asked about"
    return Cause(
        "stuck-processing",
        Strength.LIKELY,
        f"{lag.member.client_id} has fetched records of {lag.where} that it has not committed, and asks for "
        f"no more: its processing hangs or takes very long, at offset {lag.committed}",
        (
            Evidence(f"no fetch of {lag.where} since this time", f"journal {last.place}", last.at_ms),
            Evidence(
                f"last fetched from {position}, committed {lag.committed}", f"ottla lag {case.group_id}"
            ),
        ),
        (
            f"look at what the consumer does with the record {lag.where.topic}/{lag.where.partition}@"
            + str(lag.committed),
        ),
        weight=6,
    )


def _advances(case: GroupCase, where: TopicPartition) -> bool:
    """Say whether a partition was fetched from ever higher offsets of late."""
    seen = [
        event.positions()[where]
        for event in case.journal.of("fetch-position")
        if case.now_ms - event.at_ms <= 4 * QUIET_MS and where in event.positions()
    ]
    return len(seen) >= 2 and seen[-1] > seen[0]


def _not_committing(case: GroupCase) -> Iterator[Cause]:
    positions = last_positions(case)
    for item in case.partitions:
        lag = item.lag
        found = positions.get(lag.where)
        if found is None or not lag.lag or _moves(item) or lag.member is None:
            continue
        position, event = found
        last_commit = max((one.at_ms for one in case.history.commits if one.where == lag.where), default=None)
        since = case.now_ms - (last_commit or 0)
        is_at_end = position >= (lag.log_end_offset or 0) - 1 or _advances(case, lag.where)
        if (
            position > (lag.committed or 0)
            and is_at_end
            and since > QUIET_MS * 2
            and event.kind != "fetch-stopped"
        ):
            when = "never" if last_commit is None else f"not since {time_text(last_commit)}"
            yield Cause(
                "reads-without-committing",
                Strength.LIKELY,
                f"{lag.member.client_id} reads {lag.where} up to its end, and has committed {when}: "
                "it gets records, only its lag does not show it",
                (
                    Evidence(f"fetches from {position}", f"journal {event.place}", event.at_ms),
                    Evidence(f"committed {lag.committed}", f"ottla lag {case.group_id}", last_commit),
                ),
                ("commit after processing, or set enable.auto.commit",),
                weight=3,
            )
            return


def _nothing_to_read(case: GroupCase) -> Iterator[Cause]:
    known = [item for item in case.partitions if item.lag.log_end_offset is not None]
    if not known or any(item.lag.lag != 0 for item in known if item.lag.committed is not None):
        return
    if any(item.lag.committed is None and (item.lag.log_end_offset or 0) > 0 for item in known):
        return
    if any(item.velocity is not None and item.velocity.writes > 0 for item in known):
        return
    last = max((case.last_record_ms.get(item.lag.where, 0) for item in known), default=0)
    if last and case.now_ms - last < QUIET_MS:
        return
    topics = ", ".join(sorted({item.lag.where.topic for item in known}))
    since = f"since {time_text(last)}" if last else "yet"
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
        ("look at the producers of the topic",),
        weight=1,
    )
