"""What the operator of the target does about copies that wait for a decision."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Final

from tests.simulation.mirror.seeded.source import ACT, QUICK, Source
from tests.simulation.mirror.seeded.truth import Life, Truth
from tests.simulation.mirror.seeded.watch import Watch

from ottla.client.admin import Admin
from ottla.client.errors import BrokerError, ClientError
from ottla.mirror import halting
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode

EVERY_S: Final = 1.0
_PATIENCE_S: Final = 20


class Operator:
    """Deletes copies, or lets them go on."""

    def __init__(
        self,
        bootstrap: str,
        rng: Random,
        source: Source,
        truth: Truth,
        watch: Watch,
        tell: Callable[[str], None],
    ) -> None:
        self._bootstrap = bootstrap
        self._rng = rng
        self._source = source
        self._truth = truth
        self._watch = watch
        self._tell = tell
        self.is_over = False

    async def work(self) -> None:
        """Look now and then whether there is something to decide."""
        while not self.is_over:
            await asyncio.sleep(EVERY_S)
            copies = sorted(self._watch.halted, key=str)
            if not copies or self._rng.random() < 0.5:
                continue
            copy_id, where = self._rng.choice(copies)
            if self._rng.random() < 0.5:
                await self._delete(copy_id, where.topic)
            else:
                await self._let_go_on(copy_id, where.topic)

    async def _delete(self, copy_id: Uuid, name: str) -> None:
        try:
            async with Admin(self._bootstrap, default_api_timeout_ms=6_000, **QUICK) as admin:
                await admin.topics.delete(name)
        except BrokerError as error:
            if error.error_code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return
        except ClientError:
            return
        self._tell(f"the copy {name} is deleted, to begin again")
        self._source.met[ACT, "a copy is deleted"] += 1
        self._watch.decided(copy_id)

    async def _let_go_on(self, copy_id: Uuid, name: str) -> None:
        """Let a copy go on at its end, and find out with which topic it did."""
        async with self._source.changing:
            life = self._truth.current.get(name)
            if life is None:
                return
            try:
                async with (
                    asyncio.timeout(_PATIENCE_S),
                    Admin(self._bootstrap, default_api_timeout_ms=6_000, **QUICK) as admin,
                ):
                    await self._resume(admin, copy_id, life)
            except (ClientError, TimeoutError):
                # Whether it goes on, and with what, is not known: nobody can say what belongs there.
                self._tell(f"nobody knows whether {name} goes on")
                self._truth.unclear.add(copy_id)

    async def _resume(self, admin: Admin, copy_id: Uuid, life: Life) -> None:
        name = life.topic
        description = await admin.topics.describe(name)
        if description.topic_id != copy_id:
            return
        ends = (await admin.offsets.latest(list(description.topic_partitions))).check()
        configs = (await halting.own_configs(admin, [name]))[name]
        old = self._truth.find_life(configs.get(halting.TOPIC_ID_CONFIG))
        self._tell(f"the copy {name} is to go on")
        self._watch.decided(copy_id)
        await halting.resume(admin, [name])
        while True:
            configs = (await halting.own_configs(admin, [name]))[name]
            if configs.get(halting.TOPIC_ID_CONFIG) == str(life.id):
                break
            await asyncio.sleep(0.1)
        self._source.met[ACT, "a copy goes on"] += 1
        for where, end in ends.items():
            key = (copy_id, where.partition)
            before = self._truth.went_on.get(key) or ([(0, old)] if old is not None else [])
            self._truth.went_on[key] = [*before, (end.offset, life)]
