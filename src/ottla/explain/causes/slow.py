"""Why is it slow?

For a group: does it fall behind, and why?

    throttled -> too many rebalances -> one hot partition, with its keys -> a skewed assignment
    -> fewer members than partitions -> slow processing (fetched, not committed) -> slow fetching

For a topic: how do its producers write?

    throttled -> tiny batches -> slow syncs
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from ottla.explain.answer import Answer, Cause, Evidence, Strength, duration_text, ranked
from ottla.explain.causes.hindered import RECENT_MS
from ottla.explain.causes.rebalancing import too_many_rebalances
from ottla.explain.causes.standing import is_seen_fetching, last_positions, member_gone, reads, unread
from ottla.explain.causes.unavailable import unavailable
from ottla.explain.evidence.cases import NO_JOURNAL, GroupCase, TopicCase
from ottla.explain.evidence.logs import BatchFacts, LogSample
from ottla.explain.evidence.readers import Reader, readers_of
from ottla.explain.lag.outlook import PartitionLook, seconds_to_zero, total, total_speed
from ottla.model.ids import TopicPartition

LAG_MIN = 100
"""A smaller lag is not slow."""
_HOT_SHARE = 0.5
_TINY_RECORDS = 3.0
_COMMITS_PER_S_MIN: Final = 100
_TINY_STEP = 2.0
_TINY_BYTES = 2_048
_TINY_BATCHES_MIN = 200
SLOW_SYNCS_MIN = 10
"""Fewer in a minute are no trouble: any disk is slow at times."""


def why_slow(case: GroupCase) -> Answer:
    """Answer for a group."""
    causes: tuple[Cause, ...] = ()
    lag = total(item.lag.lag for item in case.partitions) or 0
    readers = readers_of(case.journal)
    if lag >= LAG_MIN:
        # Throttled readers read in bursts, so they may look as if they were catching up.
        causes = ranked(_throttled(case) if _catches_up(case) else _causes(case, lag))
        causes = ranked(
            [
                *unavailable(case.replicas, case.configs, case.journal),
                *member_gone(case, readers),
                *causes,
            ]
        )
    healthy = (
        f"nothing wrong found: group {case.group_id} is {lag} records behind and catches up"
        if lag >= LAG_MIN
        else f"nothing wrong found: group {case.group_id} keeps up, {lag} records behind"
    )
    unclear = _doubts(case, readers)
    is_unknown = lag >= LAG_MIN and not causes and not _catches_up(case)
    if is_unknown:
        healthy = f"group {case.group_id} is {lag} records behind and does not catch up: why is unknown"
    elif unclear:
        healthy = f"nothing is proved about group {case.group_id}: {unclear[0]}"
    return Answer(
        "slow",
        f"group {case.group_id}",
        causes,
        healthy,
        (*unclear[0 if is_unknown else 1 :], *case.not_seen),
        is_unknown or bool(unclear),
        case.journal.span_ms,
        case.looked_at,
        (f"ask again with `--over 30`, and see `ottla why silent {case.group_id}`",),
    )


def _doubts(case: GroupCase, readers: Sequence[Reader]) -> list[str]:
    """Return what keeps one from saying that the group keeps up."""
    found = []
    bare = [item for item in case.partitions if item.lag.committed is None and unread(item)]
    if bare:
        where = ", ".join(str(item.lag.where) for item in bare[:4])
        found.append(
            f"nothing is committed for {where}, so its lag is not known: at most "
            f"{sum(map(unread, bare))} records"
        )
    if not case.partitions:
        found.append("it has committed nothing, and has no partitions")
    return found + [
        f"nobody was seen to fetch {item.lag.where}, which has {item.lag.lag} unread records"
        for item in case.partitions
        if item.lag.lag and not is_seen_fetching(item, reads(readers, item))
    ]


def _catches_up(case: GroupCase) -> bool:
    seconds = seconds_to_zero(case.partitions)
    return seconds is not None and seconds < 60


def _causes(case: GroupCase, lag: int) -> Iterator[Cause]:
    yield from _throttled(case)
    yield from too_many_rebalances(case)
    yield from _hot_partition(case, lag)
    yield from _skewed_assignment(case, lag)
    yield from _too_few_members(case)
    yield from _commits_each_record(case)
    yield from _processing(case, lag)


_COMMITS_MIN: Final = 50


def _commits_each_record(case: GroupCase) -> Iterator[Cause]:
    """Find members that commit after each record or two: each commit is a request that they wait for."""
    recent = [
        one
        for one in case.history.commits
        if one.offset is not None and not one.is_transactional and case.now_ms - one.at_ms <= RECENT_MS
    ]
    steps: dict[TopicPartition, list[int]] = {}
    last: dict[TopicPartition, int] = {}
    for commit in recent:
        offset = commit.offset or 0
        if commit.where in last:
            steps.setdefault(commit.where, []).append(offset - last[commit.where])
        last[commit.where] = offset
    moved = [step for some in steps.values() for step in some if step > 0]
    if len(moved) < _COMMITS_MIN or sum(moved) / len(moved) > _TINY_STEP:
        return
    first, newest = recent[0], recent[-1]
    seconds = max((newest.at_ms - first.at_ms) / 1000, 0.001)
    if len(recent) / seconds < _COMMITS_PER_S_MIN:
        # A commit takes some milliseconds. What takes longer in between is something else.
        return
    yield Cause(
        "commits-each-record",
        Strength.LIKELY,
        f"group {case.group_id} commits after each {sum(moved) / len(moved):.1f} records, "
        f"{len(recent) / seconds:.0f} times a second: each commit is a request that a member waits for",
        (
            Evidence(
                f"{len(recent)} commits in {duration_text(seconds * 1000)}, of {sum(moved)} records",
                "__consumer_offsets",
                newest.at_ms,
            ),
        ),
        (
            "commit once for each poll, or every few seconds: after a crash a little more is delivered again",
            "or commit asynchronously",
        ),
        weight=5.5,
    )


def _throttled(case: GroupCase) -> Iterator[Cause]:
    events = [
        event
        for event in case.journal.of("throttled")
        if event.subject.removeprefix("client/").rpartition("@")[0] in case.clients
        and case.now_ms - event.at_ms <= RECENT_MS
    ]
    waited = sum(event.facts.get("ms", 0) for event in events)
    if waited < 1000:
        return
    quotas = ", ".join(sorted({str(event.facts.get("quota")) for event in events}))
    yield Cause(
        "throttled",
        Strength.PROVED,
        f"the readers of group {case.group_id} are over a quota ({quotas}): they had to wait for "
        f"{duration_text(waited)} in the last minute",
        tuple(
            Evidence(
                f"{event.subject.removeprefix('client/')} waits {event.facts.get('ms')} ms",
                f"journal {event.place}",
                event.at_ms,
            )
            for event in events[-3:]
        ),
        ("raise the quota of the client",),
        weight=9,
    )


def _hot_partition(case: GroupCase, lag: int) -> Iterator[Cause]:
    if len(case.partitions) < 2:
        return
    worst = max(case.partitions, key=lambda item: item.lag.lag or 0)
    share = (worst.lag.lag or 0) / lag
    if share < max(_HOT_SHARE, 2 / len(case.partitions)):
        return
    counts = _written(case)
    written = sum(counts.values())
    hot = counts.get(worst.lag.where, 0) / written if written else 0.0
    if hot < max(_HOT_SHARE, 2 / len(case.partitions)):
        return
    keys = [] if case.log is None else hot_keys(case.log, worst.lag.where)
    named = ", ".join(f"{_key(key)} with {part:.0%}" for key, part in keys[:3])
    is_key = bool(keys) and keys[0][1] >= 0.3
    yield Cause(
        "hot-partition",
        Strength.PROVED,
        f"{worst.lag.where} gets {hot:.0%} of the records and has {share:.0%} of the lag"
        + (f"; its hot keys: {named}" if is_key else ""),
        (
            Evidence(f"lag {worst.lag.lag} of {lag}", f"ottla lag {case.group_id}"),
            Evidence(f"{hot:.0%} of the newest records are in {worst.lag.where}", "the log"),
        ),
        (
            (
                "use a finer key, for example with the account or the hour added; "
                f"`ottla hot {worst.lag.where.topic}` shows what that would do"
            ),
        ),
        weight=7,
    )


def _written(case: GroupCase) -> dict[TopicPartition, int]:
    """Return how many records each partition has."""
    found = {}
    for item in case.partitions:
        begin = max(item.lag.committed or 0, item.lag.log_start_offset or 0)
        found[item.lag.where] = max(
            (item.lag.log_end_offset or 0) - min(begin, item.lag.log_start_offset or 0), 0
        )
    return found


def hot_keys(log: LogSample, where: TopicPartition) -> list[tuple[bytes | None, float]]:
    """Return the keys of a partition by their share of its records, the largest first."""
    counts = Counter(item.key for item in log.records if item.where == where)
    seen = counts.total()
    return [(key, count / seen) for key, count in counts.most_common(5) if key is not None]


def _skewed_assignment(case: GroupCase, lag: int) -> Iterator[Cause]:
    if case.description is None or len(case.description.members) < 2:
        return
    counts = {item.member_id: len(item.assignment) for item in case.description.members}
    most = max(counts, key=lambda one: counts[one])
    least = min(counts.values())
    if counts[most] < max(2 * max(least, 1), least + 2):
        return
    behind = sum(
        item.lag.lag or 0
        for item in case.partitions
        if item.lag.member is not None and item.lag.member.member_id == most
    )
    if behind < lag * max(0.6, 1.2 * counts[most] / max(sum(counts.values()), 1)) and behind < lag * 0.9:
        return
    name = next(item.client_id for item in case.description.members if item.member_id == most)
    yield Cause(
        "skewed-assignment",
        Strength.PROVED,
        f"{name} has {counts[most]} of {sum(counts.values())} partitions and {behind / lag:.0%} of the lag, "
        f"while another member has {least}",
        (
            Evidence(
                f"partitions by member: {', '.join(map(str, sorted(counts.values(), reverse=True)))}",
                f"ottla group describe {case.group_id}",
            ),
        ),
        ("use the assignor cooperative-sticky or the newer protocol, and the same topics in all members",),
        weight=6.5,
    )


def _too_few_members(case: GroupCase) -> Iterator[Cause]:
    if case.description is None:
        return
    members = [item for item in case.description.members if item.assignment]
    partitions = len(case.partitions)
    if not members or len(members) >= partitions or not _all_lag(case.partitions):
        return
    speed = total_speed(case.partitions)
    if speed is None or speed.reads <= 0:
        return
    needed = min(partitions, max(len(members) + 1, round(speed.writes / (speed.reads / len(members)) + 0.5)))
    never = "never" if speed.writes >= speed.reads else "slowly"
    yield Cause(
        "too-few-members",
        Strength.LIKELY,
        f"{len(members)} members read {partitions} partitions at {speed.reads:.0f} records a second, while "
        f"{speed.writes:.0f} are written: at these speeds they catch up {never}",
        (
            Evidence(
                f"{len(members)} members, {partitions} partitions, all of them behind",
                f"ottla group describe {case.group_id}",
            ),
        ),
        (f"run {needed} members; up to {partitions} share the work",),
        weight=6,
    )


def _all_lag(partitions: Sequence[PartitionLook]) -> bool:
    behind = [item for item in partitions if (item.lag.lag or 0) >= LAG_MIN / max(len(partitions), 1)]
    return len(behind) >= 0.75 * len(partitions)


def _processing(case: GroupCase, lag: int) -> Iterator[Cause]:
    if not case.journal.exists or case.description is None or not case.description.members:
        return
    speed = total_speed(case.partitions)
    reads = 0.0 if speed is None else speed.reads
    writes = 0.0 if speed is None else speed.writes
    busy = _fetched_ahead(case, lag) or _resting(case)
    if busy is not None:
        doing, evidence = busy
        yield Cause(
            "slow-processing",
            Strength.LIKELY,
            f"processing is slower than fetching: the members of group {case.group_id} {doing}, and commit "
            f"{reads:.0f} a second while {writes:.0f} are written",
            (evidence, Evidence(f"lag {lag}", f"ottla lag {case.group_id}")),
            (
                "make the processing of a record faster, or process several at a time",
                "add partitions and members: each member processes on its own",
            ),
            weight=5,
        )
    elif reads > 0:
        yield Cause(
            "slow-fetching",
            Strength.POSSIBLE,
            f"group {case.group_id} commits what it fetches at once, and still falls behind: it fetches "
            f"{reads:.0f} records a second while {writes:.0f} are written",
            (Evidence(f"lag {lag}, and members ask for more all the time", f"ottla lag {case.group_id}"),),
            ("raise fetch.min.bytes and max.partition.fetch.bytes, and look at the network",),
            weight=4,
        )


def _fetched_ahead(case: GroupCase, lag: int) -> tuple[str, Evidence] | None:
    """Say how much members have fetched and not committed: some clients fetch far ahead."""
    positions = last_positions(case)
    ahead = sum(
        max(positions[item.lag.where][0] - (item.lag.committed or 0), 0)
        for item in case.partitions
        if item.lag.where in positions
    )
    if ahead < min(LAG_MIN, lag * 0.5):
        return None
    last = max((event for _, event in positions.values()), key=lambda event: event.at_ms)
    return (
        f"have {ahead} records that they fetched and did not commit yet",
        Evidence(f"fetched {ahead} records ahead of what is committed", f"journal {last.place}", last.at_ms),
    )


def _resting(case: GroupCase) -> tuple[str, Evidence] | None:
    """Say when a member last asked for nothing, though records were waiting for it.

    Java's client asks for more of a partition only when it has handed out all that it has of it.
    """
    behind = {item.lag.where for item in case.partitions if item.lag.lag}
    rests = [
        event
        for event in case.journal.of("fetch-stopped")
        if event.facts.get("client") in case.clients
        and case.now_ms - event.at_ms <= RECENT_MS
        and behind & event.positions().keys()
    ]
    if not rests:
        return None
    facts = rests[-1].facts
    return (
        "stop fetching while records wait for them",
        Evidence(
            f"{facts['client']} had asked for nothing for {duration_text(facts.get('for_ms', 0))}",
            f"journal {rests[-1].place}",
            rests[-1].at_ms,
        ),
    )


# A topic


def why_topic_slow(case: TopicCase) -> Answer:
    """Answer for a topic: how its producers write."""
    return Answer(
        "slow",
        f"topic {case.topic}",
        ranked(
            [
                *unavailable(case.replicas, {case.topic: case.configs}, case.journal),
                *_producers_throttled(case),
                *_tiny_batches(case),
                *_slow_syncs(case),
            ]
        ),
        f"nothing wrong found: the producers of {case.topic} write batches of a good size",
        () if case.journal.exists else (NO_JOURNAL,),
        journal_ms=case.journal.span_ms,
    )


def _producers_throttled(case: TopicCase) -> Iterator[Cause]:
    events = [
        event
        for event in case.journal.of("throttled", quota="producer_byte_rate")
        if case.now_ms - event.at_ms <= RECENT_MS
    ]
    waited = sum(event.facts.get("ms", 0) for event in events)
    if waited >= 1000:
        client = events[-1].subject.removeprefix("client/")
        yield Cause(
            "throttled",
            Strength.PROVED,
            f"{client} is over its quota for writing: it had to wait for {duration_text(waited)} in the last "
            "minute",
            tuple(
                Evidence(f"{event.facts.get('ms')} ms", f"journal {event.place}", event.at_ms)
                for event in events[-3:]
            ),
            ("raise producer_byte_rate of the client",),
            weight=9,
        )


def _tiny_batches(case: TopicCase) -> Iterator[Cause]:
    recent = sorted(
        (item for item in case.sample.batches if not item.is_control), key=lambda item: item.max_timestamp
    )
    newest = recent[-1].max_timestamp if recent else 0
    recent = [item for item in recent if newest - item.max_timestamp <= RECENT_MS]
    if len(recent) < _TINY_BATCHES_MIN:
        return
    records = sum(item.records for item in recent) / len(recent)
    size = sum(item.size_bytes for item in recent) / len(recent)
    spread_s = max((newest - recent[0].max_timestamp) / 1000, 0.001)
    if records >= _TINY_RECORDS or size >= _TINY_BYTES or len(recent) / spread_s < 20:
        return
    yield Cause(
        "tiny-batches",
        Strength.PROVED,
        f"the producers of {case.topic} send {records:.1f} records of {size:.0f} bytes in a batch: most of "
        "the work is overhead",
        (
            Evidence(f"{len(recent)} batches in {duration_text(spread_s * 1000)}", "the log", newest),
            Evidence(f"from {_place(recent[0])} to {_place(recent[-1])}", "the log"),
        ),
        ("raise linger.ms to 5 or more, and do not wait for each record before sending the next",),
        weight=5,
    )


def _slow_syncs(case: TopicCase) -> Iterator[Cause]:
    events = [event for event in case.journal.of("sync-slow") if case.now_ms - event.at_ms <= RECENT_MS]
    count = sum(event.facts.get("count", 0) for event in events)
    if count >= SLOW_SYNCS_MIN:
        yield Cause(
            "slow-syncs",
            Strength.LIKELY,
            f"{count} syncs took more than 131 ms in the last minute, and each acks=all write waits for one",
            tuple(
                Evidence(f"{event.facts['count']} slow syncs", f"journal {event.place}", event.at_ms)
                for event in events[-3:]
            ),
            ("move the log to a faster disk, or set ottla.acks.all.sync=false for the topic",),
            weight=6,
        )


def _place(batch: BatchFacts) -> str:
    return f"{batch.where.topic}/{batch.where.partition}@{batch.base_offset}"


def _key(key: bytes | None) -> str:
    return "none" if key is None else repr(key.decode(errors="replace"))
