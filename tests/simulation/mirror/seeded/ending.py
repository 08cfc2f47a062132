"""What must hold at the end: copies are what their sources are, and become writable."""

import asyncio
from collections.abc import Callable, Collection
from typing import Final

from tests.simulation.cluster.rules.wrong import Wrong, must
from tests.simulation.mirror.seeded.source import QUICK, Source
from tests.simulation.mirror.seeded.truth import Life, Truth
from tests.simulation.mirror.seeded.watch import HALTS, Watch, kind_of
from tests.simulation.mirror.world import content

from ottla.client import surroundings
from ottla.client.admin import Admin
from ottla.client.admin.topics import TopicDescription
from ottla.client.consumer import Consumer
from ottla.client.errors import ClientError
from ottla.client.producer import Producer
from ottla.mirror import halting
from ottla.mirror.copies import Copy, find_copies, read_statuses
from ottla.mirror.failing_over import FailedOver, UnknownLoss, fail_over
from ottla.mirror.mirroring import Mirroring
from ottla.model.ids import TopicPartition

QUIET_S_MAX: Final = 150
_EVERY_S: Final = 1.0


class Ending:
    """Checks what is there in the end."""

    def __init__(
        self,
        source: str,
        target: str,
        truth: Truth,
        watch: Watch,
        topics: Source,
        tell: Callable[[str], None],
    ) -> None:
        self._source = source
        self._target = target
        self._truth = truth
        self._watch = watch
        self._topics = topics
        self._tell = tell

    def _admin(self) -> Admin:
        return Admin(self._target, default_api_timeout_ms=20_000, **QUICK)

    async def check_quiet(self, mirrors: Callable[[], Collection[Mirroring]]) -> None:
        """When the source rests, each copy is equal to it, or says why it is not."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + QUIET_S_MAX
        while True:
            try:
                complaint = await self._find_unquiet(mirrors())
            except ClientError as error:
                complaint = f"a cluster does not answer: {error}"
            if complaint is None:
                break
            must(loop.time() < until_s, f"quiet: {complaint}")
            await asyncio.sleep(_EVERY_S)
        await self.check_copies()

    async def _find_unquiet(self, mirrors: Collection[Mirroring]) -> str | None:
        if not mirrors:
            return "no mirror works"
        waiting = set()
        for mirroring in mirrors:
            for where, part in mirroring.progress.partitions.items():
                if part.error is not None:
                    waiting.add(where)
                    if not self._may_wait(where, part.error):
                        return f"{where}: {part.error}"
            if mirroring.progress.error is not None or mirroring.progress.topic_errors:
                return f"{mirroring.progress.error} {mirroring.progress.topic_errors}"
        for topic, life in self._truth.current.items():
            for number in range(self._topics.partitions[topic]) if life is not None else ():
                where = TopicPartition(topic, number)
                # A topic that waits as a whole gets no further partitions.
                waits = {where, TopicPartition(topic, 0)} & waiting
                if not waits and (complaint := await self._find_unequal(where, mirrors)):
                    return complaint
        return await self._find_wrong_status(waiting)

    async def _find_unequal(self, where: TopicPartition, mirrors: Collection[Mirroring]) -> str | None:
        for mirroring in mirrors:
            part = mirroring.progress.partitions.get(where)
            if part is None or part.lag != 0:
                return f"{where}: {part}"
        (start, end, ours), (began, ended, theirs) = [
            await content(bootstrap, where) for bootstrap in (self._target, self._source)
        ]
        if start < began or end != ended:
            return f"{where}: the copy has {start} to {end}, and the source {began} to {ended}"
        # A leader that is alone may have forgotten after a power cut what was removed.
        if start == began and not self._is_mixed(where) and ours != theirs:
            return f"{where}: the copy has other bytes than the source"
        return None

    def _may_wait(self, where: TopicPartition, error: str) -> bool:
        if kind_of(error) in HALTS:
            return self._truth.lives_of(where.topic) > 1
        return self._truth.current.get(where.topic) is None and "has no topic" in error

    def _is_mixed(self, where: TopicPartition) -> bool:
        return any(where.topic == segments[-1][1].topic for segments in self._truth.went_on.values())

    async def _find_wrong_status(self, waiting: Collection[TopicPartition]) -> str | None:
        async with self._admin() as admin:
            copies = await self._copies(admin)
        for copy in copies:
            assert copy.partition is not None
            is_waiting = TopicPartition(copy.topic, copy.partition) in waiting
            if copy.partition >= self._topics.partitions[copy.topic]:
                # An earlier life of the topic had more of them.
                is_waiting = True
            if is_waiting and copy.lag is not None:
                return f"status: {copy.name} waits for an operator, and has a lag of {copy.lag}"
            if not is_waiting and copy.lag != 0:
                return f"status: {copy.name} has a lag of {copy.lag}: {copy.error}"
        return None

    async def _copies(self, admin: Admin) -> list[Copy]:
        statuses = await read_statuses({"bootstrap.servers": self._target})
        return await find_copies(admin, statuses, surroundings.now_ms())

    # What is in the copies

    async def check_copies(self) -> None:
        """Compare all copies with what the source has acknowledged."""
        async with self._admin() as admin:
            for description, life in await self._mirrors(admin):
                if description.topic_id in self._truth.unclear:
                    continue
                for where in description.topic_partitions:
                    bounds, records = await self._read(where)
                    self._truth.check_copy(description.topic_id, where.partition, life, bounds, records)

    async def _mirrors(self, admin: Admin) -> list[tuple[TopicDescription, Life]]:
        names = [item.name for item in await admin.topics.list() if item.name.startswith("topic-")]
        configs = await halting.own_configs(admin, names)
        found = []
        for name in names:
            description = await admin.topics.describe(name)
            life = self._truth.find_life(configs[name].get(halting.TOPIC_ID_CONFIG))
            must(
                life is not None or description.topic_id in self._truth.unclear,
                f"copy: {name} does not say of which topic it is a copy",
            )
            if life is not None:
                found.append((description, life))
        return found

    async def _read(self, where: TopicPartition) -> tuple[tuple[int, int], list[tuple[int, bytes]]]:
        records: list[tuple[int, bytes]] = []
        async with Consumer(self._target, auto_offset_reset="earliest", **QUICK) as consumer:
            start = (await consumer.beginning_offsets([where]))[where]
            end = (await consumer.end_offsets([where]))[where]
            consumer.assign([where])
            consumer.seek(where, start)
            while await consumer.position(where) < end:
                for record in await consumer.poll(500):
                    assert record.value is not None
                    records.append((record.offset, record.value))
        must(
            [offset for offset, _ in records] == sorted({offset for offset, _ in records}),
            f"offsets: {where} has an offset twice",
        )
        return (start, end), records

    # Fail-over

    async def fail_over(self, by_names: bool) -> None:
        """Make all copies writable. What nobody knows has to be accepted by its name."""
        async with self._admin() as admin:
            mirrors = await self._mirrors(admin)
            await self.check_copies()
            before = await self._copies(admin)
            unknown = {copy.topic for copy in before if copy.lag is None}
            topics = sorted(await halting.mirrored_topics(admin)) if by_names else []
            statuses = await read_statuses({"bootstrap.servers": self._target})
            now_ms = surroundings.now_ms()
            if unknown:
                try:
                    await fail_over(admin, topics, statuses, now_ms)
                except UnknownLoss:
                    pass
                else:
                    raise Wrong(f"failover: nobody knows what {unknown} lack, and they became writable")
            done = await fail_over(admin, topics, statuses, now_ms, unknown)
            self._check_losses(done, before)
            self._tell(f"copies are writable: {done}")
            must(not await halting.mirrored_topics(admin), "failover: a copy is a mirror still")
            for description, _ in mirrors:
                for where in description.topic_partitions:
                    await self._write_and_read(where)

    def _check_losses(self, done: Collection[FailedOver], before: Collection[Copy]) -> None:
        known = {(copy.topic, copy.partition): copy for copy in before}
        for item in done:
            copy = known[item.where.topic, item.where.partition]
            must(
                (item.lost is None) == (copy.lag is None),
                f"failover: {item.where} lacks {item.lost}, and its lag is {copy.lag}",
            )
            if item.lost is not None:
                must(
                    item.lost <= copy.source_end,
                    f"failover: {item.where} lacks {item.lost} of {copy.source_end}",
                )

    async def _write_and_read(self, where: TopicPartition) -> None:
        """A reader of committed records gets to the end, also behind what was open."""
        async with Producer(self._target, linger_ms=0, **QUICK) as producer:
            sent = await producer.send_and_wait(where.topic, b"mine", partition=where.partition)
        async with Consumer(
            self._target, isolation_level="read_committed", auto_offset_reset="earliest", **QUICK
        ) as consumer:
            consumer.assign([where])
            last: bytes | None = None
            async with asyncio.timeout(60):
                while await consumer.position(where) <= sent.offset:
                    for record in await consumer.poll(500):
                        last = record.value
            must(last == b"mine", f"failover: {where} ends with {last!r}")
