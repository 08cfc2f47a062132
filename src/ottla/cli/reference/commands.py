"""The reference of all commands, written from the commands: `make reference` puts it into the docs."""

from collections.abc import Iterator
from typing import Final

import click

from ottla.cli.main import main

_INTRODUCTION: Final = """\
# Commands

The help texts of all commands. `make reference` writes this page from the commands themselves.

Exit codes: 0 for success, 1 for a failure, 2 for wrong usage, 130 for an interrupt. The output is meant for
people; `--json` prints the same for programs. [The guide](../guide/command-line.md) shows how to
use the commands.
"""


def render_reference() -> str:
    """Return the page, as Markdown."""
    return "\n".join((_INTRODUCTION, *_render(main, ("ottla",), None)))


def commands(
    command: click.Command = main, path: tuple[str, ...] = ("ottla",)
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Give all commands with their paths, groups among them."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None, "a listed command is there"
            yield from commands(child, (*path, name))


def _render(command: click.Command, path: tuple[str, ...], parent: click.Context | None) -> Iterator[str]:
    settings = dict(main.context_settings)
    settings.update(info_name=path[-1], parent=parent, terminal_width=100)
    context = click.Context(command, **settings)
    if len(path) > 1:
        yield f"{'#' * min(len(path), 4)} {' '.join(path)}\n"
        yield f"```text\n{command.get_help(context).strip()}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None, "a listed command is there"
            yield from _render(child, (*path, name), context)


if __name__ == "__main__":
    print(render_reference(), end="")
