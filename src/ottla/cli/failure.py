"""How a command fails: one clear sentence on stderr that says what to do next, and exit code 1."""

import click


class Failure(click.ClickException):
    """Something did not work."""

    exit_code = 1
