"""A request that is repeated gets the answer that it got before, but for its offset."""

from pathlib import Path

import pytest
from tests.support.data_plane import batch_of, create_topic, produce_request
from tests.support.in_process import InProcessClient, in_process_node

from ottla.broker.lanes.produce_lane import ProduceLanes
from ottla.security.principal import Principal
from ottla.wire.declare import replace

TOPIC_IDS_FROM = 13


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", [7, 9, 12, 13])
def test_the_short_way_answers_as_the_long_way_does(tmp_path: Path, version: int, acks: int) -> None:
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        topic_id = create_topic(client, "repeated")
        name = topic_id if version >= TOPIC_IDS_FROM else "repeated"
        answers = [
            client.ask(produce_request(name, batch_of(b"a", b"b"), acks=acks), version) for _ in range(5)
        ]

        [lanes] = client.session._lanes
        assert isinstance(lanes, ProduceLanes)
        assert lanes._lanes, "the last requests took the short way"

    parts = [answer.responses[0].partition_responses[0] for answer in answers]
    assert [part.base_offset for part in parts] == [0, 2, 4, 6, 8]
    topic = answers[0].responses[0]
    for answer, part in zip(answers, parts, strict=True):
        expected = replace(parts[0], base_offset=part.base_offset)
        assert answer == replace(answers[0], responses=(replace(topic, partition_responses=(expected,)),))


def test_no_lane_outlives_the_rights_it_was_learned_under(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        create_topic(client, "guarded")

        def produce() -> None:
            client.ask(produce_request("guarded", batch_of(b"a"), acks=1), 9)

        def lanes() -> ProduceLanes:
            [known] = client.session._lanes
            assert isinstance(known, ProduceLanes)
            return known

        for _ in range(3):
            produce()
        first = lanes()
        assert first._lanes
        monkeypatch.setattr(node.broker.authorizer, "version", node.broker.authorizer.version + 1)
        produce()
        assert lanes() is not first
        second = lanes()
        client.session.context.principal = Principal("User", "another")
        produce()
        assert lanes() is not second


def test_what_the_handler_refuses_gets_no_lane(tmp_path: Path) -> None:
    """A lane begins by asking what the handler asks of each batch, so no rule can be left out."""
    with in_process_node(tmp_path) as node:
        client = InProcessClient(node)
        create_topic(client, "refused")
        partition = node.broker.partitions.find("refused", 0)
        assert partition is not None
        # More than there are: acks=all is refused, and only that.
        partition.in_sync_replicas_min = 2
        for acks, has_lane in ((-1, False), (1, True)):
            for _ in range(3):
                client.ask(produce_request("refused", batch_of(b"a"), acks=acks), 9)
            lanes = [lane for known in client.session._lanes for lane in known._lanes]  # type: ignore[attr-defined]
            assert bool(lanes) == has_lane
