"""A client that has hung up is not served as if it still wanted something."""

from pathlib import Path

from tests.support.data_plane import create_topic, fetch_request
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

from ottla.model.uuid import ZERO_UUID
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic


def test_a_client_that_is_gone_does_not_bring_a_deleted_topic_back(tmp_path: Path) -> None:
    with OttlaNode(tmp_path) as node, PlainClient(node.bootstrap) as admin:
        create_topic(admin, "orders")
        leaving = PlainClient(node.bootstrap)
        # The node serves one request of a connection after the other, so the second waits behind the fetch.
        leaving.send(fetch_request("orders", 0, max_wait_ms=60_000), 12)
        wanted = MetadataRequestTopic(name="orders", topic_id=ZERO_UUID)
        leaving.send(MetadataRequest(topics=(wanted,), allow_auto_topic_creation=True))
        leaving.close()
        doomed = DeleteTopicsRequest(
            topics=(DeleteTopicState(name="orders", topic_id=ZERO_UUID),), timeout_ms=60_000
        )
        assert admin.ask(doomed).responses[0].error_code == 0
        # Whatever was going to be created is there by now: the controller does one after the other.
        create_topic(admin, "another")
        names = {topic.name for topic in admin.ask(MetadataRequest(topics=None)).topics}
        assert names == {"another"}
