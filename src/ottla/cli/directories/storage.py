"""`ottla storage`: the directories that a node keeps its data in: prepared, shown, checked, repaired."""

from pathlib import Path
from typing import Any

import click

from ottla.cli.directories.formatting import format_options, read_format_options
from ottla.cli.failure import Failure
from ottla.cli.output import confirm, json_option, progress, say, show_one, show_rows
from ottla.cli.settings import load_settings, settings_options


@click.group()
def storage() -> None:
    """Data directories."""


@storage.command("format")
@settings_options
@format_options
@click.option("--ignore-formatted", is_flag=True, help="Skip directories that are already formatted.")
def format_storage(
    data_directory: Path | None,
    config_file: Path | None,
    assignments: tuple[str, ...],
    ignore_formatted: bool,
    **format_given: Any,
) -> None:
    """Format empty directories, as `kafka-storage format` does.

    A node that knows of no other controller becomes a cluster of its own, as with --standalone. If
    controller.quorum.voters is set, the quorum is a static one.
    """
    from ottla.broker.lifecycle.format_options import FormatFailure
    from ottla.broker.lifecycle.formatting import format_node

    loaded = load_settings(config_file, assignments, data_directory)
    try:
        formatted = format_node(loaded.config, read_format_options(format_given), ignore_formatted)
    except FormatFailure as error:
        raise Failure(str(error)) from error
    for directory in formatted.directories:
        say(f"formatted {directory} for cluster {formatted.cluster_id}")


@storage.command("random-id")
def print_random_id() -> None:
    """Print a random id, for a cluster or a directory."""
    import random

    from ottla.quorum.random_id import random_id

    say(str(random_id(random.SystemRandom())))


@storage.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
def info(directory: Path, as_json: bool) -> None:
    """Show the contents of DIRECTORY, a data directory of Ottla or Apache Kafka."""
    from ottla.cli.directories.directory_checks import UnusableData, read_contents

    try:
        contents = read_contents(directory)
    except UnusableData as error:
        raise Failure(str(error)) from error
    facts = {
        "directory": str(directory),
        "cluster_id": contents.meta.cluster_id,
        "node_id": contents.meta.node_id,
        "in_use": contents.is_in_use,
        "stopped_cleanly": contents.was_stopped_cleanly,
        "topics": len(contents.topics),
        "partitions": contents.partitions,
        "segments": contents.segments,
        "size_bytes": contents.size_bytes,
    }
    show_one(facts, as_json)


@storage.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
def verify(directory: Path, as_json: bool) -> None:
    """Check every file of the stopped data directory DIRECTORY. Exits with 1 if something is wrong."""
    from ottla.cli.directories.directory_checks import UnusableData, find_problems, read_contents

    try:
        contents = read_contents(directory)
    except UnusableData as error:
        raise Failure(str(error)) from error
    if contents.is_in_use:
        raise Failure(f"a server is using {directory}: stop it first")
    with progress(contents.partitions, "checking") as bar:
        rows = [problem._asdict() for problem in find_problems(directory, lambda: bar.update(1))]
    show_rows(
        rows,
        as_json,
        f"{directory} is not damaged: {contents.partitions} partitions, {contents.segments} segments",
    )
    if rows:
        raise click.exceptions.Exit(Failure.exit_code)


@storage.command()
@settings_options
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def repair(
    data_directory: Path | None, config_file: Path | None, assignments: tuple[str, ...], yes: bool
) -> None:
    """Repair the metadata of a node that refuses to start.

    Shows what is damaged and asks for confirmation first. Keeps a copy of each changed file next to it, with
    `.damaged` at the end of its name. Restores topics that the metadata has lost from their partition
    directories.
    """
    from ottla.broker.lifecycle.repairing import RepairFailure, find_damage, repair_metadata

    loaded = load_settings(config_file, assignments, data_directory)
    try:
        found = find_damage(loaded.configs)
        if not found:
            say("the metadata is not damaged: nothing to repair")
            return
        for what in found:
            say(what, err=True)
        confirm("Repair it and keep a copy of each changed file?", yes)
        for what in repair_metadata(loaded.configs):
            say(what)
    except RepairFailure as error:
        raise Failure(str(error)) from error
