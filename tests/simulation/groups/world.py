"""A coordinator and hundreds of consumers in virtual time, all out of one seed.

Requests and answers take time and get lost; consumers come, go, crash and pause; the coordinator loses power
at any moment, and with it what was not synced; its log refuses writes for a while; the wall clock jumps.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Final

from tests.simulation.group_run import GroupRun
from tests.simulation.groups.checks import Checks
from tests.simulation.groups.consumer import REQUEST_TIMEOUT_MS, TOPIC, Consumer
from tests.support.group_world import START_MS, FixedTopics, GroupWorld

from ottla.coordination.group.settings import GroupSettings
from ottla.wire.error_code import ErrorCode

TROUBLE_MS: Final = 180_000
PARTITIONS: Final = 24
NEVER_MS: Final = 10**12


class Simulation(GroupRun[GroupWorld, Consumer]):
    """One run."""

    trouble_pause_ms_max = 4_000
    request_timeout_ms = REQUEST_TIMEOUT_MS
    latency_ms_max = 50
    calm_ms = 120_000

    def __init__(self, seed: int, groups: int = 4, members: int = 120, trouble_ms: int = TROUBLE_MS) -> None:
        rng = Random(seed)
        settings = GroupSettings(
            initial_rebalance_delay_ms=rng.choice((0, 500, 3000)),
            # An expired group would start its generations over.
            offsets_retention_check_interval_ms=NEVER_MS,
        )
        world = GroupWorld(settings, FixedTopics(**{TOPIC: PARTITIONS}), partitions=3)
        super().__init__(rng, world, trouble_ms)
        self.checks = Checks(self)
        self._groups = [f"group-{number}" for number in range(groups)]
        for _ in range(members):
            self.after(self.rng.randrange(20_000), self._add_consumer)

    def assign(self, member_ids: list[str]) -> dict[str, bytes]:
        """Return what a leader hands out: partitions in ranges, one byte for each."""
        assignments: dict[str, bytearray] = {member_id: bytearray() for member_id in member_ids}
        for partition in range(PARTITIONS):
            assignments[member_ids[partition * len(member_ids) // PARTITIONS]].append(partition)
        return {member_id: bytes(partitions) for member_id, partitions in assignments.items()}

    def answered(self, method: str, request: Any, response: Any) -> None:
        if method == "fetch_offsets":
            self.checks.fetched(response)
        elif method == "commit_offsets" and response.topics[0].partitions[0].error_code is ErrorCode.NONE:
            self.checks.commit_acknowledged(request)

    def check_log(self) -> None:
        self.checks.replay_equals_memory(self.world)

    def check_end(self) -> None:
        self.checks.committed_is_acknowledged(self.world)
        self.checks.everybody_works(self.members, PARTITIONS)

    # Trouble

    def troubles(self) -> tuple[Callable[[], None], ...]:
        return (
            self.crash_member, self.crash_member, self._restart_consumer, self._restart_consumer,
            self.pause_member, self.pause_member, self.leave, self.leave, self._add_consumer,
            self._add_consumer, self.crash_coordinator, self.crash_coordinator, self.refuse_appends,
            self._replace_consumer, self._replace_consumer,
            self._turn_the_clock,
        )  # fmt: skip

    def crash_coordinator(self) -> None:
        super().crash_coordinator()
        self.checks.committed_is_acknowledged(self.world)

    def _add_consumer(self) -> None:
        # One in four is static. Old clients know nothing of that.
        version = self.rng.choice((3, 4, 5, 8, 9, 9))
        number = len(self.members)
        instance_id = f"instance-{number}" if version >= 5 and self.rng.random() < 0.25 else None
        group = self.rng.choice(self._groups)
        self.start_member(Consumer(self, f"consumer-{number}", group, instance_id, version))

    def _start_again(self, old: Consumer) -> None:
        """Have somebody come back as another process."""
        name = f"consumer-{len(self.members)}"
        again = Consumer(self, name, old.group, old.instance_id, old.client.version)
        self.after(self.rng.randrange(8_000), lambda: self.start_member(again))

    def _restart_consumer(self) -> None:
        if (consumer := self.pick()) is not None:
            consumer.crash()
            self._start_again(consumer)

    def _replace_consumer(self) -> None:
        """A static member hangs and is started anew elsewhere, but then the old one goes on."""
        static = [one for one in self.members if one.is_alive and one.instance_id is not None]
        if static:
            old = self.rng.choice(static)
            old.resumes_at_ms = self.now_ms + self.rng.randrange(20_000)
            self._start_again(old)

    def _turn_the_clock(self) -> None:
        self.world.clock.wall_ms = max(
            START_MS, self.world.clock.wall_ms + self.rng.randrange(-(10**7), 10**7)
        )
