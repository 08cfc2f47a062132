"""Asking the controller for changed in-sync replicas: AlterPartition, for all partitions together.

One request is under way at a time, and what is proposed meanwhile shares the next. A request that failed is
sent again, for ever: the leader holds the high watermark for both sets until it knows which one counts.
"""

import logging
from collections.abc import Callable
from typing import Any, Final

from ottla.broker.deferred import Deferred
from ottla.broker.logs.leading import Leading, Proposal
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.alter_partition import (
    AlterPartitionPartition,
    AlterPartitionPartitionResult,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopic,
    BrokerState,
)
from ottla.world.scheduler import Scheduler

RETRY_MS: Final = 50

_logger: Final = logging.getLogger("ottla.replication")

_NOT_APPLIED: Final = frozenset((ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED))
"""The controller has certainly not made the change."""
_OVERTAKEN: Final = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    )
)
"""The controller knows something newer, which the metadata will tell."""


class InSyncChanges:
    """The proposals of this node's leaders."""

    def __init__(
        self,
        ask: Callable[[Any], Deferred[Any]],
        scheduler: Scheduler,
        broker: Callable[[], tuple[int, int]],
    ) -> None:
        """`broker` returns this node's id and its broker epoch."""
        self._ask = ask
        self._scheduler = scheduler
        self._broker = broker
        self._waiting: dict[Leading, Proposal] = {}
        self._is_asking = False

    def add(self, leading: Leading) -> None:
        """Have a proposal sent."""
        assert leading.proposal is not None, "it is what is to be sent"
        self._waiting[leading] = leading.proposal
        if not self._is_asking:
            self._is_asking = True
            # What the same turn proposes for other partitions goes along.
            self._scheduler.call_soon(self._send)

    def _send(self) -> None:
        sent = {one: proposal for one, proposal in self._waiting.items() if one.proposal is proposal}
        self._waiting.clear()
        if not sent:
            self._is_asking = False
            return
        broker_id, broker_epoch = self._broker()
        request = AlterPartitionRequest(broker_id=broker_id, broker_epoch=broker_epoch, topics=_topics(sent))

        def answered(response: AlterPartitionResponse) -> None:
            self._take(sent, response)

        def failed(_error: Exception) -> None:
            self._again(sent)

        self._ask(request).when_done(answered, failed)

    def _again(self, sent: dict[Leading, Proposal]) -> None:
        self._waiting = {**sent, **self._waiting}
        self._scheduler.call_later(RETRY_MS, self._send)

    def _take(self, sent: dict[Leading, Proposal], response: AlterPartitionResponse) -> None:
        if response.error_code is not ErrorCode.NONE:
            if response.error_code is not ErrorCode.NOT_CONTROLLER:
                _logger.warning("the controller refused AlterPartition: %s", response.error_code.name)
            self._again(sent)
            return
        results: dict[tuple[Uuid, int], AlterPartitionPartitionResult] = {
            (topic.topic_id, result.partition_index): result
            for topic in response.topics
            for result in topic.partitions
        }
        retried: dict[Leading, Proposal] = {}
        for leading, proposal in sent.items():
            if leading.proposal is not proposal:
                # The metadata came first.
                continue
            partition = leading.partition
            result = results.get((partition.topic_id, partition.index))
            if result is None or not _try_to_settle(leading, result):
                retried[leading] = proposal
        if retried:
            self._again(retried)
        elif self._waiting:
            self._scheduler.call_soon(self._send)
        else:
            self._is_asking = False


def _try_to_settle(leading: Leading, result: AlterPartitionPartitionResult) -> bool:
    """Act on the answer for one partition. What fails for one must not keep the others from theirs."""
    try:
        return _settle(leading, result)
    except Exception as error:  # a bug of ours, maybe of somebody who waited for the high watermark
        _logger.critical("%r: new in-sync replicas were not acted on", leading.partition, exc_info=error)
        return True


def _settle(leading: Leading, result: AlterPartitionPartitionResult) -> bool:
    """Act on the answer for one partition. False: it has to be asked again."""
    partition = leading.partition
    error_code = result.error_code
    if error_code is ErrorCode.NONE:
        if result.leader_epoch == partition.leader_epoch:
            leading.accepted(result.isr, result.partition_epoch)
        return True
    if error_code in _NOT_APPLIED:
        leading.rejected()
        return True
    if error_code in _OVERTAKEN:
        return True
    _logger.warning("%r: the controller refused new in-sync replicas: %s", partition, error_code.name)
    return False


def _topics(proposals: dict[Leading, Proposal]) -> tuple[AlterPartitionTopic, ...]:
    topics: dict[Uuid, list[AlterPartitionPartition]] = {}
    for leading, proposal in proposals.items():
        topics.setdefault(leading.partition.topic_id, []).append(
            AlterPartitionPartition(
                partition_index=leading.partition.index,
                leader_epoch=proposal.leader_epoch,
                new_isr_with_epochs=tuple(
                    BrokerState(broker_id=broker_id, broker_epoch=epoch)
                    for broker_id, epoch in proposal.members
                ),
                leader_recovery_state=0,
                partition_epoch=proposal.partition_epoch,
            )
        )
    return tuple(
        AlterPartitionTopic(topic_id=topic_id, partitions=tuple(partitions))
        for topic_id, partitions in topics.items()
    )
