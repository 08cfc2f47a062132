"""What is in the way of a group that has members with partitions: rights, offsets that are gone, transactions
that nobody ends, quotas.
"""

from collections.abc import Iterator

from ottla.explain.answer import Cause, Evidence, Strength, duration_text, time_text
from ottla.explain.evidence.cases import GroupCase, OpenTransaction
from ottla.explain.evidence.journal import JournalEvent
from ottla.explain.lag.outlook import PartitionLook
from ottla.model.ids import TopicPartition

RECENT_MS = 60_000
QUIET_MS = 5_000
"""A partition that got nothing for so long is quiet."""
_RIGHTS = ("TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED")


def moves(item: PartitionLook) -> bool:
    """Say whether commits of a partition went on while it was looked at."""
    return item.velocity is not None and item.velocity.reads > 0


def refused(case: GroupCase) -> Iterator[Cause]:
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


def out_of_range(case: GroupCase) -> Iterator[Cause]:
    for item in case.partitions:
        lag = item.lag
        if lag.committed is None or lag.log_start_offset is None or lag.log_end_offset is None:
            continue
        is_below, is_above = lag.committed < lag.log_start_offset, lag.committed > lag.log_end_offset
        if not is_below and not is_above:
            continue
        if item.velocity is not None and item.velocity.reads != 0:
            continue
        ever, seen = _longest(case, lag.where)
        why = (
            f"{lag.log_start_offset - lag.committed} records were deleted before they were committed"
            if is_below
            else f"the log was longer, up to {ever}, and was cut or made again"
            if ever >= lag.committed
            else "somebody has committed past its end, or the log was longer once"
        )
        evidence = [
            Evidence(
                f"committed {lag.committed}, but the log has {lag.log_start_offset} to {lag.log_end_offset}",
                f"ottla lag {case.group_id}",
            ),
            *(_committing(case, lag.where, lag.committed) if is_above else ()),
            *([seen] if is_above and seen is not None else ()),
            *_refusals(case, "OFFSET_OUT_OF_RANGE"),
        ]
        yield Cause(
            "committed-past-end" if is_above and ever < lag.committed else "offset-out-of-range",
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


def _longest(case: GroupCase, where: TopicPartition) -> tuple[int, Evidence | None]:
    """Return the highest end that the journal has seen of a log: -1 if none."""
    place, highest, found = f"{where.topic}/{where.partition}", -1, None
    for event in case.journal.of("appended-at"):
        end = event.facts["ends"].get(place, -1)
        if end > highest:
            highest = end
            found = Evidence(
                f"{where} ended at {end}, and never later", f"journal {event.place}", event.at_ms
            )
    return highest, found


def _committing(case: GroupCase, where: TopicPartition, offset: int) -> Iterator[Evidence]:
    """Say when an offset was committed, and who was in the group then."""
    for commit in [one for one in case.history.commits if one.where == where and one.offset == offset][:1]:
        before = [one for one in case.history.generations if one.at_ms < commit.at_ms]
        is_empty = not before or not before[-1].members
        yield Evidence(
            f"{offset} was committed" + (", with nobody in the group" if is_empty else ""),
            f"__consumer_offsets@{commit.log_offset}",
            commit.at_ms,
        )


def _refusals(case: GroupCase, error: str) -> Iterator[Evidence]:
    its = [
        event
        for event in case.journal.of("request-refused", error=error)
        if event.subject.removeprefix("client/").rpartition("@")[0] in case.clients
    ]
    for event in its[-1:]:
        yield Evidence(
            f"{event.subject.removeprefix('client/')}: {event.facts['api']} was refused "
            f"{event.facts['count']} times with {error}",
            f"journal {event.place}",
            event.at_ms,
        )


def held_back(case: GroupCase) -> Iterator[Cause]:
    for item in case.partitions:
        lag = item.lag
        stable = case.stable_ends.get(lag.where)
        if stable is None or lag.log_end_offset is None or stable >= lag.log_end_offset:
            continue
        if lag.committed is not None and lag.committed > stable:
            # It reads records of open transactions, so nothing is held back.
            continue
        if lag.committed is not None and lag.committed < stable and moves(item):
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


def throttled(case: GroupCase) -> Iterator[Cause]:
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
