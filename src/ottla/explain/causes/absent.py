"""Nobody is there: no group, no members, a client that is in no group, or that the group did not let in."""

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Final

from ottla.client.admin.descriptions import MemberDescription
from ottla.explain.answer import Cause, Evidence, Strength, duration_text
from ottla.explain.evidence.cases import GroupCase
from ottla.explain.evidence.journal import JournalEvent
from ottla.explain.evidence.readers import Doing, Reader

_MINUTES_MS = 600_000


def no_group(case: GroupCase, client: str | None = None) -> Cause:
    """Say that a group does not exist, and which clients did not get as far as to join one."""
    waiting = [*_turned_away(case, client), *_asks_for_pattern(case)]
    near = get_close_matches(case.group_id, case.groups, 1)
    return Cause(
        "no-such-group" if not waiting else waiting[0].name,
        Strength.PROVED,
        f"there is no group {case.group_id}: no consumer has joined or committed under this name"
        + "".join(f"; {one.sentence}" for one in waiting[:2]),
        (
            Evidence(f"no broker lists group {case.group_id}", "ottla group list"),
            *(item for one in waiting[:2] for item in one.evidence),
        ),
        (
            *(advice for one in waiting[:2] for advice in one.advice),
            "compare the group.id of the consumer; "
            + (
                f"the nearest name is {near[0]}" if near else "`ottla group list` lists the groups that exist"
            ),
        ),
    )


_NOT_LET_IN: Final = {
    "CLUSTER_AUTHORIZATION_FAILED": "give its user the rights: `ottla acl add USER read group:NAME`",
    "GROUP_AUTHORIZATION_FAILED": "give its user the right to it: `ottla acl add USER read group:NAME`",
    "SASL_AUTHENTICATION_FAILED": "check its user, password and mechanism: `ottla user list`",
    "TOPIC_AUTHORIZATION_FAILED": "give its user the right to read: `ottla acl add USER read topic:NAME`",
    "UNSUPPORTED_SASL_MECHANISM": "use a mechanism that the listener has: sasl.enabled.mechanisms",
}


def _turned_away(case: GroupCase, client: str | None) -> Iterator[Cause]:
    """Name clients that were refused of late, and are in no group: each may be the one that is missed."""
    last: dict[tuple[str, str], JournalEvent] = {}
    for event in case.journal.of("request-refused"):
        name = event.subject.removeprefix("client/").rpartition("@")[0]
        error = event.facts["error"]
        is_recent = case.now_ms - event.at_ms <= _MINUTES_MS
        if error in _NOT_LET_IN and is_recent and client in (None, name) and name not in case.elsewhere:
            last[name, error] = event
    for (name, error), event in reversed(last.items()):
        api = event.facts["api"]
        yield Cause(
            "login-refused" if "SASL" in error else "not-authorized",
            Strength.PROVED,
            f"{name} is in no group, and is refused: {api} gets {error}",
            (
                Evidence(
                    f"{name}: {api} got {error}, {event.facts['count']} times",
                    f"journal {event.place}",
                    event.at_ms,
                ),
            ),
            (_NOT_LET_IN[error],),
        )


_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")


def _asks_for_pattern(case: GroupCase) -> Iterator[Cause]:
    """Name clients that ask for a topic whose name no topic can have: it was meant as a pattern."""
    counts: dict[tuple[str, str], int] = {}
    last: dict[tuple[str, str], JournalEvent] = {}
    for event in case.journal.of("topic-unknown"):
        for topic in event.facts["topics"]:
            name = event.facts["client"]
            is_recent = case.now_ms - event.at_ms <= _MINUTES_MS
            if is_recent and not _NAME.fullmatch(topic) and name not in case.elsewhere:
                counts[name, topic] = counts.get((name, topic), 0) + 1
                last[name, topic] = event
    for (name, topic), event in reversed(last.items()):
        yield Cause(
            "pattern-without-caret",
            Strength.PROVED,
            f"{name} is in no group, and asks again and again for a topic that is called {topic!r}, which no "
            "topic can be: a subscription is a pattern only if it begins with ^, for librdkafka",
            (
                Evidence(
                    f"asked for {topic!r}, {counts[name, topic]} times or more",
                    f"journal {event.place}",
                    event.at_ms,
                ),
            ),
            (f"subscribe to {'^' + topic!r}",),
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
