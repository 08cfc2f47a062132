"""The first page of a cluster."""

import asyncio
import time
from typing import Any, Final

from starlette.responses import Response

from ottla.client.admin.cluster import ClusterDescription
from ottla.client.errors import ClientError
from ottla.console.looks.overview import fenced, group_counts, totals_of
from ottla.console.serving.call import Call, json_answer
from ottla.explain.doctor import examine

_MANY_GROUPS: Final = 300
"""With more groups than these nobody is examined before somebody asks for it."""
_EXAMINING_S: Final = 30.0


async def overview(call: Call) -> Response:
    """Show health, and what there is."""
    cluster, topics, groups = await asyncio.gather(
        _describe(call), call.visit.topics.get(), call.visit.groups.get()
    )
    return call.page(
        "overview.html",
        place="overview",
        described=cluster,
        fenced=fenced(cluster),
        totals=None if topics is None else totals_of(topics.value),
        groups=None if groups is None else group_counts(groups.value),
        group_count=None if groups is None else len(groups.value.listed),
        many_groups=groups is None or len(groups.value.listed) > _MANY_GROUPS,
    )


async def checks(call: Call) -> Response:
    """Show what the doctor says: a part of the first page."""
    found, trouble = [], None
    try:
        async with asyncio.timeout(_EXAMINING_S):
            found = await examine(call.visit.access, int(time.time() * 1000))
    except ClientError as error:
        trouble = str(error)
    except TimeoutError:
        trouble = f"it was not done in {_EXAMINING_S:.0f} s; `ottla doctor` takes its time"
    return call.page("checks.html", checks=found, trouble=trouble)


async def doctor_rows(call: Call) -> Response:
    """Answer as `ottla doctor --json`."""
    checked = await examine(call.visit.access, int(time.time() * 1000))
    return json_answer(
        [
            {"area": item.area, "fine": item.is_fine, "finding": item.text, "next": item.next_step}
            for item in checked
        ]
    )


async def _describe(call: Call) -> ClusterDescription:
    return await call.visit.access.admin.cluster.describe(fenced=True)


async def search(call: Call) -> Response:
    """Answer the palette: topics and groups whose names have these characters."""
    text = call.text("q").casefold()
    topics, groups = await asyncio.gather(call.visit.topics.get(), call.visit.groups.get())
    found: list[dict[str, Any]] = []
    if topics is not None:
        names = [name for name in topics.value if text in name.casefold()]
        found += [
            {"kind": "topic", "name": name, "url": call.url("topics", name)} for name in _best(names, text)
        ]
    if groups is not None:
        names = [name for name in groups.value.listed if text in name.casefold()]
        found += [
            {"kind": "group", "name": name, "url": call.url("groups", name)} for name in _best(names, text)
        ]
    return json_answer(found)


_FOUND_MAX: Final = 12


def _best(names: list[str], text: str) -> list[str]:
    """Return those that begin with it first, and short ones before long ones."""
    names.sort(key=lambda name: (not name.casefold().startswith(text), len(name), name))
    return names[:_FOUND_MAX]
