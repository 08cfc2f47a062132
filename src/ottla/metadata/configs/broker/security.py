"""Broker configs of authorization, principals and delegation tokens."""

from ottla.metadata.configs.declare import ConfigValues, boolean, java_class, long, password, string
from ottla.metadata.configs.kinds import HIGH, LOW, PER_BROKER, READ_ONLY
from ottla.metadata.configs.rules import NonNull, Range


class BrokerSecurityConfigs(ConfigValues):
    """Broker configs of authorization, principals and delegation tokens."""

    allow_everyone_if_no_acl_found = boolean(
        "allow.everyone.if.no.acl.found",
        False,
        update=READ_ONLY,
        plugin=True,
        doc="Whether everyone may use a resource without ACLs.",
    )
    authorizer_class_name = string(
        "authorizer.class.name",
        "",
        NonNull(),
        importance=LOW,
        update=READ_ONLY,
        doc=(
            "The authorizer. Empty allows everything; Kafka's StandardAuthorizer checks the ACLs of the "
            "cluster."
        ),
    )
    delegation_token_expiry_check_interval_ms = long(
        "delegation.token.expiry.check.interval.ms",
        3_600_000,
        Range(1),
        importance=LOW,
        update=READ_ONLY,
        doc="How often expired delegation tokens are removed.",
    )
    delegation_token_expiry_time_ms = long(
        "delegation.token.expiry.time.ms",
        86_400_000,
        Range(1),
        update=READ_ONLY,
        doc="How long a delegation token is valid unless it is renewed.",
    )
    delegation_token_max_lifetime_ms = long(
        "delegation.token.max.lifetime.ms",
        604_800_000,
        Range(1),
        update=READ_ONLY,
        doc="The longest lifetime of a delegation token, including renewals.",
    )
    delegation_token_secret_key = password(
        "delegation.token.secret.key",
        update=READ_ONLY,
        doc="Key that delegation tokens are signed with; it must be the same on every node.",
    )
    principal_builder_class = java_class(
        "principal.builder.class",
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        update=PER_BROKER,
        inert=True,
        doc="Java class that determines the principal of a connection.",
    )
    security_providers = string(
        "security.providers",
        None,
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="Java classes that provide security algorithms.",
    )
    super_users = string(
        "super.users",
        "",
        importance=HIGH,
        update=READ_ONLY,
        plugin=True,
        doc="Principals that may do everything, separated by semicolons.",
    )
