"""`ottla mirror`: topics of one cluster in another, as exact copies or in MirrorMaker 2's way."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.cluster import run_client, with_admin
from ottla.cli.failure import Failure
from ottla.cli.output import confirm, json_option, say, show_done, show_one, show_rows
from ottla.cli.profiles import cluster_options

if TYPE_CHECKING:
    import asyncio

    from ottla.client.admin import Admin
    from ottla.mirror.copies import Copy
    from ottla.mirror.link import Link
    from ottla.mirror.maker.options import MakerOptions
    from ottla.mirror.mirroring import Mirroring

_EXACT = "exact"
_MIRROR_MAKER = "mirror-maker"
_WAYS = (_EXACT, _MIRROR_MAKER)
UNKNOWN_EXIT_CODE = 10
"""How `status` ends if a lag is not known."""
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def mirror() -> None:
    """Copy topics of another cluster, offset by offset, and make the copies writable when it is gone."""


@mirror.command()
@click.argument("file", type=_FILE, required=False)
@cluster_options
@click.option("--source", metavar="HOST:PORT", help="A broker of the source. The target is --bootstrap.")
@click.option("--source-name", default="source", show_default=True, help="What the source is called.")
@click.option("--source-config", type=_FILE, help="A client.properties file: how to log in to the source.")
@click.option("--topics", default=".*", show_default=True, help="The topics, as a regular expression.")
@click.option("--groups", default=".*", show_default=True, help="The groups whose offsets follow.")
@click.option("--prefix", default="", help="Put this before the names of exact copies.")
@click.option(
    "--way",
    type=click.Choice(_WAYS),
    help="How to copy. Default: mirror-maker with a file, otherwise exact.",
)
@click.option("--config", type=_FILE, help="The same as FILE.")
@click.option(
    "--target-name", default="target", show_default=True, help="What MirrorMaker's way calls the target."
)
@click.option(
    "--refresh",
    "refresh_s",
    type=click.FloatRange(0.1),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to look for new topics, configs, access rules and committed offsets.",
)
@click.option("--metrics-port", type=click.IntRange(0, 65535), help="Serve metrics for Prometheus here.")
def run(
    file: Path | None,
    properties: dict[str, str],
    source: str | None,
    source_name: str,
    source_config: Path | None,
    topics: str,
    groups: str,
    prefix: str,
    way: str | None,
    config: Path | None,
    target_name: str,
    refresh_s: float,
    metrics_port: int | None,
) -> None:
    """Mirror until SIGTERM or SIGINT. Prints one line, `ready`, when it has begun.

    The copies are kept by the cluster of --bootstrap. The source can be any Kafka. Exact copies have the
    offsets of the source, and the target must be Ottla. With --way mirror-maker, topics are called
    SOURCE.topic, offsets are translated, and the target can be any Kafka. FILE is a properties file of
    MirrorMaker 2, which says all of this in its own words.
    """
    from ottla.client.properties import InvalidProperty
    from ottla.mirror.following import NotAnOttla
    from ottla.mirror.link import Link, UnusableLink
    from ottla.mirror.mirroring import Mirroring
    from ottla.runtime.log_lines import set_up_logging

    set_up_logging(False, "INFO")
    file = file or config
    try:
        if file is not None:
            links = _links_of(file, is_exact=way == _EXACT)
        elif source is None and source_config is None:
            raise click.UsageError("no source given: name a broker of it with --source")
        else:
            reached = {} if source_config is None else _read(source_config)
            if source is not None:
                reached["bootstrap.servers"] = source
            links = [
                Link(
                    source_name=source_name,
                    source=reached,
                    target=properties,
                    topics=topics,
                    groups=groups,
                    prefix=prefix,
                    refresh_s=refresh_s,
                    maker=_maker_options(source_name, target_name, refresh_s)
                    if way == _MIRROR_MAKER
                    else None,
                )
            ]
        run_client(lambda: _run_all([Mirroring(link) for link in links], metrics_port))
    except (UnusableLink, InvalidProperty, NotAnOttla) as error:
        raise Failure(str(error)) from error


def _maker_options(source_name: str, target_name: str, refresh_s: float) -> "MakerOptions":
    from ottla.mirror.maker.names import Names
    from ottla.mirror.maker.options import MakerOptions

    return MakerOptions(
        names=Names(source_name, target_name), checkpoints_s=refresh_s, group_offsets_s=refresh_s
    )


def _links_of(file: Path, *, is_exact: bool) -> "list[Link]":
    from ottla.client.properties_file import UnusableProperties, read_pairs
    from ottla.mirror.mirror_maker import read_links

    try:
        return read_links(read_pairs(file), is_exact=is_exact)
    except UnusableProperties as error:
        raise Failure(str(error)) from error


def _read(file: Path) -> dict[str, str]:
    import dataclasses

    from ottla.client.properties import CommonSettings, property_name
    from ottla.client.properties_file import UnusableProperties, read_properties_file

    try:
        return read_properties_file(
            file, {property_name(item) for item in dataclasses.fields(CommonSettings)}
        )
    except UnusableProperties as error:
        raise Failure(str(error)) from error


async def _run_all(mirrors: "list[Mirroring]", metrics_port: int | None) -> None:
    import asyncio

    from ottla.runtime.signals import stop_signals

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in stop_signals():
        loop.add_signal_handler(number, stop.set)
    left = len(mirrors)

    def begun() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            say("ready")

    tasks = [asyncio.create_task(one.run(stop, begun)) for one in mirrors]
    if metrics_port is not None:
        tasks.append(asyncio.create_task(_serve_metrics(mirrors, metrics_port, stop)))
    # When one cannot go on, all end.
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    stop.set()
    await asyncio.gather(*tasks)


async def _serve_metrics(mirrors: "list[Mirroring]", port: int, stop: "asyncio.Event") -> None:
    from ottla.mirror.progress import metrics_of
    from ottla.satellite.refusals import OriginDoor, Refusals
    from ottla.satellite.server import listening, serve
    from ottla.satellite.settings import HttpSettings

    async def app(scope: Any, _receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        if scope["type"] != "http":
            return
        body = metrics_of([one.progress for one in mirrors]).encode()
        headers = [(b"content-type", b"text/plain; version=0.0.4")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    settings = HttpSettings(port=port)
    with listening(settings) as listener:
        say(f"metrics http://127.0.0.1:{listener.getsockname()[1]}/metrics")
        await serve(OriginDoor(app, settings.names, Refusals("application/json")), listener, settings, stop)


@mirror.command()
@cluster_options
@json_option
def status(properties: dict[str, str], as_json: bool) -> None:
    """Show how far the mirrors are that this cluster holds: lag, throughput and the last error.

    The exit code is 10 if it is not known how far a copy is behind.
    """
    from ottla.mirror.copies import find_copies, read_statuses

    statuses = run_client(lambda: read_statuses(properties))
    copies = [
        _now(copy) for copy in with_admin(properties, lambda admin: find_copies(admin, statuses, _now_ms()))
    ]
    links = {str(link["source"]): link for link in statuses}
    sources = sorted(links.keys() | {copy.source for copy in copies})
    if as_json:
        rows = [dataclasses.asdict(copy) for copy in copies]
        show_one({"links": statuses, "copies": rows, "lag": _lag(copies)}, as_json)
    elif not sources:
        say("there are no mirrors")
    else:
        for source in sources:
            _show_link(source, links.get(source), [copy for copy in copies if copy.source == source])
    if any(copy.lag is None for copy in copies):
        raise SystemExit(UNKNOWN_EXIT_CODE)


def _show_link(source: str, link: dict[str, Any] | None, copies: "list[Copy]") -> None:
    """Print one link, or that only its copies are there."""
    unknown = sum(copy.lag is None for copy in copies)
    lag = sum(copy.lag or 0 for copy in copies)
    facts: dict[str, Any] = {"source": source}
    if link is not None:
        errors = [*link["topic_errors"].items()] + ([("link", link["error"])] if link["error"] else [])
        facts |= {
            "seconds since last report": _age_s(link["at_ms"]),
            "bytes per second": link["bytes_per_second"],
            "error": "; ".join(f"{name}: {error}" for name, error in errors) or None,
            "last error": _last_error(link),
        }
    facts["lag"] = (
        f"unknown for {unknown} of {len(copies)} partitions, {lag} in all others" if unknown else lag
    )
    show_one(facts, False)
    say()
    columns = ("topic", "partition", "copied_to", "source_end", "lag", "error")
    rows = [{name: getattr(copy, name) for name in columns} for copy in copies]
    show_rows(
        [{**row, "lag": "unknown" if row["lag"] is None else row["lag"]} for row in rows],
        False,
        "it copies nothing yet",
    )


def _now(copy: "Copy") -> "Copy":
    """Return what is known of a copy at this moment: a source that has fallen silent may have new records."""
    from ottla.mirror.copies import SILENCE_MAX_S

    silent_s = copy.source_silent_s
    if copy.lag is None or silent_s is None or silent_s <= SILENCE_MAX_S:
        return copy
    return dataclasses.replace(copy, lag=None, error=f"the source has not answered for {silent_s} seconds")


def _lag(copies: "list[Copy]") -> int | None:
    """Add up; None if one is not known."""
    lags = [copy.lag for copy in copies]
    return None if None in lags else sum(lag or 0 for lag in lags)


def _last_error(link: dict[str, Any]) -> str | None:
    """Say what went wrong last, though it may be over. Mirrors of older versions do not tell."""
    error = link.get("last_error")
    return f"{_age_s(link['last_error_at_ms'])} seconds ago: {error}" if error else None


def _age_s(at_ms: int) -> int:
    return max(0, round((_now_ms() - at_ms) / 1000))


def _now_ms() -> int:
    from ottla.client import surroundings

    return surroundings.now_ms()


@mirror.command()
@click.argument("topics", nargs=-1)
@cluster_options
@json_option
@click.option("--all", "everything", is_flag=True, help="All mirrors of the cluster.")
@click.option(
    "--accept-unknown",
    "accepted",
    multiple=True,
    metavar="TOPIC",
    help="Make this topic writable although nobody knows what it lacks. May be repeated.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def failover(
    properties: dict[str, str],
    as_json: bool,
    topics: tuple[str, ...],
    everything: bool,
    accepted: tuple[str, ...],
    yes: bool,
) -> None:
    """Make the copies TOPICS writable, and say how many records of the source they do not have.

    Nothing is made writable if that is not known. Transactions that were open are aborted. A mirror that
    still runs stops copying these topics.
    """
    if bool(topics) == everything:
        raise click.UsageError("name the topics to make writable, or give --all")
    confirm(f"make {', '.join(topics) or 'all mirrors'} writable? They stop following their source.", yes)
    from ottla.mirror.copies import read_statuses
    from ottla.mirror.failing_over import fail_over

    async def work(admin: "Admin") -> Any:
        return await fail_over(admin, topics, await read_statuses(properties), _now_ms(), accepted)

    outcome = with_admin(properties, work)
    rows = [
        {
            "topic": one.where.topic,
            "partition": one.where.partition,
            "next_offset": one.end_offset,
            "lost": one.lost,
            "source_silent_s": one.source_silent_s,
            "aborted_transactions": one.aborted,
        }
        for one in outcome
    ]
    if as_json or not rows:
        show_rows(rows, as_json, "there were no mirrors")
        return
    show_rows([{**row, "lost": "unknown" if row["lost"] is None else row["lost"]} for row in rows], False, "")
    lost = [one.lost for one in outcome]
    unknown = lost.count(None)
    known = sum(count or 0 for count in lost)
    if unknown < len(lost):
        silent_s = max(one.source_silent_s or 0 for one in outcome if one.lost is not None)
        missing = (
            f"{known} offsets of the source were not copied, by what it said up to {silent_s} seconds ago"
        )
    else:
        missing = "it is not known what they lack"
    say(
        f"{len(rows)} partitions are writable; {missing}"
        + f"; what {unknown} partitions lack is not known" * (0 < unknown < len(lost))
    )


@mirror.command()
@click.argument("topics", nargs=-1, required=True)
@cluster_options
@json_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def resume(properties: dict[str, str], as_json: bool, topics: tuple[str, ...], yes: bool) -> None:
    """Copy TOPICS again that stopped because their source lost records or was made again.

    A copy keeps the records that it has, and goes on with what the source has from the end of the copy on.
    To have what the source has from its beginning, delete the copy instead: it is made again.
    """
    confirm(
        f"let {', '.join(topics)} go on at the ends of the copies? What they have may not be in the source.",
        yes,
    )
    from ottla.mirror import halting

    with_admin(properties, lambda admin: halting.resume(admin, topics))
    show_done(
        f"{', '.join(topics)} will be copied again by a mirror that runs", as_json, resumed=list(topics)
    )
