"""A link at work: it copies, follows, and tells how far it is, until it is stopped."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from ottla.client import surroundings
from ottla.client.admin import Admin
from ottla.client.admin.settings import AdminSettings
from ottla.client.cluster import Cluster
from ottla.client.errors import BrokerError, ClientError
from ottla.client.producer import Producer
from ottla.client.security import cluster_for
from ottla.mirror.copying import Copying
from ottla.mirror.following import Following, NotAnOttla
from ottla.mirror.link import Link
from ottla.mirror.maker.forwarding import Forwarding
from ottla.mirror.maker.mirror_making import MirrorMaking
from ottla.mirror.progress import Progress
from ottla.wire.error_code import ErrorCode

_logger = logging.getLogger("ottla.mirror")

STATUS_TOPIC: Final = "ottla-mirror-status"
"""In the target: for each source, how far its mirror is, as JSON."""
_STATUS_S: Final = 2.0
_FOLLOWING: Final = "following"


class Mirroring:
    """Runs one link."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.progress = Progress(link.source_name, link.target_alias, link.maker is None)

    async def run(self, stop: asyncio.Event, ready: Callable[[], None] = lambda: None) -> None:
        """Mirror until `stop` is set. A cluster that is away is waited for."""
        source = cluster_for(AdminSettings.of(dict(self.link.source)))
        target = cluster_for(AdminSettings.of(dict(self.link.target)))
        source_admin = Admin(properties=dict(self.link.source))
        target_admin = Admin(properties=dict(self.link.target))
        async with contextlib.AsyncExitStack() as stack:
            for one in (source, target, source_admin, target_admin):
                stack.push_async_callback(one.close)
                await _until(stop, one.start)
            following = Following(self.link, source_admin, target_admin, self.progress)
            copying: Copying | Forwarding
            if self.link.maker is None:
                copying = Copying(source, target, self.progress, following.halt)
            else:
                making = MirrorMaking(
                    self.link, self.link.maker, (source, source_admin), (target, target_admin), self.progress
                )
                copying = making.forwarding
                for work in making.work():
                    stack.push_async_callback(_ended, asyncio.create_task(work))
            stack.push_async_callback(copying.stop)
            telling = asyncio.create_task(self._tell(target_admin))
            stack.push_async_callback(_ended, telling)
            ready()
            rounds = asyncio.create_task(self._follow(following, copying, source, target))
            stack.push_async_callback(_ended, rounds)
            stopping = asyncio.create_task(stop.wait())
            stack.push_async_callback(_ended, stopping)
            await asyncio.wait((rounds, stopping), return_when=asyncio.FIRST_COMPLETED)
            if rounds.done():
                rounds.result()

    async def _follow(
        self, following: Following, copying: Copying | Forwarding, source: Cluster, target: Cluster
    ) -> None:
        while True:
            await self._round(following, copying, source, target)
            await asyncio.sleep(self.link.refresh_s)

    async def _round(
        self, following: Following, copying: Copying | Forwarding, source: Cluster, target: Cluster
    ) -> None:
        try:
            partitions = await following.topics()
            await source.refresh({item.topic for item in partitions.values()})
            await target.refresh({item.topic for item in partitions})
            copying.follow(partitions)
            await following.access_rules()
            if self.link.maker is None:
                await following.groups()
                await following.log_starts()
        except NotAnOttla:
            raise
        except ClientError as error:
            self.progress.note_error(_FOLLOWING, str(error))
            _logger.warning("topics, configs and groups do not follow now: %s", error)
        else:
            self.progress.note_success(_FOLLOWING)

    async def _tell(self, admin: Admin) -> None:
        """Keep in the target how far the mirror is: it must be known there when the source is gone."""
        while True:
            try:
                await self._make_status_topic(admin)
                async with Producer(properties=dict(self.link.target)) as producer:
                    while True:
                        self.progress.measure(asyncio.get_running_loop().time())
                        value = self.progress.as_json(surroundings.now_ms())
                        await producer.send(STATUS_TOPIC, value, key=self.link.source_name)
                        await producer.flush()
                        await asyncio.sleep(_STATUS_S)
            except ClientError as error:
                _logger.warning("cannot write %s: %s", STATUS_TOPIC, error)
                await asyncio.sleep(_STATUS_S)

    async def _make_status_topic(self, admin: Admin) -> None:
        try:
            await admin.topics.create(STATUS_TOPIC, partitions=1, configs={"cleanup.policy": "compact"})
        except BrokerError as error:
            if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise


async def _until(stop: asyncio.Event, start: Callable[[], Awaitable[None]]) -> None:
    """Try to reach a cluster until it is there, or until it is not needed any more."""
    while not stop.is_set():
        try:
            await start()
        except ClientError as error:
            if not error.retriable:
                raise
            _logger.warning("waiting for a cluster: %s", error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await stop.wait()
        else:
            return


async def _ended(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
