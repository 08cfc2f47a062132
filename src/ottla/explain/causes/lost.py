"""Why was something lost?

The tree:

    not in the log any more: deleted before it was read, with its topic, by an unclean election, or because
        only a leader that failed had it; or refused, aborted, compacted (`lost_in_log`)
    in the log and skipped: the group began at the end, was reset past it, or was set forward by somebody
    delivered and lost: committed before it was processed

What an application did with a record that it got, no Kafka knows. So "nothing wrong found" is said only of
groups that commit in the transactions that write their results.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from ottla.explain.answer import Answer, Cause, Evidence, Strength, duration_text, ranked, time_text
from ottla.explain.causes.absent import departure
from ottla.explain.causes.lost_in_log import deleting, lost_in_log, may_delete
from ottla.explain.causes.standing import began_at_end
from ottla.explain.causes.unavailable import unavailable
from ottla.explain.evidence.cases import GroupCase, TopicCase
from ottla.explain.evidence.group_history import Commit, Generation
from ottla.explain.evidence.journal import JournalEvent
from ottla.explain.evidence.readers import LATEST, Doing, Reader, readers_of
from ottla.model.ids import TopicPartition

_LOOK_MS: Final = 6_000
_NOT_PROCESSED = "what the application did with records that it got: no broker sees that"
_OLDER = (
    "what was deleted before the journal and the commits begin, and records older than those that were read"
)


def why_lost(case: GroupCase) -> Answer:
    """Answer for a group."""
    readers = [one for one in readers_of(case.journal) if one.client in case.clients]
    topics = sorted({item.lag.where.topic for item in case.partitions})
    causes = ranked(
        [
            *unavailable(case.replicas, case.configs, case.journal),
            *_deleted_unread(case),
            *_skipped_by_reset(case, readers),
            *began_at_end(case, readers),
            *_set_forward(case),
            *(_committed_and_gone(case) or _closed_after_commit(case, readers)),
            *(
                cause
                for topic in topics
                for cause in lost_in_log(topic, case.log, case.journal, case.configs.get(topic, {}))
            ),
        ]
    )
    commits = case.history.commits
    is_whole = bool(commits) and all(commit.is_transactional for commit in commits)
    is_unknown = not is_whole or bool(case.not_seen)
    return Answer(
        "lost",
        f"group {case.group_id}",
        causes,
        f"nothing is proved: nothing that could be seen shows that group {case.group_id} has lost a record"
        if is_unknown
        else f"nothing wrong found: group {case.group_id} commits with what it writes, and skipped nothing",
        (*case.not_seen, *(() if is_whole else (_NOT_PROCESSED,)), _OLDER),
        is_unknown,
        case.journal.span_ms,
        case.looked_at,
        (
            "`ottla trace TOPIC/PARTITION@OFFSET` of a record that is missed: who got it, who committed it",
            f"`ottla audit {case.group_id}`: which hop may lose records at all",
        ),
    )


def why_topic_lost(case: TopicCase) -> Answer:
    """Answer for a topic: whether records that were sent are not in it."""
    causes = ranked(
        [
            *unavailable(case.replicas, {case.topic: case.configs}, case.journal),
            *lost_in_log(case.topic, case.sample, case.journal, case.configs),
        ]
    )
    starts = [
        f"{where} begins at {start}" for where, start in sorted(case.sample.starts.items()) if start > 0
    ]
    return Answer(
        "lost",
        f"topic {case.topic}",
        causes,
        f"nothing is proved: nothing that could be seen shows that {case.topic} has lost a record",
        (
            *(() if case.journal.exists else ("which requests were refused: there is no journal",)),
            "what producers meant to send: the log has only what arrived",
            _OLDER,
        ),
        is_unknown=True,
        journal_ms=case.journal.span_ms,
        looked_at=(
            f"the newest {len(case.sample.records)} records of {case.topic}",
            *((f"what was before is deleted: {', '.join(starts[:5])}",) if starts else ()),
        ),
        next_steps=("the log of the producer: what did it do with errors of send?",),
    )


def _deleted_unread(case: GroupCase) -> Iterator[Cause]:
    for item in case.partitions:
        lag = item.lag
        if lag.committed is None or lag.log_start_offset is None or lag.committed >= lag.log_start_offset:
            continue
        configs = case.configs.get(lag.where.topic, {})
        count = lag.log_start_offset - lag.committed
        request = deleting(case.journal, lag.where, lag.log_start_offset)
        by = (
            f"by {request.facts['client'] or 'a client'} at {request.facts['host']} (DeleteRecords)"
            if request is not None
            else f"by retention (retention.ms={configs.get('retention.ms')}, "
            f"retention.bytes={configs.get('retention.bytes')}), or by an administrator"
            if may_delete(configs)
            else "by an administrator: retention deletes nothing of this topic"
            if configs
            else "by retention or by an administrator"
        )
        yield Cause(
            "deleted-unread",
            Strength.PROVED,
            f"{count} offsets of {lag.where} were deleted before group {case.group_id} had committed them, "
            f"{by}",
            (
                Evidence(
                    f"committed {lag.committed}, and the log begins at {lag.log_start_offset}",
                    f"ottla lag {case.group_id}",
                    case.now_ms,
                ),
                *(
                    [
                        Evidence(
                            f"records before {request.facts['before']} were deleted",
                            f"journal {request.place}",
                            request.at_ms,
                        )
                    ]
                    if request is not None
                    else []
                ),
            ),
            (
                "raise retention.ms and retention.bytes above the longest time that the group is behind",
                "watch `ottla lag`: it says when retention reaches what is not read",
            ),
            weight=9,
        )
        return


def _last_commit(case: GroupCase, where: TopicPartition, at_ms: int) -> tuple[Commit | None, bool]:
    """Return the last offset that was committed until a time, and whether it was deleted since."""
    found, is_deleted = None, False
    for commit in case.history.commits:
        if commit.at_ms > at_ms:
            break
        if commit.where == where:
            is_deleted = commit.offset is None
            found = found if is_deleted else commit
    return found, is_deleted


def _skipped_by_reset(case: GroupCase, readers: Sequence[Reader]) -> Iterator[Cause]:
    for reader in readers:
        for where, (asked, answer, event) in reader.began.items():
            commit, is_deleted = _last_commit(case, where, event.at_ms)
            if asked != LATEST or commit is None or commit.offset is None or commit.offset == answer:
                continue
            if commit.offset > answer:
                yield _committed_past_end(case, reader, where, commit, answer, event)
                return
            why = (
                "its committed offset had expired or was deleted"
                if is_deleted
                else "its committed offset was out of range, or the application sought to the end"
            )
            yield Cause(
                "skipped-by-reset",
                Strength.PROVED,
                f"{reader.client} went on at the end of {where}, at offset {answer}, though {commit.offset} "
                f"was committed last: it skipped {answer - commit.offset} records, because {why}",
                (
                    Evidence(
                        f"committed {commit.offset}", f"__consumer_offsets@{commit.log_offset}", commit.at_ms
                    ),
                    Evidence(
                        f"{reader.client} asked for the last offset, got {answer}, and fetched from there",
                        f"journal {event.place}",
                        event.at_ms,
                    ),
                ),
                (
                    "set auto.offset.reset=earliest (or by_duration): latest skips what came in between",
                    "raise offsets.retention.minutes above the longest time that the group is stopped",
                ),
                weight=8.5,
            )
            return


def _committed_past_end(
    case: GroupCase,
    reader: Reader,
    where: TopicPartition,
    commit: Commit,
    answer: int,
    event: JournalEvent,
) -> Cause:
    before, _ = _last_commit(case, where, commit.at_ms - 1)
    first = None if before is None else before.offset
    left_out = "the records before it" if first is None else f"offsets {first} to {answer - 1}"
    return Cause(
        "committed-past-end",
        Strength.PROVED,
        f"group {case.group_id} stood at offset {commit.offset} of {where}, past its end, so {reader.client} "
        f"went on at the end, at {answer}: it did not get {left_out} (auto.offset.reset=latest)",
        (
            Evidence(
                f"{commit.offset} was committed" + ("" if first is None else f", after {first}"),
                f"__consumer_offsets@{commit.log_offset}",
                commit.at_ms,
            ),
            Evidence(
                f"{reader.client} asked for the last offset, got {answer}, and fetched from there",
                f"journal {event.place}",
                event.at_ms,
            ),
        ),
        (
            "find out who committed an offset that does not exist, a script or another cluster's offsets say",
            f"to read them: `ottla group reset {case.group_id} "
            + ("--to-earliest`" if first is None else f"--to-offset {first}`"),
        ),
        weight=8.6,
    )


def _set_forward(case: GroupCase) -> Iterator[Cause]:
    """Find offsets that were set forward while nobody was in the group."""
    before: dict[TopicPartition, Commit] = {}
    for commit in case.history.commits:
        earlier = before.get(commit.where)
        if commit.offset is None:
            continue
        before[commit.where] = commit
        if earlier is None or earlier.offset is None or commit.offset <= earlier.offset:
            continue
        # A commit of the same moment may be a member's last one.
        generation = _generation_at(case, commit.at_ms - 1)
        if generation is None or generation.members or commit.is_transactional:
            continue
        if _was_read(case, earlier, commit, generation.at_ms):
            # By a consumer that takes partitions by itself, and commits for the group.
            continue
        yield Cause(
            "offsets-set-forward",
            Strength.PROVED if case.journal.exists else Strength.LIKELY,
            f"the offset of {commit.where} was set forward from {earlier.offset} to {commit.offset} "
            f"while group {case.group_id} had no members: it did not get the records in between afterwards",
            (
                Evidence(
                    f"committed {earlier.offset}", f"__consumer_offsets@{earlier.log_offset}", earlier.at_ms
                ),
                Evidence(
                    f"then {commit.offset}, with nobody in the group",
                    f"__consumer_offsets@{commit.log_offset}",
                    commit.at_ms,
                ),
            ),
            (f"to read them: `ottla group reset {case.group_id} --to-offset {earlier.offset}`",),
            weight=8,
        )
        return


def _was_read(case: GroupCase, earlier: Commit, commit: Commit, empty_ms: int) -> bool:
    """Say whether anybody was seen to read between two commits of a partition.

    What the last member had fetched ahead before the group was empty is no reading of that. Neither is what
    the next member does, which begins where the offset was set to. Nodes look every five seconds.
    """
    since_ms = max(earlier.at_ms, empty_ms)
    joined = [one.at_ms for one in case.history.generations if one.members and one.at_ms >= commit.at_ms]
    until_ms = min([commit.at_ms + _LOOK_MS, *joined])
    return any(
        (earlier.offset or 0) < offset <= (commit.offset or 0) and since_ms <= event.at_ms <= until_ms
        for reader in readers_of(case.journal)
        for offset, event in reader.seen.get(commit.where, ())
    )


def _committed_and_gone(case: GroupCase) -> list[Cause]:
    """Find a member that died soon after a commit. Whether it had processed what it committed, nobody saw."""
    for left in case.journal.of("member-left", group=case.group_id):
        facts = left.facts
        if facts["why"] != "session" or facts.get("connected"):
            continue
        gone_ms = left.at_ms - facts.get("after_ms", 0)
        mine = [
            one
            for one in case.history.commits
            if one.offset is not None
            and one.at_ms <= gone_ms
            and not one.is_transactional
            and _holds(_generation_at(case, one.at_ms), facts["member"], one.where)
        ]
        if not mine:
            continue
        last, first = _last_step(case, mine)
        return [
            Cause(
                "committed-before-processed",
                Strength.POSSIBLE,
                f"{facts['client']} died at about {time_text(gone_ms)}, "
                f"{duration_text(gone_ms - last.at_ms)} after it had committed {last.offset} of {last.where}"
                f": if it commits before it has processed, up to "
                f"{(last.offset or 0) - first} records are lost",
                (
                    Evidence(
                        f"committed {last.offset}, after {first}",
                        f"__consumer_offsets@{last.log_offset}",
                        last.at_ms,
                    ),
                    departure(left),
                ),
                (
                    *_AFTER_PROCESSING,
                    f"compare offsets {first} to {(last.offset or 0) - 1} of {last.where} with the results",
                ),
                weight=6,
            )
        ]
    return []


def _last_step(case: GroupCase, mine: Sequence[Commit]) -> tuple[Commit, int]:
    """Return the last commit that moved an offset, and from where. Some clients commit the same again."""
    steps = []
    for commit in mine:
        before, _ = _last_commit(case, commit.where, commit.at_ms - 1)
        steps.append((commit, 0 if before is None or before.offset is None else before.offset))
    return next((step for step in reversed(steps) if step[0].offset != step[1]), steps[-1])


def _closed_after_commit(case: GroupCase, readers: Sequence[Reader]) -> list[Cause]:
    """Find a connection that closed after a commit, without leaving: the session is not over yet."""
    left = {event.facts["client"] for event in case.journal.of("member-left", group=case.group_id)}
    for reader in reversed(readers):
        if reader.doing is not Doing.GONE or reader.client in left:
            continue
        mine = [
            one
            for one in case.history.commits
            if one.where in reader.seen
            and one.offset is not None
            and reader.first.at_ms <= one.at_ms <= reader.last.at_ms
            and not one.is_transactional
        ]
        if not mine:
            continue
        last, first = _last_step(case, mine)
        return [
            Cause(
                "committed-before-processed",
                Strength.POSSIBLE,
                f"the connection of {reader.client} closed at {time_text(reader.last.at_ms)} without leaving "
                f"the group, {duration_text(reader.last.at_ms - last.at_ms)} after {last.offset} of "
                f"{last.where} was committed: if it commits before it has processed, or hands records to "
                f"threads, up to {(last.offset or 0) - first} records are lost",
                (
                    Evidence(
                        f"committed {last.offset}, after {first}",
                        f"__consumer_offsets@{last.log_offset}",
                        last.at_ms,
                    ),
                    Evidence(
                        f"the connection of {reader.client} is closed",
                        f"journal {reader.last.place}",
                        reader.last.at_ms,
                    ),
                ),
                _AFTER_PROCESSING,
                weight=6,
            )
        ]
    return []


_AFTER_PROCESSING: Final = (
    "commit after processing; with automatic commits, finish with a record before the next poll",
)


def _holds(generation: Generation | None, member: str, where: TopicPartition) -> bool:
    return (
        generation is not None
        and member in generation.members
        and (where in generation.members[member].assignment)
    )


def _generation_at(case: GroupCase, at_ms: int) -> Generation | None:
    found = None
    for generation in case.history.generations:
        if generation.at_ms > at_ms:
            break
        found = generation
    return found
