"""Broker configs of the SASL mechanism OAUTHBEARER."""

from ottla.metadata.configs.declare import (
    ConfigValues,
    boolean,
    integer,
    java_class,
    listing,
    long,
    password,
    string,
)
from ottla.metadata.configs.kinds import HIGH, LOW, READ_ONLY
from ottla.metadata.configs.rules import DistinctList, OneOfIgnoringCase, Range


class BrokerOauthConfigs(ConfigValues):
    """Broker configs of the SASL mechanism OAUTHBEARER."""

    sasl_oauthbearer_assertion_algorithm = string(
        "sasl.oauthbearer.assertion.algorithm",
        "RS256",
        OneOfIgnoringCase(("ES256", "RS256")),
        update=READ_ONLY,
        inert=True,
        doc="Algorithm that assertions are signed with.",
    )
    sasl_oauthbearer_assertion_claim_aud = string(
        "sasl.oauthbearer.assertion.claim.aud",
        None,
        update=READ_ONLY,
        inert=True,
        doc="The audience (aud) of an assertion.",
    )
    sasl_oauthbearer_assertion_claim_exp_seconds = integer(
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        300,
        Range(0, 86_400),
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="How many seconds an assertion is valid.",
    )
    sasl_oauthbearer_assertion_claim_iss = string(
        "sasl.oauthbearer.assertion.claim.iss",
        None,
        update=READ_ONLY,
        inert=True,
        doc="The issuer (iss) of an assertion.",
    )
    sasl_oauthbearer_assertion_claim_jti_include = boolean(
        "sasl.oauthbearer.assertion.claim.jti.include",
        False,
        update=READ_ONLY,
        inert=True,
        doc="Give each assertion an id (jti).",
    )
    sasl_oauthbearer_assertion_claim_nbf_seconds = integer(
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        60,
        Range(0, 3600),
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="How many seconds before now an assertion becomes valid (nbf).",
    )
    sasl_oauthbearer_assertion_claim_sub = string(
        "sasl.oauthbearer.assertion.claim.sub",
        None,
        update=READ_ONLY,
        inert=True,
        doc="The subject (sub) of an assertion.",
    )
    sasl_oauthbearer_assertion_file = string(
        "sasl.oauthbearer.assertion.file",
        None,
        update=READ_ONLY,
        inert=True,
        doc="File with an assertion that is ready to use.",
    )
    sasl_oauthbearer_assertion_private_key_file = string(
        "sasl.oauthbearer.assertion.private.key.file",
        None,
        update=READ_ONLY,
        inert=True,
        doc="File with the private key that assertions are signed with.",
    )
    sasl_oauthbearer_assertion_private_key_passphrase = password(
        "sasl.oauthbearer.assertion.private.key.passphrase",
        update=READ_ONLY,
        inert=True,
        doc="Passphrase of that private key.",
    )
    sasl_oauthbearer_assertion_template_file = string(
        "sasl.oauthbearer.assertion.template.file",
        None,
        update=READ_ONLY,
        inert=True,
        doc="File with header fields and claims that go into every assertion.",
    )
    sasl_oauthbearer_client_credentials_client_id = string(
        "sasl.oauthbearer.client.credentials.client.id",
        None,
        update=READ_ONLY,
        doc="The client id for the client credentials grant.",
    )
    sasl_oauthbearer_client_credentials_client_secret = password(
        "sasl.oauthbearer.client.credentials.client.secret",
        update=READ_ONLY,
        doc="The client secret for the client credentials grant.",
    )
    sasl_oauthbearer_clock_skew_seconds = integer(
        "sasl.oauthbearer.clock.skew.seconds",
        30,
        importance=LOW,
        update=READ_ONLY,
        doc="How far the clocks of the provider and the broker may differ.",
    )
    sasl_oauthbearer_expected_audience = listing(
        "sasl.oauthbearer.expected.audience",
        (),
        DistinctList(),
        importance=HIGH,
        update=READ_ONLY,
        doc="Audiences of which a token must name one.",
    )
    sasl_oauthbearer_expected_issuer = string(
        "sasl.oauthbearer.expected.issuer",
        None,
        importance=HIGH,
        update=READ_ONLY,
        doc="The issuer that a token must name.",
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms = long(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        3_600_000,
        importance=LOW,
        update=READ_ONLY,
        doc="How often the provider's keys are fetched again.",
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms = long(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        10_000,
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="Longest pause between attempts to fetch the provider's keys.",
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms = long(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        100,
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="First pause between attempts to fetch the provider's keys.",
    )
    sasl_oauthbearer_jwks_endpoint_url = string(
        "sasl.oauthbearer.jwks.endpoint.url",
        None,
        update=READ_ONLY,
        doc="Where the provider's keys are.",
    )
    sasl_oauthbearer_jwt_retriever_class = java_class(
        "sasl.oauthbearer.jwt.retriever.class",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        update=READ_ONLY,
        inert=True,
        doc="Java class that fetches tokens.",
    )
    sasl_oauthbearer_jwt_validator_class = java_class(
        "sasl.oauthbearer.jwt.validator.class",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        update=READ_ONLY,
        inert=True,
        doc="Java class that checks tokens.",
    )
    sasl_oauthbearer_scope = string(
        "sasl.oauthbearer.scope", None, update=READ_ONLY, doc="The scope that this node asks for."
    )
    sasl_oauthbearer_scope_claim_name = string(
        "sasl.oauthbearer.scope.claim.name",
        "scope",
        importance=LOW,
        update=READ_ONLY,
        inert=True,
        doc="Name of the claim that holds the scope.",
    )
    sasl_oauthbearer_sub_claim_name = string(
        "sasl.oauthbearer.sub.claim.name",
        "sub",
        importance=LOW,
        update=READ_ONLY,
        doc="Name of the claim that holds the principal.",
    )
    sasl_oauthbearer_token_endpoint_url = string(
        "sasl.oauthbearer.token.endpoint.url",
        None,
        update=READ_ONLY,
        doc="Where the provider hands out tokens.",
    )
