"""Does a group commit the offset of the record that it has processed, and not that of the next one?

Then each new member gets that record again. It shows where the log ends behind the record: the group never
commits the end, but one offset less, in one generation after another.
"""

from collections.abc import Iterator

from ottla.explain.answer import Cause, Evidence, Strength
from ottla.explain.evidence.cases import GroupCase
from ottla.explain.evidence.group_history import Commit
from ottla.model.ids import TopicPartition

_GENERATIONS_MIN = 2


def committed_too_low(case: GroupCase) -> Iterator[Cause]:
    """Find partitions whose newest record each generation has committed, and none has committed its end."""
    for where, (_, end) in case.bounds.items():
        written_ms = _written_ms(case, where, end - 1)
        if written_ms is None:
            continue
        commits = [
            commit
            for commit in case.history.commits
            if commit.where == where and commit.offset == end - 1 and commit.at_ms > written_ms
        ]
        numbers = _generations_of(case, commits)
        if len(numbers) >= _GENERATIONS_MIN:
            yield _too_low(where, end, written_ms, commits, numbers)
            return


def _written_ms(case: GroupCase, where: TopicPartition, offset: int) -> int | None:
    """Return when a record was there, by its batch."""
    if case.log is None:
        return None
    return next(
        (item.timestamp for item in case.log.records if item.where == where and item.offset == offset), None
    )


def _generations_of(case: GroupCase, commits: list[Commit]) -> list[int]:
    """Return the numbers of the generations with members in which commits were made.

    A member that commits when it closes often leaves in the same millisecond.
    """
    generations = case.history.generations
    ends = [*(item.at_ms for item in generations[1:]), case.now_ms]
    return [
        generation.number
        for generation, end_ms in zip(generations, ends, strict=False)
        if generation.members and any(generation.at_ms <= commit.at_ms <= end_ms for commit in commits)
    ]


def _too_low(
    where: TopicPartition, end: int, written_ms: int, commits: list[Commit], numbers: list[int]
) -> Cause:
    return Cause(
        "committed-too-low",
        Strength.LIKELY,
        f"offset {end - 1} of {where} was delivered again to each new member: {len(numbers)} generations "
        f"have committed {end - 1} after it was written, and none {end}, as an application does that commits "
        "the offset of the last record instead of the next one",
        (
            Evidence(f"{where} ends at {end}", "ListOffsets"),
            Evidence(f"the record at {end - 1} was written", "the log", written_ms),
            *(
                Evidence(
                    f"committed {commit.offset}", f"__consumer_offsets@{commit.log_offset}", commit.at_ms
                )
                for commit in (commits[0], commits[-1])
            ),
        ),
        ("commit the offset of the last processed record plus one: it is where the next member begins",),
        weight=10.5,
    )
