"""`ottla cluster`: describe the nodes, move and balance partitions, elect leaders, empty a node."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.cluster import failed_items, with_admin
from ottla.cli.clusters.leaving import remove, unregister
from ottla.cli.clusters.token import token
from ottla.cli.failure import Failure
from ottla.cli.numbers import COUNT, PARTITION
from ottla.cli.output import confirm, format_table, json_option, say, show_done, show_one, show_rows
from ottla.cli.profiles import cluster_options
from ottla.cli.quantities import bytes_text

if TYPE_CHECKING:
    from ottla.cli.clusters.survey import Survey
    from ottla.client.admin import Admin
    from ottla.metadata.balance_plan import Move
    from ottla.model.ids import TopicPartition

_AT_ONCE: Final = 50
_MEASURE_S_MAX: Final = 3600

throttle_option = click.option(
    "--throttle",
    "throttle_bytes",
    type=COUNT,
    metavar="BYTES",
    help="Copy at most this many bytes a second to and from each broker.",
)
at_once_option = click.option(
    "--at-once",
    type=COUNT,
    default=_AT_ONCE,
    show_default=True,
    help="Move at most this many partitions at the same time.",
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


@click.group()
def cluster() -> None:
    """Describe the nodes of a cluster, and decide which of them holds and leads what."""


for command in (token, remove, unregister):
    cluster.add_command(command)


@cluster.command()
@cluster_options
@json_option
@click.option("--problems", is_flag=True, help="List the partitions that are not as they should be instead.")
def describe(properties: dict[str, str], as_json: bool, problems: bool) -> None:
    """Describe the nodes of the cluster, and count partitions that are not as they should be."""
    from ottla.cli.clusters.survey import survey

    found = with_admin(properties, survey)
    if problems:
        show_rows(_problem_rows(found), as_json, "all partitions have their leaders and all their replicas")
        return
    facts = {
        "cluster_id": found.cluster_id,
        "partitions": len(found.partitions),
        "offline": len(found.offline()),
        "below_min_in_sync": len(found.below_min_in_sync()),
        "under_replicated": len(found.under_replicated()),
    }
    rows = _node_rows(found)
    if as_json:
        show_one({**facts, "nodes": rows}, as_json)
        return
    show_one(facts, as_json)
    say()
    say(format_table([{**row, "bytes": bytes_text(row["bytes"])} for row in rows]))


def _node_rows(found: "Survey") -> list[dict[str, Any]]:
    from ottla.metadata.balance_plan import shares

    held = shares(found.placed(), [broker.node_id for broker in found.brokers])
    leaders = [partition.leader for partition in found.partitions.values()]
    rows = []
    for broker in found.brokers:
        node_id = broker.node_id
        directories = found.directories.get(node_id, ())
        rows.append(
            {
                "node": node_id,
                "address": f"{broker.host}:{broker.port}",
                "rack": broker.rack,
                "state": "fenced" if broker.is_fenced else "up",
                "leaders": leaders.count(node_id),
                "preferred": held[node_id].leaders,
                "replicas": held[node_id].replicas,
                "lagging": sum(
                    node_id in one.replicas and node_id not in one.in_sync_replicas
                    for one in found.partitions.values()
                ),
                "bytes": sum(one.size_bytes for where in directories for one in where.replicas),
                "directories": [_directory_text(one) for one in directories],
            }
        )
    return rows


def _directory_text(directory: Any) -> str:
    if directory.error_code.name != "NONE":
        return f"{directory.path} (offline)"
    return f"{directory.path} (cordoned)" if directory.is_cordoned else str(directory.path)


def _problem_rows(found: "Survey") -> list[dict[str, Any]]:
    offline, below = set(found.offline()), set(found.below_min_in_sync())
    lacking = {*offline, *below, *found.under_replicated()}
    return [
        {
            "topic": where.topic,
            "partition": where.partition,
            "problem": "offline"
            if where in offline
            else "below min.insync.replicas"
            if where in below
            else "under-replicated",
            "leader": None if where in offline else partition.leader,
            "replicas": list(partition.replicas),
            "in_sync": list(partition.in_sync_replicas),
            "eligible_leaders": list(partition.eligible_leader_replicas or ()),
        }
        for where, partition in found.partitions.items()
        if where in lacking
    ]


@cluster.command()
@click.argument("topic", required=False)
@cluster_options
@json_option
@click.option("--partition", type=PARTITION, help="Only this partition of TOPIC.")
@click.option("--to", "brokers", metavar="ID,ID,...", help="The brokers that hold it then, the leader first.")
@click.option(
    "--file",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Moves in the JSON format of kafka-reassign-partitions.",
)
@click.option("--cancel", is_flag=True, help="Call off moves that are under way.")
@throttle_option
@at_once_option
def reassign(
    properties: dict[str, str],
    as_json: bool,
    topic: str | None,
    partition: int | None,
    brokers: str | None,
    path: Path | None,
    cancel: bool,
    throttle_bytes: int | None,
    at_once: int,
) -> None:
    """Move partitions of TOPIC to other brokers, and wait until that is done.

    Without TOPIC and --file, list the moves that are under way.
    """
    if cancel:
        _cancel(properties, as_json, topic, partition)
        return
    if topic is None and path is None:
        _list_moves(properties, as_json)
        return
    if (path is None) == (brokers is None):
        raise click.UsageError("give either TOPIC with --to, or a --file")
    targets = _read_targets(path) if path is not None else None
    wanted = None if brokers is None else _parse_brokers(brokers)

    async def work(admin: "Admin") -> "list[Move]":
        from ottla.cli.clusters.moving import carry_out
        from ottla.cli.clusters.survey import survey

        moves = _moves_to(await survey(admin), targets, topic, partition, wanted)
        await carry_out(admin, moves, throttle_bytes=throttle_bytes, at_once=at_once, progress=_show_progress)
        return moves

    moves = with_admin(properties, work)
    show_done(
        f"moved {_partitions(len(moves))}" if moves else "all partitions are where they should be",
        as_json,
        moved=_plan_rows(moves),
    )


def _moves_to(
    found: "Survey",
    targets: "dict[TopicPartition, tuple[int, ...]] | None",
    topic: str | None,
    partition: int | None,
    brokers: tuple[int, ...] | None,
) -> "list[Move]":
    from ottla.metadata.balance_plan import Move

    if targets is None:
        assert brokers is not None, "one of the two was given"
        targets = {
            where: brokers
            for where in found.partitions
            if where.topic == topic and partition in (None, where.partition)
        }
        if not targets:
            what = f"topic {topic}" if partition is None else f"partition {topic}-{partition}"
            raise Failure(f"there is no {what}; `ottla topic list` lists the topics")
    sizes = found.sizes()
    missing = [where for where in targets if where not in found.partitions]
    if missing:
        raise Failure(f"there is no partition {missing[0]}; `ottla topic list` lists the topics")
    return [
        Move(where, found.partitions[where].replicas, after, sizes.get(where, 0))
        for where, after in targets.items()
        if found.partitions[where].replicas != after
    ]


def _parse_brokers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(one) for one in text.split(","))
    except ValueError:
        raise Failure(f"--to {text} is not a list of broker ids; write it as 1,2,3") from None


def _read_targets(path: Path) -> "dict[TopicPartition, tuple[int, ...]]":
    import json

    from ottla.model.ids import TopicPartition

    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {
            TopicPartition(str(one["topic"]), int(one["partition"])): tuple(map(int, one["replicas"]))
            for one in found["partitions"]
        }
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(
            f"{path} is not a list of moves ({error!r}); `ottla cluster balance --json` prints one"
        ) from error


def _cancel(properties: dict[str, str], as_json: bool, topic: str | None, partition: int | None) -> None:
    async def work(admin: "Admin") -> "list[TopicPartition]":
        moving = [
            where
            for where in await admin.replicas.reassignments()
            if topic in (None, where.topic) and partition in (None, where.partition)
        ]
        results = await admin.replicas.reassign(dict.fromkeys(moving))
        if results.failed:
            raise failed_items(results.failed)
        return moving

    moving = with_admin(properties, work)
    show_done(
        f"called off {len(moving)} move" + "s" * (len(moving) != 1) if moving else "no moves are under way",
        as_json,
        called_off=[str(where) for where in moving],
    )


def _list_moves(properties: dict[str, str], as_json: bool) -> None:
    moving = with_admin(properties, lambda admin: admin.replicas.reassignments())
    rows = [
        {
            "topic": where.topic,
            "partition": where.partition,
            "replicas": list(one.replicas),
            "adding": list(one.adding),
            "removing": list(one.removing),
        }
        for where, one in moving.items()
    ]
    show_rows(rows, as_json, "no moves are under way")


@cluster.command()
@click.argument("topic", required=False)
@cluster_options
@json_option
@click.option("--partition", type=PARTITION, help="Only this partition of TOPIC.")
@click.option(
    "--unclean",
    is_flag=True,
    help="Elect any live replica where there is no leader. Records that only others have are lost.",
)
@yes_option
def elect(
    properties: dict[str, str],
    as_json: bool,
    topic: str | None,
    partition: int | None,
    unclean: bool,
    yes: bool,
) -> None:
    """Let the preferred leaders lead, of all partitions or of those of TOPIC."""
    if partition is not None and topic is None:
        raise click.UsageError("--partition needs a TOPIC")
    if unclean:
        confirm("elect leaders that may lack acknowledged records?", yes)

    async def work(admin: "Admin") -> "dict[TopicPartition, bool]":
        from ottla.client.admin.replicas import ElectionType

        partitions = None
        if topic is not None:
            found = await admin.topics.describe(topic)
            partitions = [one for one in found.topic_partitions if partition in (None, one.partition)]
        kind = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED
        results = await admin.replicas.elect(partitions, kind)
        if results.failed:
            raise failed_items(results.failed)
        return results.succeeded

    elected = [where for where, is_new in with_admin(properties, work).items() if is_new]
    show_done(
        f"{_partitions(len(elected))} led by another node now" if elected else "no election was needed",
        as_json,
        elected=[str(where) for where in elected],
    )


@cluster.command()
@cluster_options
@json_option
@click.option("--leaders-only", is_flag=True, help="Change preferred leaders only: no data is copied.")
@click.option("--plan", "plan_only", is_flag=True, help="Show what would be moved, and move nothing.")
@click.option(
    "--measure",
    "measure_s",
    type=click.IntRange(1, _MEASURE_S_MAX),
    metavar="SECONDS",
    help="Watch for so long how much is written to each partition, and weigh that, too.",
)
@throttle_option
@at_once_option
@yes_option
def balance(
    properties: dict[str, str],
    as_json: bool,
    leaders_only: bool,
    measure_s: int | None,
    plan_only: bool,
    throttle_bytes: int | None,
    at_once: int,
    yes: bool,
) -> None:
    """Give every broker its share of replicas, bytes and leaders, in different racks, by few moves."""
    found, moves = _planned(properties, empty=(), leaders_only=leaders_only, measure_s=measure_s or 0)
    _show_and_do(
        properties,
        found,
        moves,
        "the cluster is in balance",
        as_json,
        plan_only,
        throttle_bytes,
        at_once,
        yes,
    )


@cluster.command()
@click.argument("node", type=PARTITION)
@cluster_options
@json_option
@click.option("--plan", "plan_only", is_flag=True, help="Show what would be moved, and move nothing.")
@throttle_option
@at_once_option
@yes_option
def drain(
    properties: dict[str, str],
    as_json: bool,
    node: int,
    plan_only: bool,
    throttle_bytes: int | None,
    at_once: int,
    yes: bool,
) -> None:
    """Move everything away from NODE, so that it can leave the cluster."""
    found, moves = _planned(properties, empty=(node,), leaders_only=True)
    if node not in {broker.node_id for broker in found.brokers}:
        raise Failure(f"there is no broker {node}; `ottla cluster describe` lists them")
    _show_and_do(
        properties,
        found,
        moves,
        f"node {node} holds nothing",
        as_json,
        plan_only,
        throttle_bytes,
        at_once,
        yes,
    )


def _planned(
    properties: dict[str, str], *, empty: Sequence[int], leaders_only: bool, measure_s: int = 0
) -> "tuple[Survey, list[Move]]":
    from ottla.cli.clusters.survey import survey
    from ottla.metadata.balance_plan import TooFewBrokers, plan_moves

    found = with_admin(properties, lambda admin: survey(admin, measure_s))
    try:
        return found, plan_moves(found.nodes, found.placed(), empty=empty, moves_replicas=not leaders_only)
    except TooFewBrokers as error:
        raise Failure(f"{error}; add a broker first, or give its topic fewer replicas") from error


def _show_and_do(
    properties: dict[str, str],
    found: "Survey",
    moves: "list[Move]",
    nothing: str,
    as_json: bool,
    plan_only: bool,
    throttle_bytes: int | None,
    at_once: int,
    yes: bool,
) -> None:
    """Show a plan, and carry it out unless only the plan was asked for."""
    if not as_json or plan_only:
        _show_plan(found, moves, nothing, as_json)
    if plan_only or not moves:
        if as_json and not plan_only:
            show_done(nothing, as_json, version=1, partitions=[])
        return
    confirm(f"move {_partitions(len(moves))}?", yes)

    async def work(admin: "Admin") -> None:
        from ottla.cli.clusters.moving import carry_out

        await carry_out(admin, moves, throttle_bytes=throttle_bytes, at_once=at_once, progress=_show_progress)

    with_admin(properties, work)
    show_done(f"moved {_partitions(len(moves))}", as_json, version=1, partitions=_plan_rows(moves))


def _show_plan(found: "Survey", moves: "Sequence[Move]", nothing: str, as_json: bool) -> None:
    """Show moves: to people what each broker will hold, to programs Kafka's own format for moves."""
    from ottla.metadata.balance_plan import shares

    if as_json:
        show_one({"version": 1, "partitions": _plan_rows(moves)}, as_json)
        return
    if not moves:
        say(nothing)
        return
    rows = [
        {
            "topic": move.where.topic,
            "partition": move.where.partition,
            "replicas": list(move.before),
            "will_be": list(move.after),
            "to_copy": bytes_text(move.bytes_to_copy),
        }
        for move in moves
    ]
    say(format_table(rows))
    say()
    node_ids = [broker.node_id for broker in found.brokers]
    after = {move.where: move.after for move in moves}
    before = found.placed()
    now = shares(before, node_ids)
    then = shares([one._replace(replicas=after.get(one.where, one.replicas)) for one in before], node_ids)
    say(
        format_table(
            [
                {
                    "node": node_id,
                    "replicas": f"{now[node_id].replicas} -> {then[node_id].replicas}",
                    "leaders": f"{now[node_id].leaders} -> {then[node_id].leaders}",
                    "bytes": " -> ".join(bytes_text(one[node_id].size_bytes) for one in (now, then)),
                    **(
                        {"bytes_per_s": f"{now[node_id].bytes_per_s:.0f} -> {then[node_id].bytes_per_s:.0f}"}
                        if found.rates
                        else {}
                    ),
                }
                for node_id in node_ids
            ]
        )
    )


def _partitions(count: int) -> str:
    return f"{count} partition" + "s" * (count != 1)


def _plan_rows(moves: "Sequence[Move]") -> list[dict[str, Any]]:
    return [
        {"topic": move.where.topic, "partition": move.where.partition, "replicas": list(move.after)}
        for move in moves
    ]


def _show_progress(done: int, total: int) -> None:
    import sys

    if sys.stderr.isatty():
        click.echo(f"\r{done} of {total} moved", err=True, nl=done == total)
