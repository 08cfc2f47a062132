"""`ottla connect`: run a worker of connectors until it is stopped."""

from pathlib import Path
from typing import Any

import click

from ottla.cli.failure import Failure
from ottla.cli.log_options import log_options
from ottla.cli.output import say
from ottla.cli.profiles import DEFAULT_BOOTSTRAP, cluster_options, parse_assignments
from ottla.cli.satellites import http_options, http_settings, missing_extra


@click.command()
@cluster_options
@http_options(default_port=8083)
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file of worker properties by Kafka's names, as connect-distributed.sh takes it.",
)
@click.option(
    "--set",
    "assignments",
    metavar="KEY=VALUE",
    multiple=True,
    help="A worker property by Kafka's name, such as group.id. Can be repeated.",
)
@log_options
def connect(
    properties: dict[str, str],
    config_file: Path | None,
    assignments: tuple[str, ...],
    log_format: str,
    log_level: str,
    **server: Any,
) -> None:
    """Run a worker of connectors until SIGTERM or SIGINT.

    Prints one line, `ready http://HOST:PORT`, when it accepts requests. It works with any Kafka cluster, and
    speaks the REST API of Kafka Connect. Workers with the same group.id share the connectors.
    """
    http = http_settings(server)
    try:
        from ottla.connect.process import WorkerFailure, WorkerOptions, run_worker
    except ImportError as error:
        raise missing_extra("connect", error) from error
    from ottla.runtime.log_lines import set_up_logging

    set_up_logging(log_format == "json", log_level.upper())
    given = {} if config_file is None else _read(config_file)
    if properties["bootstrap.servers"] == DEFAULT_BOOTSTRAP:
        # Nobody named a broker for this command, so the file may.
        properties = {"bootstrap.servers": DEFAULT_BOOTSTRAP, **given, **_without_bootstrap(properties)}
    merged = {**given, **properties, **parse_assignments(assignments, "--set")}
    try:
        run_worker(WorkerOptions(merged, http), lambda url: say(f"ready {url}"))
    except WorkerFailure as error:
        raise Failure(str(error)) from error


def _without_bootstrap(properties: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in properties.items() if name != "bootstrap.servers"}


def _read(path: Path) -> dict[str, str]:
    """Read a file of worker properties. A worker has more than the clients that it uses."""
    from ottla.model.properties import MalformedProperties, iter_properties

    try:
        return {item.key: item.value.strip() for item in iter_properties(path.read_bytes())}
    except (OSError, MalformedProperties) as error:
        raise Failure(f"cannot read {path}: {error}") from error
