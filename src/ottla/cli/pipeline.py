"""`ottla pipeline`: run data pipelines, see how they do, stop them."""

import signal
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.failure import Failure
from ottla.cli.output import json_option, show_done, show_one, show_rows
from ottla.cli.profiles import cluster_options, parse_assignments

if TYPE_CHECKING:
    from ottla.pipelines.status import QueryStatus

directory_option = click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("ottla-pipelines"),
    show_default=True,
    help="Where checkpoints and status files are.",
)


@click.group()
def pipeline() -> None:
    """Data pipelines on Spark."""


@pipeline.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@cluster_options
@directory_option
@click.option("--only", "names", metavar="NAME", multiple=True, help="Run only this pipeline of the file.")
@click.option(
    "--spark",
    "master",
    default="local[*]",
    show_default=True,
    help="Where Spark runs: local[*], spark://, sc://.",
)
@click.option("--available-now", is_flag=True, help="Stop when all that is there now is processed.")
@click.option(
    "--conf",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="A setting of Spark. May be given several times.",
)
def run(
    file: Path,
    properties: dict[str, str],
    directory: Path,
    names: tuple[str, ...],
    master: str,
    available_now: bool,
    settings: tuple[str, ...],
) -> None:
    """Run the pipelines that FILE declares, until they are stopped.

    A pipeline that fails is started again, later each time, and says why. Lines on stderr tell how all do.
    With --available-now one that fails five times in a row is given up, and the exit code is 1.
    """
    from ottla.pipelines.definition import AVAILABLE_NOW, InvalidPipeline
    from ottla.pipelines.loading import load_pipelines
    from ottla.pipelines.spark.session import MissingPiece, require_pyspark
    from ottla.pipelines.status import FAILED, InvalidDirectory

    stopping: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: stopping.append(received))
    try:
        require_pyspark()
        from ottla.pipelines.spark.runner import RunSettings, run_pipelines

        pipelines = load_pipelines(file)
        unknown = set(names) - {item.name for item in pipelines}
        if unknown:
            raise Failure(f"{file} has no pipeline {min(unknown)!r}")
        statuses = run_pipelines(
            [item for item in pipelines if not names or item.name in names],
            RunSettings(
                properties,
                directory,
                master,
                AVAILABLE_NOW if available_now else None,
                parse_assignments(settings, "--conf"),
                ends_process=True,
            ),
            should_stop=lambda: bool(stopping),
            tell=lambda line: click.echo(line, err=True),
        )
    except (InvalidPipeline, InvalidDirectory, MissingPiece) as error:
        raise Failure(str(error)) from error
    for status in statuses:
        click.echo(f"{status.name}: {status.state} after {status.rows:,} rows", err=True)
    failed = [f"{status.name}: {status.last_error}" for status in statuses if status.state == FAILED]
    if failed:
        raise Failure("given up after several attempts: " + "; ".join(failed))


@pipeline.command("list")
@directory_option
@json_option
def list_pipelines(directory: Path, as_json: bool) -> None:
    """List the pipelines that run, or have run, with their state."""
    rows = [{"name": item.name, "state": item.state, "pid": item.pid} for item in _statuses(directory)]
    show_rows(rows, as_json, f"no pipeline has run in {directory}")


@pipeline.command()
@click.argument("name", required=False)
@directory_option
@json_option
def status(name: str | None, directory: Path, as_json: bool) -> None:
    """Say how pipelines do: rate, lag, batch, and the last error. With NAME, one of them."""
    found = _statuses(directory)
    if name is None:
        show_rows([_facts(item) for item in found], as_json, f"no pipeline has run in {directory}")
    else:
        show_one(_facts(_named(found, name, directory)), as_json)


@pipeline.command()
@click.argument("names", nargs=-1, required=True)
@directory_option
@json_option
@click.option(
    "--timeout", "timeout_s", type=click.IntRange(1), default=60, show_default=True, help="Seconds to wait."
)
def stop(names: tuple[str, ...], directory: Path, as_json: bool, timeout_s: int) -> None:
    """Stop the pipelines NAMES, and wait until they have."""
    from ottla.pipelines.status import ask_to_stop

    for name in names:
        _named(_statuses(directory), name, directory)
    ask_to_stop(directory, names)
    give_up_at_s = time.monotonic() + timeout_s
    while not all(_named(_statuses(directory), name, directory).is_over for name in names):
        if time.monotonic() > give_up_at_s:
            raise Failure(f"{', '.join(names)} did not stop within {timeout_s} s: its last batch still runs")
        time.sleep(0.1)
    show_done(f"stopped {', '.join(names)}", as_json, stopped=list(names))


def _statuses(directory: Path) -> "list[QueryStatus]":
    from ottla.pipelines.status import read_statuses

    return read_statuses(directory)


def _named(found: "list[QueryStatus]", name: str, directory: Path) -> "QueryStatus":
    for item in found:
        if item.name == name:
            return item
    raise Failure(
        f"no pipeline {name!r} has run in {directory}; `ottla pipeline list` shows which have, there or in "
        "another --directory"
    )


def _facts(item: "QueryStatus") -> dict[str, Any]:
    facts = asdict(item)
    return {("batch" if name == "batch_id" else name): value for name, value in facts.items()}
