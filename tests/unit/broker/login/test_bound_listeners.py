"""The address that the command line gives to a node: part of the configuration, as all others see it."""

import pytest

from ottla.broker.login.bound_listeners import ListenerRefused, check_endpoints, with_address
from ottla.broker.login.mechanisms import takes_unsigned_tokens
from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.configs.errors import InvalidConfig
from ottla.metadata.configs.listener import ListenerConfig
from ottla.metadata.configs.load import load_node_config

TWO = {
    "listeners": "CONTROLLER://127.0.0.1:9093,PLAINTEXT://127.0.0.1:9092,INTERNAL://127.0.0.1:9094",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
}


def listeners(configs: EffectiveConfigs) -> tuple[str, ...]:
    return configs.node.listeners


def test_a_port_is_for_the_first_listener_of_the_broker() -> None:
    configs = with_address(load_node_config(b"", TWO).configs, None, 20_001)
    assert listeners(configs) == (
        "CONTROLLER://127.0.0.1:9093",
        "PLAINTEXT://127.0.0.1:20001",
        "INTERNAL://127.0.0.1:9094",
    )
    assert configs.layers.static["listeners"] == ",".join(listeners(configs))


def test_a_host_of_the_newer_family_can_be_read_again() -> None:
    configs = with_address(load_node_config().configs, "::1", None)
    assert listeners(configs) == ("PLAINTEXT://[::1]:9092",)
    assert configs.node.broker_endpoints[0].host == "::1"


def test_without_an_address_the_configuration_stays_what_it_is() -> None:
    configs = load_node_config(b"", TWO).configs
    assert with_address(configs, None, None) is configs


def test_a_host_that_is_none_is_refused() -> None:
    configs = with_address(load_node_config().configs, "not a host", None)
    with pytest.raises(InvalidConfig, match="not a host"):
        _ = configs.node.broker_endpoints


def tokens(jaas_options: str, **more: str) -> EffectiveConfigs:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    return load_node_config(
        b"",
        {
            "listeners": "SASL_PLAINTEXT://0.0.0.0:9092",
            "advertised.listeners": "SASL_PLAINTEXT://127.0.0.1:9092",
            "inter.broker.listener.name": "SASL_PLAINTEXT",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": f"{module} {jaas_options};",
            **{name.replace("_", "."): value for name, value in more.items()},
        },
    ).configs


def test_tokens_that_anybody_writes_are_no_login() -> None:
    configs = tokens('unsecuredValidatorAllowableClockSkewMs="0"')
    with pytest.raises(ListenerRefused, match="without authentication"):
        check_endpoints(configs.node.listener_endpoints, configs, is_insecure=False)
    check_endpoints(configs.node.listener_endpoints, configs, is_insecure=True)


def test_an_option_for_the_tokens_of_a_client_says_nothing_about_those_of_others() -> None:
    configs = tokens('unsecuredLoginStringClaim_sub="admin"')
    assert not takes_unsigned_tokens(ListenerConfig(configs, "SASL_PLAINTEXT"))


def test_keys_are_what_counts_if_there_are_any() -> None:
    configs = tokens(
        'unsecuredValidatorAllowableClockSkewMs="0"',
        sasl_oauthbearer_jwks_endpoint_url="https://id.example/keys",
    )
    check_endpoints(configs.node.listener_endpoints, configs, is_insecure=False)
