"""AssignReplicasToDirs: a broker tells in which of its log directories its replicas lie (KIP-858)."""

from ottla.metadata.directory_ids import LOST
from ottla.metadata.features import DIRECTORIES_FROM
from ottla.model.uuid import Uuid
from ottla.quorum.controller.deciders import decides
from ottla.quorum.controller.decision import ControllerView, Decision, Refusal
from ottla.quorum.controller.partitions.leadership import (
    BrokerChange,
    PartitionKey,
    changes_of_partitions,
    terms_of,
)
from ottla.quorum.controller.partitions.partition_change import Target, change_partition
from ottla.quorum.controller.partitions.replicas import has_directory_online
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.assign_replicas_to_dirs import (
    AssignedPartitionResult,
    AssignedTopic,
    AssignedTopicResult,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryAssignmentResult,
)
from ottla.wire.metadata_records.brokers import RegisterBrokerRecord
from ottla.wire.metadata_records.partitions import PartitionChangeRecord


def refuse_assign_replicas_to_dirs(
    _ask: AssignReplicasToDirsRequest, refusal: Refusal
) -> AssignReplicasToDirsResponse:
    """Refuse a report as a whole."""
    return AssignReplicasToDirsResponse(error_code=refusal.error_code, directories=())


@decides(AssignReplicasToDirsRequest, refuse=refuse_assign_replicas_to_dirs)
def decide_assign_replicas_to_dirs(
    view: ControllerView, ask: AssignReplicasToDirsRequest
) -> Decision[AssignReplicasToDirsResponse]:
    """Note where replicas lie. Each is decided on its own."""
    broker = view.image.brokers.get(ask.broker_id)
    if broker is None or broker.broker_epoch != ask.broker_epoch:
        return Decision(refuse_assign_replicas_to_dirs(ask, Refusal(ErrorCode.STALE_BROKER_EPOCH)))
    if view.metadata_version < DIRECTORIES_FROM:
        return Decision(refuse_assign_replicas_to_dirs(ask, Refusal(ErrorCode.UNSUPPORTED_VERSION)))
    records: list[PartitionChangeRecord] = []
    # In the order of the request: in a set, that of the records would depend on addresses in memory.
    offline: dict[PartitionKey, None] = {}
    lost: dict[PartitionKey, None] = {}
    results = [
        DirectoryAssignmentResult(
            id=directory.id,
            topics=tuple(
                _assign(view, broker, directory.id, topic, records, lost if directory.id == LOST else offline)
                for topic in directory.topics
            ),
        )
        for directory in ask.directories
    ]
    # A replica that turns out to lie in a directory that is lost can neither lead nor be in sync.
    records += changes_of_partitions(view, offline, BrokerChange(leaving=ask.broker_id))
    # Deviation: Kafka keeps a replica that says that it is lost among the eligible leaders. Its broker may
    # cut it, or report it again from a directory that has less.
    gone = BrokerChange(leaving=ask.broker_id, lacks_records=True)
    records += changes_of_partitions(view, lost, gone)
    return Decision(AssignReplicasToDirsResponse(directories=tuple(results)), records)


def _assign(
    view: ControllerView,
    broker: RegisterBrokerRecord,
    directory_id: Uuid,
    topic: AssignedTopic,
    records: list[PartitionChangeRecord],
    offline: dict[PartitionKey, None],
) -> AssignedTopicResult:
    is_online = has_directory_online(view.image.brokers, broker.broker_id, directory_id)
    results = []
    for partition in topic.partitions:
        error_code = ErrorCode.NONE
        try:
            record = _change(view, broker.broker_id, directory_id, topic.topic_id, partition.partition_index)
        except Refusal as refusal:
            error_code = refusal.error_code
        else:
            if record is not None:
                records.append(record)
            if not is_online:
                offline[topic.topic_id, partition.partition_index] = None
        results.append(
            AssignedPartitionResult(partition_index=partition.partition_index, error_code=error_code)
        )
    return AssignedTopicResult(topic_id=topic.topic_id, partitions=tuple(results))


def _change(
    view: ControllerView, broker_id: int, directory_id: Uuid, topic_id: Uuid, number: int
) -> PartitionChangeRecord | None:
    topic = view.image.topics.find_by_id(topic_id)
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(number)
    if partition is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if broker_id not in partition.replicas:
        raise Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    known = partition
    if has_directory_online(view.image.brokers, broker_id, directory_id):
        # It may lead from its new directory at once: nothing else would have it elected where nobody leads.
        place = partition.replicas.index(broker_id)
        directories = (*partition.directories[:place], directory_id, *partition.directories[place + 1 :])
        known = replace(partition, directories=directories)
    terms = terms_of(view, topic, known)
    return change_partition(partition, Target(directories={broker_id: directory_id}), terms)
