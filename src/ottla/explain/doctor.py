"""The check in the order that operators follow: lag, members, brokers, producers, network.

Each check is one line: fine, or what is wrong and what to do next.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

from ottla.client.admin.group_offsets import PartitionLag
from ottla.explain.access import Access
from ottla.explain.evidence.journal import JournalView, read_journal
from ottla.explain.evidence.readers import Doing, Reader, reader_of, readers_of
from ottla.explain.lag.looking import GroupLook, look, with_ages, with_speeds
from ottla.explain.lag.outlook import (
    CRITICAL,
    WARNING,
    Bounds,
    is_past_end,
    records_deleted_unread,
    say_outlook,
    seconds_to_deletion,
    total,
)

_RECENT_MS = 300_000
_OURS = "client/ottla@"
"""Whom the journal names for commands, whose client id is the default one of our client."""
_MISTYPED = frozenset(
    ("INVALID_CONFIG", "INVALID_TOPIC_EXCEPTION", "UNKNOWN_TOPIC_ID", "UNKNOWN_TOPIC_OR_PARTITION")
)


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the page."""

    area: str
    is_fine: bool
    text: str
    next_step: str | None = None


async def examine(access: Access, now_ms: int, over_s: float = 2.0) -> list[Check]:
    """Check a cluster."""
    import asyncio

    before = await look(access)
    await asyncio.sleep(over_s)
    looks = await with_ages(access, with_speeds(before, await look(access)))
    whole = await read_journal(access)
    journal = whole._replace(
        events=tuple(event for event in whole.events if event.at_ms >= now_ms - _RECENT_MS)
    )
    checks = [*_lag(looks.groups, now_ms), *_members(looks.groups, journal, readers_of(whole))]
    checks += await _brokers(access)
    checks += await _producers(access, now_ms)
    checks += _network(journal)
    return checks


def _lag(groups: tuple[GroupLook, ...], now_ms: int) -> Iterator[Check]:
    bounds = Bounds()
    is_fine = True
    for group in groups:
        lag = total(item.lag.lag for item in group.partitions)
        deleted = sum(records_deleted_unread(item.lag) for item in group.partitions)
        soon = [
            seconds for item in group.partitions if (seconds := seconds_to_deletion(item, now_ms)) is not None
        ]
        outlook = say_outlook(group.partitions)
        past = [item.lag for item in group.partitions if is_past_end(item.lag)]
        never = [
            item.lag for item in group.partitions if item.lag.committed is None and _records(item.lag) > 0
        ]
        if past:
            is_fine = False
            yield Check(
                "lag",
                False,
                f"group {group.group_id} has committed offset {past[0].committed} of {past[0].where}, which "
                f"ends at {past[0].log_end_offset}",
                f"ottla why lost {quote(group.group_id)}",
            )
        elif group.members and never:
            is_fine = False
            yield Check(
                "lag",
                False,
                f"group {group.group_id} has never committed {never[0].where}, so its lag is not known: at "
                f"most {sum(map(_records, never))} records",
                f"ottla why silent {quote(group.group_id)}",
            )
        elif deleted:
            is_fine = False
            yield Check(
                "lag",
                False,
                f"group {group.group_id} has lost {deleted} records to retention",
                f"ottla lag {quote(group.group_id)}",
            )
        elif soon and min(soon) < 3600:
            is_fine = False
            yield Check(
                "lag",
                False,
                f"retention deletes records that group {group.group_id} has not read in {min(soon):.0f} s",
                f"ottla why slow {quote(group.group_id)}",
            )
        elif bounds.label(lag) in (WARNING, CRITICAL) and outlook in ("falling behind", "not reading"):
            is_fine = False
            word = "silent" if outlook == "not reading" else "slow"
            yield Check(
                "lag",
                False,
                f"group {group.group_id} is {lag} records behind and {outlook}",
                f"ottla why {word} {quote(group.group_id)}",
            )
    if is_fine:
        yield Check("lag", True, f"{len(groups)} groups, none far behind without catching up")


def _records(lag: PartitionLag) -> int:
    return max((lag.log_end_offset or 0) - (lag.log_start_offset or 0), 0)


def _ghosts(group: GroupLook, readers: Sequence[Reader]) -> list[PartitionLag]:
    """Return the partitions with unread records that static members hold whose connections are closed."""
    found = []
    for item in group.partitions:
        lag, member = item.lag, item.lag.member
        if member is None or member.instance_id is None or lag.lag == 0:
            continue
        reader = reader_of(readers, lag.where, member.client_id, member.host)
        is_moving = item.velocity is not None and item.velocity.reads > 0
        if reader is not None and reader.doing is Doing.GONE and not is_moving:
            found.append(lag)
    return found


def _members(
    groups: tuple[GroupLook, ...], journal: JournalView, readers: Sequence[Reader] = ()
) -> Iterator[Check]:
    is_fine = True
    for group in groups:
        ghosts = _ghosts(group, readers)
        if ghosts and ghosts[0].member is not None:
            is_fine = False
            name = str(ghosts[0].member.instance_id)
            yield Check(
                "members",
                False,
                f"static member {name} of group {group.group_id} is gone, and holds {ghosts[0].where}",
                f"ottla group remove-member {quote(group.group_id)} {quote(name)}",
            )
        if group.bare:
            is_fine = False
            yield Check(
                "members",
                False,
                f"no member of group {group.group_id} has {', '.join(map(str, group.bare[:4]))}"
                + f" and {len(group.bare) - 4} more" * (len(group.bare) > 4),
                f"ottla why silent {quote(group.group_id)}",
            )
        lag = total(item.lag.lag for item in group.partitions) or 0
        if group.members == 0 and lag > 0 and group.state.lower() == "empty":
            is_fine = False
            yield Check(
                "members",
                False,
                f"group {group.group_id} has no members and {lag} unread records",
                f"ottla why silent {quote(group.group_id)}",
            )
    lost = [event for event in journal.of("member-left") if event.facts.get("why") not in ("left", None)]
    if lost:
        is_fine = False
        names = ", ".join(sorted({str(event.facts.get("group")) for event in lost}))
        yield Check(
            "members",
            False,
            f"{len(lost)} members were lost in the last five minutes, of {names}",
            f"ottla why twice {quote(str(lost[-1].facts.get('group')))}",
        )
    if is_fine:
        yield Check("members", True, f"{sum(group.members for group in groups)} members, none lost of late")


async def _brokers(access: Access) -> list[Check]:
    names = [item.name for item in await access.admin.topics.list(internal=True)]
    described = await access.admin.topics.describe_many(names)
    offline, short = [], []
    count = 0
    for topic in described.succeeded.values():
        for part in topic.partitions:
            count += 1
            if part.leader < 0:
                offline.append(f"{topic.name}-{part.partition}")
            elif len(part.in_sync_replicas) < len(part.replicas):
                short.append(f"{topic.name}-{part.partition}")
    checks = []
    if offline:
        checks.append(
            Check(
                "brokers",
                False,
                f"{len(offline)} partitions have no leader, for example {offline[0]}",
                f"ottla topic describe {offline[0].rpartition('-')[0]}",
            )
        )
    if short:
        checks.append(
            Check(
                "brokers",
                False,
                f"{len(short)} partitions have replicas that are not in sync, for example {short[0]}",
                f"ottla topic describe {short[0].rpartition('-')[0]}",
            )
        )
    if not checks:
        cluster = await access.admin.cluster.describe()
        checks.append(
            Check("brokers", True, f"{len(cluster.brokers)} brokers lead {count} partitions, all in sync")
        )
    return checks


async def _producers(access: Access, now_ms: int) -> list[Check]:
    listed = await access.admin.transactions.list(states=("Ongoing",))
    described = await access.admin.transactions.describe_many([item.transactional_id for item in listed])
    long = [
        item
        for item in described.succeeded.values()
        if item.started_at_ms is not None and now_ms - item.started_at_ms > max(item.timeout_ms / 2, 10_000)
    ]
    if long:
        first = long[0]
        age_s = (now_ms - (first.started_at_ms or now_ms)) / 1000
        return [
            Check(
                "producers",
                False,
                f"the transaction of {first.transactional_id} holds back readers for {age_s:.0f} s",
                f"ottla txn describe {first.transactional_id}",
            )
        ]
    return [Check("producers", True, f"{len(listed)} transactions are open, none for long")]


def _network(journal: JournalView) -> Iterator[Check]:
    if not journal.exists:
        yield Check("network", True, "not known: the cluster keeps no journal, or you may not read it")
        return
    is_fine = True
    throttled = list(journal.of("throttled"))
    if throttled:
        is_fine = False
        names = ", ".join(sorted({event.subject.removeprefix("client/") for event in throttled})[:3])
        yield Check("network", False, f"clients are over their quotas: {names}", "ottla why slow GROUP")
    refused: Counter[tuple[str, str, str]] = Counter()
    for event in journal.of("request-refused"):
        # A name that somebody has mistyped for a command of ours makes no cluster sick.
        facts = event.facts
        if not (event.subject.startswith(_OURS) and facts["error"] in _MISTYPED):
            refused[event.subject.removeprefix("client/"), facts["api"], facts["error"]] += facts["count"]
    if refused:
        is_fine = False
        (client, api, error), most = refused.most_common(1)[0]
        minutes = _RECENT_MS / 60_000
        yield Check(
            "network",
            False,
            f"{refused.total()} requests were refused in the last {minutes:.0f} minutes, "
            f"{refused.total() / minutes:.1f} a minute; {most} of them {api} of {client} with {error}",
            f"ottla journal --kind request-refused --since {minutes:.0f}m",
        )
    slow = sum(event.facts.get("count", 0) for event in journal.of("sync-slow"))
    if slow >= 10:
        is_fine = False
        yield Check("network", False, f"{slow} syncs to disk took more than 131 ms", "look at the disk")
    if is_fine:
        yield Check("network", True, "no client was refused or throttled in the last five minutes")
