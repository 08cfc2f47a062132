"""The share session with one broker: which partitions are read there, and what is acknowledged.

A session is a member and an epoch that counts its requests, fetches and acknowledgements alike. So one
request is on the way at a time, and all of them use one connection: the broker ends the session with it.
When a session is lost, the broker gives back what the member held. What is acknowledged after that must not
reach the next session, where the same offset may have been delivered again.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from ottla.client.cluster import FETCH_LANE, Cluster
from ottla.client.errors import BrokerError, ClientError, raise_for
from ottla.client.share.acknowledgements import Acknowledgements
from ottla.client.share.record import SharePartition
from ottla.client.share.settings import ShareConsumerSettings
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages import share_acknowledge, share_fetch

_FIRST_EPOCH: Final = 0
_FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = (1 << 31) - 1
_SESSION_LOST: Final = (
    ErrorCode.SHARE_SESSION_NOT_FOUND,
    ErrorCode.INVALID_SHARE_SESSION_EPOCH,
    ErrorCode.SHARE_SESSION_LIMIT_REACHED,
)
# The leader gave the records back, or the topic is gone: to acknowledge again would not help.
NOT_LEADING: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
)

Pending = dict[SharePartition, Acknowledgements]
Outcome = Callable[[SharePartition, Acknowledgements, ClientError | None], None]
"""Told what became of acknowledgements: None means that the broker has taken them."""


class ShareSession:
    """The session of one member with one broker."""

    def __init__(
        self,
        cluster: Cluster,
        node_id: int,
        member_id: str,
        settings: ShareConsumerSettings,
        outcome: Outcome,
    ) -> None:
        self.node_id = node_id
        self.lock_timeout_ms: int | None = None
        self.generation = 0
        """Counts the sessions that were lost."""
        self.wait_until_s = 0.0
        self._cluster = cluster
        self._member_id = member_id
        self._settings = settings
        self._outcome = outcome
        self._epoch = _FIRST_EPOCH
        self._read: frozenset[SharePartition] = frozenset()
        self._pending: Pending = {}
        self._one_at_a_time = asyncio.Lock()

    @property
    def has_pending(self) -> bool:
        """Say whether something waits to be acknowledged."""
        return bool(self._pending)

    @property
    def is_busy(self) -> bool:
        """Say whether a request is on the way."""
        return self._one_at_a_time.locked()

    def pending_of(self, partition: SharePartition) -> Acknowledgements:
        """Return what waits to be acknowledged in a partition, to add to it."""
        return self._pending.setdefault(partition, Acknowledgements())

    async def fetch(
        self, wanted: frozenset[SharePartition], records_max: int
    ) -> dict[SharePartition, share_fetch.PartitionData]:
        """Acquire records, and acknowledge what waits. Raises when the broker cannot be asked."""
        async with self._one_at_a_time:
            if any(partition not in wanted or acks.renews for partition, acks in self._pending.items()):
                # A fetch reads every partition that it acknowledges, and cannot renew locks beside.
                await self._acknowledge(self._epoch)
            sent = self._take_pending()
            settings = self._settings
            request = share_fetch.ShareFetchRequest(
                group_id=settings.group_id,
                member_id=self._member_id,
                share_session_epoch=self._epoch,
                max_wait_ms=settings.fetch_max_wait_ms,
                min_bytes=settings.fetch_min_bytes,
                max_bytes=settings.fetch_max_bytes,
                max_records=records_max,
                batch_size=records_max,
                share_acquire_mode=settings.acquire_mode,
                topics=_fetch_topics(wanted - self._read, sent),
                forgotten_topics_data=_forgotten(self._read - wanted),
            )
            answer = await self._ask(request, sent)
            self._read = wanted
            return self._partitions_of(answer, sent, "acknowledge_error_code", "acknowledge_error_message")

    async def acknowledge(self) -> None:
        """Acknowledge what waits, after the request that is on the way."""
        async with self._one_at_a_time:
            await self._acknowledge(self._epoch)

    async def close(self) -> None:
        """Acknowledge what waits, and give back all that is still held."""
        async with self._one_at_a_time:
            if self._epoch != _FIRST_EPOCH:
                await self._acknowledge(_FINAL_EPOCH)
                self._lose()

    async def _acknowledge(self, epoch: int) -> None:
        sent = self._take_pending()
        if not sent and epoch != _FINAL_EPOCH:
            return
        request = share_acknowledge.ShareAcknowledgeRequest(
            group_id=self._settings.group_id,
            member_id=self._member_id,
            share_session_epoch=epoch,
            is_renew_ack=any(acks.renews for acks in sent.values()),
            topics=_acknowledge_topics(sent),
        )
        answer = await self._ask(request, sent)
        self._partitions_of(answer, sent, "error_code", "error_message")

    def _take_pending(self) -> Pending:
        taken = {partition: acks for partition, acks in self._pending.items() if acks}
        self._pending = {}
        if taken and self._epoch == _FIRST_EPOCH:
            # A session begins without acknowledgements: it does not hold anything yet.
            self._tell(taken, BrokerError(ErrorCode.INVALID_SHARE_SESSION_EPOCH, "the session was lost"))
            return {}
        return taken

    async def _ask(self, request: Any, sent: Pending) -> Any:
        """Send a request of the session. When it fails, so do the acknowledgements in it."""
        try:
            connection = await self._cluster.connection(self.node_id, FETCH_LANE)
            version = connection.version_for(type(request))
            answer = await connection.ask(request, version)
            what = f"broker {self.node_id} refused group {self._settings.group_id!r}"
            raise_for(answer.error_code, what, answer.error_message)
        except BaseException as error:
            code = error.error_code if isinstance(error, BrokerError) else None
            if code is None or code in _SESSION_LOST:
                self._lose()
            else:
                self._next_epoch()
            failure = error if isinstance(error, ClientError) else ClientError("the call was cancelled")
            self._tell(sent, failure)
            raise
        self._next_epoch()
        if answer.acquisition_lock_timeout_ms > 0:
            self.lock_timeout_ms = answer.acquisition_lock_timeout_ms
        return answer

    def _partitions_of(
        self, answer: Any, sent: Pending, code_field: str, message_field: str
    ) -> dict[SharePartition, Any]:
        """Return the answer by partition, after telling what became of the acknowledgements."""
        known = {(item.topic_id, item.partition): item for item in (*self._read, *sent)}
        found = {
            known[topic.topic_id, data.partition_index]: data
            for topic in answer.responses
            for data in topic.partitions
            if (topic.topic_id, data.partition_index) in known
        }
        for partition, acks in sent.items():
            data = found.get(partition)
            code = ErrorCode.NONE if data is None else getattr(data, code_field)
            if code is ErrorCode.NONE:
                self._outcome(partition, acks, None)
            elif code.retriable and code not in NOT_LEADING:
                self.pending_of(partition).merge(acks)
            else:
                what = f"{partition.where} did not take the acknowledgements"
                self._outcome(partition, acks, BrokerError(code, what, getattr(data, message_field)))
        return found

    def _next_epoch(self) -> None:
        self._epoch = 1 if self._epoch == _EPOCH_MAX else self._epoch + 1

    def _lose(self) -> None:
        self._epoch = _FIRST_EPOCH
        self._read = frozenset()
        self.generation += 1

    def _tell(self, sent: Mapping[SharePartition, Acknowledgements], error: ClientError) -> None:
        for partition, acks in sent.items():
            self._outcome(partition, acks, error)


def _by_topic(partitions: Collection[SharePartition]) -> dict[Uuid, list[SharePartition]]:
    by_topic: dict[Uuid, list[SharePartition]] = {}
    for partition in sorted(partitions, key=lambda item: (item.topic, item.partition)):
        by_topic.setdefault(partition.topic_id, []).append(partition)
    return by_topic


def _fetch_topics(added: frozenset[SharePartition], sent: Pending) -> tuple[share_fetch.FetchTopic, ...]:
    return tuple(
        share_fetch.FetchTopic(
            topic_id=topic_id,
            partitions=tuple(
                share_fetch.FetchPartition(
                    partition_index=item.partition,
                    acknowledgement_batches=tuple(
                        share_fetch.AcknowledgementBatch(
                            first_offset=first, last_offset=last, acknowledge_types=types
                        )
                        for first, last, types in (sent[item].runs() if item in sent else ())
                    ),
                )
                for item in partitions
            ),
        )
        for topic_id, partitions in _by_topic(added | sent.keys()).items()
    )


def _acknowledge_topics(sent: Pending) -> tuple[share_acknowledge.AcknowledgeTopic, ...]:
    return tuple(
        share_acknowledge.AcknowledgeTopic(
            topic_id=topic_id,
            partitions=tuple(
                share_acknowledge.AcknowledgePartition(
                    partition_index=item.partition,
                    acknowledgement_batches=tuple(
                        share_acknowledge.AcknowledgementBatch(
                            first_offset=first, last_offset=last, acknowledge_types=types
                        )
                        for first, last, types in sent[item].runs()
                    ),
                )
                for item in partitions
            ),
        )
        for topic_id, partitions in _by_topic(sent).items()
    )


def _forgotten(partitions: frozenset[SharePartition]) -> tuple[share_fetch.ForgottenTopic, ...]:
    return tuple(
        share_fetch.ForgottenTopic(topic_id=topic_id, partitions=tuple(item.partition for item in found))
        for topic_id, found in _by_topic(partitions).items()
    )
