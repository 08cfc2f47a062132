"""Configs that a node refuses to start with, because it cannot do what they ask for.

Most configs that Ottla does not act on yet are harmless, and get a warning. These are not: users who set
one of them rely on it, for safety or for data, and would find out too late that nothing happens.
"""

from typing import Final

from ottla.broker.replication.selector_names import SELECTORS
from ottla.coordination.group.consumer.assignors import ASSIGNORS, find_assignor_name
from ottla.metadata.configs.node import NodeConfig

_PROMISES: Final = {
    "create.topic.policy.class.name": "is set, but Ottla cannot call Java classes",
    "alter.config.policy.class.name": "is set, but Ottla cannot call Java classes",
    "client.quota.callback.class": "is set, but Ottla cannot call Java classes",
    "config.providers": "is set, but Ottla does not support config providers",
    "remote.log.storage.system.enable": "is set, but Ottla has no remote storage",
}


class ConfigRefused(Exception):
    """A config asks for what this node cannot do."""


def check_configs(config: NodeConfig) -> None:
    """Refuse what cannot be done and must not be ignored."""
    for name, reason in _PROMISES.items():
        if config.value_of(name):
            raise ConfigRefused(f"{name} {reason}. Remove it, or keep using Apache Kafka for now")
    if config.authorizer_class_name:
        _check_authorizer(config.authorizer_class_name)
    selector = config.replica_selector_class
    if selector is not None and selector not in SELECTORS:
        raise ConfigRefused(
            f"replica.selector.class is {selector}, but Ottla cannot call Java classes: use one of "
            f"{' and '.join(SELECTORS)}"
        )
    unknown = [name for name in config.group_consumer_assignors if find_assignor_name(name) is None]
    if unknown:
        raise ConfigRefused(
            f"group.consumer.assignors has {', '.join(unknown)}, but Ottla cannot call Java classes: use "
            f"{' and '.join(ASSIGNORS)} only"
        )


def _check_authorizer(class_name: str) -> None:
    # Imported only here: most nodes start without access rules.
    from ottla.security.standard_authorizer import CLASS_NAME

    if class_name != CLASS_NAME:
        raise ConfigRefused(
            f"authorizer.class.name is {class_name}, but Ottla cannot call Java classes: set it to "
            f"{CLASS_NAME}, whose rules Ottla follows"
        )
