"""Records: deleting those before an offset, which is how a partition is emptied."""

from collections.abc import Mapping, Sequence

from ottla.client.admin.results import Results
from ottla.client.admin.routes import Routes, outcome_of
from ottla.client.admin.topics import Topics
from ottla.client.errors import ClientError
from ottla.model.ids import TopicPartition
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

TO_THE_END = -1


class StoredRecords:
    """The records of a cluster's partitions, as far as an operator may touch them."""

    def __init__(self, routes: Routes, topics: Topics) -> None:
        self._routes = routes
        self._topics = topics

    async def delete(self, before: Mapping[TopicPartition, int]) -> Results[TopicPartition, int]:
        """Delete what lies before an offset of each partition; -1 stands for all that consumers may see.

        Returns where each partition starts now. Repeating it is harmless: a lost answer is asked for again.
        """

        async def ask(
            node_id: int, keys: Sequence[TopicPartition]
        ) -> dict[TopicPartition, int | ClientError]:
            topics: dict[str, list[DeleteRecordsPartition]] = {}
            for key in keys:
                item = DeleteRecordsPartition(partition_index=key.partition, offset=before[key])
                topics.setdefault(key.topic, []).append(item)
            request = DeleteRecordsRequest(
                topics=tuple(
                    DeleteRecordsTopic(name=name, partitions=tuple(items)) for name, items in topics.items()
                ),
                timeout_ms=self._routes.request_timeout_ms,
            )
            answer = await self._routes.ask_node(node_id, request)
            return {
                TopicPartition(topic.name, item.partition_index): outcome_of(
                    item.error_code,
                    f"cannot delete records of {topic.name}-{item.partition_index}",
                    None,
                    item.low_watermark,
                )
                for topic in answer.topics
                for item in topic.partitions
            }

        return await self._routes.ask_leaders(before, ask)

    async def truncate(self, topic: str) -> Results[TopicPartition, int]:
        """Delete all records of a topic; the topic stays, and offsets go on from where they were."""
        description = await self._topics.describe(topic)
        return await self.delete(dict.fromkeys(description.topic_partitions, TO_THE_END))
