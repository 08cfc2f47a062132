"""Groups of every kind: what all of them have committed, and the list, a page at a time.

What all have committed is read with a request for hundreds of groups, and kept. Members and the lag in time
are read for the groups that are shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ottla.client.admin.descriptions import GroupListing
from ottla.explain.access import Access
from ottla.explain.lag.outlook import total
from ottla.model.ids import TopicPartition
from ottla.model.ledger_groups import is_ledger

PAGE: Final = 100
SHARE: Final = "share"
KINDS: Final = ("classic", "consumer", SHARE, "streams")
_GROUPS_OF_SHARE_MAX: Final = 500
"""Offsets of share groups are asked for one by one."""


@dataclass(frozen=True)
class GroupsSeen:
    """All groups at one moment, and what they have committed: by group, topic and partition."""

    listed: Mapping[str, GroupListing]
    committed: Mapping[str, Mapping[str, Mapping[int, int]]]
    troubles: Mapping[str, str]
    """Why nothing could be learned about a group's offsets."""
    share_lags: Mapping[str, int | None]
    """Brokers count what is left to share groups. None where they do not."""


async def read_groups(access: Access) -> GroupsSeen:
    """Read all groups, and all that they have committed."""
    listed = {group.group_id: group for group in await access.admin.groups.list()}
    plain = [name for name, group in listed.items() if group.type != SHARE]
    results = await access.admin.group_offsets.list_many(plain)
    committed: dict[str, dict[str, dict[int, int]]] = {}
    for name, offsets in results.succeeded.items():
        by_topic: dict[str, dict[int, int]] = {}
        for where, found in offsets.items():
            by_topic.setdefault(where.topic, {})[where.partition] = found.offset
        committed[name] = by_topic
    troubles = {name: str(error) for name, error in results.failed.items()}
    share_lags: dict[str, int | None] = {}
    shared = [name for name, group in listed.items() if group.type == SHARE]
    for name in shared[:_GROUPS_OF_SHARE_MAX]:
        offsets_of_share = await access.admin.share_groups.offsets(name)
        share_lags[name] = total(found.lag for found in offsets_of_share.values())
        shared_by_topic: dict[str, dict[int, int]] = {}
        for where, start in offsets_of_share.items():
            shared_by_topic.setdefault(where.topic, {})[where.partition] = start.start_offset
        committed[name] = shared_by_topic
    return GroupsSeen(listed, committed, troubles, share_lags)


@dataclass(frozen=True)
class GroupQuery:
    """Which groups are wanted."""

    text: str = ""
    kind: str = ""
    state: str = ""
    topic: str = ""
    ledgers: bool = False
    """Also the ledgers of pipelines, whose offsets count batches."""
    page: int = 1


class GroupPage(NamedTuple):
    """One page of what was found."""

    groups: Sequence[GroupListing]
    found: int
    all: int
    page: int
    pages: int
    states: Sequence[str]
    """All states there are."""


def find_groups(seen: GroupsSeen, query: GroupQuery) -> GroupPage:
    """Choose and cut."""
    every = [group for name, group in seen.listed.items() if query.ledgers or not is_ledger(name)]
    text = query.text.casefold()
    found = [
        group
        for group in every
        if text in group.group_id.casefold()
        and query.kind in ("", group.type)
        and query.state in ("", group.state)
        and (not query.topic or query.topic in seen.committed.get(group.group_id, {}))
    ]
    pages = max(1, -(-len(found) // PAGE))
    page = min(max(query.page, 1), pages)
    states = sorted({group.state for group in every if group.state})
    return GroupPage(found[(page - 1) * PAGE : page * PAGE], len(found), len(every), page, pages, states)


class GroupFigures(NamedTuple):
    """What is read for the groups that are shown."""

    members: int | None
    lag: int | None
    topics: Sequence[str]


async def read_figures(
    access: Access, seen: GroupsSeen, groups: Sequence[GroupListing]
) -> dict[str, GroupFigures]:
    """Read members and lag of the groups that are shown."""
    names = [group.group_id for group in groups if group.type != SHARE]
    shared = [group.group_id for group in groups if group.type == SHARE]
    described = dict((await access.admin.groups.describe_many(names)).succeeded)
    if shared:
        described |= (await access.admin.share_groups.describe_many(shared)).succeeded
    wheres = {
        TopicPartition(topic, number)
        for name in names
        for topic, offsets in seen.committed.get(name, {}).items()
        for number in offsets
    }
    ends = (await access.admin.offsets.latest(wheres)).succeeded if wheres else {}
    figures = {}
    for group in groups:
        name = group.group_id
        its = seen.committed.get(name, {})
        lag: int | None
        if group.type == SHARE:
            lag = seen.share_lags.get(name)
        elif is_ledger(name):
            lag = None
        else:
            lag = total(
                max(ends[where].offset - offset, 0)
                for topic, offsets in its.items()
                for number, offset in offsets.items()
                if (where := TopicPartition(topic, number)) in ends
            )
        members = len(described[name].members) if name in described else None
        figures[name] = GroupFigures(members, lag, sorted(its))
    return figures
