"""With 10,000 topics, 40,000 partitions and 2,500 groups a page asks for what it shows, and for no more."""

import asyncio
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client.admin.results import Results
from ottla.client.admin.topics import PartitionDescription, TopicDescription, TopicPage
from ottla.client.errors import ClientError
from ottla.console.looks.groups import GroupQuery, GroupsSeen, find_groups
from ottla.console.looks.kept import Kept
from ottla.console.looks.topics import (
    PAGE,
    TopicQuery,
    find_topics,
    prefixes,
    read_figures,
    read_readers,
    read_topics,
)
from ottla.explain.access import Access
from ottla.model.ids import TopicPartition
from ottla.model.uuid import ZERO_UUID

TOPICS = 10_000
PARTITIONS = 4
NAMES = sorted(f"team{number % 50}.app{number % 400}.topic{number}" for number in range(TOPICS))


class MadeUpCluster:
    """Answers as the admin client does, and notes how much it was asked for."""

    def __init__(self) -> None:
        self.pages = 0
        self.asked: list[int] = []
        self.topics = SimpleNamespace(describe_page=self.describe_page)
        self.offsets = SimpleNamespace(earliest=self.offsets_of, latest=self.offsets_of)
        self.log_dirs = SimpleNamespace(describe=self.directories)

    async def describe_page(self, cursor: Any) -> TopicPage:
        self.pages += 1
        first = cursor or 0
        part = PartitionDescription(0, 1, 0, (1, 2), (1, 2), (), (), ())
        topics = tuple(
            TopicDescription(name, ZERO_UUID, False, (part,) * PARTITIONS)
            for name in NAMES[first : first + 500]
        )
        return TopicPage(topics, first + 500 if first + 500 < TOPICS else None)  # type: ignore[arg-type]

    async def offsets_of(self, wheres: Collection[TopicPartition]) -> Results[TopicPartition, Any]:
        self.asked.append(len(wheres))
        return Results({where: SimpleNamespace(offset=7) for where in wheres})

    async def directories(self, *, partitions: Collection[TopicPartition]) -> Results[int, Any]:
        self.asked.append(len(partitions))
        return Results({1: ()})


def made_up() -> tuple[MadeUpCluster, Access]:
    cluster = MadeUpCluster()
    return cluster, Access(cluster, None)  # type: ignore[arg-type]


def test_a_page_of_topics_asks_for_its_own_partitions_alone() -> None:
    cluster, access = made_up()

    async def look() -> None:
        lines = await read_topics(access)
        assert len(lines) == TOPICS
        assert cluster.pages == TOPICS // 500
        page = find_topics(lines.values(), TopicQuery(page=3))
        assert (len(page.lines), page.found, page.pages) == (PAGE, TOPICS, TOPICS // PAGE)
        await read_figures(access, page.lines)
        assert cluster.asked == [PAGE * PARTITIONS] * 3
        groups = GroupsSeen(
            {}, {f"group-{number}": {NAMES[number]: {0: 3}} for number in range(2_500)}, {}, {}
        )
        cluster.asked.clear()
        readers = await read_readers(access, {line.name for line in page.lines}, groups)
        assert len(readers) == PAGE
        assert cluster.asked == [PAGE]

    asyncio.run(look())


def test_the_tree_of_names_is_bounded_and_leads_on() -> None:
    first = prefixes(NAMES)
    assert len(first) == 40
    assert {step.topics for step in first} == {200}
    inner = prefixes(NAMES, first[0].prefix)
    assert all(step.prefix.startswith(first[0].prefix) for step in inner)
    assert sum(step.topics for step in inner) == 200


def test_a_page_that_does_not_exist_is_the_last_one() -> None:
    assert find_topics([], TopicQuery(page=9)).page == 1
    assert find_groups(GroupsSeen({}, {}, {}, {}), GroupQuery(page=-1)).page == 1


def test_what_takes_long_is_read_once_for_all_and_not_again_at_once() -> None:
    now = [0.0]
    begun: list[asyncio.Future[int]] = []

    async def read() -> int:
        begun.append(asyncio.get_running_loop().create_future())
        return await begun[-1]

    async def look() -> None:
        kept = Kept(read, lambda: now[0])
        assert await kept.get(0) is None
        assert await kept.get(0) is None
        assert len(begun) == 1
        now[0] = 1.0
        begun[0].set_result(42)
        seen = await kept.get(1)
        assert seen is not None
        assert seen.value == 42
        now[0] = 19.0
        assert await kept.get(0) == seen
        assert len(begun) == 1, "it took a second, so it is shown for twenty"
        now[0] = 21.0
        assert await kept.get(0) == seen, "the old one, while the new one is read"
        assert len(begun) == 2
        kept.forget()
        assert await kept.get(0) is None
        assert len(begun) == 3
        begun[2].set_exception(ClientError("gone"))
        with pytest.raises(ClientError, match="gone"):
            await kept.get(1)

    asyncio.run(look())
