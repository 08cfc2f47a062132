"""Records as files to download."""

from starlette.responses import Response, StreamingResponse

from ottla.client.fetching import IsolationLevel
from ottla.console.looks.exporting import COUNT_MAX, FORMS, as_csv, as_json_lines, as_parquet, read_records
from ottla.console.looks.places import UnreadablePlace, parse_time
from ottla.console.looks.records import find_partitions
from ottla.console.pages.records import now_ms
from ottla.console.serving.call import Call
from ottla.satellite.errors import HttpError


async def export_form(call: Call) -> Response:
    """Ask what to export."""
    name = call.path["topic"]
    numbers = await find_partitions(call.visit.access.cluster, name, ())
    return call.page(
        "export.html", place="topics", tab="export", topic=name, numbers=numbers, count_max=COUNT_MAX
    )


async def export_file(call: Call) -> Response:
    """Send the file."""
    name, form = call.path["topic"], call.text("form") or "jsonl"
    if form not in FORMS:
        raise HttpError(400, f"records are exported as one of {', '.join(FORMS)}")
    number = call.number("partition")
    committed = not call.flag("uncommitted")
    # Whether the topic is there is said before the file begins.
    await find_partitions(call.visit.access.cluster, name, ())
    batches = read_records(
        call.visit.access.cluster,
        name,
        partitions=() if number is None else (number,),
        since_ms=_time(call, "since"),
        until_ms=_time(call, "until"),
        isolation=IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED,
        count=min(max(call.number("count", COUNT_MAX) or COUNT_MAX, 1), COUNT_MAX),
    )
    if form == "parquet":
        try:
            import pyarrow.parquet  # noqa: F401 - only whether it is there
        except ImportError as error:
            raise HttpError(
                501, "Parquet needs the package pyarrow beside the console: pip install pyarrow"
            ) from error
    writers = {"jsonl": as_json_lines, "csv": as_csv, "parquet": as_parquet}
    headers = {"content-disposition": f'attachment; filename="{name}.{form}"'}
    return StreamingResponse(writers[form](batches), media_type=FORMS[form], headers=headers)


def _time(call: Call, name: str) -> int | None:
    try:
        return parse_time(call.text(name), now_ms()) if call.text(name) else None
    except UnreadablePlace as error:
        raise HttpError(400, str(error)) from error
