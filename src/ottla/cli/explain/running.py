"""How commands that explain reach a cluster, and how they end."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

import click

from ottla.cli.cluster import PATIENCE, run_client
from ottla.cli.output import say, show_one

if TYPE_CHECKING:
    from ottla.explain.access import Access
    from ottla.explain.answer import Answer

T = TypeVar("T")

FOUND: Final = 10
"""The exit code for a cause that was found, or for an alarm that was asked for."""


def with_access(properties: Mapping[str, str], work: "Callable[[Access], Awaitable[T]]") -> T:
    """Do some work that reads a cluster."""

    async def run() -> T:
        from ottla.explain.access import open_access

        async with open_access({**PATIENCE, **properties}) as access:
            return await work(access)

    return run_client(run)


def show_answer(answer: "Answer", as_json: bool) -> None:
    """Print an answer, and end with its exit code."""
    if as_json:
        show_one(answer.as_json(), as_json)
    else:
        from ottla.explain.answer import render

        say(render(answer))
    if answer.exit_code:
        raise click.exceptions.Exit(answer.exit_code)
