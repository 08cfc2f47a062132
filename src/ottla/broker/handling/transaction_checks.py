"""Asking the transaction coordinator before the first write of a transaction to a partition (KIP-890).

Without that a write that is late by a whole transaction would open one that nobody ends, and readers of
committed records would wait for ever. A client of version 2 does not even announce partitions: the first
write itself makes the partition part of the transaction. Older clients have announced it, and the coordinator
only has to confirm.

The coordinator may be a part of this node, or of another one, which is then asked by AddPartitionsToTxn.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from ottla.broker.node import BrokerContext
from ottla.coordination.transaction.decide import Identity
from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode

CLIENT_VERSION: Final = 2
"""The transaction version of clients whose writes announce their partitions themselves."""


class WriterSupport(Enum):
    """What the version of a request tells about its sender."""

    # It does not know TRANSACTION_ABORTABLE.
    DEFAULT_ERRORS = "default errors"
    # It does: that one may abort and go on.
    ABORTABLE_ERRORS = "abortable errors"
    # Its writes announce their partitions.
    ADDS_PARTITIONS = "adds partitions"


def confirm(
    transactional_id: str,
    who: Identity,
    partitions: frozenset[TopicPartition],
    support: WriterSupport,
    context: BrokerContext,
    answer: Callable[[Mapping[TopicPartition, ErrorCode]], None],
) -> None:
    """Have the coordinator add partitions to a transaction, or say whether they are in it."""
    broker = context.broker

    def translated(codes: Mapping[TopicPartition, ErrorCode]) -> None:
        answer({where: _for_writer(code, support) for where, code in codes.items()})

    adds = support is WriterSupport.ADDS_PARTITIONS
    leader = broker.transactions.find_leader(transactional_id)
    if leader is not None and leader != broker.node_id:
        if leader < 0:
            translated(dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE))
        else:
            broker.transactions.remote_checks.ask(leader, transactional_id, who, partitions, adds, translated)
        return
    coordinator = broker.transactions.coordinator
    if adds:
        coordinator.add_partitions(
            transactional_id,
            who,
            partitions,
            CLIENT_VERSION,
            lambda code: translated(dict.fromkeys(partitions, code)),
            waits=True,
        )
    else:
        coordinator.verify_partitions(transactional_id, who, partitions, translated)


def _for_writer(code: ErrorCode, support: WriterSupport) -> ErrorCode:
    """Return an error as a client understands it in the answer to a write."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and support is WriterSupport.DEFAULT_ERRORS:
        return ErrorCode.INVALID_TXN_STATE
    return code
