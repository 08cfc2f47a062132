"""`reset` of groups of all kinds: the options that say where to go on, and the plan as people read it."""

from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from ottla.cli.numbers import OFFSET, SHIFT
from ottla.cli.output import say, show_rows
from ottla.cli.times import parse_time_ms

if TYPE_CHECKING:
    from ottla.model.ids import TopicPartition

Command = TypeVar("Command", bound=Callable[..., None])


class Target(NamedTuple):
    """Where a group is to go on. One of the options was given."""

    to_earliest: bool
    to_latest: bool
    to_offset: int | None
    to_timestamp_ms: int | None
    shift_by: int | None
    file: Path | None = None

    def for_plan(self) -> dict[str, Any]:
        """Return it as the admin client's `plan_reset` takes it."""
        from ottla.client.admin.offsets import OffsetSpec

        place = (
            OffsetSpec.EARLIEST
            if self.to_earliest
            else OffsetSpec.LATEST
            if self.to_latest
            else self.to_offset
        )
        return {"to": place, "to_timestamp_ms": self.to_timestamp_ms, "shift_by": self.shift_by}


_NO_TARGET: Final = (
    "no target given: use one of --to-earliest, --to-latest, --to-offset, --to-time and --shift-by"
)
_OPTIONS: Final = (
    click.option("--to-earliest", is_flag=True, help="To the first record."),
    click.option("--to-latest", is_flag=True, help="To the end."),
    click.option("--to-offset", type=OFFSET, help="To this offset."),
    click.option(
        "--to-time",
        metavar="TIME",
        help="To the first record at or after this time: 2026-01-31T12:00, or 2h for two hours ago.",
    ),
    click.option("--shift-by", type=SHIFT, help="By this many records, backwards if negative."),
    click.option("--execute", is_flag=True, help="Apply the plan. Without this, it is only shown."),
)


from_file_option: Final = click.option(
    "--from-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="To the offsets of this file, as `ottla group export` prints them.",
)


def reset_options(command: Command) -> Command:
    """Add the options to a command, which gets them as `target` and `execute`."""

    @wraps(command)
    def with_target(
        *arguments: Any,
        to_earliest: bool,
        to_latest: bool,
        to_offset: int | None,
        to_time: str | None,
        shift_by: int | None,
        from_file: Path | None = None,
        **options: Any,
    ) -> None:
        chosen = (to_earliest, to_latest, to_offset is not None, to_time is not None, shift_by is not None)
        if sum(chosen) + (from_file is not None) != 1:
            raise click.UsageError(_NO_TARGET)
        to_timestamp_ms = None if to_time is None else parse_time_ms(to_time, "--to-time")
        target = Target(to_earliest, to_latest, to_offset, to_timestamp_ms, shift_by, from_file)
        command(*arguments, target=target, **options)

    decorated: Any = with_target
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def plan_rows(
    before: "Mapping[TopicPartition, int]", plan: "Mapping[TopicPartition, int]"
) -> list[dict[str, Any]]:
    """Return the rows of a plan: where the group is, and where it goes on."""
    return [
        {
            "topic": where.topic,
            "partition": where.partition,
            "offset": before.get(where),
            "new_offset": offset,
        }
        for where, offset in sorted(plan.items())
    ]


def show_plan(rows: list[dict[str, Any]], as_json: bool, execute: bool, done: str) -> None:
    """Show a plan, and what was done with it."""
    show_rows(rows, as_json, "")
    if not execute:
        say("this is only a plan; add --execute to apply it", err=True)
    elif not as_json:
        say(done)
