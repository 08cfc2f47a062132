"""Options for the log lines of commands that run until they are stopped."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def log_options(command: F) -> F:
    """Add --log-format and --log-level."""
    command = click.option(
        "--log-level",
        type=click.Choice(("debug", "info", "warning", "error")),
        default="info",
        show_default=True,
        help="The lowest level of log lines to write.",
    )(command)
    return click.option(
        "--log-format",
        type=click.Choice(("text", "json")),
        default="text",
        show_default=True,
        help="The format of log lines on stderr.",
    )(command)
