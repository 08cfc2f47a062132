"""What follows from several configs of a node together."""

import pytest

from ottla.metadata.configs.errors import InvalidConfig
from ottla.metadata.configs.load import load_node_config
from ottla.metadata.configs.node import Endpoint, NodeConfig, parse_address_limits, parse_endpoints


def config(**settings: str) -> NodeConfig:
    return load_node_config(b"", {name.replace("_", "."): text for name, text in settings.items()}).config


def test_retention_is_the_finest_unit_that_is_set() -> None:
    assert config().retention_ms == 168 * 3_600_000
    assert config(log_retention_minutes="2").retention_ms == 120_000
    assert config(log_retention_minutes="2", log_retention_ms="5").retention_ms == 5
    assert config(log_retention_hours="-1").retention_ms == -1


def test_data_lies_in_log_dirs_or_else_in_log_dir() -> None:
    assert config(log_dir="/a").data_directories == ("/a",)
    both = config(log_dir="/a", log_dirs="/b,/c")
    assert both.data_directories == ("/b", "/c")
    assert both.metadata_directory == "/b"
    assert config(log_dirs="/b", metadata_log_dir="/m").metadata_directory == "/m"


def test_listeners_are_told_apart_by_role() -> None:
    node = config(
        listeners="CLIENTS://[::1]:9092,CONTROLLER://:9093,inside://10.0.0.1:0",
        listener_security_protocol_map="CLIENTS:SASL_SSL,controller:PLAINTEXT,INSIDE:PLAINTEXT",
        inter_broker_listener_name="INSIDE",
    )
    assert node.broker_endpoints == (
        Endpoint("CLIENTS", "::1", 9092, "SASL_SSL"),
        Endpoint("INSIDE", "10.0.0.1", 0, "PLAINTEXT"),
    )
    assert node.controller_endpoints == (Endpoint("CONTROLLER", "", 9093, "PLAINTEXT"),)
    assert node.advertised_endpoints == node.broker_endpoints
    assert node.inter_broker_listener == "INSIDE"


def test_clients_are_told_what_is_advertised() -> None:
    node = config(advertised_listeners="PLAINTEXT://kafka.example:19092")
    assert node.advertised_endpoints == (Endpoint("PLAINTEXT", "kafka.example", 19092, "PLAINTEXT"),)


@pytest.mark.parametrize(
    "text", ["PLAINTEXT", "PLAINTEXT://host", "PLAINTEXT://host:x", "PLAINTEXT://host:70000"]
)
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfig, match="listeners"):
        parse_endpoints("listeners", (text,), {"PLAINTEXT": "PLAINTEXT"})


def test_limits_of_addresses_are_read() -> None:
    assert parse_address_limits("10.0.0.1:5, host:7,::1:9") == {"10.0.0.1": 5, "host": 7, "::1": 9}
    with pytest.raises(InvalidConfig):
        parse_address_limits("host")
    with pytest.raises(InvalidConfig):
        parse_address_limits("host:many")
