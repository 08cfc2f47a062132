"""`ottla pipeline`: run, watch and stop data pipelines."""

import signal
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ottla.cli.cluster import with_admin
from ottla.cli.failure import Failure
from ottla.cli.output import json_option, say, show_done, show_one, show_rows
from ottla.cli.profiles import cluster_options, parse_assignments

if TYPE_CHECKING:
    from ottla.pipelines.status import QueryStatus

_SHORT_PATIENCE = {"default.api.timeout.ms": "3000", "request.timeout.ms": "3000"}

directory_option = click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("ottla-pipelines"),
    show_default=True,
    help="The directory for checkpoints and status files.",
)


@click.group()
def pipeline() -> None:
    """Run and watch data pipelines on Spark."""


@pipeline.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@cluster_options
@directory_option
@click.option("--only", "names", metavar="NAME", multiple=True, help="Run only this pipeline.")
@click.option(
    "--spark",
    "master",
    default="local[*]",
    show_default=True,
    help="Where Spark runs: local[*], spark://, sc://.",
)
@click.option("--available-now", is_flag=True, help="Process all data that exists now, then stop.")
@click.option(
    "--conf",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="A Spark setting. Can be repeated.",
)
@click.option(
    "--registry",
    metavar="URL",
    envvar="OTTLA_REGISTRY",
    help="A schema registry: topics without a schema of their own get their columns from it.",
)
def run(
    file: Path,
    properties: dict[str, str],
    directory: Path,
    names: tuple[str, ...],
    master: str,
    available_now: bool,
    settings: tuple[str, ...],
    registry: str | None,
) -> None:
    """Run the pipelines declared in FILE until they are stopped.

    If a pipeline fails, the reason is printed, and it is restarted after a pause that grows each time. Status
    lines go to stderr. What Spark and its workers print goes to spark.log in the directory. With
    --available-now, a pipeline that fails five times in a row is given up, and the exit code is 1.
    """
    from ottla.pipelines.definition import AVAILABLE_NOW, InvalidPipeline
    from ottla.pipelines.loading import load_pipelines
    from ottla.pipelines.spark.java_log import SparkEnded
    from ottla.pipelines.spark.session import MissingPiece, end_java, require_pyspark
    from ottla.pipelines.status import FAILED, InvalidDirectory

    try:
        require_pyspark()
        pipelines = load_pipelines(file)
    except (InvalidPipeline, MissingPiece) as error:
        raise Failure(str(error)) from error
    unknown = set(names) - {item.name for item in pipelines}
    if unknown:
        raise Failure(f"{file} has no pipeline {min(unknown)!r}")
    # Spark takes some seconds to start, and then a minute to say that there is no broker.
    with_admin({**properties, **_SHORT_PATIENCE}, lambda admin: admin.cluster.describe())
    from ottla.runtime.signals import stop_signals

    stopping: list[int] = []
    for number in stop_signals():
        signal.signal(number, lambda received, _frame: stopping.append(received))
    try:
        from ottla.pipelines.spark.runner import RunSettings, run_pipelines

        statuses = run_pipelines(
            [item for item in pipelines if not names or item.name in names],
            RunSettings(
                properties,
                directory,
                master,
                AVAILABLE_NOW if available_now else None,
                parse_assignments(settings, "--conf"),
                registry,
                ends_process=True,
            ),
            should_stop=lambda: bool(stopping),
            tell=lambda line: say(line, err=True),
        )
    except (InvalidPipeline, InvalidDirectory, MissingPiece, SparkEnded) as error:
        raise Failure(str(error)) from error
    finally:
        end_java()
    for status in statuses:
        say(f"{status.name}: {status.state} after {status.rows:,} rows", err=True)
    failed = [f"{status.name}: {status.last_error}" for status in statuses if status.state == FAILED]
    if failed:
        raise Failure("given up after several attempts: " + "; ".join(failed))


@pipeline.command("list")
@directory_option
@json_option
def list_pipelines(directory: Path, as_json: bool) -> None:
    """List the pipelines that are running or have run, with their state."""
    rows = [{"name": item.name, "state": item.state, "pid": item.pid} for item in _statuses(directory)]
    show_rows(rows, as_json, f"no pipeline has run in {directory}")


@pipeline.command()
@click.argument("name", required=False)
@cluster_options
@directory_option
@json_option
def status(name: str | None, properties: dict[str, str], directory: Path, as_json: bool) -> None:
    """Show the state, rate, lag, last batch and last error of all pipelines, or of NAME.

    The lag comes from the cluster that the pipeline reads from, so it is also correct for a stopped pipeline.
    """
    found = _statuses(directory)
    if name is not None:
        found = [_named(found, name, directory)]
    found = _with_lags(found, properties)
    if name is None:
        show_rows([_columns(item) for item in found], as_json, f"no pipeline has run in {directory}")
    else:
        show_one(_facts(found[0]), as_json)


@pipeline.command()
@click.argument("names", nargs=-1, required=True)
@directory_option
@json_option
@click.option(
    "--timeout", "timeout_s", type=click.IntRange(1), default=60, show_default=True, help="Seconds to wait."
)
def stop(names: tuple[str, ...], directory: Path, as_json: bool, timeout_s: int) -> None:
    """Stop the pipelines NAMES with all their queries, and wait until they have stopped.

    The process that runs them, and its Java process, exit with the last pipeline.
    """
    from ottla.pipelines.status import ask_to_stop

    before = _statuses(directory)
    queries: dict[str, QueryStatus] = {}
    for name in names:
        _named(before, name, directory)
        queries |= {item.name: item for item in before if item.belongs_to(name)}
    ask_to_stop(directory, queries)
    give_up_at_s = time.monotonic() + timeout_s
    while _still_run(queries, directory):
        if time.monotonic() > give_up_at_s:
            left = ", ".join(_still_run(queries, directory))
            raise Failure(f"{left} did not stop within {timeout_s} s: its last batch is still running")
        time.sleep(0.1)
    show_done(f"stopped {', '.join(names)}", as_json, stopped=list(names), queries=sorted(queries))


def _still_run(queries: "Mapping[str, QueryStatus]", directory: Path) -> list[str]:
    """Return which queries still run, and which processes, if nothing else keeps them."""
    from ottla.pipelines.status import is_alive

    now = _statuses(directory)
    running = [item.name for item in now if item.name in queries and not item.is_over]
    if running:
        return running
    pids = {item.pid for item in queries.values() if item.ends_process and not item.is_over}
    busy = {item.pid for item in now if not item.is_over}
    return [f"process {pid}" for pid in sorted(pids - busy) if is_alive(pid)]


def _with_lags(found: "list[QueryStatus]", properties: dict[str, str]) -> "list[QueryStatus]":
    """Say how far behind queries are now. What a query has reported may be old, and is old for a dead one."""
    from ottla.client.errors import ClientError
    from ottla.pipelines.lag import measure_lag
    from ottla.pipelines.link import Link

    links: dict[str, Link] = {}
    lags: dict[str, int | None] = {}
    silent: dict[str, str] = {}
    is_given = _is_bootstrap_given()
    try:
        for item in found:
            named = properties["bootstrap.servers"]
            server = named if is_given or item.bootstrap is None else item.bootstrap
            if server in silent:
                continue
            if server not in links:
                timeouts = {"request.timeout.ms": "5000"}
                links[server] = Link(
                    {**timeouts, **properties, "bootstrap.servers": server},
                    retry_timeout_ms=2_000,
                    creates_topics=False,
                )
            try:
                lags[item.name] = measure_lag(links[server], item.name, item.inputs)
            except ClientError as error:
                silent[server] = str(error)
    finally:
        for link in links.values():
            link.close()
    for reason in silent.values():
        say(f"the lag is unknown: {reason}", err=True)
    return [replace(item, lag=lags.get(item.name)) for item in found]


def _is_bootstrap_given() -> bool:
    """Say whether a broker was named for this command. Otherwise each query knows its own."""
    given = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
    return click.get_current_context().get_parameter_source("bootstrap") in given


def _statuses(directory: Path) -> "list[QueryStatus]":
    from ottla.pipelines.status import read_statuses

    return read_statuses(directory)


def _named(found: "list[QueryStatus]", name: str, directory: Path) -> "QueryStatus":
    for item in found:
        if item.name == name:
            return item
    raise Failure(
        f"no pipeline {name!r} has run in {directory}; `ottla pipeline list` lists those that have; "
        "--directory chooses another directory"
    )


def _facts(item: "QueryStatus") -> dict[str, Any]:
    facts = asdict(item)
    del facts["ends_process"]
    return {("batch" if name == "batch_id" else name): value for name, value in facts.items()}


def _columns(item: "QueryStatus") -> dict[str, Any]:
    """Return the facts that fit beside each other; the rest is shown for one pipeline."""
    facts = _facts(item)
    return {name: value for name, value in facts.items() if name not in ("inputs", "bootstrap", "pipeline")}
