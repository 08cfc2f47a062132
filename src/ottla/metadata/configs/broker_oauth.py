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
        doc="OAuth bearer: assertion algorithm.",
    )
    sasl_oauthbearer_assertion_claim_aud = string(
        "sasl.oauthbearer.assertion.claim.aud",
        None,
        update=READ_ONLY,
        doc="OAuth bearer: assertion claim aud.",
    )
    sasl_oauthbearer_assertion_claim_exp_seconds = integer(
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        300,
        Range(0, 86_400),
        importance=LOW,
        update=READ_ONLY,
        doc="OAuth bearer: assertion claim exp seconds.",
    )
    sasl_oauthbearer_assertion_claim_iss = string(
        "sasl.oauthbearer.assertion.claim.iss",
        None,
        update=READ_ONLY,
        doc="OAuth bearer: assertion claim iss.",
    )
    sasl_oauthbearer_assertion_claim_jti_include = boolean(
        "sasl.oauthbearer.assertion.claim.jti.include",
        False,
        update=READ_ONLY,
        doc="OAuth bearer: assertion claim jti include.",
    )
    sasl_oauthbearer_assertion_claim_nbf_seconds = integer(
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        60,
        Range(0, 3600),
        importance=LOW,
        update=READ_ONLY,
        doc="OAuth bearer: assertion claim nbf seconds.",
    )
    sasl_oauthbearer_assertion_claim_sub = string(
        "sasl.oauthbearer.assertion.claim.sub",
        None,
        update=READ_ONLY,
        doc="OAuth bearer: assertion claim sub.",
    )
    sasl_oauthbearer_assertion_file = string(
        "sasl.oauthbearer.assertion.file", None, update=READ_ONLY, doc="OAuth bearer: assertion file."
    )
    sasl_oauthbearer_assertion_private_key_file = string(
        "sasl.oauthbearer.assertion.private.key.file",
        None,
        update=READ_ONLY,
        doc="OAuth bearer: assertion private key file.",
    )
    sasl_oauthbearer_assertion_private_key_passphrase = password(
        "sasl.oauthbearer.assertion.private.key.passphrase",
        update=READ_ONLY,
        doc="OAuth bearer: assertion private key passphrase.",
    )
    sasl_oauthbearer_assertion_template_file = string(
        "sasl.oauthbearer.assertion.template.file",
        None,
        update=READ_ONLY,
        doc="OAuth bearer: assertion template file.",
    )
    sasl_oauthbearer_client_credentials_client_id = string(
        "sasl.oauthbearer.client.credentials.client.id",
        None,
        update=READ_ONLY,
        doc="OAuth bearer: client credentials client id.",
    )
    sasl_oauthbearer_client_credentials_client_secret = password(
        "sasl.oauthbearer.client.credentials.client.secret",
        update=READ_ONLY,
        doc="OAuth bearer: client credentials client secret.",
    )
    sasl_oauthbearer_clock_skew_seconds = integer(
        "sasl.oauthbearer.clock.skew.seconds",
        30,
        importance=LOW,
        update=READ_ONLY,
        doc="OAuth bearer: clock skew seconds.",
    )
    sasl_oauthbearer_expected_audience = listing(
        "sasl.oauthbearer.expected.audience",
        (),
        DistinctList(),
        importance=HIGH,
        update=READ_ONLY,
        doc="OAuth bearer: expected audience.",
    )
    sasl_oauthbearer_expected_issuer = string(
        "sasl.oauthbearer.expected.issuer",
        None,
        importance=HIGH,
        update=READ_ONLY,
        doc="OAuth bearer: expected issuer.",
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms = long(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        3_600_000,
        importance=LOW,
        update=READ_ONLY,
        doc="OAuth bearer: jwks endpoint refresh ms.",
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms = long(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        10_000,
        importance=LOW,
        update=READ_ONLY,
        doc="OAuth bearer: jwks endpoint retry backoff max ms.",
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms = long(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        100,
        importance=LOW,
        update=READ_ONLY,
        doc="OAuth bearer: jwks endpoint retry backoff ms.",
    )
    sasl_oauthbearer_jwks_endpoint_url = string(
        "sasl.oauthbearer.jwks.endpoint.url", None, update=READ_ONLY, doc="OAuth bearer: jwks endpoint url."
    )
    sasl_oauthbearer_jwt_retriever_class = java_class(
        "sasl.oauthbearer.jwt.retriever.class",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        update=READ_ONLY,
        doc="OAuth bearer: jwt retriever class.",
    )
    sasl_oauthbearer_jwt_validator_class = java_class(
        "sasl.oauthbearer.jwt.validator.class",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        update=READ_ONLY,
        doc="OAuth bearer: jwt validator class.",
    )
    sasl_oauthbearer_scope = string(
        "sasl.oauthbearer.scope", None, update=READ_ONLY, doc="OAuth bearer: scope."
    )
    sasl_oauthbearer_scope_claim_name = string(
        "sasl.oauthbearer.scope.claim.name",
        "scope",
        importance=LOW,
        update=READ_ONLY,
        doc="OAuth bearer: scope claim name.",
    )
    sasl_oauthbearer_sub_claim_name = string(
        "sasl.oauthbearer.sub.claim.name",
        "sub",
        importance=LOW,
        update=READ_ONLY,
        doc="OAuth bearer: sub claim name.",
    )
    sasl_oauthbearer_token_endpoint_url = string(
        "sasl.oauthbearer.token.endpoint.url", None, update=READ_ONLY, doc="OAuth bearer: token endpoint url."
    )
