"""`ottla registry`: run a schema registry until it is stopped."""

from typing import Any

import click

from ottla.cli.failure import Failure
from ottla.cli.log_options import log_options
from ottla.cli.output import say
from ottla.cli.profiles import cluster_options
from ottla.cli.satellites import http_options, http_settings, missing_extra


@click.command()
@cluster_options
@http_options(default_port=8081)
@click.option("--topic", default="_schemas", show_default=True, help="The topic that the schemas are in.")
@click.option(
    "--group",
    "group_id",
    default="schema-registry",
    show_default=True,
    help="The group through which instances choose the one that writes.",
)
@click.option("--never-write", is_flag=True, help="Never be the instance that writes.")
@log_options
def registry(
    properties: dict[str, str],
    topic: str,
    group_id: str,
    never_write: bool,
    log_format: str,
    log_level: str,
    **server: Any,
) -> None:
    """Run a schema registry until SIGTERM or SIGINT.

    Prints one line, `ready http://HOST:PORT`, when it accepts clients. It works with any Kafka cluster, and
    speaks the REST API of Confluent's registry. Any number of instances can run side by side.
    """
    http = http_settings(server)
    try:
        from ottla.registry.process import RegistryFailure, RegistryOptions, run_registry
        from ottla.registry.service import RegistrySettings
    except ImportError as error:
        raise missing_extra("registry", error) from error
    from ottla.runtime.log_lines import set_up_logging

    set_up_logging(log_format == "json", log_level.upper())
    options = RegistryOptions(
        properties,
        http,
        RegistrySettings(topic=topic, group_id=group_id, is_eligible=not never_write),
    )
    try:
        run_registry(options, lambda url: say(f"ready {url}"))
    except RegistryFailure as error:
        raise Failure(str(error)) from error
