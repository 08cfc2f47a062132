"""Groups and offsets that Apache Kafka wrote, served by a node of ours on the same directory."""

from pathlib import Path

import pytest
from tests.golden.directories import manifest, unpack
from tests.support.group_requests import describe_request, fetch_request, list_request
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.list_groups import ListedGroup

# The commits are of the day the archives were made: they must not expire before they are looked at.
SETTINGS = {"offsets.retention.minutes": "2147483647"}
LOADING = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)


def listed_groups(client: PlainClient) -> tuple[ListedGroup, ...]:
    while (answer := client.ask(list_request())).error_code in LOADING:
        pass
    assert answer.error_code is ErrorCode.NONE
    groups: tuple[ListedGroup, ...] = answer.groups
    return groups


def offsets_of(client: PlainClient, groups: list[str]) -> dict[str, dict[str, object]]:
    """Return all committed offsets, as the manifest writes them."""
    found: dict[str, dict[str, object]] = {}
    for group in client.ask(fetch_request(*groups), 9).groups:
        assert group.error_code is ErrorCode.NONE
        for topic in group.topics:
            for part in topic.partitions:
                found[f"{group.group_id}/{topic.name}-{part.partition_index}"] = {
                    "offset": part.committed_offset,
                    "leaderEpoch": part.committed_leader_epoch,
                    "metadata": part.metadata,
                }
    return found


@pytest.mark.parametrize("archive", ["01-clean", "02-compacted", "03-killed9"])
def test_groups_and_offsets_are_those_that_apache_kafka_wrote(archive: str, tmp_path: Path) -> None:
    known = manifest()[archive]
    data = unpack(archive, tmp_path)
    settings = {**SETTINGS, "node.id": node_id(data)}
    with (
        # The directory has access rules, and these settings have no authorizer.
        OttlaNode(tmp_path / "node", settings, data_directory=data, options=["--insecure"]) as node,
        PlainClient(node.bootstrap) as client,
    ):
        groups = {group.group_id: group.group_type for group in listed_groups(client)}
        simple = {name.partition("/")[0] for name in known["committedOffsets"]} - known["groups"].keys()
        assert groups == known["groups"] | dict.fromkeys(simple, "classic")
        assert offsets_of(client, sorted(groups)) == known["committedOffsets"]
        for name, kind in groups.items():
            (described,) = client.ask(describe_request(name)).groups
            expected = ErrorCode.NONE if kind == "classic" else ErrorCode.GROUP_ID_NOT_FOUND
            assert described.error_code is expected, name


def node_id(data: Path) -> str:
    lines = (data / "meta.properties").read_text().splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith("node.id="))
