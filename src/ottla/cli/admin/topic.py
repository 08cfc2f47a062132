"""`ottla topic`: the topics of a cluster."""

from typing import TYPE_CHECKING, Any

import click

from ottla.cli.cluster import failed_items, with_admin
from ottla.cli.naming import topic_names
from ottla.cli.numbers import OFFSET, PARTITION, PARTITIONS, REPLICAS
from ottla.cli.output import confirm, json_option, say, show_done, show_one, show_rows
from ottla.cli.profiles import cluster_options, parse_assignments
from ottla.cli.quantities import config_values
from ottla.cli.times import parse_time_ms

if TYPE_CHECKING:
    from ottla.client.admin import Admin


@click.group()
def topic() -> None:
    """List and change the topics of a cluster."""


@topic.command("list")
@cluster_options
@json_option
@click.option("--internal", is_flag=True, help="Also show internal topics.")
def list_topics(properties: dict[str, str], as_json: bool, internal: bool) -> None:
    """List topics."""
    found = with_admin(properties, lambda admin: admin.topics.list(internal=internal))
    rows = [
        {"topic": item.name, "partitions": item.partitions, "topic_id": str(item.topic_id)} for item in found
    ]
    show_rows(rows, as_json, "there are no topics; use `ottla topic create NAME` to create one")


@topic.command()
@click.argument("name")
@cluster_options
@json_option
@click.option(
    "-p",
    "--partitions",
    type=PARTITIONS,
    help="The number of partitions. Default: the broker's num.partitions.",
)
@click.option(
    "-r",
    "--replication-factor",
    type=REPLICAS,
    help="The number of replicas. Default: the broker's default.replication.factor.",
)
@click.option(
    "-c",
    "--config",
    "assignments",
    metavar="KEY=VALUE",
    multiple=True,
    help="A config of the topic, such as retention.ms=7d or segment.bytes=64MB. Can be repeated.",
)
@click.option("--if-not-exists", is_flag=True, help="Succeed if the topic already exists.")
def create(
    properties: dict[str, str],
    as_json: bool,
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    assignments: tuple[str, ...],
    if_not_exists: bool,
) -> None:
    """Create the topic NAME."""
    configs = config_values(parse_assignments(assignments, "--config"))

    async def work(admin: "Admin") -> Any:
        from ottla.cli.admin.settling import until_served
        from ottla.client.errors import BrokerError
        from ottla.wire.error_code import ErrorCode

        try:
            created = await admin.topics.create(
                name, partitions=partitions, replication_factor=replication_factor, configs=configs
            )
        except BrokerError as error:
            if if_not_exists and error.error_code is ErrorCode.TOPIC_ALREADY_EXISTS:
                return None
            raise
        await until_served(admin, name, created.partitions)
        return created

    created = with_admin(properties, work)
    if created is None:
        show_done(f"topic {name} already exists", as_json, topic=name, created=False)
        return
    count = f" with {created.partitions} partitions" if created.partitions > 0 else ""
    show_done(
        f"created topic {name}{count}",
        as_json,
        topic=name,
        created=True,
        topic_id=str(created.topic_id),
        partitions=created.partitions,
    )


@topic.command()
@click.argument("name", shell_complete=topic_names)
@cluster_options
@json_option
def describe(properties: dict[str, str], as_json: bool, name: str) -> None:
    """Describe the topic NAME: its partitions, offsets, and the configs set on it."""

    async def work(admin: "Admin") -> tuple[Any, ...]:
        from ottla.wire.config_kinds import ConfigSource, ResourceType

        found = await admin.topics.describe(name)
        starts = await admin.offsets.earliest(found.topic_partitions)
        ends = await admin.offsets.latest(found.topic_partitions)
        configs = await admin.configs.describe(ResourceType.TOPIC, name)
        chosen = {
            config.name: config.value for config in configs.values() if config.source is ConfigSource.TOPIC
        }
        return found, starts.succeeded, ends.succeeded, chosen

    found, starts, ends, configs = with_admin(properties, work)
    partitions = [
        {
            "partition": item.partition,
            "leader": item.leader if item.leader >= 0 else None,
            "replicas": list(item.replicas),
            "in_sync": list(item.in_sync_replicas),
            "first_offset": _offset(starts, where),
            "next_offset": _offset(ends, where),
        }
        for item, where in zip(found.partitions, found.topic_partitions, strict=True)
    ]
    facts = {
        "topic": found.name,
        "topic_id": str(found.topic_id),
        "internal": found.is_internal,
        "replication_factor": found.replication_factor,
    }
    if as_json:
        show_one({**facts, "configs": configs, "partitions": partitions}, as_json)
        return
    show_one({**facts, "configs": [f"{key}={value}" for key, value in sorted(configs.items())]}, as_json)
    say()
    show_rows(partitions, as_json, "it has no partitions")


@topic.command()
@click.argument("name", shell_complete=topic_names)
@cluster_options
@json_option
@click.option(
    "--partitions",
    type=PARTITIONS,
    help="The new number of partitions, which must be larger than the current one.",
)
@click.option(
    "--config", "assignments", metavar="KEY=VALUE", multiple=True, help="Set a config. Can be repeated."
)
@click.option("--unset", metavar="KEY", multiple=True, help="Reset a config to the broker's default.")
def alter(
    properties: dict[str, str],
    as_json: bool,
    name: str,
    partitions: int | None,
    assignments: tuple[str, ...],
    unset: tuple[str, ...],
) -> None:
    """Add partitions to the topic NAME, or change its configs. New partitions change where keys go."""
    changes: dict[str, str | None] = {
        **config_values(parse_assignments(assignments, "--config")),
        **dict.fromkeys(unset),
    }
    if partitions is None and not changes:
        raise click.UsageError("nothing to change: give --partitions, --config or --unset")

    async def work(admin: "Admin") -> None:
        from ottla.cli.admin.settling import until_served
        from ottla.wire.config_kinds import ResourceType

        await admin.topics.describe(name)
        if changes:
            await admin.configs.alter(ResourceType.TOPIC, name, changes)
        if partitions is not None:
            await admin.topics.add_partitions(name, partitions)
            await until_served(admin, name, partitions)

    with_admin(properties, work)
    show_done(f"altered topic {name}", as_json, topic=name, partitions=partitions, configs=changes)


async def _described(admin: "Admin", names: tuple[str, ...]) -> Any:
    return (await admin.topics.describe_many(names)).check()


@topic.command()
@click.argument("names", nargs=-1, required=True, shell_complete=topic_names)
@cluster_options
@json_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def delete(properties: dict[str, str], as_json: bool, names: tuple[str, ...], yes: bool) -> None:
    """Delete the topics NAMES and all their records."""
    if not yes:
        # A question about a topic that does not exist makes no sense.
        with_admin(properties, lambda admin: _described(admin, names))
    whose = "its" if len(names) == 1 else "their"
    confirm(f"delete {', '.join(names)} and all {whose} records?", yes)

    async def work(admin: "Admin") -> Any:
        from ottla.cli.admin.settling import until_gone

        results = await admin.topics.delete_many(names)
        await until_gone(admin, results.succeeded)
        return results

    results = with_admin(properties, work)
    if results.failed:
        raise failed_items(results.failed)
    show_done(f"deleted {', '.join(names)}", as_json, deleted=list(names))


@topic.command()
@click.argument("name", shell_complete=topic_names)
@cluster_options
@json_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def truncate(properties: dict[str, str], as_json: bool, name: str, yes: bool) -> None:
    """Delete all records of the topic NAME. The topic stays, and its offsets continue."""
    confirm(f"delete all records of {name}?", yes)
    results = with_admin(properties, lambda admin: admin.records.truncate(name))
    if results.failed:
        raise failed_items(results.failed)
    offsets = {where.partition: offset for where, offset in results.succeeded.items()}
    show_done(f"deleted all records of {name}", as_json, topic=name, first_offsets=offsets)


@topic.command()
@click.argument("name", shell_complete=topic_names)
@cluster_options
@json_option
@click.option("--to-offset", type=OFFSET, help="Delete the records before this offset.")
@click.option("--to-time", metavar="TIME", help="Delete the records that are older: 2026-01-31T12:00, or 7d.")
@click.option("-p", "--partition", type=PARTITION, help="Only in this partition.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def trim(
    properties: dict[str, str],
    as_json: bool,
    name: str,
    to_offset: int | None,
    to_time: str | None,
    partition: int | None,
    yes: bool,
) -> None:
    """Delete the oldest records of the topic NAME, up to an offset or a time."""
    if (to_offset is None) == (to_time is None):
        raise click.UsageError("give either --to-offset or --to-time")
    if to_offset is not None and partition is None:
        raise click.UsageError("an offset is one of a --partition: name it")
    to_ms = None if to_time is None else parse_time_ms(to_time, "--to-time")
    confirm(f"delete records of {name} for good?", yes)

    async def work(admin: "Admin") -> Any:
        from ottla.cli.failure import Failure

        found = await admin.topics.describe(name)
        chosen = [where for where in found.topic_partitions if partition in (None, where.partition)]
        if not chosen:
            raise Failure(
                f"topic {name} has no partition {partition}; `ottla topic describe {name}` lists them"
            )
        before = dict.fromkeys(chosen, to_offset or 0)
        if to_ms is not None:
            ends = (await admin.offsets.latest(chosen)).check()
            at = (await admin.offsets.list(dict.fromkeys(chosen, to_ms))).check()
            # Where nothing is younger, everything is older.
            before = {
                where: at[where].offset if at[where].offset >= 0 else ends[where].offset for where in chosen
            }
        return await admin.records.delete(before)

    results = with_admin(properties, work)
    if results.failed:
        raise failed_items(results.failed)
    offsets = {where.partition: offset for where, offset in results.succeeded.items()}
    begins = ", ".join(f"partition {number} at {offset}" for number, offset in sorted(offsets.items()))
    show_done(f"{name} begins now: {begins}", as_json, topic=name, first_offsets=offsets)


def _offset(found: Any, where: Any) -> int | None:
    return found[where].offset if where in found else None
