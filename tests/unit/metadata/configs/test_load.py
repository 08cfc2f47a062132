"""A node starts with a properties file and settings on top, or says everything that is wrong with them."""

import pytest

from ottla.metadata.configs.errors import UnusableConfigs
from ottla.metadata.configs.load import load_node_config


def test_a_node_needs_no_file_at_all() -> None:
    loaded = load_node_config()
    config = loaded.config
    assert (config.node_id, config.broker_id) == (0, 0)
    assert config.is_broker
    assert config.is_controller
    assert config.offsets_topic_replication_factor == 1
    assert [(end.host, end.port) for end in config.broker_endpoints] == [("127.0.0.1", 9092)]
    assert loaded.warnings == ()


def test_the_command_line_wins_over_the_file() -> None:
    loaded = load_node_config(b"num.partitions=3\nnode.id=4\n", {"num.partitions": "5"})
    assert loaded.config.num_partitions == 5
    assert loaded.config.node_id == 4


def test_a_node_may_go_by_its_old_name() -> None:
    assert load_node_config(b"broker.id=7\n").config.node_id == 7


def test_a_node_that_knows_other_controllers_keeps_kafkas_replication_factors() -> None:
    loaded = load_node_config(b"controller.quorum.bootstrap.servers=a:1,b:2\n")
    assert loaded.config.offsets_topic_replication_factor == 3


def test_an_unknown_key_is_a_warning_with_the_known_key_it_resembles() -> None:
    loaded = load_node_config(b"\nlog.retension.ms=5\n", {"xyzzy": "1"}, origin="my.properties")
    first, second = loaded.warnings
    assert first == "my.properties:2: unknown configuration log.retension.ms; did you mean log.retention.ms?"
    assert second == "command line: unknown configuration xyzzy"


def test_a_config_without_effect_is_a_warning_unless_it_has_its_default() -> None:
    loaded = load_node_config(b"num.io.threads=8\nnum.network.threads=12\n")
    assert loaded.warnings == ("server.properties:2: num.network.threads has no effect in Ottla yet",)


def test_configs_of_listeners_and_plugins_are_not_unknown() -> None:
    text = b"listener.name.a.ssl.keystore.type=PEM\nrsm.config.x=1\n"
    assert load_node_config(text).warnings == ()


def test_every_wrong_value_is_reported_with_its_line_and_what_is_allowed() -> None:
    text = b"num.partitions=many\n\nlog.segment.bytes=12\nnode.id=1\n"
    with pytest.raises(UnusableConfigs) as caught:
        load_node_config(text, {"log.cleanup.policy": "shred"}, origin="s.properties")
    first, second, third = caught.value.problems
    assert first.startswith("s.properties:1: Invalid value many for configuration num.partitions")
    assert second.startswith("s.properties:3: Invalid value 12 for configuration log.segment.bytes")
    assert "[1048576,...]" in second
    assert third.startswith("command line: Invalid value shred for configuration log.cleanup.policy")
    assert "compact, delete" in third


def test_a_malformed_file_is_reported_with_its_line() -> None:
    with pytest.raises(UnusableConfigs, match=r"s\.properties:2"):
        load_node_config(b"a=1\nb=\\uZZZZ\n", origin="s.properties")


def test_configs_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(UnusableConfigs, match=r"broker\.id"):
        load_node_config(b"node.id=1\nbroker.id=2\n")


def test_kafkas_own_server_properties_is_accepted() -> None:
    text = b"""
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/var/lib/data
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""
    loaded = load_node_config(text)
    assert not [warning for warning in loaded.warnings if "unknown" in warning]
    assert loaded.config.data_directories == ("/var/lib/data",)
    assert [end.listener for end in loaded.config.controller_endpoints] == ["CONTROLLER"]


def test_the_lines_of_a_key_are_neither_configs_nor_shown() -> None:
    pem = b"ssl.keystore.key=-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq+hkiG9w0=\nZm9v/bar==\nQ1\n"
    loaded = load_node_config(pem, origin="my.properties")
    (warning,) = loaded.warnings
    assert warning.startswith("my.properties:2: this line (and 2 more) is no configuration")
    assert not any(name.startswith(("MII", "Zm", "Q1")) for name in loaded.configs.layers.static)
