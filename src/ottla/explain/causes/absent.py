"""Nobody is there: no group, no members, a client that is in no group, or that the group did not let in."""

from collections.abc import Iterator, Sequence

from ottla.client.admin.descriptions import MemberDescription
from ottla.explain.answer import Cause, Evidence, Strength, duration_text, time_text
from ottla.explain.evidence.cases import GroupCase
from ottla.explain.evidence.journal import JournalEvent
from ottla.explain.evidence.readers import Doing, Reader
from ottla.model.ids import TopicPartition

_MINUTES_MS = 600_000


def no_group(case: GroupCase) -> Cause:
    near = ", ".join(sorted(case.topics)[:5]) or "none"
    return Cause(
        "no-such-group",
        Strength.PROVED,
        f"there is no group {case.group_id}: no consumer has joined or committed under this name",
        (Evidence(f"no broker lists group {case.group_id}; topics: {near}", "ottla group list"),),
        ("compare the group.id of the consumer; `ottla group list` lists the groups that exist",),
    )


def asks_for_missing_topics(case: GroupCase, client: str) -> Iterator[Cause]:
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


def no_members(case: GroupCase) -> Cause:
    evidence = [Evidence(f"group {case.group_id} has state Empty", f"ottla group describe {case.group_id}")]
    reason = "nobody has joined it"
    last = next((item for item in reversed(case.history.generations) if item.members), None)
    if last is not None:
        names = ", ".join(sorted({item.client_id for item in last.members.values()}))
        reason = f"its last members were {names}"
        evidence.append(Evidence(f"generation {last.number} had {names}", "__consumer_offsets", last.at_ms))
    left = list(case.journal.of("member-left", group=case.group_id))[-3:]
    evidence += map(departure, left)
    advice = "start a consumer with this group.id, and look into the log of the one that ended"
    if left and left[-1].facts["why"] == "left" and left[-1].facts.get("connected"):
        reason += ", which left and stayed connected, as one does that has not polled for long"
        advice = "look at what the consumer did instead of polling, or raise max.poll.interval.ms"
    return Cause(
        "no-members",
        Strength.PROVED,
        f"group {case.group_id} has no members: {reason}",
        tuple(evidence),
        (advice,),
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


def not_a_member(case: GroupCase, client: str) -> Cause:
    names = ", ".join(sorted(case.clients)) or "none"
    other = case.elsewhere.get(client)
    evidence = [Evidence(f"clients of its members: {names}", f"ottla group describe {case.group_id}")]
    if other is not None:
        evidence.append(Evidence(f"{client} is a member of group {other}", f"ottla group describe {other}"))
    return Cause(
        "not-a-member",
        Strength.PROVED,
        f"client {client} is not a member of group {case.group_id}"
        + ("" if other is None else f", but of group {other}"),
        tuple(evidence),
        ("check the client.id and the group.id of the consumer",),
    )


def join_refused(
    case: GroupCase, members: Sequence[MemberDescription], client: str | None
) -> Iterator[Cause]:
    """Say whom the group did not let in, and why."""
    inside = {member.client_id for member in members}
    last: dict[str, JournalEvent] = {}
    for event in case.journal.of("join-refused", group=case.group_id):
        name = event.facts["client"]
        if case.now_ms - event.at_ms <= _MINUTES_MS and name not in inside and client in (None, name):
            last[name] = event
    for name, event in last.items():
        error = event.facts["error"]
        assignors = ", ".join(event.facts["offers"]) or "none"
        its = case.description.assignor if case.description is not None else ""
        is_mismatch = error == "INCONSISTENT_GROUP_PROTOCOL"
        yield Cause(
            "assignors-do-not-match" if is_mismatch else "join-refused",
            Strength.PROVED,
            f"{name} cannot join group {case.group_id}: it offers the assignors {assignors}, the group uses "
            f"{its or 'others'}, or a protocol of another kind"
            if is_mismatch
            else f"{name} cannot join group {case.group_id}: its request gets {error}",
            (
                Evidence(
                    f"{name} at {event.facts.get('host')} offered {assignors} and got {error}",
                    f"journal {event.place}",
                    event.at_ms,
                ),
                *(
                    [Evidence(f"the members use {its}", f"ottla group describe {case.group_id}")]
                    if its
                    else []
                ),
            ),
            (
                "give all members an assignor that they share: partition.assignment.strategy of the old ones "
                "first with both, and then of the new ones"
                if is_mismatch
                else "look up the error in the guide of the client, and into its log",
            ),
            weight=9.5,
        )


def reads_by_itself(
    case: GroupCase, readers: Sequence[Reader], client: str, topic: str | None
) -> Iterator[Cause]:
    """Say what a client reads that is in no group, because it has assigned partitions to itself."""
    its = [one for one in readers if one.client == client and one.doing is not Doing.GONE and one.positions]
    if not its or client in case.elsewhere:
        return
    positions = {where: offset for one in its for where, offset in one.positions.items()}
    topics = {where.topic for where in positions} | ({topic} if topic is not None else set())
    left_out = {
        where: end - start
        for where, (start, end) in case.bounds.items()
        if where.topic in topics and where not in positions and end > start
    }
    unread = {
        where: case.bounds[where][1] - offset for where, offset in positions.items() if where in case.bounds
    }
    what = ", ".join(map(str, sorted(positions)))
    rest = ""
    if left_out:
        rest = "; records that it does not read are in " + ", ".join(map(str, sorted(left_out)))
    nothing = ", where there is nothing to read" if unread and max(unread.values()) <= 0 else ""
    yield Cause(
        "reads-other-partitions" if left_out else "reads-without-group",
        Strength.PROVED,
        f"{client} is connected and fetches only {what}{nothing}, and is no member of group {case.group_id}: "
        f"it assigns partitions to itself{rest}",
        (
            *(
                Evidence(
                    f"fetches {', '.join(f'{at} from {one.positions[at]}' for at in sorted(one.positions))}",
                    f"journal {one.last.place}",
                    one.last.at_ms,
                )
                for one in its[-3:]
            ),
            *(
                Evidence(f"{where} has {count} records", "ListOffsets")
                for where, count in sorted(left_out.items())[:4]
            ),
        ),
        ("subscribe instead of assign, or assign the partitions that have the records",),
        weight=9.2,
    )


_DEATHS_MIN = 3


def kills_again(case: GroupCase) -> Iterator[Cause]:
    """Find a record at which one member after another began, and that none got past."""
    places = {item.lag.where: item for item in case.partitions}
    for where, item in places.items():
        stands = item.lag.committed
        if item.lag.lag == 0 or (item.lag.log_end_offset or 0) <= (item.lag.log_start_offset or 0):
            continue
        since_ms = _stands_since(case, where, stands)
        if since_ms is None:
            continue
        began = _began_there(case, where, since_ms)
        gone = [event for _, _, event in began if event is not None]
        are_enough = len(gone) >= len(began) - 1 if case.journal.exists else len(began) >= 2 * _DEATHS_MIN
        if len(began) < _DEATHS_MIN or not are_enough:
            continue
        offset = item.lag.log_start_offset if stands is None else stands
        numbers = [number for _, number, _ in began]
        at = f"{where.topic}/{where.partition}@{offset}"
        yield Cause(
            "kills-its-consumer",
            Strength.LIKELY,
            f"the record {at}, or one soon after it, ends its consumer again and again: {len(began)} members "
            f"began there since {time_text(began[0][0])}, and none got past it",
            (
                Evidence(
                    "nothing was ever committed" if stands is None else f"committed {stands}, and never more",
                    f"ottla lag {case.group_id}",
                    since_ms or None,
                ),
                Evidence(
                    f"generations {numbers[0]} to {numbers[-1]} gave {where} to {len(began)} members in turn",
                    "__consumer_offsets",
                    began[-1][0],
                ),
                *map(departure, gone[-3:]),
            ),
            (
                f"look at the record: `ottla consume {where.topic} -p {where.partition} -o {offset} -c 1`",
                "let the consumer put a record that it cannot process aside, and go on",
            ),
            weight=10,
        )


def _stands_since(case: GroupCase, where: TopicPartition, stands: int | None) -> int | None:
    """Return since when the committed offset is what it is: 0 if it never was another."""
    since_ms = 0
    for commit in case.history.commits:
        if commit.where == where and commit.offset != stands:
            since_ms = -1
        elif commit.where == where and since_ms <= 0:
            since_ms = commit.at_ms
    return None if since_ms < 0 else since_ms


def _began_there(
    case: GroupCase, where: TopicPartition, since_ms: int
) -> list[tuple[int, int, JournalEvent | None]]:
    """Return who got the partition since a time, each with its generation, and how it left."""
    left: dict[str, JournalEvent] = {}
    for event in case.journal.of("member-left", group=case.group_id):
        left[event.facts["member"]] = event
    found: list[tuple[int, int, JournalEvent | None]] = []
    last = None
    for generation in case.history.generations:
        holder = generation.holder(where)
        if holder is None or holder.member_id == last:
            continue
        last = holder.member_id
        ends = left.get(holder.member_id)
        # The one that has brought the group here, and died, is one of them.
        if generation.at_ms >= since_ms or (ends is not None and ends.at_ms >= since_ms):
            found.append((generation.at_ms, generation.number, ends))
    return found
