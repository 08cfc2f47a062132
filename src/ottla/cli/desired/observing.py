"""What a cluster is now, in the words of a file."""

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ottla.cli.admin.acl import rule_row
from ottla.cli.admin.config import EVERY_BROKER
from ottla.cli.admin.quota import DEFAULT
from ottla.cli.desired.state import AccessRule, State, Topic, User, Whom
from ottla.client.admin.configs import Config, ConfigResource
from ottla.client.errors import BrokerError, UnsupportedByBroker
from ottla.wire.config_kinds import ConfigSource, ResourceType
from ottla.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from ottla.client.admin import Admin

_SET_HERE: Final = {
    ResourceType.TOPIC: ConfigSource.TOPIC,
    ResourceType.BROKER: ConfigSource.DYNAMIC_BROKER,
    ResourceType.GROUP: ConfigSource.GROUP,
    ResourceType.CLIENT_METRICS: ConfigSource.CLIENT_METRICS,
}
KIND_NAMES: Final = {
    ResourceType.BROKER: "broker",
    ResourceType.GROUP: "group",
    ResourceType.CLIENT_METRICS: "client-metrics",
}


async def observe(admin: "Admin") -> State:
    """Read everything that a file may speak of."""
    return State(
        await _topics(admin),
        await _configs(admin),
        await _rules(admin),
        await _quotas(admin),
        await _users(admin),
    )


async def _topics(admin: "Admin") -> dict[str, Topic]:
    names = [topic.name for topic in await admin.topics.list()]
    described = (await admin.topics.describe_many(names)).succeeded
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in described]
    configs = (await admin.configs.describe_many(resources)).check()
    return {
        name: Topic(
            len(found.partitions),
            found.replication_factor,
            _set_here(configs[ConfigResource(ResourceType.TOPIC, name)], ConfigSource.TOPIC),
        )
        for name, found in described.items()
    }


def _set_here(configs: dict[str, Config], source: ConfigSource) -> dict[str, str]:
    return {
        name: config.value
        for name, config in configs.items()
        if config.source is source and config.value is not None and not config.is_sensitive
    }


async def _configs(admin: "Admin") -> dict[tuple[str, str], dict[str, str]]:
    brokers = (await admin.cluster.describe()).brokers
    places = [ConfigResource(ResourceType.BROKER, str(broker.node_id)) for broker in brokers]
    # Kafka before 4.1 lists none of them.
    with suppress(UnsupportedByBroker):
        places += await admin.configs.list_resources(ResourceType.GROUP, ResourceType.CLIENT_METRICS)
    found = {
        (KIND_NAMES[place.type], place.name): _set_here(configs, _SET_HERE[place.type])
        for place, configs in (await admin.configs.describe_many(places)).check().items()
    }
    of_all = await admin.configs.describe(ResourceType.BROKER, "")
    found["broker", EVERY_BROKER] = _set_here(of_all, ConfigSource.DYNAMIC_DEFAULT_BROKER)
    return {place: values for place, values in found.items() if values}


async def _rules(admin: "Admin") -> frozenset[AccessRule]:
    try:
        rules = await admin.access_rules.list()
    except BrokerError as error:
        if error.error_code is not ErrorCode.SECURITY_DISABLED:
            raise
        return frozenset()
    return frozenset(AccessRule(**rule_row(rule)) for rule in rules)


async def _quotas(admin: "Admin") -> dict[Whom, dict[str, float]]:
    names = {"user": "user", "client-id": "client", "ip": "ip"}
    return {
        Whom(**{names[kind]: DEFAULT if name is None else name for kind, name in whom}): dict(values)
        for whom, values in (await admin.quotas.describe()).items()
    }


async def _users(admin: "Admin") -> dict[str, User]:
    found = (await admin.credentials.describe()).succeeded
    return {
        name: User(credentials[0].mechanism.name.replace("_", "-"))
        for name, credentials in found.items()
        if credentials
    }
