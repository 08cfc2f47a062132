"""Offsets and members of groups, one by one: to a file and from it, forgetting, removing."""

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.cluster import failed_items, with_admin
from ottla.cli.failure import Failure
from ottla.cli.naming import group_names
from ottla.cli.numbers import INT32_MAX, INT64_MAX, PARTITION
from ottla.cli.output import confirm, json_option, show_done, show_one
from ottla.cli.profiles import cluster_options

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.model.ids import TopicPartition


@click.command()
@click.argument("name", shell_complete=group_names)
@cluster_options
@json_option
def export(properties: dict[str, str], as_json: bool, name: str) -> None:
    """Print the committed offsets of the group NAME as CSV: topic, partition, offset.

    `ottla group reset --from-file` and kafka-consumer-groups take it back.
    """
    found = with_admin(properties, lambda admin: admin.group_offsets.list(name))
    if not found:
        raise Failure(f"group {name} has no committed offsets; `ottla group list` lists the groups")
    if as_json:
        show_one({str(where): found[where].offset for where in sorted(found)}, as_json)
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for where in sorted(found):
        writer.writerow((where.topic, where.partition, found[where].offset))


def read_offsets(path: Path) -> "dict[TopicPartition, int]":
    """Read what `export` has printed."""
    from ottla.model.ids import TopicPartition

    offsets: dict[TopicPartition, int] = {}
    try:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.reader(file):
                topic, partition, offset = row
                where = TopicPartition(topic, _number(partition, INT32_MAX))
                offsets[where] = _number(offset, INT64_MAX)
    except (OSError, ValueError, csv.Error) as error:
        raise Failure(
            f"{path} is not a list of offsets ({error}); a line is TOPIC,PARTITION,OFFSET, as `ottla group "
            "export` prints it"
        ) from error
    if not offsets:
        raise Failure(f"{path} has no offsets in it")
    return offsets


def _number(text: str, high: int) -> int:
    number = int(text)
    if not 0 <= number <= high:
        raise ValueError(f"{text} is not a number from 0 to {high}")
    return number


@click.command("delete-offsets")
@click.argument("name", shell_complete=group_names)
@cluster_options
@json_option
@click.option("--topic", required=True, help="The topic whose offsets are forgotten.")
@click.option("--partition", type=PARTITION, help="Only this partition of it.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def delete_offsets(
    properties: dict[str, str], as_json: bool, name: str, topic: str, partition: int | None, yes: bool
) -> None:
    """Forget what the group NAME has committed for a topic that none of its members reads."""
    confirm(f"forget the offsets of {name} for {topic}?", yes)

    async def work(admin: "Admin") -> "list[TopicPartition]":
        held = await admin.group_offsets.list(name)
        chosen = sorted(
            where for where in held if where.topic == topic and partition in (None, where.partition)
        )
        if not chosen:
            raise Failure(
                f"group {name} has committed nothing for {topic}; `ottla group describe {name}` shows all"
            )
        results = await admin.group_offsets.delete(name, chosen)
        if results.failed:
            raise failed_items(results.failed)
        return chosen

    gone = with_admin(properties, work)
    count = f"{len(gone)} partition" + "s" * (len(gone) != 1)
    show_done(f"forgot the offsets of {name} for {count} of {topic}", as_json, deleted=list(map(str, gone)))


@click.command("remove-member")
@click.argument("name", shell_complete=group_names)
@click.argument("instance_ids", metavar="INSTANCE...", nargs=-1, required=True)
@cluster_options
@json_option
def remove_member(
    properties: dict[str, str], as_json: bool, name: str, instance_ids: tuple[str, ...]
) -> None:
    """Remove static members from the group NAME by their group.instance.id.

    Others get their partitions at once. One that still runs comes back.
    """
    results = with_admin(properties, lambda admin: admin.groups.remove_members(name, instance_ids))
    if results.failed:
        raise failed_items(results.failed)
    show_done(f"removed {', '.join(instance_ids)} from group {name}", as_json, removed=list(instance_ids))
