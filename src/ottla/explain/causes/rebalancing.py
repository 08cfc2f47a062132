"""Does a group spend its time dividing its partitions? It reads nothing while it does."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from ottla.explain.answer import Cause, Evidence, Strength
from ottla.explain.causes.absent import departure
from ottla.explain.causes.hindered import RECENT_MS
from ottla.explain.evidence.cases import GroupCase

_REBALANCES_MAX: Final = 6
"""So many in five minutes are too many: each stops the group."""
_FIVE_MINUTES_MS: Final = 300_000


def too_many_rebalances(case: GroupCase) -> Iterator[Cause]:
    """Find a group whose members come and go."""
    recent = [one for one in case.history.generations if case.now_ms - one.at_ms <= _FIVE_MINUTES_MS]
    changes = [one for one in recent if one.members]
    if len(changes) <= _REBALANCES_MAX or case.now_ms - changes[-1].at_ms > RECENT_MS:
        return
    lost = [
        event
        for event in case.journal.of("member-left", group=case.group_id)
        if case.now_ms - event.at_ms <= _FIVE_MINUTES_MS
    ]
    most = Counter(event.facts["client"] for event in lost).most_common(1)
    who = "".join(f": {name} left or died {count} times" for name, count in most if count > 1)
    yield Cause(
        "too-many-rebalances",
        Strength.PROVED,
        f"group {case.group_id} was rebalanced {len(changes)} times in five minutes, and reads nothing while "
        f"it is{who}",
        (
            Evidence(
                f"generations {changes[0].number} to {changes[-1].number}",
                "__consumer_offsets",
                changes[-1].at_ms,
            ),
            *map(departure, lost[-3:]),
        ),
        ("find out why members leave: see `ottla why twice` for the group",),
        weight=8,
    )
