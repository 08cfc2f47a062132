"""`ottla up`: run a node until it is told to stop."""

from pathlib import Path

import click

from ottla.cli.failure import Failure
from ottla.cli.settings import load_settings, settings_options


@click.command()
@settings_options
@click.option("--host", help="The address to listen on. Default: 127.0.0.1.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="The port to listen on, 0 for a free one. Default: 9092."
)
@click.option(
    "--log-format",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="How log lines on stderr look.",
)
@click.option(
    "--log-level",
    type=click.Choice(("debug", "info", "warning", "error")),
    default="info",
    show_default=True,
    help="Which log lines are written.",
)
@click.option(
    "--brokers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many brokers. There is no cluster of several yet.",
)
@click.option(
    "--insecure",
    is_flag=True,
    help="Listen beyond this machine without authentication: whoever reaches the port may do everything.",
)
def up(
    data_directory: Path | None,
    config_file: Path | None,
    assignments: tuple[str, ...],
    host: str | None,
    port: int | None,
    log_format: str,
    log_level: str,
    brokers: int,
    insecure: bool,
) -> None:
    """Run a node: a broker and its controller, until SIGTERM or SIGINT.

    Prints one line, `ready HOST:PORT`, when clients are served. An empty data directory is formatted first.
    """
    if brokers > 1:
        raise Failure(
            f"a cluster of {brokers} brokers is not there yet: Ottla runs one node; leave --brokers out"
        )
    from ottla.broker.process import NodeFailure, NodeOptions, run_node
    from ottla.runtime.log_lines import set_up_logging

    set_up_logging(log_format == "json", log_level.upper())
    loaded = load_settings(config_file, assignments, data_directory)
    try:
        run_node(
            loaded,
            NodeOptions(host=host, port=port, is_insecure=insecure),
            lambda address: click.echo(f"ready {address}"),
        )
    except NodeFailure as error:
        raise Failure(str(error)) from error
