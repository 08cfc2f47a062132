"""Finds transactions that are open in partitions although their coordinator has ended them.

A coordinator ends a transaction by a marker in each of its partitions. Apache Kafka 4.3 leaves out those that
have no leader at that moment, as if they had been deleted (KAFKA-20734). It is enough that a broker is killed
while it commits. In such a partition the transaction stays open for good. Readers of committed records wait
there, and so would a mirror that looks for its positions.
"""

from collections.abc import Collection
from typing import Final

from ottla.client.admin import Admin
from ottla.client.admin.offsets import FoundOffset, OffsetSpec
from ottla.client.admin.results import Results
from ottla.client.errors import BrokerError, UnsupportedByBroker
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode

_COMMITTED: Final = ("PrepareCommit", "CompleteCommit")
_UNKNOWN: Final = (
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)


async def was_committed(admin: Admin, transactional_id: str) -> bool:
    """Say whether the last transaction was committed. After the id is taken again, nobody knows."""
    try:
        return (await admin.transactions.describe(transactional_id)).state in _COMMITTED
    except UnsupportedByBroker:
        return False
    except BrokerError as error:
        if error.error_code in _UNKNOWN:
            return False
        raise


async def left_open(
    admin: Admin, partitions: Collection[TopicPartition], producer_id: int
) -> list[TopicPartition]:
    """Return where a producer has a transaction open. Its coordinator must have none open."""
    ends = _usable(await admin.offsets.latest(partitions))
    stable = _usable(await admin.offsets.list(dict.fromkeys(ends, OffsetSpec.LATEST), read_committed=True))
    unstable = [where for where, found in stable.items() if found.offset < ends[where].offset]
    producers = await admin.transactions.producers(unstable)
    return [
        where
        for where in unstable
        # Old brokers do not answer this, and others may refuse it. A marker too many does no harm.
        if where in producers.failed
        or any(
            item.producer_id == producer_id and item.transaction_start_offset is not None
            for item in producers[where]
        )
    ]


def _usable(found: Results[TopicPartition, FoundOffset]) -> dict[TopicPartition, FoundOffset]:
    """Leave out partitions that the target refuses to us for good: nothing of ours is there."""
    for error in found.failed.values():
        if error.retriable:
            raise error
    return found.succeeded
