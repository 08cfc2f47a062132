"""Every call of an admin client may be cancelled at each of its awaits, and the client is as good as ever."""

import inspect
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Final

import pytest
from tests.simulation.clients.cutting import Cut, Stage, cut_everywhere

from ottla.client.admin import Admin
from ottla.client.admin.access_rules import Operation, Resource, Rule
from ottla.client.admin.configs import ConfigChange, ConfigResource
from ottla.client.admin.credentials import ScramMechanism
from ottla.client.admin.offsets import OffsetSpec
from ottla.client.admin.topics import NewTopic
from ottla.client.admin.transactions import ActiveProducer
from ottla.client.errors import BrokerError, ClientError
from ottla.client.producer import Producer
from ottla.model.ids import TopicPartition
from ottla.model.uuid import Uuid
from ottla.wire.config_kinds import AlterOperation, ResourceType

Call = Callable[[Admin, str, str], Coroutine[Any, Any, Any]]
NOUNS: Final = (
    "cluster",
    "quorum",
    "topics",
    "configs",
    "records",
    "offsets",
    "groups",
    "group_offsets",
    "share_groups",
    "transactions",
    "replicas",
    "log_dirs",
    "quotas",
    "access_rules",
    "credentials",
)
QUICK: Final = ("topics.create", "configs.alter_many", "group_offsets.lag", "transactions.list")
"""One for each way that a request can take."""
_RULE: Final = Rule("User:a", Operation.READ, Resource.TOPIC, "t")
_USER: Final = frozenset({("user", "a")})
_RETENTION: Final = {"retention.ms": "1000000"}


def where(topic: str) -> TopicPartition:
    """Return the first partition of a topic."""
    return TopicPartition(topic, 0)


def of_topic(topic: str) -> ConfigResource:
    """Return a topic as something that has configs."""
    return ConfigResource(ResourceType.TOPIC, topic)


CALLS: Final[dict[str, Call]] = {
    "cluster.describe": lambda admin, topic, group: admin.cluster.describe(),
    "cluster.authorized_operations": lambda admin, topic, group: admin.cluster.authorized_operations(),
    "cluster.features": lambda admin, topic, group: admin.cluster.features(),
    "cluster.update_features": lambda admin, topic, group: admin.cluster.update_features(
        {"transaction.version": 2}, validate_only=True
    ),
    "cluster.api_versions": lambda admin, topic, group: admin.cluster.api_versions(),
    "cluster.unregister": lambda admin, topic, group: admin.cluster.unregister(99),
    "quorum.describe": lambda admin, topic, group: admin.quorum.describe(),
    "quorum.add_voter": lambda admin, topic, group: admin.quorum.add_voter(7, Uuid(bytes(15) + b"7"), []),
    "quorum.remove_voter": lambda admin, topic, group: admin.quorum.remove_voter(7, Uuid(bytes(15) + b"7")),
    "topics.list": lambda admin, topic, group: admin.topics.list(),
    "topics.describe": lambda admin, topic, group: admin.topics.describe(topic),
    "topics.describe_many": lambda admin, topic, group: admin.topics.describe_many([topic]),
    "topics.describe_page": lambda admin, topic, group: admin.topics.describe_page(),
    "topics.create": lambda admin, topic, group: admin.topics.create(f"new-{topic}"),
    "topics.create_many": lambda admin, topic, group: admin.topics.create_many([NewTopic(f"new-{topic}")]),
    "topics.delete": lambda admin, topic, group: admin.topics.delete(topic),
    "topics.delete_many": lambda admin, topic, group: admin.topics.delete_many([topic]),
    "topics.add_partitions": lambda admin, topic, group: admin.topics.add_partitions(topic, 3),
    "configs.describe": lambda admin, topic, group: admin.configs.describe(ResourceType.TOPIC, topic),
    "configs.describe_many": lambda admin, topic, group: admin.configs.describe_many([of_topic(topic)]),
    "configs.alter": lambda admin, topic, group: admin.configs.alter(ResourceType.TOPIC, topic, _RETENTION),
    "configs.alter_many": lambda admin, topic, group: admin.configs.alter_many(
        {of_topic(topic): [ConfigChange("retention.ms", AlterOperation.SET, "1")]}
    ),
    "configs.list_resources": lambda admin, topic, group: admin.configs.list_resources(),
    "records.delete": lambda admin, topic, group: admin.records.delete({where(topic): 1}),
    "records.truncate": lambda admin, topic, group: admin.records.truncate(topic),
    "offsets.list": lambda admin, topic, group: admin.offsets.list({where(topic): OffsetSpec.LATEST}),
    "offsets.earliest": lambda admin, topic, group: admin.offsets.earliest([where(topic)]),
    "offsets.latest": lambda admin, topic, group: admin.offsets.latest([where(topic)]),
    "groups.list": lambda admin, topic, group: admin.groups.list(),
    "groups.describe": lambda admin, topic, group: admin.groups.describe(group),
    "groups.describe_many": lambda admin, topic, group: admin.groups.describe_many([group]),
    "groups.delete": lambda admin, topic, group: admin.groups.delete(group),
    "groups.delete_many": lambda admin, topic, group: admin.groups.delete_many([group]),
    "groups.remove_members": lambda admin, topic, group: admin.groups.remove_members(group, ["i"]),
    "group_offsets.list": lambda admin, topic, group: admin.group_offsets.list(group),
    "group_offsets.list_many": lambda admin, topic, group: admin.group_offsets.list_many([group]),
    "group_offsets.alter": lambda admin, topic, group: admin.group_offsets.alter(group, {where(topic): 1}),
    "group_offsets.delete": lambda admin, topic, group: admin.group_offsets.delete(group, [where(topic)]),
    "group_offsets.lag": lambda admin, topic, group: admin.group_offsets.lag(group),
    "group_offsets.plan_reset": lambda admin, topic, group: admin.group_offsets.plan_reset(
        group, topics=[topic], to=OffsetSpec.EARLIEST
    ),
    "share_groups.describe": lambda admin, topic, group: admin.share_groups.describe(group),
    "share_groups.describe_many": lambda admin, topic, group: admin.share_groups.describe_many([group]),
    "share_groups.offsets": lambda admin, topic, group: admin.share_groups.offsets(f"s-{group}"),
    "share_groups.alter_offsets": lambda admin, topic, group: admin.share_groups.alter_offsets(
        f"s-{group}", {where(topic): 0}
    ),
    "share_groups.delete_offsets": lambda admin, topic, group: admin.share_groups.delete_offsets(
        f"s-{group}", [topic]
    ),
    "share_groups.plan_reset": lambda admin, topic, group: admin.share_groups.plan_reset(
        f"s-{group}", topics=[topic], to=OffsetSpec.EARLIEST
    ),
    "transactions.list": lambda admin, topic, group: admin.transactions.list(),
    "transactions.describe": lambda admin, topic, group: admin.transactions.describe(group),
    "transactions.describe_many": lambda admin, topic, group: admin.transactions.describe_many([group]),
    "transactions.producers": lambda admin, topic, group: admin.transactions.producers([where(topic)]),
    "transactions.find_hanging": lambda admin, topic, group: admin.transactions.find_hanging([where(topic)]),
    "transactions.abort": lambda admin, topic, group: admin.transactions.abort(
        where(topic), ActiveProducer(99, 0, 0, 0, 0, 0)
    ),
    "transactions.fence": lambda admin, topic, group: admin.transactions.fence(group),
    "replicas.reassign": lambda admin, topic, group: admin.replicas.reassign({where(topic): [1]}),
    "replicas.reassignments": lambda admin, topic, group: admin.replicas.reassignments(),
    "replicas.elect": lambda admin, topic, group: admin.replicas.elect([where(topic)]),
    "log_dirs.describe": lambda admin, topic, group: admin.log_dirs.describe(),
    "quotas.describe": lambda admin, topic, group: admin.quotas.describe(),
    "quotas.alter": lambda admin, topic, group: admin.quotas.alter(_USER, {"producer_byte_rate": 1e9}),
    "quotas.alter_many": lambda admin, topic, group: admin.quotas.alter_many(
        {_USER: {"producer_byte_rate": 1e9}}
    ),
    "access_rules.list": lambda admin, topic, group: admin.access_rules.list(),
    "access_rules.create": lambda admin, topic, group: admin.access_rules.create([_RULE]),
    "access_rules.delete": lambda admin, topic, group: admin.access_rules.delete([_RULE]),
    "credentials.describe": lambda admin, topic, group: admin.credentials.describe(),
    "credentials.set_password": lambda admin, topic, group: admin.credentials.set_password(
        "a", "b", iterations=4096
    ),
    "credentials.delete": lambda admin, topic, group: admin.credentials.delete(
        "a", ScramMechanism.SCRAM_SHA_512
    ),
}


async def asking(stage: Stage, cut: Cut, *, call: Call) -> None:
    topic, group = await stage.topic(), stage.name("group")
    async with Producer(stage.bootstrap, linger_ms=0) as producer:
        await producer.send_and_wait(topic, b"1")
    async with Admin(stage.bootstrap) as admin:
        (await admin.group_offsets.alter(group, {where(topic): 1})).check()

        async def quietly() -> None:
            # Not all of it can be done here: what counts is that each call is answered.
            with suppress(BrokerError):
                await call(admin, topic, group)

        await cut(quietly())
        await quietly()
        assert topic in {item.name for item in await admin.topics.list()} or call in (
            CALLS["topics.delete"],
            CALLS["topics.delete_many"],
        )


async def starting(stage: Stage, cut: Cut) -> None:
    admin = Admin(stage.bootstrap)
    await cut(admin.start())
    if cut.was_cut:
        await admin.start()
    await admin.topics.list()
    await admin.close()


async def closing(stage: Stage, cut: Cut) -> None:
    admin = Admin(stage.bootstrap)
    await admin.start()
    await admin.topics.list()
    await cut(admin.close())
    await admin.close()
    with pytest.raises(ClientError, match="the client was closed"):
        await admin.topics.list()


def _thoroughly(name: str) -> Any:
    mark = pytest.mark.thorough(guard="tests/simulation/clients/test_admin_cut_off.py")
    return name if name in QUICK else pytest.param(name, marks=mark)


@pytest.mark.parametrize("name", [_thoroughly(call) for call in CALLS])
def test_a_call_of_an_admin_client_may_be_cut_off_anywhere(name: str) -> None:
    cut_everywhere(partial(asking, call=CALLS[name]))


@pytest.mark.parametrize("scene", [starting, closing])
def test_an_admin_client_may_be_cut_off_at_its_ends(scene: Any) -> None:
    assert cut_everywhere(scene) > 0


def test_every_call_of_an_admin_client_is_cut_off_here() -> None:
    admin = Admin("127.0.0.1:1")
    public = {
        f"{noun}.{name}"
        for noun in NOUNS
        for name, method in inspect.getmembers(type(getattr(admin, noun)), inspect.iscoroutinefunction)
        if not name.startswith("_")
    }
    assert public == set(CALLS)
