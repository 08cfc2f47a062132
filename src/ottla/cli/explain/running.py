"""How commands that explain reach a cluster, and how they end."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from ottla.cli.cluster import PATIENCE, run_client

if TYPE_CHECKING:
    from ottla.explain.access import Access

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
