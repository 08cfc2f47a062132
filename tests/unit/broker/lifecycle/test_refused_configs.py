"""Configs that nobody may rely on in vain stop the start, in one sentence."""

from pathlib import Path

import pytest

from ottla.broker.coordinators.groups import group_settings
from ottla.broker.lifecycle.format_options import NO_OPTIONS, FormatOptions
from ottla.broker.lifecycle.process import NodeFailure, NodeOnLoop, NodeOptions
from ottla.broker.lifecycle.refused_configs import check_configs
from ottla.metadata.configs.load import load_node_config
from ottla.runtime.poller import ServingLoop
from ottla.testing.ports import free_port


def failure_of(root: Path, settings: dict[str, str], options: FormatOptions = NO_OPTIONS) -> str:
    loaded = load_node_config(b"", {"log.dirs": str(root / "data"), **settings})
    loop = ServingLoop()
    try:
        with pytest.raises(NodeFailure) as failure:
            NodeOnLoop(loop).start(loaded.configs, NodeOptions(port=0, format=options))
    finally:
        loop.close()
    return str(failure.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("authorizer.class.name", "com.example.Authorizer"),
        ("create.topic.policy.class.name", "com.example.Policy"),
        ("alter.config.policy.class.name", "com.example.Policy"),
        ("client.quota.callback.class", "com.example.Quotas"),
        ("config.providers", "file"),
        ("remote.log.storage.system.enable", "true"),
        ("group.consumer.assignors", "nonsense"),
        ("group.consumer.assignors", "uniform,Range"),
        ("group.consumer.assignors", "com.example.Assignor,uniform"),
    ],
)
def test_what_cannot_be_done_and_must_not_be_ignored_is_refused(
    tmp_path: Path, name: str, value: str
) -> None:
    said = failure_of(tmp_path, {name: value})
    assert said.startswith(name)
    assert "\n" not in said
    assert not (tmp_path / "data").exists(), "nothing was formatted"


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_a_listener_that_is_to_be_safe_is_refused(tmp_path: Path, protocol: str) -> None:
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,{protocol}://127.0.0.1:9093,CONTROLLER://127.0.0.1:9094"
    }
    said = failure_of(tmp_path, settings)
    assert protocol in said
    assert not (tmp_path / "data").exists()


def test_a_broker_that_finds_no_controller_says_so(tmp_path: Path) -> None:
    settings = {
        "process.roles": "broker",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{free_port()}",
        "initial.broker.registration.timeout.ms": "500",
    }
    said = failure_of(tmp_path, settings, FormatOptions(cluster_id="b3R0bGEtdGVzdC1jbHVzdA"))
    assert said.startswith("no leader of the controllers was found in 500 ms: start a majority of them")


def test_a_quorum_of_this_node_alone_is_fine(tmp_path: Path) -> None:
    loaded = load_node_config(
        b"", {"log.dirs": str(tmp_path), "node.id": "1", "controller.quorum.voters": "1@127.0.0.1:9093"}
    )
    check_configs(loaded.configs.node)


def test_assignors_may_be_named_as_kafkas_classes(tmp_path: Path) -> None:
    package = "org.apache.kafka.coordinator.group.assignor"
    named = f"{package}.RangeAssignor,{package}.UniformAssignor"
    node = load_node_config(b"", {"log.dirs": str(tmp_path), "group.consumer.assignors": named}).configs.node
    check_configs(node)
    assert group_settings(node).consumer_assignors == ("range", "uniform")
