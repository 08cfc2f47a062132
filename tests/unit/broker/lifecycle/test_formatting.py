"""Formatting is done, or done again: whenever it is interrupted, the next start goes on."""

from random import Random

import pytest

from ottla.broker.lifecycle.format_options import FormatFailure, FormatOptions, plan_cluster
from ottla.broker.lifecycle.formatting import format_missing
from ottla.metadata.configs.load import load_node_config
from ottla.quorum.format import NewCluster, is_formatted
from ottla.storage.log_dirs.directories import open_directories
from ottla.storage.volume import Volume
from ottla.testing.simulated_disk import PowerCut, SimulatedDisk

PATHS = ["/data/one", "/data/two"]
CONFIG = load_node_config(b"", {"log.dirs": ",".join(PATHS)}).config
STEPS_MAX = 200
NOW_MS = 1_750_000_000_000


@pytest.mark.parametrize("loses_power", [True, False])
def test_formatting_that_is_interrupted_at_any_step_is_done_again(loses_power: bool) -> None:
    for step in range(1, STEPS_MAX):
        disk = SimulatedDisk(seed=step)
        disk.cut_power_after(step)
        try:
            format_missing(disk, CONFIG, PATHS, Random(1), NOW_MS)
        except PowerCut:
            if loses_power:
                disk.cut_power()
            else:
                disk.kill()
        else:
            assert step > 10, "it has many steps"
            return
        format_missing(disk, CONFIG, PATHS, Random(1), NOW_MS)
        assert all(is_formatted(disk, path) for path in PATHS)
        opened = open_directories([Volume(disk, path) for path in PATHS])
        assert len({directory.meta.cluster_id for directory in opened.directories}) == 1
        opened.release()
    pytest.fail("it has no end")


@pytest.mark.parametrize("name", ["notes.txt", "orders-0", "__cluster_metadata-0/quorum-state"])
def test_a_directory_with_something_else_in_it_is_refused(name: str) -> None:
    disk = SimulatedDisk()
    for directory in ("/data", "/data/one", "/data/one/__cluster_metadata-0"):
        disk.make_directory(directory)
    disk.open(f"/data/one/{name}", create=True)
    with pytest.raises(FormatFailure, match=name):
        format_missing(disk, CONFIG, PATHS, Random(1), NOW_MS)


MANY = {
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093,127.0.0.1:9193",
}
CLUSTER_ID = "b3R0bGEtdGVzdC1jbHVzdA"
DIRECTORY_ID = "3n9LwqijR0S7KDdmqZP55w"


def plan(settings: dict[str, str], options: FormatOptions) -> NewCluster:
    config = load_node_config(b"", {"node.id": "1", "log.dirs": "/data", **settings}).config
    return plan_cluster(config, options, Random(1))


def test_a_node_that_knows_no_other_controller_is_a_cluster_of_its_own() -> None:
    cluster = plan({}, FormatOptions())
    assert [one.voter_id for one in cluster.voters or ()] == [1]
    assert plan({"controller.quorum.voters": "1@127.0.0.1:9093"}, FormatOptions()).voters is None


@pytest.mark.parametrize(
    ("settings", "options", "words"),
    [
        (MANY, FormatOptions(cluster_id=CLUSTER_ID), "--standalone, --initial-controllers or"),
        (MANY, FormatOptions(no_initial_controllers=True), "add --cluster-id"),
        (MANY, FormatOptions(standalone=True, no_initial_controllers=True), "cannot be used together"),
        (
            {"controller.quorum.voters": "1@127.0.0.1:9093,2@127.0.0.1:9193"},
            FormatOptions(),
            "add --cluster-id",
        ),
        ({}, FormatOptions(directory_id="AAAAAAAAAAAAAAAAAAAAAQ"), "is reserved"),
        (
            MANY,
            FormatOptions(
                cluster_id=CLUSTER_ID,
                directory_id=CLUSTER_ID,
                initial_controllers=f"1@127.0.0.1:9093:{DIRECTORY_ID}",
            ),
            "use one id in both",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused_with_a_sentence(
    settings: dict[str, str], options: FormatOptions, words: str
) -> None:
    with pytest.raises(FormatFailure, match=words):
        plan(settings, options)


def test_an_initial_controller_gets_the_directory_id_that_it_is_listed_with() -> None:
    initial = f"1@127.0.0.1:9093:{DIRECTORY_ID},2@[::1]:9193:{CLUSTER_ID}"
    cluster = plan(MANY, FormatOptions(cluster_id=CLUSTER_ID, initial_controllers=initial))
    assert str(cluster.directory_id) == DIRECTORY_ID
    assert [(one.voter_id, one.endpoints[0].host) for one in cluster.voters or ()] == [
        (1, "127.0.0.1"),
        (2, "::1"),
    ]
