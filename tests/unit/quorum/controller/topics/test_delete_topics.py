"""DeleteTopics. That the answers are Kafka's is tested against a live one."""

from tests.support.deciding import DecidingController

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.quorum.controller.topics.delete_topics import decide_delete_topics
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


def delete(controller: DecidingController, *states: tuple[str | None, Uuid]) -> list[ErrorCode]:
    topics = tuple(DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in states)
    reply = controller.ask(decide_delete_topics, DeleteTopicsRequest(topics=topics, timeout_ms=0))
    return [response.error_code for response in reply.responses]


def test_a_topic_goes_with_its_configs() -> None:
    controller = DecidingController()
    controller.have("t", (0,), retention_ms="5")
    assert delete(controller, ("t", ZERO_UUID)) == [ErrorCode.NONE]
    assert controller.image.topics.find("t") is None
    assert controller.image.configs == {}


def test_a_topic_is_deleted_by_its_id() -> None:
    controller = DecidingController()
    topic = controller.have("t", (0,))
    assert delete(controller, (None, topic.id)) == [ErrorCode.NONE]
    assert len(controller.image.topics) == 0


def test_a_topic_named_by_name_and_by_id_in_one_request_stays() -> None:
    controller = DecidingController()
    topic = controller.have("t", (0,))
    assert delete(controller, ("t", ZERO_UUID), (None, topic.id)) == [ErrorCode.INVALID_REQUEST] * 2
    assert controller.image.topics.find("t") is topic


def test_where_deleting_is_disabled_everything_stays() -> None:
    controller = DecidingController(configs={"delete.topic.enable": "false"})
    controller.have("t", (0,))
    assert delete(controller, ("t", ZERO_UUID), ("other", ZERO_UUID)) == [
        ErrorCode.TOPIC_DELETION_DISABLED,
        ErrorCode.TOPIC_DELETION_DISABLED,
    ]
    assert not controller.records


def test_names_of_the_first_versions_are_understood() -> None:
    controller = DecidingController()
    controller.have("t", (0,))
    ask = DeleteTopicsRequest(topic_names=("t", "nope"), timeout_ms=0)
    reply = controller.ask(decide_delete_topics, ask)
    assert {response.name: response.error_code for response in reply.responses} == {
        "t": ErrorCode.NONE,
        "nope": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_topic_named_twice_at_once_spoils_no_other() -> None:
    controller = DecidingController()
    topic = controller.have("t", (0,))
    assert delete(controller, ("t", topic.id), ("t", ZERO_UUID)) == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
    ]
    assert controller.image.topics.find("t") is None
