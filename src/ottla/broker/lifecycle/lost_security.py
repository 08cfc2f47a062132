"""Refusing to serve everybody what was made for a few.

Access rules and users are in the metadata, but whether they count is in the configuration. A node that is
started without its own, by accident, would let everybody do everything, and nobody would notice.
"""

from ottla.broker.login.bound_listeners import asks_for_login
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.image import MetadataImage
from ottla.security.refused import SecurityRefused


class LostSecurity(SecurityRefused):
    """The configuration ignores the rules or users that the metadata has."""


def check_security(image: MetadataImage, configs: EffectiveConfigs, directory: str) -> None:
    """Refuse a configuration by which rules, or users, of the metadata mean nothing."""
    lost = find_lost(configs, len(image.acls), len({key.user for key in image.scram}))
    if lost is not None:
        raise LostSecurity(
            f"the metadata in {directory} has {lost}, so anybody could do everything: start the node as "
            "before (with the same --config, or with --secure and the same --clients), or add --insecure if "
            "everybody is to be served"
        )


def find_lost(configs: EffectiveConfigs, rules: int, users: int) -> str | None:
    """Return what would mean nothing, and why; None if all is as it should be."""
    config = configs.node
    if config.authorizer_class_name:
        return None
    if rules:
        return f"access rules ({rules}), but the configuration has no authorizer.class.name"
    if users and not any(asks_for_login(one, configs) for one in config.listener_endpoints):
        return f"passwords of users ({users}), but the configuration has no listener that asks for one"
    return None
