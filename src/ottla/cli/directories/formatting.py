"""The options that say how empty directories are formatted: those of `kafka-storage format`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ottla.broker.lifecycle.format_options import FormatOptions

F = TypeVar("F", bound=Callable[..., Any])


def format_options(command: F) -> F:
    """Add the options that `read_format_options` takes."""
    for option in (
        click.option(
            "--add-scram",
            metavar="MECHANISM=[...]",
            multiple=True,
            help="A SCRAM credential for a new cluster, as SCRAM-SHA-256=[name=USER,password-file=FILE]. Can "
            "be repeated.",
        ),
        click.option(
            "--feature",
            metavar="NAME=LEVEL",
            multiple=True,
            help="The level of a feature in a new cluster. Can be repeated.",
        ),
        click.option(
            "--release-version",
            metavar="RELEASE",
            help="The release of Apache Kafka whose feature levels a new cluster starts with, such as 4.1.",
        ),
        click.option(
            "--directory-id",
            metavar="ID",
            help="The id of the directory for the metadata. Default: a random one.",
        ),
        click.option(
            "--no-initial-controllers",
            is_flag=True,
            help="Join a dynamic quorum whose voters this node finds by controller.quorum.bootstrap.servers.",
        ),
        click.option(
            "--initial-controllers",
            metavar="ID@HOST:PORT:DIRECTORY_ID,...",
            help="The first voters of a dynamic quorum. Use the same list on each of them.",
        ),
        click.option(
            "--standalone", is_flag=True, help="Start a dynamic quorum with this node as the only voter."
        ),
        click.option(
            "--cluster-id", help="The cluster id. Default: a random one, if the node is on its own."
        ),
    ):
        command = option(command)
    return command


def read_format_options(given: dict[str, Any]) -> "FormatOptions":
    """Take what the user gave for the options."""
    from ottla.broker.lifecycle.format_options import FormatOptions

    return FormatOptions(
        cluster_id=given["cluster_id"],
        directory_id=given["directory_id"],
        standalone=given["standalone"],
        initial_controllers=given["initial_controllers"],
        no_initial_controllers=given["no_initial_controllers"],
        release_version=given["release_version"],
        features=given["feature"],
        scram_credentials=given["add_scram"],
    )
