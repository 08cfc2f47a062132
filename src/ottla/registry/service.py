"""A registry instance: what it knows, and how it changes it.

Reads are answered from what was read of the topic. Writes are made by one instance at a time, one after the
other: it reads to the end of the topic, decides, appends, and answers when it has read what it wrote. Others
forward to it.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from ottla.client import surroundings
from ottla.client.admin.admin import Admin
from ottla.client.admin.settings import AdminSettings
from ottla.client.errors import BrokerError, ClientError
from ottla.client.properties import Properties
from ottla.client.security import cluster_for
from ottla.registry.checking.answers import Answers, Attempts
from ottla.registry.checking.pool import WorkerPool
from ottla.registry.deciding.decision import Decision
from ottla.registry.deciding.registration import Registration
from ottla.registry.errors import no_leader, store_failed, timed_out, too_large
from ottla.registry.leading.election import Election
from ottla.registry.leading.protocol import Identity
from ottla.registry.parsing import Parser
from ottla.satellite.instances import Instances
from ottla.satellite.keys import InstanceKeys
from ottla.satellite.topic import TopicReader, TopicWriter, WriterFenced, ensure_topic
from ottla.schemas.stored.records import NOOP, UnreadableRecord, decode
from ottla.schemas.stored.state import State
from ottla.wire.error_code import ErrorCode

_logger = logging.getLogger(__name__)
T = TypeVar("T")
_KEYS_SUFFIX: Final = "_instances"
_KEY_CHECK_S: Final = 30.0
_TOO_LARGE: Final = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


@dataclass(frozen=True)
class RegistrySettings:
    """The settings of an instance, beside those of its connection to the cluster and of its server."""

    topic: str = "_schemas"
    group_id: str = "schema-registry"
    timeout_s: float = 60.0
    """How long a write may wait for the cluster, and for an instance that writes."""
    is_eligible: bool = True


class Registry:
    """One instance."""

    def __init__(
        self,
        properties: Properties,
        settings: RegistrySettings,
        identity: Identity,
        tls: ssl.SSLContext,
        *,
        trusts_group: bool = False,
    ) -> None:
        self.settings = settings
        self.identity = identity
        self.state = State()
        self._workers = WorkerPool()
        self.answers = Answers(self._workers.ask)
        self.parser = Parser(self.state, self.answers)
        self.registration = Registration(self.state, self.parser)
        self.cluster_id = ""
        self.leader: Identity | None = None
        retry_ms = int(settings.timeout_s * 1000)
        connection = AdminSettings.of(properties)
        self._cluster = cluster_for(connection, retry_timeout_ms=retry_ms)
        # Elections must not wait behind a write that is retried.
        self._group_cluster = cluster_for(connection, retry_timeout_ms=retry_ms)
        self._properties = properties
        self._reader = TopicReader(self._cluster, settings.topic, self._replay)
        self._keys = InstanceKeys(self._cluster, f"{settings.topic}{_KEYS_SUFFIX}")
        self.instances = Instances(
            identity.url,
            self._keys.current,
            tls,
            surroundings.now_ms,
            timeout_s=settings.timeout_s,
            trusts_group=trusts_group,
        )
        self._writer: TopicWriter | None = None
        self._turn = 0
        """How often it was said who writes."""
        self._election = Election(self._group_cluster, settings.group_id, identity, self._chosen)
        self._write_lock = asyncio.Lock()
        self._leader_changed = asyncio.Condition()
        self._renewing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read the topic, and join the other instances."""
        await self._workers.start()
        await self._cluster.start()
        await self._group_cluster.start()
        async with Admin(properties=self._properties) as admin:
            self.cluster_id = (await admin.cluster.describe()).cluster_id or ""
            await ensure_topic(admin, self.settings.topic)
            await self._follow_keys(admin)
        await self._cluster.refresh([self.settings.topic])
        await self._reader.start()
        self._election.start()
        self._renewing = asyncio.create_task(self._renew_keys())

    async def _follow_keys(self, admin: Admin) -> None:
        try:
            await self._keys.start(admin)
        except ClientError as error:
            # One instance alone needs no key.
            _logger.warning("this instance cannot forward to others, nor take from them: %s", error)

    async def _renew_keys(self) -> None:
        while True:
            await asyncio.sleep(_KEY_CHECK_S)
            if self._writer is not None:
                await self._renew_key()

    async def _renew_key(self) -> None:
        try:
            await self._keys.renew()
        except ClientError as error:
            _logger.warning("the key of the instances could not be renewed, trying again: %s", error)

    async def stop(self) -> None:
        """Leave the other instances, and stop reading."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
        await self._election.stop()
        await self._workers.stop()
        await self._keys.stop()
        await self._reader.stop()
        await self._cluster.close()
        await self._group_cluster.close()

    @property
    def is_leader(self) -> bool:
        """Say whether this instance writes."""
        return self._writer is not None

    async def wait_for_leader(self, unlike: Identity | None = None) -> Identity:
        """Return the instance that writes, as soon as there is one (that is not `unlike`)."""

        def is_known() -> bool:
            return self.leader is not None and self.leader != unlike

        try:
            async with asyncio.timeout(self.settings.timeout_s), self._leader_changed:
                await self._leader_changed.wait_for(is_known)
        except TimeoutError:
            raise no_leader() from None
        assert self.leader is not None, "it was waited for"
        return self.leader

    async def change(self, decide: Callable[[], Decision[T]]) -> T:
        """Decide and write, as the instance that writes. Raises RegistryError."""
        attempts = Attempts(self.answers, decide)
        # Others may write while an answer is found out.
        return await attempts.settle(lambda: self._change(attempts))

    async def _change(self, decide: Callable[[], Decision[T]]) -> T:
        writer: TopicWriter | None = None
        try:
            async with asyncio.timeout(self.settings.timeout_s), self._write_lock:
                writer = self._writer
                if writer is None:
                    raise no_leader()
                # A write that was given up may still arrive.
                await writer.settle()
                # Another implementation may share the topic and not know of this writer.
                await self._reader.catch_up()
                decision = decide()
                if decision.records:
                    await writer.append(decision.records)
                return decision.answer
        except TimeoutError:
            await self._resign(writer)
            raise timed_out("Write to the Kafka store timed out") from None
        except WriterFenced:
            await self._resign(writer)
            raise no_leader() from None
        except BrokerError as error:
            if error.error_code in _TOO_LARGE:
                raise too_large() from None
            await self._resign(writer)
            raise store_failed(f"Write to the Kafka store failed: {error}") from error
        except ClientError as error:
            await self._resign(writer)
            raise store_failed(f"Write to the Kafka store failed: {error}") from error

    async def _resign(self, writer: TopicWriter | None) -> None:
        """Begin again as a writer before the next write: it is not known how the last one ended.

        `writer` is what wrote. Who only waited for others to write, or was late, ends nothing of theirs.
        """
        if writer is not None and self._writer is writer:
            self._writer = None
            leader, self.leader = self.leader or self.identity, None
            try:
                await self._chosen(leader)
            except BaseException as error:
                # The group does not know: nobody would write until somebody comes or goes.
                self._election.step_back()
                if not isinstance(error, ClientError):
                    raise
                _logger.warning("this instance cannot write now, another one may: %s", error)

    async def _chosen(self, leader: Identity | None) -> None:
        """Note the writer. If it is this instance, it takes over before it says so.

        That takes time. If another one is named meanwhile, that is what counts.
        """
        self._turn += 1
        turn = self._turn
        if leader is None or leader.url != self.identity.url:
            self._writer = None
        elif self._writer is None:
            writer = TopicWriter(self._cluster, self._reader, self._writer_name, [NOOP])
            await writer.start()
            if turn != self._turn:
                return
            self._writer = writer
            _logger.info("this instance writes now: %s", self.identity.url)
            await self._renew_key()
        async with self._leader_changed:
            if turn == self._turn:
                self.leader = leader
                self._leader_changed.notify_all()

    def _replay(self, record: Any) -> None:
        try:
            self.state.replay(decode(record.key, record.value, record.timestamp))
        except UnreadableRecord as error:
            topic = self.settings.topic
            _logger.warning("offset %d of topic %r is ignored: %s", record.offset, topic, error)

    @property
    def _writer_name(self) -> str:
        """The transactional id that all instances share. It fences; there are no transactions."""
        return f"ottla.registry.{self.settings.group_id}.{self.settings.topic}"
