"""Hundreds of members of a streams group that come, crash and come back, while the coordinator loses power.

one runner    at no time do two members run the same active task
all run       in the end every task runs, and has its copy on another process
balance       in the end no member runs more tasks than its share
"""

import math
import random
from typing import Any

from tests.support.consumer_world import GROUP, ChangingTopics, ConsumerWorld
from tests.support.streams_topologies import counting

from ottla.coordination.group.settings import StreamsIntervals
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, TaskIds

PARTITIONS = 60
_MEMBERS_IN_THE_END_MIN = 10


class Member:
    """A thread of the application, as its client sees it."""

    def __init__(self, name: str, process: str) -> None:
        self.name = name
        self.process = process
        self.epoch = 0
        self.active: tuple[TaskIds, ...] = ()
        self.standby: tuple[TaskIds, ...] = ()

    def running(self) -> set[tuple[str, int]]:
        return {(one.subtopology_id, number) for one in self.active for number in one.partitions}


class Simulation:
    """One life of a group."""

    def __init__(self, seed: int, members: int = 200, steps: int = 1_500) -> None:
        self._members_wanted = members
        self._steps = steps
        self.crashes = 0
        self.rng = random.Random(seed)
        topics = ChangingTopics(words=PARTITIONS)
        for name in (f"{GROUP}-by-key-repartition", f"{GROUP}-counts-changelog"):
            topics.create(name, PARTITIONS)
        self.world = ConsumerWorld(topics=topics)
        self.world.own_streams_intervals = StreamsIntervals(standby_replicas=1)
        self.members: list[Member] = []
        self.made = 0

    def beat(self, member: Member, **fields: Any) -> None:
        ask = StreamsGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member.name,
            member_epoch=member.epoch,
            endpoint_information_epoch=-1,
            **{
                "active_tasks": member.active,
                "standby_tasks": member.standby,
                "warmup_tasks": (),
                **fields,
            },
        )
        answer = self.world.ask("streams_group_heartbeat", ask).response
        if answer.error_code is not ErrorCode.NONE:
            # It was taken out: it stops everything, and joins again later.
            self.members.remove(member)
            return
        member.epoch = answer.member_epoch
        if answer.active_tasks is not None:
            member.active, member.standby = answer.active_tasks, answer.standby_tasks
        self.check()

    def join(self) -> None:
        self.made += 1
        member = Member(f"m{self.made}", f"p{self.made // 4}")
        self.members.append(member)
        self.beat(
            member,
            topology=counting(GROUP, "words"),
            rebalance_timeout_ms=20_000,
            process_id=member.process,
            client_tags=(),
        )

    def step(self) -> None:
        chance = self.rng.random()
        if chance < 0.01:
            self.crashes += 1
            self.world.crash()
        elif chance < 0.03 and self.members:
            # It dies without a word, and stops what it ran. The coordinator finds out later.
            self.members.remove(self.rng.choice(self.members))
        elif chance < 0.05 and len(self.members) < self._members_wanted:
            self.join()
        elif chance < 0.06:
            self.world.advance(2_000)
        elif self.members:
            self.beat(self.rng.choice(self.members))

    def check(self) -> None:
        owners: dict[tuple[str, int], str] = {}
        for member in self.members:
            for task in member.running():
                assert task not in owners, f"{task} runs on {owners[task]} and on {member.name}"
                owners[task] = member.name

    def run(self) -> None:
        """Go through trouble, then through the end."""
        for _ in range(self._members_wanted):
            self.join()
        for _ in range(self._steps):
            self.step()
        while len(self.members) < _MEMBERS_IN_THE_END_MIN:
            self.join()
        self._settle()
        self._check_end()

    def summary(self) -> str:
        """Say what has happened."""
        return (
            f"{self.made} members, {len(self.members)} in the end, {self.crashes} crashes of the coordinator"
        )

    def _settle(self) -> None:
        """Let everybody be heard of until nothing changes."""
        for _ in range(12):
            self.world.advance(5_000)
            for member in list(self.members):
                self.beat(member)

    def _check_end(self) -> None:
        running = {task: member for member in self.members for task in member.running()}
        assert len(running) == 2 * PARTITIONS, f"all run: only {len(running)} tasks do"
        share = math.ceil(2 * PARTITIONS / len(self.members))
        most = max(len(member.running()) for member in self.members)
        assert most <= share, f"balance: a member runs {most} tasks, its share is {share}"
        for member in self.members:
            for one in member.standby:
                for number in one.partitions:
                    runner = running[one.subtopology_id, number]
                    assert runner.process != member.process, "all run: a copy is where the task runs"
