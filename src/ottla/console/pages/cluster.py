"""The cluster: nodes and their directories, the quorum, features; and its transactions."""

import asyncio
import time
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from ottla.client.admin.log_dirs import LogDir
from ottla.client.admin.transactions import HangingTransaction, TransactionDescription
from ottla.client.errors import ClientError
from ottla.console.serving.app import command_text
from ottla.console.serving.call import Call, json_answer
from ottla.console.serving.failures import failure_of
from ottla.model.ids import TopicPartition
from ottla.satellite.errors import HttpError

_SHOWN_MAX: Final = 500
_LONG_OPEN_S: Final = 60.0


class DirectoryLine(NamedTuple):
    """One directory of one broker."""

    node_id: int
    path: str
    error: str | None
    replicas: int
    size_bytes: int
    usable_bytes: int | None
    total_bytes: int | None


async def nodes(call: Call) -> Response:
    """Show nodes, directories, the quorum and features."""
    admin = call.visit.access.admin
    described, directories, quorum, features = await asyncio.gather(
        admin.cluster.describe(fenced=True),
        _or_sentence(call, admin.log_dirs.describe()),
        _or_sentence(call, admin.quorum.describe()),
        _or_sentence(call, admin.cluster.features()),
    )
    return call.page(
        "nodes.html",
        place="cluster",
        described=described,
        directories=directories if isinstance(directories, str) else _lines(directories.succeeded),
        quorum=quorum,
        features=features,
        now_ms=int(time.time() * 1000),
    )


async def _or_sentence(call: Call, reading: Any) -> Any:
    """Return what was read, or why it may not be: one part of a page spoils no other."""
    try:
        return await reading
    except ClientError as error:
        return failure_of(error, call.visit.user).sentence


def _lines(found: dict[int, tuple[LogDir, ...]]) -> list[DirectoryLine]:
    return [
        DirectoryLine(
            node_id,
            one.path,
            one.error_code.name if one.error_code else None,
            len(one.replicas),
            sum(replica.size_bytes for replica in one.replicas),
            one.usable_bytes if one.usable_bytes >= 0 else None,
            one.total_bytes if one.total_bytes >= 0 else None,
        )
        for node_id, directories in sorted(found.items())
        for one in directories
    ]


async def transactions(call: Call) -> Response:
    """Show transactions, open ones first, and those that hang in a topic."""
    return await _transactions(call)


class TransactionLine(NamedTuple):
    """A transactional id, with its transaction if one is open."""

    name: str
    state: str
    producer_id: int
    coordinator: int
    described: TransactionDescription | None
    open_s: float | None
    is_long: bool
    """Whether readers of committed records have waited for long."""


async def _transactions(call: Call, **values: Any) -> Response:
    admin = call.visit.access.admin
    listed = await admin.transactions.list()
    text, state, topic = call.text("q").casefold(), call.text("state"), call.text("topic")
    found = [one for one in listed if text in one.transactional_id.casefold() and state in ("", one.state)]
    # Open ones are what anybody looks for.
    found.sort(key=lambda one: (one.state != "Ongoing", one.transactional_id))
    shown = found[:_SHOWN_MAX]
    open_ones = [one.transactional_id for one in shown if one.state == "Ongoing"]
    described = (await admin.transactions.describe_many(open_ones)).succeeded
    now_s = time.time()
    lines = []
    for one in shown:
        its = described.get(one.transactional_id)
        open_s = None if its is None or its.started_at_ms is None else now_s - its.started_at_ms / 1000
        lines.append(
            TransactionLine(
                one.transactional_id,
                one.state,
                one.producer_id,
                one.coordinator,
                its,
                open_s,
                open_s is not None and open_s > _LONG_OPEN_S,
            )
        )
    hanging: list[HangingTransaction] | None = None
    if topic:
        partitions = (await admin.topics.describe(topic)).topic_partitions
        hanging = list(await admin.transactions.find_hanging(partitions))
    return call.page(
        "transactions.html",
        place="transactions",
        lines=lines,
        found=len(found),
        all=len(listed),
        states=sorted({one.state for one in listed}),
        state=state,
        text=call.text("q"),
        topic=topic,
        hanging=hanging,
        **{"asked": None, "command": None, "reason": None, **values},
    )


async def transaction_rows(call: Call) -> Response:
    """Answer as `ottla txn list --json`."""
    return json_answer(
        [
            {
                "transactional_id": one.transactional_id,
                "state": one.state,
                "producer_id": one.producer_id,
                "coordinator": one.coordinator,
            }
            for one in await call.visit.access.admin.transactions.list()
        ]
    )


async def abort_transaction(call: Call) -> Response:
    """Ask, and then abort what a producer has open, or one that hangs in a partition."""
    name, place, producer = call.field("name"), call.field("place"), call.field("producer")
    is_sure = call.field("sure") == "yes"
    admin = call.visit.access.admin
    try:
        if place:
            return await _abort_hanging(call, place, producer, is_sure)
        # A name that nobody has used would be made by fencing it.
        described = await admin.transactions.describe(name)
        if is_sure:
            await admin.transactions.fence(name)
            return call.see("transactions")
    except ClientError as error:
        return await _transactions(call, reason=failure_of(error, call.visit.user).sentence)
    command = command_text(call.cluster, "txn", "abort", name)
    return await _transactions(call, asked=described, command=command)


async def _abort_hanging(call: Call, place: str, producer: str, is_sure: bool) -> Response:
    topic, _, number = place.rpartition("-")
    if not number.isdecimal():
        raise HttpError(400, f"{place[:60]!r} is not a partition")
    where = TopicPartition(topic, int(number))
    admin = call.visit.access.admin
    found = [
        one
        for one in await admin.transactions.find_hanging([where])
        if str(one.producer.producer_id) == producer
    ]
    if not found:
        raise HttpError(404, f"no transaction of producer {producer[:20]} hangs in {where} any more")
    if is_sure:
        await admin.transactions.abort(where, found[0].producer)
        return call.see("transactions")
    command = command_text(call.cluster, "txn", "abort", "--topic", topic)
    return await _transactions(call, asked=found[0], command=command)
