"""Pages that move: the live tail of a topic, and the search through it."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from starlette.responses import Response

from ottla.client.cluster import Cluster
from ottla.console.looks.following import follow
from ottla.console.looks.places import UnreadablePlace, decode_offsets, encode_offsets, parse_time
from ottla.console.looks.records import Listed, StoredRecord, find_partitions
from ottla.console.looks.searching import FOUND_MAX, Report, Wanted, search
from ottla.console.pages.records import now_ms, record_lines
from ottla.console.serving.call import Call
from ottla.console.serving.streams import Event, stream
from ottla.satellite.errors import HttpError


async def tail(call: Call) -> Response:
    """Show the page of the live tail."""
    return await _page(call, "tail.html", "live")


async def search_page(call: Call) -> Response:
    """Show the page of the search."""
    return await _page(call, "search.html", "search", found_max=FOUND_MAX)


async def _page(call: Call, template: str, tab: str, **values: Any) -> Response:
    name = call.path["topic"]
    numbers = await find_partitions(call.visit.access.cluster, name, ())
    return call.page(
        template, place="topics", tab=tab, topic=name, numbers=numbers, params=dict(call.query), **values
    )


async def tail_stream(call: Call) -> Response:
    """Send records as they are written."""
    return stream(call, _tail_events(call, _offsets(call, "from"), _partitions(call)))


async def _tail_events(
    call: Call, start: dict[int, int] | None, partitions: tuple[int, ...]
) -> AsyncIterator[Event]:
    name, text = call.path["topic"], call.text("q").encode()
    seen = dropped = 0
    async with call.visit.own_cluster() as cluster:
        async for came in follow(cluster, name, partitions=partitions, start=start, text=text):
            seen += len(came.records) + came.dropped
            dropped += came.dropped
            yield Event(
                "records",
                {
                    "rows": await _rows(call, name, came.records),
                    "count": len(came.records),
                    "seen": seen,
                    "dropped": dropped,
                    "trouble": came.trouble,
                },
                encode_offsets(came.positions),
            )


async def search_stream(call: Call) -> Response:
    """Send what is found, and how far the search is."""
    wanted = Wanted(call.text("q").encode(), call.text("key").encode() or None)
    if not wanted.needle:
        raise HttpError(400, "say what to look for: a text, or a key")
    since = call.text("since")
    try:
        since_ms = parse_time(since, now_ms()) if since else None
    except UnreadablePlace as error:
        raise HttpError(400, str(error)) from error
    start, stops, partitions = _offsets(call, "from"), _offsets(call, "to"), _partitions(call)

    def reports(cluster: Cluster) -> AsyncIterator[Report]:
        return search(
            cluster,
            call.path["topic"],
            wanted,
            partitions=partitions,
            start=start,
            stops=stops,
            since_ms=since_ms,
        )

    return stream(call, _search_events(call, reports))


async def _search_events(
    call: Call, reports: Callable[[Cluster], AsyncIterator[Report]]
) -> AsyncIterator[Event]:
    name = call.path["topic"]
    async with call.visit.own_cluster() as cluster:
        async for report in reports(cluster):
            yield Event(
                "report",
                {
                    "rows": await _rows(call, name, report.found),
                    "found": len(report.found),
                    "scanned": report.scanned,
                    "bytes": report.scanned_bytes,
                    "left": report.left,
                    "state": report.state,
                    "to": encode_offsets(report.stops),
                    "trouble": report.trouble,
                },
                encode_offsets(report.positions),
            )


async def _rows(call: Call, name: str, records: Sequence[StoredRecord]) -> str:
    """Return rows of a table, the newest first."""
    if not records:
        return ""
    lines = await record_lines(call, [Listed(record, False) for record in reversed(records)])
    return call.rendered("record_rows.html", topic=name, lines=lines)


def _offsets(call: Call, name: str) -> dict[int, int] | None:
    try:
        return decode_offsets(call.text(name)) or None
    except UnreadablePlace as error:
        raise HttpError(400, str(error)) from error


def _partitions(call: Call) -> tuple[int, ...]:
    number = call.number("partition")
    return () if number is None else (number,)
