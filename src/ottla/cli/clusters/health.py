"""`ottla health`: is the cluster in order? One answer, by its exit code too, or one every few seconds."""

from typing import TYPE_CHECKING, Any

import click

from ottla.cli.cluster import with_admin
from ottla.cli.explain.running import FOUND
from ottla.cli.numbers import PAUSE_S
from ottla.cli.output import json_option, say
from ottla.cli.profiles import cluster_options

if TYPE_CHECKING:
    from ottla.client.admin import Admin


@click.command()
@cluster_options
@json_option
@click.option(
    "--watch", "watch_s", type=PAUSE_S, metavar="SECONDS", help="Look again so often, until Ctrl-C."
)
def health(properties: dict[str, str], as_json: bool, watch_s: float | None) -> None:
    """Say whether all brokers are up, and all partitions have leaders and replicas in sync.

    Exit code 0 if so, 10 if not. `ottla doctor` looks at groups, transactions and clients, too.
    """

    async def work(admin: "Admin") -> dict[str, Any]:
        import asyncio

        while True:
            found = await _look(admin)
            _show(found, as_json)
            if watch_s is None:
                return found
            await asyncio.sleep(watch_s)

    if not with_admin(properties, work)["healthy"]:
        raise click.exceptions.Exit(FOUND)


async def _look(admin: "Admin") -> dict[str, Any]:
    cluster = await admin.cluster.describe(fenced=True)
    names = [topic.name for topic in await admin.topics.list(internal=True)]
    described = (await admin.topics.describe_many(names)).succeeded.values()
    partitions = [partition for topic in described for partition in topic.partitions]
    down = [broker.node_id for broker in cluster.brokers if broker.is_fenced]
    offline = sum(one.leader < 0 for one in partitions)
    short = sum(len(one.in_sync_replicas) < len(one.replicas) for one in partitions)
    return {
        "healthy": not down and not offline and not short,
        "brokers": len(cluster.brokers),
        "brokers_down": down,
        "partitions": len(partitions),
        "without_leader": offline,
        "under_replicated": short,
    }


def _show(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        import json

        say(json.dumps(found))
        return
    wrong = []
    if found["brokers_down"]:
        wrong.append(f"down: {', '.join(map(str, found['brokers_down']))}")
    if found["without_leader"]:
        wrong.append(f"{found['without_leader']} partitions without a leader")
    if found["under_replicated"]:
        wrong.append(f"{found['under_replicated']} partitions with replicas that are not in sync")
    of = f"{found['brokers']} brokers, {found['partitions']} partitions"
    say(f"not healthy: {'; '.join(wrong)} (of {of})" if wrong else f"healthy: {of}")
