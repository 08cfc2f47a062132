"""The list of groups, and one group."""

import time

from starlette.responses import Response

from ottla.console.looks.group import look_at_group, ranges
from ottla.console.looks.groups import KINDS, GroupQuery, find_groups, read_figures
from ottla.console.looks.kept import PATIENCE_S
from ottla.console.serving.call import Call, json_answer
from ottla.explain.lag.outlook import Bounds, records_deleted_unread


async def groups(call: Call) -> Response:
    """Show a page of the list."""
    query = GroupQuery(
        call.text("q"),
        call.text("kind"),
        call.text("state"),
        call.text("topic"),
        call.flag("ledgers"),
        call.number("page", 1) or 1,
    )
    if call.flag("fresh"):
        call.visit.groups.forget()
    seen = await call.visit.groups.get(PATIENCE_S * 4 if call.is_part else PATIENCE_S)
    if seen is None:
        return call.page("reading.html", place="groups", what="groups", params=call.lasting)
    page = find_groups(seen.value, query)
    figures = await read_figures(call.visit.access, seen.value, page.groups)
    return call.page(
        "groups.html",
        place="groups",
        page=page,
        query_=query,
        figures=figures,
        troubles=seen.value.troubles,
        kinds=KINDS,
        label=Bounds().label,
        age_s=time.monotonic() - seen.at_s,
        params=call.lasting,
    )


async def group(call: Call) -> Response:
    """Show one group."""
    look = await look_at_group(call.visit.access, call.path["group"])
    return call.page(
        "group.html",
        place="groups",
        group=look.name,
        look=look,
        label=Bounds().label,
        ranges=ranges,
        deleted=sum(records_deleted_unread(item.lag) for item in look.partitions),
        deleted_of=records_deleted_unread,
        now_ms=int(time.time() * 1000),
    )


async def group_rows(call: Call) -> Response:
    """Answer as `ottla group list --json`."""
    return json_answer(
        [
            {
                "group": item.group_id,
                "type": item.type or None,
                "state": item.state or None,
                "protocol": item.protocol_type or None,
                "coordinator": item.coordinator,
            }
            for item in await call.visit.access.admin.groups.list()
        ]
    )
