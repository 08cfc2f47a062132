"""Does a record end its consumer, again and again?"""

from collections.abc import Iterator, Sequence
from typing import Final

from ottla.explain.answer import Cause, Evidence, Strength, time_text
from ottla.explain.causes.absent import departure
from ottla.explain.causes.assigned import is_rebalancing
from ottla.explain.evidence.cases import GroupCase
from ottla.explain.evidence.journal import JournalEvent
from ottla.explain.evidence.readers import Doing, Reader
from ottla.model.ids import TopicPartition

_DEATHS_MIN: Final = 3
_MINUTES_MS: Final = 600_000


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


def kills_connections(case: GroupCase, readers: Sequence[Reader]) -> Iterator[Cause]:
    """Find a place that one connection after another has fetched from, closed, and never got past.

    A consumer that dies at once leaves its membership behind. The next ones then wait for it, and hardly any
    generation comes to be.
    """
    members = () if case.description is None else case.description.members
    names = case.clients | {member.client_id for member in members}
    ours = [one for one in readers if one.client in names and one.client not in case.elsewhere]
    for where in sorted({where for one in ours for where in one.seen}):
        its = [one for one in ours if where in one.seen]
        stands = _committed(case, where)
        begin, end = case.bounds.get(where, (0, 0))
        offset = begin if stands is None else stands
        if end <= offset or any(one.seen[where][-1][0] > offset for one in its):
            continue
        gone = [one for one in its if one.doing is Doing.GONE and case.now_ms - one.last.at_ms <= _MINUTES_MS]
        left = [
            event
            for event in case.journal.of("member-left", group=case.group_id, why="session")
            if event.facts["client"] in names and case.now_ms - event.at_ms <= _MINUTES_MS
        ]
        if not gone or len(its) > len(gone):
            continue
        # While the next ones wait for the dead, one death is all that there is to see.
        are_waiting = bool(left) and is_rebalancing(case)
        if max(len(gone), len(left)) < (1 if are_waiting else _DEATHS_MIN):
            continue
        yield _kills_connections(case, where, offset, stands, gone, left)
        return


def _committed(case: GroupCase, where: TopicPartition) -> int | None:
    found = None
    for commit in case.history.commits:
        if commit.where == where:
            found = commit.offset
    return found


def _kills_connections(
    case: GroupCase,
    where: TopicPartition,
    offset: int,
    stands: int | None,
    gone: Sequence[Reader],
    left: Sequence[JournalEvent],
) -> Cause:
    batch = None
    if case.log is not None:
        batches = [one for one in case.log.batches if one.where == where]
        batch = next((one for one in batches if one.base_offset <= offset <= one.last_offset), None)
    codec = "" if batch is None or batch.codec == "none" else batch.codec
    deaths = max(len(gone), len(left))
    record = f"the record {where.topic}/{where.partition}@{offset}, or one soon after it, ends its consumer"
    return Cause(
        "kills-its-consumer",
        Strength.LIKELY if deaths >= _DEATHS_MIN else Strength.POSSIBLE,
        f"{record} again and again: {deaths} of {gone[-1].client} have gone, and none got past it"
        if deaths >= _DEATHS_MIN
        else f"{record}: {gone[-1].client} is gone without leaving, and other members wait for each other",
        (
            *(
                Evidence(
                    f"{one.client} fetched {where} from {one.seen[where][-1][0]}, and closed its connection",
                    f"journal {one.last.place}",
                    one.last.at_ms,
                )
                for one in gone[-3:]
            ),
            *map(departure, left[-3:]),
            Evidence(
                "nothing was ever committed" if stands is None else f"committed {stands}, and never more",
                "__consumer_offsets",
            ),
            *([Evidence(f"the batch there is compressed with {codec}", "the log")] if codec else []),
        ),
        (
            f"look at the record: `ottla consume {where.topic} -p {where.partition} -o {offset} -c 1`",
            *([f"look whether the client can read {codec}: some need a library for it"] if codec else []),
            "let the consumer put a record that it cannot process aside, and go on",
        ),
        weight=10,
    )
