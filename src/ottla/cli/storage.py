"""`ottla storage`: prepare the directories that a node keeps its data in."""

from pathlib import Path

import click

from ottla.cli.failure import Failure
from ottla.cli.settings import load_settings, settings_options


@click.group()
def storage() -> None:
    """Prepare data directories."""


@storage.command("format")
@settings_options
@click.option("--cluster-id", help="22 characters of base64url. Default: a random one.")
@click.option("--ignore-formatted", is_flag=True, help="Leave directories alone that are formatted already.")
def format_storage(
    data_directory: Path | None,
    config_file: Path | None,
    assignments: tuple[str, ...],
    cluster_id: str | None,
    ignore_formatted: bool,
) -> None:
    """Make empty directories those of a new cluster, as `kafka-storage format --standalone` does."""
    from ottla.broker.formatting import FormatFailure, format_node

    loaded = load_settings(config_file, assignments, data_directory)
    try:
        formatted = format_node(loaded.config, cluster_id, ignore_formatted)
    except FormatFailure as error:
        raise Failure(str(error)) from error
    for directory in formatted.directories:
        click.echo(f"formatted {directory} for cluster {formatted.cluster_id}")
