"""The coordinators of a node: each has a topic of its own, and everything goes through one list of them."""

import random
from pathlib import Path
from uuid import UUID

import pytest
from tests.support.in_process import InProcessClient, in_process_node

from ottla.broker.logs.partition import INTERNAL_TOPICS
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.find_coordinator import SHARE, FindCoordinatorRequest


def test_every_coordinator_has_an_internal_topic_and_a_type_of_key_of_its_own(tmp_path: Path) -> None:
    with in_process_node(tmp_path) as node:
        coordinators = node.broker.coordinators
        topics = {one.topic for one in coordinators}
        assert topics <= INTERNAL_TOPICS
        assert len(topics) == len({one.key_type for one in coordinators}) == len(list(coordinators))


def test_a_coordinator_is_made_when_somebody_needs_it(tmp_path: Path) -> None:
    with in_process_node(tmp_path) as node:
        groups, *others = node.broker.coordinators
        assert not any(one.is_made for one in (groups, *others))
        InProcessClient(node).ask(FindCoordinatorRequest(key="key", key_type=groups.key_type), 3)
        assert groups.is_made
        assert not any(one.is_made for one in others)
    with in_process_node(tmp_path) as node:
        groups, *others = node.broker.coordinators
        assert groups.is_made
        assert not any(one.is_made for one in others)


def test_find_coordinator_makes_the_topic_of_each_and_its_shards_serve(tmp_path: Path) -> None:
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        for one in node.broker.coordinators:
            key = "group:AAAAAAAAAAAAAAAAAAAAAQ:0" if one.key_type == SHARE else "key"
            assert one.hosted.coordinator.shards.find(key) is ErrorCode.NOT_COORDINATOR
            found = client.ask(FindCoordinatorRequest(key=key, key_type=one.key_type), 3)
            assert found.error_code is ErrorCode.NONE
            shard = one.hosted.coordinator.shards.find(key)
            assert not isinstance(shard, ErrorCode)
            one.hosted.stop()
            assert shard.refusal is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(
    "key", ["key", "group:id:0", "group:AAAAAAAAAAAAAAAAAAAAAQ:x", ":AAAAAAAAAAAAAAAAAAAAAQ:0"]
)
def test_a_key_that_names_no_share_partition_is_refused_and_makes_no_topic(key: str, tmp_path: Path) -> None:
    with in_process_node(tmp_path) as node:
        found = InProcessClient(node).ask(FindCoordinatorRequest(key=key, key_type=SHARE), 3)
        assert found.error_code is ErrorCode.INVALID_REQUEST
        assert node.broker.image.topics.find("__share_group_state") is None


def test_a_type_of_key_that_no_coordinator_has_is_refused(tmp_path: Path) -> None:
    with in_process_node(tmp_path) as node:
        key_type = 1 + max(one.key_type for one in node.broker.coordinators)
        found = InProcessClient(node).ask(FindCoordinatorRequest(key="key", key_type=key_type), 3)
        assert found.error_code is ErrorCode.INVALID_REQUEST


def test_ids_of_members_come_from_the_randomness_of_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_process_node(tmp_path) as node:
        made = []
        for _ in range(2):
            monkeypatch.setattr(node.broker, "random", random.Random(7))
            made.append(node.broker.groups.new_member_suffix())
        assert made[0] == made[1]
        assert UUID(made[0]).version == 4


def test_a_worker_imports_the_coordinator_of_a_new_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_process_node(tmp_path) as node:
        imported: list[str] = []
        monkeypatch.setattr(node.broker.coordinators, "import_for", imported.extend)
        client = InProcessClient(node)
        client.ask(FindCoordinatorRequest(key="key", key_type=0), 3)
        assert set(imported) == {"__consumer_offsets"}
