"""`ottla version`: what this is."""

import click

from ottla import __version__
from ottla.cli.output import json_option, show_one


@click.command()
@json_option
def version(as_json: bool) -> None:
    """Show the versions of Ottla and Python."""
    import platform

    facts = {
        "ottla": __version__,
        "speaks": "Apache Kafka 4.3",
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    show_one(facts, as_json)
