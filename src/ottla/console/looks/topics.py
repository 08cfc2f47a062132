"""The list of topics: what is known of each in one line, of one page at a time.

Names and partitions of all topics are read in pages of the brokers and kept in little space. Sizes, ends and
the lag of groups are read for the topics that are shown, and for no others.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ottla.client.admin.topics import TopicDescription
from ottla.console.looks.groups import GroupsSeen
from ottla.explain.access import Access
from ottla.model.ids import TopicPartition

PAGE: Final = 100


class TopicLine(NamedTuple):
    """What the list says of a topic without asking for more."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: int
    replicas: int
    leaderless: int
    """How many partitions have no leader."""
    short: int
    """How many partitions have replicas that are not in sync."""


class TopicFigures(NamedTuple):
    """What is read for the topics that are shown. None: nobody could say it."""

    size_bytes: int | None
    """Of the leaders' copies."""
    records: int | None
    """Offsets from the first to the next one: markers and gaps of compaction count, too."""


class TopicReader(NamedTuple):
    """A group that has committed offsets of a topic, and how many records are left to it."""

    group: str
    lag: int | None


async def read_topics(access: Access) -> dict[str, TopicLine]:
    """Read the lines of all topics, by name."""
    found: dict[str, TopicLine] = {}
    cursor = None
    while True:
        page = await access.admin.topics.describe_page(cursor)
        for topic in page.topics:
            line = _line(topic)
            before = found.get(topic.name)
            found[topic.name] = line if before is None else _joined(before, line)
        cursor = page.cursor
        if cursor is None:
            return dict(sorted(found.items()))
        # Other pages are served in between.
        await asyncio.sleep(0)


def _line(topic: TopicDescription) -> TopicLine:
    parts = topic.partitions
    return TopicLine(
        topic.name,
        str(topic.topic_id),
        topic.is_internal,
        len(parts),
        topic.replication_factor,
        sum(part.leader < 0 for part in parts),
        sum(len(part.in_sync_replicas) < len(part.replicas) for part in parts),
    )


def _joined(before: TopicLine, after: TopicLine) -> TopicLine:
    return before._replace(
        partitions=before.partitions + after.partitions,
        leaderless=before.leaderless + after.leaderless,
        short=before.short + after.short,
    )


@dataclass(frozen=True)
class TopicQuery:
    """Which topics are wanted. `text` is a part of the name, in any case; with * at the ends of words."""

    text: str = ""
    prefix: str = ""
    internal: bool = False
    trouble: bool = False
    """Only topics with partitions that have no leader, or replicas that are not in sync."""
    sort: str = "name"
    page: int = 1


SORTS: Final = {
    "name": lambda line: (line.name,),
    "-name": lambda line: (line.name,),
    "partitions": lambda line: (line.partitions, line.name),
    "-partitions": lambda line: (-line.partitions, line.name),
}


class TopicPage(NamedTuple):
    """One page of what was found."""

    lines: Sequence[TopicLine]
    found: int
    """On all pages."""
    all: int
    page: int
    pages: int


def find_topics(lines: Iterable[TopicLine], query: TopicQuery) -> TopicPage:
    """Choose, sort and cut."""
    every = [line for line in lines if query.internal or not line.is_internal]
    text = query.text.casefold()
    found = [
        line
        for line in every
        if text in line.name.casefold()
        and line.name.startswith(query.prefix)
        and (not query.trouble or line.leaderless or line.short)
    ]
    found.sort(key=SORTS.get(query.sort, SORTS["name"]), reverse=query.sort == "-name")
    pages = max(1, -(-len(found) // PAGE))
    page = min(max(query.page, 1), pages)
    return TopicPage(found[(page - 1) * PAGE : page * PAGE], len(found), len(every), page, pages)


class PrefixCount(NamedTuple):
    """Topics whose names begin alike."""

    prefix: str
    topics: int


_PREFIXES_MAX: Final = 40
_SEPARATORS: Final = ".-_"


def prefixes(names: Collection[str], within: str = "") -> list[PrefixCount]:
    """Return the next step of a tree of names: what follows `within` up to the next `.`, `-` or `_`.

    Only what two or more topics share is a step.
    """
    counts: dict[str, int] = {}
    for name in names:
        if not name.startswith(within):
            continue
        rest = name[len(within) :].lstrip("_")
        lead = len(name) - len(rest)
        ends = [at for mark in _SEPARATORS if (at := rest.find(mark)) > 0]
        if ends:
            step = name[: lead + min(ends) + 1]
            counts[step] = counts.get(step, 0) + 1
    shared = [PrefixCount(prefix, count) for prefix, count in counts.items() if count > 1]
    largest = sorted(shared, key=lambda one: (-one.topics, one.prefix))[:_PREFIXES_MAX]
    return sorted(largest)


async def read_figures(access: Access, lines: Sequence[TopicLine]) -> dict[str, TopicFigures]:
    """Read sizes and ends of the topics that are shown: a request or two to each broker."""
    wheres = [TopicPartition(line.name, number) for line in lines for number in range(line.partitions)]
    if not wheres:
        return {}
    starts, ends, sizes = await asyncio.gather(
        access.admin.offsets.earliest(wheres), access.admin.offsets.latest(wheres), read_sizes(access, wheres)
    )
    figures = {}
    for line in lines:
        its = [TopicPartition(line.name, number) for number in range(line.partitions)]
        known = [where for where in its if where in starts.succeeded and where in ends.succeeded]
        records = sum(ends.succeeded[where].offset - starts.succeeded[where].offset for where in known)
        known_sizes = [sizes[where] for where in its if where in sizes]
        figures[line.name] = TopicFigures(
            sum(known_sizes) if known_sizes else None, records if len(known) == len(its) else None
        )
    return figures


async def read_sizes(access: Access, wheres: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the largest copy of each partition: followers may be behind."""
    sizes: dict[TopicPartition, int] = {}
    answers = await access.admin.log_dirs.describe(partitions=wheres)
    for directories in answers.succeeded.values():
        for directory in directories:
            for replica in directory.replicas:
                if not replica.is_future:
                    sizes[replica.where] = max(sizes.get(replica.where, 0), replica.size_bytes)
    return sizes


async def read_readers(
    access: Access, names: Collection[str], groups: GroupsSeen
) -> dict[str, list[TopicReader]]:
    """Return who reads topics, the group that is furthest behind first."""
    committed = {
        (topic, group): offsets
        for group, by_topic in groups.committed.items()
        for topic, offsets in by_topic.items()
        if topic in names
    }
    wheres = {TopicPartition(topic, number) for (topic, _), its in committed.items() for number in its}
    ends = (await access.admin.offsets.latest(wheres)).succeeded if wheres else {}
    readers: dict[str, list[TopicReader]] = {}
    for (topic, group), offsets in committed.items():
        lag = _lag(topic, offsets, {where: found.offset for where, found in ends.items()})
        readers.setdefault(topic, []).append(TopicReader(group, lag))
    for found in readers.values():
        found.sort(key=lambda reader: (-(reader.lag or 0), reader.group))
    return readers


def _lag(topic: str, offsets: Mapping[int, int], ends: Mapping[TopicPartition, int]) -> int | None:
    known = [
        max(ends[where] - offset, 0)
        for number, offset in offsets.items()
        if (where := TopicPartition(topic, number)) in ends
    ]
    return sum(known) if known else None
