"""The authorizer of a node, as its configuration says, and the rules that the metadata gives it."""

from collections.abc import Mapping

from ottla.broker.serving.handlers import Handler
from ottla.metadata.configs.node import NodeConfig
from ottla.model.uuid import Uuid
from ottla.security.authorizer import AllowsEverything, Authorizer
from ottla.wire.apis import ApiKey
from ottla.wire.metadata_records.access_control import AccessControlEntryRecord


def make_authorizer(config: NodeConfig) -> Authorizer:
    """Return the authorizer that is configured. Without one, everything is allowed."""
    if not config.authorizer_class_name:
        return AllowsEverything()
    # Imported only here: most nodes start without access rules.
    from ottla.security.standard_authorizer import StandardAuthorizer

    return StandardAuthorizer(config.super_users, allows_without_rules=config.allow_everyone_if_no_acl_found)


def use_rules(authorizer: Authorizer, records: Mapping[Uuid, AccessControlEntryRecord | None]) -> None:
    """Let rules hold that the metadata has. None stands for one that it has no more."""
    if isinstance(authorizer, AllowsEverything):
        return
    from ottla.security.access_rules import rule_of
    from ottla.security.standard_authorizer import StandardAuthorizer

    if isinstance(authorizer, StandardAuthorizer):
        authorizer.change(
            (rule_id, None if record is None else rule_of(record)) for rule_id, record in records.items()
        )


def guarded(key: ApiKey, handler: Handler) -> Handler:
    """Put the guard of an API before its handler. Guards are imported with the first request."""
    from ottla.broker.authorization import guards

    return guards.guarded(key, handler)
