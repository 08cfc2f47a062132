"""What the requests to a share coordinator have in common: topics with partitions, each with its outcome."""

from collections.abc import Callable
from typing import Any

from ottla.broker.deferred import Deferred, gather
from ottla.coordination.runtime.decision import Answer
from ottla.coordination.share.coordinator import Outcome
from ottla.coordination.share.state import ShareKey


def answer_partitions(
    ask: Any,
    begin: Callable[[ShareKey, Any, Answer[Outcome]], None],
    result: Callable[[int, Outcome], Any],
    topic_result: type[Any],
    response: type[Any],
) -> Deferred[Any]:
    """Begin what is asked for each partition, and answer when all outcomes are there.

    Like Kafka, answer nothing to a request that names no group, no topics, or a topic without partitions.
    """
    if not ask.group_id or not all(topic.partitions for topic in ask.topics):
        return Deferred.of(response(results=()))

    def begin_one(topic_id: Any, one: Any) -> Deferred[Any]:
        outcome: Deferred[Outcome] = Deferred()
        begin(ShareKey(ask.group_id, topic_id, one.partition), one, outcome.resolve)
        return outcome.then(lambda found: result(one.partition, found))

    topics = [
        gather([begin_one(topic.topic_id, one) for one in topic.partitions]).then(
            lambda results, topic=topic: topic_result(topic_id=topic.topic_id, partitions=tuple(results))  # type: ignore[misc]
        )
        for topic in ask.topics
    ]
    return gather(topics).then(lambda results: response(results=tuple(results)))
