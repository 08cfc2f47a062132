"""Why does a group, or a client of it, get nothing?

The tree, from what is missing to what is in the way:

    no such group -> nobody in it -> nothing subscribed, or a topic that does not exist -> no partitions
    -> refused (rights, assignors, offsets that are gone) -> held back (open transaction) -> throttled
    -> has partitions and is gone, or does not fetch (paused, stuck) -> began at the end, or again
    -> nothing to read -> reads, and does not commit

A member that has partitions, was seen to fetch them, and commits what is written keeps up. The rest is not
known.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from ottla.client.admin.descriptions import MemberDescription
from ottla.explain.answer import Answer, Cause, ranked
from ottla.explain.causes.absent import (
    asks_for_missing_topics,
    join_refused,
    no_group,
    no_members,
    not_a_member,
    reads_by_itself,
)
from ottla.explain.causes.assigned import (
    deleted_while_read,
    is_rebalancing,
    without_member,
    without_partitions,
    without_topic,
)
from ottla.explain.causes.committing import committed_too_low
from ottla.explain.causes.hindered import held_back, out_of_range, refused, throttled
from ottla.explain.causes.killing import kills_again, kills_connections
from ottla.explain.causes.rebalancing import too_many_rebalances
from ottla.explain.causes.standing import (
    began_at_end,
    doubts,
    member_gone,
    never_fetched,
    not_committing,
    not_fetching,
    nothing_to_read,
    topic_made_again,
)
from ottla.explain.causes.unavailable import unavailable
from ottla.explain.evidence.cases import GroupCase
from ottla.explain.evidence.readers import Reader, readers_of

_BEHIND_MIN: Final = 100


def why_silent(case: GroupCase, client: str | None = None, topic: str | None = None) -> Answer:
    """Answer for a group, or for one client or topic of it."""
    subject = f"group {case.group_id}" + (f", client {client}" if client else "")
    readers = readers_of(case.journal)
    causes = ranked(_causes(case, readers, client, topic))
    unclear = _doubts(case, readers, client)
    return Answer(
        "silent",
        subject,
        causes,
        f"nothing is proved about {subject}: {unclear[0]}"
        if unclear
        else f"nothing wrong found: {subject} {_does(case)}",
        (*unclear[1:], *case.not_seen),
        bool(unclear),
        case.journal.span_ms,
        case.looked_at,
        (
            f"ask again with `--over 30`, and see `ottla group describe {case.group_id}`",
            "the log of the consumer, and the journal: `ottla journal"
            + (f" --client {client}`" if client else f" --group {case.group_id}`"),
        ),
    )


def _does(case: GroupCase) -> str:
    behind = sum(item.lag.lag or 0 for item in case.partitions)
    if behind < _BEHIND_MIN:
        return "reads its partitions and keeps up"
    return (
        f"reads its partitions, and is {behind} records behind: `ottla why slow` says whether it catches up"
    )


def _doubts(case: GroupCase, readers: Sequence[Reader], client: str | None) -> list[str]:
    if case.description is None or not case.description.members:
        return ["it cannot be described"]
    if is_rebalancing(case):
        return ["it was dividing its partitions when it was looked at, and reads nothing while it does"]
    return doubts(case, readers, _chosen(case, client))


def _chosen(case: GroupCase, client: str | None) -> list[MemberDescription]:
    members = () if case.description is None else case.description.members
    return [item for item in members if client is None or item.client_id == client]


def _causes(
    case: GroupCase, readers: Sequence[Reader], client: str | None, topic: str | None
) -> Iterator[Cause]:
    members = _chosen(case, client)
    yield from join_refused(case, members, client)
    if client is not None and not members:
        yield from reads_by_itself(case, readers, client, topic)
    if case.look is None:
        yield no_group(case, client)
        if client is not None:
            yield from asks_for_missing_topics(case, client)
        return
    killed = [*committed_too_low(case)] or [*kills_again(case)] or [*kills_connections(case, readers)]
    yield from killed
    if killed:
        # A member that is there at this moment will be gone at the next.
        return
    if case.description is None or not case.description.members:
        yield no_members(case)
        yield from out_of_range(case)
        return
    if not members:
        yield not_a_member(case, client or "")
        return
    yield from refused(case)
    yield from unavailable(case.replicas, case.configs, case.journal)
    yield from too_many_rebalances(case)
    yield from deleted_while_read(case, members)
    yield from without_topic(case, members, topic)
    yield from without_partitions(case, members)
    yield from without_member(case, members)
    yield from topic_made_again(case)
    yield from out_of_range(case)
    yield from held_back(case)
    yield from throttled(case)
    yield from member_gone(case, readers)
    yield from not_fetching(case, readers)
    yield from never_fetched(case, readers)
    yield from began_at_end(case, readers)
    yield from not_committing(case, readers)
    if topic is None or any(item.lag.where.topic == topic for item in case.partitions):
        yield from nothing_to_read(case)
