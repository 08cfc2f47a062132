"""The authorizer of a node, as its configuration says, and the rules that the metadata gives it."""

from ottla.broker.serving.handlers import Handler
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.image import MetadataImage
from ottla.security.authorizer import AllowsEverything, Authorizer
from ottla.wire.apis import ApiKey


def make_authorizer(config: NodeConfig) -> Authorizer:
    """Return the authorizer that is configured. Without one, everything is allowed."""
    if not config.authorizer_class_name:
        return AllowsEverything()
    # Imported only here: most nodes start without access rules.
    from ottla.security.standard_authorizer import StandardAuthorizer

    return StandardAuthorizer(config.super_users, allows_without_rules=config.allow_everyone_if_no_acl_found)


def use_rules(authorizer: Authorizer, image: MetadataImage) -> None:
    """Let the rules hold that the metadata has."""
    if isinstance(authorizer, AllowsEverything):
        return
    from ottla.security.access_rules import rule_of
    from ottla.security.standard_authorizer import StandardAuthorizer

    if isinstance(authorizer, StandardAuthorizer):
        authorizer.use(map(rule_of, image.acls.values()))


def guarded(key: ApiKey, handler: Handler) -> Handler:
    """Put the guard of an API before its handler. Guards are imported with the first request."""
    from ottla.broker.authorization import guards

    return guards.guarded(key, handler)
