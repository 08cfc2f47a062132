"""Members of a group that share work, and the one that writes: none goes on when another may have begun."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.simulation.clients.cutting import Cut, Stage, cut_everywhere

from ottla.client.admin.settings import AdminSettings
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.client.security import cluster_for
from ottla.client.worker_group import WorkerGroup
from ottla.satellite.topic import TopicReader, TopicWriter
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity

SESSION_S = 6


def clients_of(stage: Stage) -> Cluster:
    return cluster_for(AdminSettings.of({"bootstrap.servers": stage.bootstrap}), retry_timeout_ms=60_000)


class Role:
    """A member that notes what happens to it."""

    protocol_type = "work"

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.happened: list[tuple[str, float]] = []
        self.takes_s = 0.0
        self.fails_with: list[Exception] = []
        self._loop = loop

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        return [("v1", b"")]

    def assign(self, _protocol: str, _leader_id: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        return dict.fromkeys(members, b"share")

    async def assigned(self, _member_id: str, _generation: int, _share: bytes) -> None:
        await asyncio.sleep(self.takes_s)
        if self.fails_with:
            raise self.fails_with.pop(0)
        self.happened.append(("assigned", self._loop.time()))

    async def lost(self) -> None:
        self.happened.append(("lost", self._loop.time()))

    async def until(self, what: str, count: int = 1) -> float:
        """Wait until something has happened so often, and return when."""
        async with asyncio.timeout(300):
            while len(found := [at_s for name, at_s in self.happened if name == what]) < count:
                await asyncio.sleep(0.1)
        return found[count - 1]


def test_a_share_is_given_up_when_no_heartbeat_was_answered_for_as_long_as_the_group_waits() -> None:
    async def scene(stage: Stage, _cut: Cut) -> None:
        cluster, role = clients_of(stage), Role(stage.loop)
        await cluster.start()
        group = WorkerGroup(cluster, "g", role, session_timeout_ms=SESSION_S * 1000)
        group.start()
        await role.until("assigned")
        await asyncio.sleep(3)
        # Neither end notices. Only the clock tells.
        hosts = stage.loop.machine.host, stage.node.machine.host
        stage.network.cut(*hosts)
        began_s = stage.loop.time()
        assert await role.until("lost") - began_s <= SESSION_S
        stage.network.mend(*hosts)
        await role.until("assigned", 2)
        await group.stop("over")
        await cluster.close()

    Stage().play(scene, Cut(0, is_late=False))


def test_a_share_may_take_longer_than_a_session() -> None:
    async def scene(stage: Stage, _cut: Cut) -> None:
        cluster, role = clients_of(stage), Role(stage.loop)
        role.takes_s = 3 * SESSION_S
        await cluster.start()
        group = WorkerGroup(cluster, "g", role, session_timeout_ms=SESSION_S * 1000)
        group.start()
        await role.until("assigned")
        await asyncio.sleep(SESSION_S)
        assert [name for name, _ in role.happened] == ["assigned"]
        await group.stop("over")
        await cluster.close()

    Stage().play(scene, Cut(0, is_late=False))


def test_a_share_that_cannot_be_taken_is_asked_for_again() -> None:
    async def scene(stage: Stage, _cut: Cut) -> None:
        cluster, role = clients_of(stage), Role(stage.loop)
        role.fails_with = [ZeroDivisionError("a bug"), ClientError("not now")]
        await cluster.start()
        group = WorkerGroup(cluster, "g", role)
        group.start()
        await role.until("assigned")
        assert [name for name, _ in role.happened] == ["lost", "lost", "assigned"]
        await group.stop("over")
        await cluster.close()

    Stage().play(scene, Cut(0, is_late=False))


def test_a_member_that_was_dropped_gives_up_its_share_before_it_joins_again() -> None:
    async def scene(stage: Stage, _cut: Cut) -> None:
        cluster, role = clients_of(stage), Role(stage.loop)
        await cluster.start()
        group = WorkerGroup(cluster, "g", role)
        group.start()
        await role.until("assigned")
        member = MemberIdentity(member_id=group._member_id, reason="somebody else wants it")
        await group._ask(LeaveGroupRequest(group_id="g", members=(member,)))
        group.rejoin()
        await role.until("assigned", 2)
        assert [name for name, _ in role.happened] == ["assigned", "lost", "assigned"]
        await group.stop("over")
        await cluster.close()

    Stage().play(scene, Cut(0, is_late=False))


class Entry(NamedTuple):
    """A record of the topic that instances keep what they know in."""

    key: bytes
    value: bytes | None


def test_the_write_after_one_that_was_cut_off_is_written() -> None:
    async def scene(stage: Stage, cut: Cut) -> None:
        topic, cluster = await stage.topic(), clients_of(stage)
        await cluster.start()
        seen: list[bytes] = []

        def replay(record: Any) -> None:
            seen.append(record.value)

        reader = TopicReader(cluster, topic, replay)
        await reader.start()
        writer = TopicWriter(cluster, reader, topic, [Entry(b"k", b"opened")])
        await writer.start()
        await cut(writer.append([Entry(b"k", b"1")]))
        # It may be on its way still.
        await writer.settle()
        await writer.append([Entry(b"k", b"2")])
        written = [value for value in seen if value != b"opened"]
        assert written == [b"1", b"2"] or (cut.was_cut and written == [b"2"])
        await reader.stop()
        await cluster.close()

    assert cut_everywhere(scene) > 0
