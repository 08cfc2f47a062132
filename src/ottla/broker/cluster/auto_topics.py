"""Topics that are created because somebody asked for them.

Ordinary ones get `num.partitions` and `default.replication.factor`; those of the coordinators have settings
of their own. Of two requests for the same topic the second finds it there, or gets an error that says so.
"""

from collections.abc import Sequence
from typing import Final

from ottla.broker.deferred import Deferred
from ottla.broker.logs.partition import INTERNAL_TOPICS
from ottla.broker.serving.context import RequestContext
from ottla.metadata.configs.node import NodeConfig
from ottla.model.topic_names import find_topic_name_fault
from ottla.wire.apis import ApiKey, api_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

TOPICS_AT_ONCE_MAX: Final = 1000
_TIMEOUT_MS: Final = 30_000
_NEWEST_VERSION: Final = api_of(ApiKey.CREATE_TOPICS).versions.last


def create_missing_topics(names: Sequence[str], context: RequestContext) -> Deferred[CreateTopicsResponse]:
    """Create topics that a client asked for and that have valid names.

    A topic of a coordinator is created for the node itself, not for the client, which is not charged for it.
    As in Kafka, a client that is over its quota learns no more than that the topic is unknown.
    """
    node = context.node
    brokers = sum(not one.fenced for one in node.image.brokers.values())
    topics = tuple(
        creatable_topic(name, node.configs.node, brokers)
        for name in dict.fromkeys(names)
        if why_unknown(name) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )
    ask = CreateTopicsRequest(topics=topics[:TOPICS_AT_ONCE_MAX], timeout_ms=_TIMEOUT_MS)
    caller = None if INTERNAL_TOPICS.issuperset(names) else context.caller(_NEWEST_VERSION)
    return node.controller.ask(ask, caller)


def why_unknown(name: str) -> ErrorCode:
    """Say why there is no topic of that name."""
    if find_topic_name_fault(name) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def creatable_topic(name: str, config: NodeConfig, brokers: int) -> CreatableTopic:
    """Return how a topic is to be created that nobody said anything about.

    Deviation: a topic of the coordinators gets no more replicas than there are brokers. Kafka refuses to make
    it then, and with the defaults nobody could use groups on a single node.
    """
    match name:
        case "__consumer_offsets":
            return _topic(
                name,
                config.offsets_topic_num_partitions,
                min(config.offsets_topic_replication_factor, brokers),
                {
                    "cleanup.policy": "compact",
                    "segment.bytes": str(config.offsets_topic_segment_bytes),
                    "compression.type": "producer",
                },
            )
        case "__transaction_state":
            return _topic(
                name,
                config.transaction_state_log_num_partitions,
                min(config.transaction_state_log_replication_factor, brokers),
                {
                    "unclean.leader.election.enable": "false",
                    "compression.type": "uncompressed",
                    "cleanup.policy": "compact",
                    "min.insync.replicas": str(config.transaction_state_log_min_isr),
                    "segment.bytes": str(config.transaction_state_log_segment_bytes),
                },
            )
        case "__share_group_state":
            return _topic(
                name,
                config.share_coordinator_state_topic_num_partitions,
                min(config.share_coordinator_state_topic_replication_factor, brokers),
                {
                    "cleanup.policy": "delete",
                    "compression.type": "producer",
                    "segment.bytes": str(config.share_coordinator_state_topic_segment_bytes),
                    "retention.ms": "-1",
                    "min.insync.replicas": str(config.share_coordinator_state_topic_min_isr),
                },
            )
        case "__ottla_journal":
            # The journal's writer places it: each node has a partition of its own.
            return _topic(
                name,
                1,
                1,
                {
                    "cleanup.policy": "delete",
                    "retention.ms": str(config.ottla_journal_retention_ms),
                    "retention.bytes": str(config.ottla_journal_retention_bytes),
                    "segment.bytes": str(16 << 20),
                    "min.insync.replicas": "1",
                },
            )
        case _:
            return _topic(name, config.num_partitions, config.default_replication_factor, {})


def _topic(name: str, partitions: int, replication_factor: int, configs: dict[str, str]) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=(),
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in configs.items()),
    )
