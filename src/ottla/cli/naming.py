"""Names of a cluster's topics and groups: completed when TAB is pressed, and suggested for typos."""

import os
from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.profiles import client_properties

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ottla.client.admin import Admin

_PATIENCE_MS: Final = "1000"
"""Nobody who presses TAB waits for a cluster that is not there."""


def topic_names(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the topics that begin so."""

    async def names(admin: "Admin") -> list[str]:
        return [topic.name for topic in await admin.topics.list()]

    return _names(ctx, incomplete, names)


def group_names(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the groups that begin so."""

    async def names(admin: "Admin") -> list[str]:
        return [group.group_id for group in await admin.groups.list()]

    return _names(ctx, incomplete, names)


def _names(
    ctx: click.Context, incomplete: str, names: "Callable[[Admin], Awaitable[list[str]]]"
) -> list[str]:
    from ottla.cli.cluster import with_admin

    # Whatever is wrong, a shell that completes is no place to say it.
    with suppress(Exception, click.exceptions.Exit):
        found: Any = ctx.params.get("properties")
        if not isinstance(found, dict):
            found = client_properties(ctx.params.get("bootstrap"), ctx.params.get("profile"), {}, os.environ)
        patience = {"default.api.timeout.ms": _PATIENCE_MS, "request.timeout.ms": _PATIENCE_MS}
        return sorted(
            name for name in with_admin({**found, **patience}, names) if name.startswith(incomplete)
        )
    return []


def did_you_mean(name: str, there: Collection[str]) -> str:
    """Return the end of a sentence about a name that is not there: what may have been meant, or nothing."""
    from difflib import get_close_matches

    near = get_close_matches(name, there, 1, cutoff=0.7)
    return f"; did you mean {near[0]}?" if near else ""
