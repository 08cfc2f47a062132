"""A check list: what has to be safe if nobody says anything, one line for each.

Whoever changes one of these makes every new node less safe, and has to say so here.
"""

import ssl
from pathlib import Path
from typing import Any

import pytest
from tests.support.in_process import InProcessClient, in_process_node

from ottla.broker.lifecycle.bound_listeners import ListenerRefused, check_endpoints
from ottla.broker.login.jwt import ALGORITHMS
from ottla.broker.login.login_session import LOGIN_MS_MAX
from ottla.broker.login.mechanisms import MechanismRefused, make_mechanisms
from ottla.broker.serving.served_apis import SERVED
from ottla.client.security import _ITERATIONS_MIN
from ottla.metadata.configs.listener import ListenerConfig
from ottla.metadata.configs.load import load_node_config
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.configs.values import Password
from ottla.runtime.connections.listener import ConnectionLimits
from ottla.runtime.connections.tls import HANDSHAKE_MS_MAX
from ottla.runtime.connections.tls_contexts import KeyStore, TlsRefused, TlsSettings, server_context
from ottla.security.sasl.client import ITERATIONS_MAX
from ottla.security.sasl.scram import ITERATIONS_MIN
from ottla.security.standard_authorizer import StandardAuthorizer
from ottla.wire.apis import ApiKey
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

DEFAULTS = load_node_config(b"", {}).configs
CONFIG = DEFAULTS.node


def configs(protocol: str, host: str = "127.0.0.1", **settings: str) -> Any:
    """Return the configs of a node with one listener."""
    given = {
        "listeners": f"{protocol}://{host}:9092",
        "advertised.listeners": f"{protocol}://example.org:9092",
        "inter.broker.listener.name": protocol,
        **{name.replace("_", "."): text for name, text in settings.items()},
    }
    return load_node_config(b"", given).configs


def test_a_node_listens_on_loopback_only() -> None:
    assert {endpoint.host for endpoint in CONFIG.listener_endpoints} <= {"127.0.0.1", "localhost"}
    check_endpoints(CONFIG.listener_endpoints, DEFAULTS, is_insecure=False)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "[::]", "10.0.0.1", "example.org"])
@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_listener_beyond_loopback_needs_a_login(host: str, protocol: str) -> None:
    made = configs(protocol, host)
    with pytest.raises(ListenerRefused, match="--insecure"):
        check_endpoints(made.node.listener_endpoints, made, is_insecure=False)


def test_a_listener_with_a_login_may_be_anywhere() -> None:
    made = configs("SASL_SSL", "0.0.0.0")
    check_endpoints(made.node.listener_endpoints, made, is_insecure=False)


def test_an_authorizer_denies_what_no_rule_allows() -> None:
    assert CONFIG.allow_everyone_if_no_acl_found is False
    assert CONFIG.super_users == ""
    assert StandardAuthorizer()._allows_without_rules is False


def test_tls_is_new_enough() -> None:
    assert CONFIG.ssl_enabled_protocols == ("TLSv1.2", "TLSv1.3")
    assert CONFIG.ssl_endpoint_identification_algorithm == "https"


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    import trustme

    path = tmp_path_factory.mktemp("tls") / "node.pem"
    issued = trustme.CA().issue_cert("localhost")
    path.write_bytes(issued.private_key_and_cert_chain_pem.bytes())
    return server_context(TlsSettings(KeyStore("PEM", str(path), None), KeyStore("PEM", None, None)))


def test_tls_has_no_weak_ciphers_and_no_renegotiation(context: ssl.SSLContext) -> None:
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert context.options & ssl.OP_NO_COMPRESSION
    for cipher in context.get_ciphers():
        assert cipher["aead"], cipher["name"]
        assert cipher["name"].startswith(("TLS_", "ECDHE-")), cipher["name"]


def test_client_certificates_are_never_checked_against_public_authorities(context: ssl.SSLContext) -> None:
    assert context.verify_mode is ssl.CERT_NONE
    assert context.cert_store_stats()["x509"] == 0


def test_client_certificates_without_a_truststore_are_refused(tmp_path: Path) -> None:
    import trustme

    path = tmp_path / "node.pem"
    path.write_bytes(trustme.CA().issue_cert("localhost").private_key_and_cert_chain_pem.bytes())
    settings = TlsSettings(KeyStore("PEM", str(path), None), KeyStore("PEM", None, None), "required")
    with pytest.raises(TlsRefused, match=r"ssl\.truststore\.location"):
        server_context(settings)


def test_a_tls_listener_without_a_key_is_refused() -> None:
    with pytest.raises(TlsRefused, match=r"ssl\.keystore\.location"):
        server_context(TlsSettings(KeyStore("PEM", None, None), KeyStore("PEM", None, None)))


@pytest.mark.parametrize("mechanism", ["GSSAPI", "OAUTHBEARER", "ANONYMOUS", "CRAM-MD5"])
def test_mechanisms_that_cannot_be_checked_are_refused(mechanism: str) -> None:
    made = configs("SASL_PLAINTEXT", sasl_enabled_mechanisms=mechanism)
    with pytest.raises(MechanismRefused):
        make_mechanisms(ListenerConfig(made, "SASL_PLAINTEXT"), None)  # type: ignore[arg-type]


def test_the_default_mechanism_lets_nobody_in_by_accident() -> None:
    made = configs("SASL_PLAINTEXT")
    with pytest.raises(MechanismRefused, match="GSSAPI"):
        make_mechanisms(ListenerConfig(made, "SASL_PLAINTEXT"), None)  # type: ignore[arg-type]


def test_signed_tokens_are_checked_with_public_keys_only() -> None:
    assert not [name for name in ALGORITHMS if name.startswith("HS") or name.lower() == "none"]


def test_there_is_no_default_password_or_key() -> None:
    for name, key in NodeConfig.keys.items():
        if isinstance(key.default, Password) or "password" in name or name.endswith("secret.key"):
            assert key.default is None, name
    assert CONFIG.delegation_token_secret_key is None


def test_scram_is_neither_too_cheap_nor_too_dear() -> None:
    assert ITERATIONS_MIN >= 4096
    assert _ITERATIONS_MIN >= 4096
    assert ITERATIONS_MAX <= 1_000_000


def test_there_are_bounds_before_the_login() -> None:
    assert 0 < HANDSHAKE_MS_MAX <= 30_000
    assert 0 < LOGIN_MS_MAX <= 60_000
    assert 0 < CONFIG.sasl_server_max_receive_size <= 524_288
    assert CONFIG.connection_failed_authentication_delay_ms >= 100
    assert ConnectionLimits().frame_ms_max <= 60_000
    assert ConnectionLimits().held_bytes_max <= 1 << 30


def test_only_three_apis_come_before_the_login() -> None:
    early = {key for key, served in SERVED.items() if served.is_for_login}
    assert early == {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}


def test_apis_without_a_right_are_few() -> None:
    free = {key for key, served in SERVED.items() if not served.rights}
    assert free <= {
        ApiKey.API_VERSIONS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        ApiKey.PUSH_TELEMETRY,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    }


def test_coordinators_topics_are_closed_and_metrics_are_off() -> None:
    assert CONFIG.ottla_internal_topics_writable is False
    assert CONFIG.ottla_metrics_port == -1


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    secret = "a-secret-that-nobody-sees"
    settings = {
        "delegation.token.secret.key": secret,
        "ssl.key.password": secret,
        "listener.name.x.plain.sasl.jaas.config": f'a.B required user_x="{secret}";',
    }
    with in_process_node(tmp_path, settings) as node:
        resource = DescribeConfigsResource(resource_type=4, resource_name="0", configuration_keys=None)
        answer = InProcessClient(node).ask(DescribeConfigsRequest(resources=(resource,)))
        assert answer.results[0].configs
        assert secret not in repr(answer)
        assert secret not in repr(node.broker.config.delegation_token_secret_key)
