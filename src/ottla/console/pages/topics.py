"""The list of topics, and one topic."""

import asyncio
import time
from collections.abc import Awaitable
from typing import Any, TypeVar

from starlette.responses import Response

from ottla.client.errors import ClientError
from ottla.console.looks.kept import PATIENCE_S
from ottla.console.looks.topic import TopicLook, look_at_topic
from ottla.console.looks.topics import (
    TopicQuery,
    find_topics,
    prefixes,
    read_figures,
    read_readers,
)
from ottla.console.serving.call import Call, json_answer
from ottla.wire.config_kinds import ConfigSource, ResourceType

T = TypeVar("T")


async def topics(call: Call) -> Response:
    """Show a page of the list."""
    query = TopicQuery(
        call.text("q"),
        call.text("prefix"),
        call.flag("internal"),
        call.flag("trouble"),
        call.text("sort") or "name",
        call.number("page", 1) or 1,
    )
    if call.flag("fresh"):
        call.visit.topics.forget()
    seen = await call.visit.topics.get(PATIENCE_S * 4 if call.is_part else PATIENCE_S)
    if seen is None:
        return call.page("reading.html", place="topics", what="topics", params=call.lasting)
    page = find_topics(seen.value.values(), query)
    access = call.visit.access
    patience_s = 5.0 if call.flag("figures") else PATIENCE_S
    figures = await _maybe(read_figures(access, page.lines), patience_s)
    readers, groups_trouble = None, None
    try:
        groups = await call.visit.groups.get(patience_s)
        if groups is not None:
            shown = {line.name for line in page.lines}
            readers = await _maybe(read_readers(access, shown, groups.value), patience_s)
    except ClientError as error:
        groups_trouble = str(error)
    names = [line.name for line in seen.value.values() if query.internal or not line.is_internal]
    is_whole = figures is not None and (readers is not None or groups_trouble is not None)
    return call.page(
        "topics.html",
        place="topics",
        page=page,
        query_=query,
        figures=figures or {},
        readers=readers or {},
        groups_trouble=groups_trouble,
        is_whole=is_whole,
        age_s=time.monotonic() - seen.at_s,
        tree=prefixes(names, query.prefix),
        params=call.lasting,
    )


async def _maybe(reading: Awaitable[T], patience_s: float) -> T | None:
    """Wait for something that the page can do without at first."""
    try:
        async with asyncio.timeout(patience_s):
            return await reading
    except TimeoutError:
        return None


async def topic(call: Call) -> Response:
    """Show one topic: its partitions and who reads it."""
    name = call.path["topic"]
    look, readers = await asyncio.gather(look_at_topic(call.visit.access, name), _readers(call, name))
    return call.page("topic.html", place="topics", tab="partitions", topic=name, look=look, readers=readers)


async def _readers(call: Call, name: str) -> Any:
    try:
        groups = await call.visit.groups.get(2.0)
        if groups is None:
            return None
        return (await read_readers(call.visit.access, {name}, groups.value)).get(name, [])
    except ClientError:
        return None


async def topic_configs(call: Call) -> Response:
    """Show the configs of one topic, with what they mean and where they come from."""
    name = call.path["topic"]
    look = await look_at_topic(call.visit.access, name)
    return call.page("configs.html", place="topics", tab="configs", topic=name, look=look)


# What the commands print with --json.


async def topic_rows(call: Call) -> Response:
    """Answer as `ottla topic list --json`."""
    found = await call.visit.access.admin.topics.list(internal=call.flag("internal"))
    return json_answer(
        [
            {"topic": item.name, "partitions": item.partitions, "topic_id": str(item.topic_id)}
            for item in found
        ]
    )


async def topic_facts(call: Call) -> Response:
    """Answer as `ottla topic describe NAME --json`."""
    name = call.path["topic"]
    look: TopicLook = await look_at_topic(call.visit.access, name)
    configs = await call.visit.access.admin.configs.describe(ResourceType.TOPIC, name)
    return json_answer(
        {
            "topic": look.description.name,
            "topic_id": str(look.description.topic_id),
            "internal": look.description.is_internal,
            "replication_factor": look.description.replication_factor,
            "configs": {
                config.name: config.value
                for config in configs.values()
                if config.source is ConfigSource.TOPIC
            },
            "partitions": [
                {
                    "partition": line.partition,
                    "leader": line.leader,
                    "replicas": list(line.replicas),
                    "in_sync": list(line.in_sync),
                    "first_offset": line.first_offset,
                    "next_offset": line.next_offset,
                }
                for line in look.partitions
            ],
        }
    )


async def config_rows(call: Call) -> Response:
    """Answer as `ottla config get topic NAME --json`."""
    found = await call.visit.access.admin.configs.describe(ResourceType.TOPIC, call.path["topic"])
    return json_answer(
        [
            {
                "config": item.name,
                "value": None if item.is_sensitive else item.value,
                "from": item.source.name.lower(),
                "read_only": item.is_read_only,
            }
            for item in sorted(found.values(), key=lambda item: item.name)
        ]
    )
