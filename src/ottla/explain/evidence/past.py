"""What was known of a group or a topic at an earlier time, from the evidence that has times.

Commits and members are in `__consumer_offsets`, the ends of logs and what clients did are in the journal.
What has no history is left out, and `NOT_OF_THE_PAST` says so. Nothing here asks a cluster.
"""

from dataclasses import replace
from typing import Final

from ottla.client.admin.descriptions import GroupDescription, MemberDescription
from ottla.client.admin.group_offsets import PartitionLag
from ottla.explain.answer import Answer, Cause, Evidence, Strength, time_text
from ottla.explain.evidence.cases import GroupCase, TopicCase
from ottla.explain.evidence.group_history import Generation
from ottla.explain.evidence.journal import JournalView
from ottla.explain.evidence.logs import LogSample
from ottla.explain.lag.looking import GroupLook
from ottla.explain.lag.outlook import PartitionLook, velocities
from ottla.model.ids import TopicPartition

NOT_OF_THE_PAST: Final = (
    "which records retention had deleted, which transactions that have ended since were open, and what "
    "members without partitions had subscribed to: no history is kept of it"
)
_WINDOW_MS: Final = 10_000
"""Speeds are those of the seconds before the time that is asked about."""


def group_at(case: GroupCase, at_ms: int) -> GroupCase:
    """Return a group as it was at a time."""
    history = case.history._replace(
        commits=tuple(one for one in case.history.commits if one.at_ms <= at_ms),
        generations=tuple(one for one in case.history.generations if one.at_ms <= at_ms),
    )
    generation = history.generations[-1] if history.generations else None
    then = replace(
        case,
        now_ms=at_ms,
        history=history,
        journal=case.journal.until(at_ms),
        log=None if case.log is None else _log_at(case.log, at_ms),
        replicas={},
        description=_members(case, generation),
        stable_ends={},
        open_transactions=tuple(
            one for one in case.open_transactions if (one.started_at_ms or one.last_timestamp_ms) <= at_ms
        ),
    )
    lags = _lags(then, at_ms)
    last_record_ms = {item.where: _grown_at(then.journal, item.where) for item in lags}
    look = _look(case, then, generation, lags)
    return replace(
        then,
        look=look,
        unseen_until_ms=_first_sign_ms(case) if look is None and case.look is not None else None,
        stable_ends=_stable_ends(then, lags),
        last_record_ms={where: at for where, at in last_record_ms.items() if at is not None},
    )


def topic_at(case: TopicCase, at_ms: int) -> TopicCase:
    """Return a topic as it was at a time."""
    return replace(
        case, now_ms=at_ms, journal=case.journal.until(at_ms), sample=_log_at(case.sample, at_ms), replicas={}
    )


def of_the_past(answer: Answer, case: GroupCase | TopicCase) -> Answer:
    """Say of which time an answer is, and what cannot be known of it."""
    missing = list(answer.missing)
    if case.journal.exists and case.journal.span_ms is None:
        missing.append(f"what clients did until then: the journal begins after {time_text(case.now_ms)}")
    causes = answer.causes
    if isinstance(case, GroupCase):
        missing.append(NOT_OF_THE_PAST)
        if case.unseen_until_ms is not None:
            others = (one for one in causes if one.name != "no-such-group")
            causes = (_not_begun(case, case.unseen_until_ms), *others)
    subject = f"{answer.subject}, at {time_text(case.now_ms)}"
    return replace(answer, subject=subject, causes=causes, missing=tuple(missing))


def _first_sign_ms(case: GroupCase) -> int:
    """Return since when something is known of a group that is there now."""
    commits = [one.at_ms for one in case.history.commits]
    return min(commits + [one.at_ms for one in case.history.generations], default=case.now_ms)


def _not_begun(case: GroupCase, seen_ms: int) -> Cause:
    """Say that a group is there now, and was not yet. Old signs of it may be gone, so it is not proved."""
    seen = time_text(seen_ms)
    return Cause(
        "no-such-group",
        Strength.LIKELY,
        f"group {case.group_id} did not exist yet at {time_text(case.now_ms)}: nothing is known of it before "
        f"{seen}",
        (Evidence(f"the first that is known of group {case.group_id}", "__consumer_offsets", seen_ms),),
        (f"ask for a later time with --at, or for now without it: `ottla journal --group {case.group_id}`",),
    )


def _log_at(sample: LogSample, at_ms: int) -> LogSample:
    return sample._replace(
        records=tuple(one for one in sample.records if one.timestamp <= at_ms),
        batches=tuple(one for one in sample.batches if one.max_timestamp <= at_ms),
    )


def _members(case: GroupCase, generation: Generation | None) -> GroupDescription | None:
    if generation is None:
        return None
    facts = generation.members.values()
    # A generation tells what members were given. What one was given, the others have most likely asked for.
    topics = tuple(sorted({where.topic for member in facts for where in member.assignment}))
    members = tuple(
        MemberDescription(
            member_id=member.member_id,
            instance_id=None,
            client_id=member.client_id,
            host=member.host,
            rack_id=None,
            epoch=None,
            subscribed_topics=topics,
            subscribed_regex=None,
            assignment=tuple(sorted(member.assignment)),
            target_assignment=None,
        )
        for member in facts
    )
    now = case.description
    return GroupDescription(
        group_id=case.group_id,
        type="" if now is None else now.type,
        state="Stable" if members else "Empty",
        protocol_type="consumer",
        assignor="" if now is None else now.assignor,
        coordinator=-1 if now is None else now.coordinator,
        epoch=None,
        assignment_epoch=None,
        members=members,
    )


def _look(
    case: GroupCase, then: GroupCase, generation: Generation | None, lags: tuple[PartitionLag, ...]
) -> GroupLook | None:
    if not then.history.commits and generation is None:
        return None
    before = _lags(then, then.now_ms - _WINDOW_MS)
    speeds = velocities(before, lags, _WINDOW_MS / 1000)
    members = () if then.description is None else then.description.members
    readers = {where: member for member in members for where in member.assignment}
    return GroupLook(
        case.group_id,
        "" if case.look is None else case.look.type,
        "" if then.description is None else then.description.state,
        len(members),
        tuple(
            PartitionLook(replace(lag, member=readers.get(lag.where)), velocity=speeds.get(lag.where))
            for lag in lags
        ),
    )


def _lags(then: GroupCase, at_ms: int) -> tuple[PartitionLag, ...]:
    assigned = () if then.description is None else then.description.members
    places = {commit.where for commit in then.history.commits if commit.at_ms <= at_ms}
    places |= {where for member in assigned for where in member.assignment}
    found = []
    for where in sorted(places):
        commit = then.history.committed_at(where, at_ms)
        offset = None if commit is None else commit.offset
        end = _end_at(then, where, at_ms)
        lag = None if offset is None or end is None else max(end - offset, 0)
        found.append(PartitionLag(where, offset, None, end, lag, None))
    return tuple(found)


def _end_at(then: GroupCase, where: TopicPartition, at_ms: int) -> int | None:
    """Return where a log ended: by the journal, or by the times of its records."""
    place = f"{where.topic}/{where.partition}"
    for event in reversed(then.journal.events):
        if event.kind == "appended-at" and event.at_ms <= at_ms and place in event.facts["ends"]:
            return int(event.facts["ends"][place])
    if then.log is None:
        return None
    ends = (
        one.last_offset + 1 for one in then.log.batches if one.where == where and one.max_timestamp <= at_ms
    )
    return max(ends, default=None)


def _grown_at(journal: JournalView, where: TopicPartition) -> int | None:
    place = f"{where.topic}/{where.partition}"
    times = (event.at_ms for event in journal.of("appended-at") if place in event.facts["ends"])
    return max(times, default=None)


def _stable_ends(then: GroupCase, lags: tuple[PartitionLag, ...]) -> dict[TopicPartition, int]:
    """Return the last stable offsets: a transaction that was open then, and still is, holds them back."""
    ends = {lag.where: lag.log_end_offset for lag in lags if lag.log_end_offset is not None}
    for one in then.open_transactions:
        if one.where in ends:
            ends[one.where] = min(ends[one.where], one.first_offset)
    return ends
