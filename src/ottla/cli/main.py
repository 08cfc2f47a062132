"""The root of the command line."""

import click

from ottla.cli.storage import storage
from ottla.cli.up import up


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ottla")
def main() -> None:
    """Ottla: Kafka's sister in Python."""


main.add_command(up)
main.add_command(storage)
