"""What a producer may do, as far as it can be said before the log looks at a batch.

The handler asks for each batch. A lane asks when it begins, and from then on `Partition.takes_writes`, which
says the same of all batches that a lane takes.
"""

from typing import Final

from ottla.broker.logs.partition import Partition
from ottla.broker.node import BrokerContext
from ottla.records.attributes import CODEC_MASK, TRANSACTIONAL_BIT, Codec
from ottla.records.batch import ATTRIBUTES_LOW_BYTE
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.produce import (
    ACKS_LETTERS,
    ACKS_MIRRORED,
    ZSTD_FROM,
    ProduceRequest,
)

ADMIN_CLIENT_ID: Final = "__admin_client"
"""The one client id that may write to the coordinators' topics, where a config lets it."""


def find_refusal(
    ask: ProduceRequest, records: memoryview, partition: Partition, context: BrokerContext
) -> ErrorCode:
    """Say why a batch is refused before the log looks at it."""
    is_mirror = partition.log.config.is_mirror
    if not -1 <= ask.acks <= 1 and not (
        (ask.acks == ACKS_MIRRORED and is_mirror)
        or (ask.acks == ACKS_LETTERS and _takes_letters(partition, context))
    ):
        return ErrorCode.INVALID_REQUIRED_ACKS
    attributes = records[ATTRIBUTES_LOW_BYTE] if len(records) > ATTRIBUTES_LOW_BYTE else 0
    if attributes & TRANSACTIONAL_BIT and ask.transactional_id is None and not is_mirror:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if not partition.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if partition.is_internal and not _may_write_internal(context):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if context.version < ZSTD_FROM and attributes & CODEC_MASK == Codec.ZSTD:
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    if ask.acks < 0 and not partition.has_enough_replicas:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return ErrorCode.NONE


def _takes_letters(partition: Partition, context: BrokerContext) -> bool:
    broker = context.broker
    config = broker.configs.topic(broker.image.topic_config(partition.topic))
    return config.errors_deadletterqueue_group_enable


def _may_write_internal(context: BrokerContext) -> bool:
    """Say whether a client may write to the topics of the coordinators.

    Deviation: in Kafka the client id is enough. Anybody can use one, and could change all groups' offsets.
    """
    return context.broker.config.ottla_internal_topics_writable and context.client_id == ADMIN_CLIENT_ID
