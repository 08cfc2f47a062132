"""Configs that a node refuses to start with, because it cannot do what they ask for.

Most configs that Ottla does not act on yet are harmless, and get a warning. These are not: whoever sets one
of them relies on it, for safety or for data, and would find out too late that nothing happens.
"""

from typing import Final

from ottla.coordination.group.consumer.assignors import ASSIGNORS, find_assignor_name
from ottla.metadata.configs.node import NodeConfig

_PROMISES: Final = {
    "authorizer.class.name": "asks for access rules, and nothing checks them yet: all may do everything",
    "create.topic.policy.class.name": "asks for a veto on new topics, and no Java class can be called here",
    "alter.config.policy.class.name": "asks for a veto on configs, and no Java class can be called here",
    "client.quota.callback.class": "asks for quotas of its own, and no Java class can be called here",
    "config.providers": "asks for configs from elsewhere, and nobody would fetch them",
    "remote.log.storage.system.enable": "asks for remote storage, and there is none",
}


class ConfigRefused(Exception):
    """A config asks for what this node cannot do."""


def check_configs(config: NodeConfig) -> None:
    """Refuse what cannot be done and must not be ignored."""
    for name, reason in _PROMISES.items():
        if config.value_of(name):
            raise ConfigRefused(f"{name} {reason}. Leave it out, or stay with Apache Kafka for now")
    if not (config.is_broker and config.is_controller):
        roles = ",".join(config.process_roles)
        raise ConfigRefused(
            f"process.roles is {roles}, but clusters of several nodes are not there yet: it has to be "
            "broker,controller"
        )
    others = [voter for voter in config.controller_quorum_voters if _id_of(voter) != str(config.node_id)]
    if others:
        raise ConfigRefused(
            f"controller.quorum.voters names others ({', '.join(others)}), but this node would decide alone: "
            "clusters of several nodes are not there yet"
        )
    unknown = [name for name in config.group_consumer_assignors if find_assignor_name(name) is None]
    if unknown:
        raise ConfigRefused(
            f"group.consumer.assignors asks for {', '.join(unknown)}, and there are only "
            f"{' and '.join(ASSIGNORS)}: no Java class can be called here"
        )


def _id_of(voter: str) -> str:
    return voter.partition("@")[0]
