"""`ottla txn`: transactions, those that hang among them."""

import time
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.cluster import with_admin
from ottla.cli.numbers import SECONDS
from ottla.cli.output import confirm, json_option, show_done, show_one, show_rows
from ottla.cli.profiles import cluster_options

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.transactions import HangingTransaction


@click.group()
def txn() -> None:
    """List, describe and abort transactions of a cluster."""


@txn.command("list")
@cluster_options
@json_option
@click.option(
    "--state", "states", multiple=True, help="Only transactions in this state, for example Ongoing."
)
@click.option(
    "--longer-than",
    "longer_than_s",
    type=SECONDS,
    help="Only transactions that have been open for this many seconds.",
)
def list_transactions(
    properties: dict[str, str], as_json: bool, states: tuple[str, ...], longer_than_s: int | None
) -> None:
    """List the transactional ids and the states of their transactions."""
    longer_than_ms = None if longer_than_s is None else longer_than_s * 1000
    found = with_admin(
        properties, lambda admin: admin.transactions.list(states=states, longer_than_ms=longer_than_ms)
    )
    rows = [
        {
            "transactional_id": item.transactional_id,
            "state": item.state,
            "producer_id": item.producer_id,
            "coordinator": item.coordinator,
        }
        for item in found
    ]
    show_rows(rows, as_json, "there are no transactional ids")


@txn.command()
@click.argument("transactional_id")
@cluster_options
@json_option
def describe(properties: dict[str, str], as_json: bool, transactional_id: str) -> None:
    """Describe TRANSACTIONAL_ID: its state, its producer, and the partitions of its transaction."""
    found = with_admin(properties, lambda admin: admin.transactions.describe(transactional_id))
    open_s = None
    if found.started_at_ms is not None and found.state == "Ongoing":
        open_s = round(time.time() - found.started_at_ms / 1000, 1)
    facts = {
        "transactional_id": found.transactional_id,
        "state": found.state,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "coordinator": found.coordinator,
        "timeout_ms": found.timeout_ms,
        "open_for_seconds": open_s,
        "partitions": [str(where) for where in found.partitions],
    }
    show_one(facts, as_json)


@txn.command()
@click.argument("topics", nargs=-1, required=True)
@cluster_options
@json_option
@click.option(
    "--open-for",
    "open_for_s",
    type=SECONDS,
    default=900,
    show_default=True,
    help="A transaction hangs if it has been open for this many seconds, and no coordinator knows it.",
)
def hanging(properties: dict[str, str], as_json: bool, topics: tuple[str, ...], open_for_s: int) -> None:
    """List the transactions in TOPICS that nobody will ever end. `ottla txn abort --topic` ends them."""

    async def work(admin: "Admin") -> list[dict[str, Any]]:
        described = (await admin.topics.describe_many(topics)).check().values()
        partitions = [where for found in described for where in found.topic_partitions]
        found = await admin.transactions.find_hanging(partitions, open_for_ms=open_for_s * 1000)
        return list(map(_hanging_row, found))

    show_rows(with_admin(properties, work), as_json, f"no transaction hangs in {', '.join(topics)}")


@txn.command()
@click.argument("transactional_id", required=False)
@cluster_options
@json_option
@click.option("--topic", help="Abort the hanging transactions in this topic, which no coordinator knows.")
@click.option(
    "--open-for",
    "open_for_s",
    type=SECONDS,
    default=900,
    show_default=True,
    help="With --topic: a transaction hangs if it has been open for this many seconds.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def abort(
    properties: dict[str, str],
    as_json: bool,
    transactional_id: str | None,
    topic: str | None,
    open_for_s: int,
    yes: bool,
) -> None:
    """Abort the transaction of TRANSACTIONAL_ID and fence its producer.

    With --topic, abort the hanging transactions in that topic instead.
    """
    if (transactional_id is None) == (topic is None):
        raise click.UsageError("give either a TRANSACTIONAL_ID or a --topic")
    what = transactional_id or f"hanging transactions in {topic}"
    confirm(f"abort {what}?", yes)
    if transactional_id is not None:
        _abort_known(properties, transactional_id, as_json)
    else:
        assert topic is not None, "one of the two was given"
        _abort_hanging(properties, topic, open_for_s, as_json)


def _abort_known(properties: dict[str, str], transactional_id: str, as_json: bool) -> None:
    async def work(admin: "Admin") -> str:
        # A name that nobody has used would be made by fencing it.
        state = (await admin.transactions.describe(transactional_id)).state
        await admin.transactions.fence(transactional_id)
        return state

    state = with_admin(properties, work)
    show_done(
        f"aborted {transactional_id}, which was {state}; its producer is fenced",
        as_json,
        transactional_id=transactional_id,
        was=state,
    )


def _abort_hanging(properties: dict[str, str], topic: str, open_for_s: int, as_json: bool) -> None:
    async def work(admin: "Admin") -> list[dict[str, Any]]:
        partitions = (await admin.topics.describe(topic)).topic_partitions
        hanging = await admin.transactions.find_hanging(partitions, open_for_ms=open_for_s * 1000)
        for item in hanging:
            await admin.transactions.abort(item.where, item.producer)
        return list(map(_hanging_row, hanging))

    show_rows(with_admin(properties, work), as_json, f"no transaction hangs in {topic}")


def _hanging_row(item: "HangingTransaction") -> dict[str, Any]:
    return {
        "topic": item.where.topic,
        "partition": item.where.partition,
        "producer_id": item.producer.producer_id,
        "first_offset": item.producer.transaction_start_offset,
    }
