"""A cluster of several brokers in which anything may happen, for two controllers side by side."""

import random
from collections.abc import Sequence
from typing import Any

from tests.differential.controller_twins import Twins
from tests.java.control_managers import KafkaFailed
from tests.support.deciding import CLUSTER_ID, SESSION_TIMEOUT_MS, directory_of, new_topic, registration

from ottla.metadata.features import is_elr_enabled
from ottla.metadata.topics import NO_LEADER, Topic
from ottla.model.uuid import Uuid
from ottla.quorum.controller.partitions.replicas import takes_replicas
from ottla.wire.config_kinds import ResourceType
from ottla.wire.messages.alter_partition import (
    AlterPartitionPartition,
    AlterPartitionRequest,
    AlterPartitionTopic,
    BrokerState,
)
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.assign_replicas_to_dirs import (
    AssignedPartition,
    AssignedTopic,
    AssignReplicasToDirsRequest,
    DirectoryAssignment,
)
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from ottla.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest
from ottla.wire.metadata_records.brokers import RegisterBrokerRecord
from ottla.wire.metadata_records.configs import ConfigRecord
from ottla.wire.metadata_records.partitions import ClearElrRecord, PartitionRecord

BROKERS = range(1, 6)
RACKS = (None, "a", "b", "a", "c")
DIRECTORIES = 2
STEPS = (
    ("register", 3),
    ("heartbeat", 10),
    ("alter_partition", 10),
    ("reassign", 5),
    ("elect", 3),
    ("assign_directories", 2),
    ("create_topic", 2),
    ("create_partitions", 1),
    ("unregister", 1),
    ("wait", 2),
    ("stay_away", 1),
    ("balance", 2),
    ("elect_unclean", 1),
    ("change_config", 2),
)


class Fuzz:
    """Random steps, each taken by both controllers."""

    def __init__(self, seed: int, twins: Twins) -> None:
        self.random = random.Random(seed)
        self.twins = twins
        self._incarnations = 0
        self._stopping: set[int] = set()
        for broker_id in BROKERS:
            self._register(broker_id, is_new=True)
            self._beat(broker_id)
        for name in ("t0", "t1"):
            self._create(name)

    def run(self, steps: int) -> None:
        """Take steps."""
        names = [name for name, _ in STEPS]
        weights = [weight for _, weight in STEPS]
        for name in self.random.choices(names, weights, k=steps):
            try:
                getattr(self, f"_step_{name}")()
            except KafkaFailed as error:
                # Kafka cannot go on where the last known leader is no replica any more.
                if "is not assigned to this partition" not in str(error):
                    raise
                return

    # Brokers

    @property
    def _brokers(self) -> Sequence[RegisterBrokerRecord]:
        return sorted(self.twins.ours.image.brokers.values(), key=lambda one: one.broker_id)

    def _step_register(self) -> None:
        broker_id = self.random.choice(BROKERS)
        known = self.twins.ours.image.brokers.get(broker_id)
        # Kafka forgets by a registration of the same incarnation that a broker is about to stop.
        is_new = known is None or known.in_controlled_shutdown or self.random.random() < 0.8
        if is_new and known is not None:
            # Here a broker that stopped cleanly need not wait for its session to end.
            self.twins.advance(SESSION_TIMEOUT_MS // 2)
            others = [
                one
                for one in self._brokers
                if one.broker_id != broker_id and not one.fenced and not one.in_controlled_shutdown
            ]
            for other in others:
                self._beat(other.broker_id)
            self.twins.advance(SESSION_TIMEOUT_MS // 2 + 1)
        self._register(broker_id, is_new=is_new or known is None)

    def _register(self, broker_id: int, *, is_new: bool) -> None:
        known = self.twins.ours.image.brokers.get(broker_id)
        if is_new:
            self._stopping.discard(broker_id)
            self._incarnations += 1
            incarnation = Uuid(bytes((3, self._incarnations % 256, self._incarnations // 256)) + bytes(13))
        else:
            assert known is not None
            incarnation = known.incarnation_id
        is_clean = known is not None and self.random.random() < 0.5
        features = registration(broker_id).features
        ask = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=incarnation,
            listeners=(Listener(name="PLAINTEXT", host="h", port=9000 + broker_id, security_protocol=0),),
            features=tuple(
                Feature(
                    name=one.name,
                    min_supported_version=one.min_supported_version,
                    max_supported_version=one.max_supported_version,
                )
                for one in features
            ),
            rack=RACKS[broker_id % len(RACKS)],
            log_dirs=tuple(directory_of(broker_id, number) for number in range(DIRECTORIES)),
            previous_broker_epoch=known.broker_epoch if known is not None and is_clean else -1,
        )
        self.twins.ask(ask, 4)

    def _step_heartbeat(self) -> None:
        broker = self.random.choice(self._brokers)
        chance = self.random.random()
        wishes: dict[str, Any] = {}
        if chance < 0.15:
            wishes["want_shut_down"] = True
        elif chance < 0.2:
            wishes["want_fence"] = True
        elif chance < 0.23 and len(broker.log_dirs) > 1:
            # A broker that has lost all its directories stops.
            wishes["offline_log_dirs"] = (self.random.choice(broker.log_dirs),)
        elif chance < 0.28:
            wishes["cordoned_log_dirs"] = tuple(one for one in broker.log_dirs if self.random.random() < 0.5)
        elif chance < 0.3:
            wishes["broker_epoch"] = broker.broker_epoch - 1
        if self.random.random() < 0.2:
            behind = self.random.randrange(20)
            offset = max(0, self.twins.ours.image.offset - behind)
            # Here a broker is not caught up before it has read what was taken from it.
            if self.twins.ours.sessions.knows_what_it_leads(broker, offset):
                wishes["current_metadata_offset"] = offset
        self._beat(broker.broker_id, **wishes)

    def _beat(self, broker_id: int, **wishes: Any) -> None:
        broker = self.twins.ours.image.brokers[broker_id]
        is_stopping = broker_id in self._stopping or wishes.get("want_shut_down", False)
        if broker.in_controlled_shutdown and not broker.fenced:
            # Kafka forgets how far a broker has come whenever its registration changes.
            for other in self._brokers:
                if not other.fenced and not other.in_controlled_shutdown:
                    self._beat(other.broker_id)
        fields: dict[str, Any] = {
            "broker_id": broker_id,
            "broker_epoch": broker.broker_epoch,
            "current_metadata_offset": self.twins.ours.image.offset,
            "want_fence": False,
            "want_shut_down": is_stopping,
        }
        if is_stopping:
            self._stopping.add(broker_id)
            wishes = {"want_shut_down": True}
        self.twins.ask(BrokerHeartbeatRequest(**{**fields, **wishes}), 2)

    def _step_unregister(self) -> None:
        fenced = [one.broker_id for one in self._brokers if one.fenced]
        if fenced and len(self._brokers) > 3:
            self.twins.ask(UnregisterBrokerRequest(broker_id=self.random.choice(fenced)), 0)

    def _step_wait(self) -> None:
        self.twins.advance(self.random.randrange(1_000))

    def _step_stay_away(self) -> None:
        """Let some brokers say nothing until they are fenced."""
        away = set(self.random.sample(BROKERS, self.random.randrange(1, 3)))
        for _ in range(4):
            self.twins.advance(SESSION_TIMEOUT_MS // 4 + 1)
            for broker in self._brokers:
                if broker.broker_id not in away and not broker.fenced:
                    self._beat(broker.broker_id)
            self.twins.fence_stale()

    # Partitions

    def _partitions(self) -> list[tuple[Topic, PartitionRecord]]:
        return [
            (topic, partition)
            for topic in self.twins.ours.image.topics
            for partition in topic.partitions.values()
        ]

    def _step_alter_partition(self) -> None:
        topic, partition = self.random.choice(self._partitions())
        brokers = self.twins.ours.image.brokers
        leader = partition.leader
        if leader not in brokers or self.random.random() < 0.05:
            leader = self.random.choice(self._brokers).broker_id
        wanted = [one for one in partition.replicas if one == leader or self.random.random() < 0.7]
        if self.random.random() < 0.05:
            wanted.append(self.random.choice(BROKERS))
        one = AlterPartitionPartition(
            partition_index=partition.partition_id,
            leader_epoch=partition.leader_epoch + self._rarely_off(),
            new_isr_with_epochs=tuple(
                BrokerState(broker_id=member, broker_epoch=self._epoch_of(member)) for member in wanted
            ),
            leader_recovery_state=self.random.choice((0, 0, 0, 1)),
            partition_epoch=partition.partition_epoch + self._rarely_off(),
        )
        ask = AlterPartitionRequest(
            broker_id=leader,
            broker_epoch=brokers[leader].broker_epoch + self._rarely_off(),
            topics=(AlterPartitionTopic(topic_id=topic.id, partitions=(one,)),),
        )
        self.twins.ask(ask, 3)

    def _rarely_off(self) -> int:
        return self.random.choice((-1, 1)) if self.random.random() < 0.03 else 0

    def _epoch_of(self, broker_id: int) -> int:
        broker = self.twins.ours.image.brokers.get(broker_id)
        is_told = broker is not None and self.random.random() < 0.9
        return broker.broker_epoch + self._rarely_off() if broker is not None and is_told else -1

    def _step_reassign(self) -> None:
        topic, partition = self.random.choice(self._partitions())
        if partition.leader == NO_LEADER and partition.last_known_elr is None:
            # Kafka may note -1 as the last known leader.
            return
        chance = self.random.random()
        replicas: tuple[int, ...] | None = tuple(self.random.sample(BROKERS, self.random.randrange(1, 4)))
        if chance < 0.25:
            replicas = None
        elif chance < 0.35:
            replicas = tuple(self.random.sample(partition.replicas, len(partition.replicas)))
        elif chance < 0.4:
            replicas = (1, 1)
        one = ReassignablePartition(partition_index=partition.partition_id, replicas=replicas)
        ask = AlterPartitionReassignmentsRequest(
            allow_replication_factor_change=self.random.random() < 0.8,
            topics=(ReassignableTopic(name=topic.name, partitions=(one,)),),
        )
        self.twins.ask(ask, 1)

    def _step_elect(self) -> None:
        topic, partition = self.random.choice(self._partitions())
        some = (TopicPartitions(topic=topic.name, partitions=(partition.partition_id, 99)),)
        ask = ElectLeadersRequest(
            election_type=self.random.choice((0, 1)),
            topic_partitions=None if self.random.random() < 0.3 else some,
        )
        self.twins.ask(ask, 2)

    def _step_assign_directories(self) -> None:
        topic, partition = self.random.choice(self._partitions())
        broker = self.random.choice(self._brokers)
        one = DirectoryAssignment(
            id=directory_of(broker.broker_id, self.random.randrange(DIRECTORIES)),
            topics=(
                AssignedTopic(
                    topic_id=topic.id,
                    partitions=(AssignedPartition(partition_index=partition.partition_id),),
                ),
            ),
        )
        self.twins.ask(
            AssignReplicasToDirsRequest(
                broker_id=broker.broker_id, broker_epoch=broker.broker_epoch, directories=(one,)
            ),
            0,
        )

    def _step_balance(self) -> None:
        self.twins.elect("balance")

    def _step_elect_unclean(self) -> None:
        self.twins.elect("unclean")

    # Topics

    def _step_create_topic(self) -> None:
        self._create(f"t{len(self._partitions())}-{self.random.randrange(1000)}")

    def _create(self, name: str) -> None:
        if self.random.random() < 0.3:
            assignments = [tuple(self.random.sample(BROKERS, 2)) for _ in range(self.random.randrange(1, 4))]
            topic = new_topic(name, assignments=assignments)
        else:
            # Once every broker had its turn, Kafka may take lists for used up that are not. See `placement`.
            live = [one for one in self._brokers if takes_replicas(one) and not one.fenced]
            topic = new_topic(name, self.random.randint(1, max(1, len(live))), self.random.randrange(1, 5))
        self.twins.ask(CreateTopicsRequest(topics=(topic,)), 7)

    def _step_create_partitions(self) -> None:
        topic, _ = self.random.choice(self._partitions())
        if len({len(one.replicas) for one in topic.partitions.values()}) > 1:
            # Kafka takes the replication factor of any partition, we that of the first.
            return
        live = [one for one in self._brokers if takes_replicas(one) and not one.fenced]
        added = self.random.randint(0, min(2, len(live)))
        assignments = None
        if self.random.random() < 0.3:
            factor = len(topic.partitions[0].replicas)
            assignments = tuple(
                CreatePartitionsAssignment(broker_ids=tuple(self.random.sample(BROKERS, min(factor, 4))))
                for _ in range(added)
            )
        one = CreatePartitionsTopic(
            name=topic.name, partition_count=len(topic.partitions) + added, assignments=assignments
        )
        self.twins.ask(CreatePartitionsRequest(topics=(one,), timeout_ms=0, validate_only=False), 3)

    def _step_change_config(self) -> None:
        topic, _ = self.random.choice(self._partitions())
        records: list[Any] = []
        if self.random.random() < 0.5:
            value = self.random.choice(("true", "false"))
            records.append(_topic_config(topic.name, "unclean.leader.election.enable", value))
        elif all(one.eligible_leader_replicas is None for one in topic.partitions.values()):
            # Kafka does not find out everywhere that eligible leaders were cleared, and does things twice.
            records.append(_topic_config(topic.name, "min.insync.replicas", str(self.random.randrange(1, 4))))
            if is_elr_enabled(self.twins.ours.image.features):
                records.append(ClearElrRecord(topic_name=topic.name))
        self.twins.replay(*records)


def _topic_config(topic: str, name: str, value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=ResourceType.TOPIC, resource_name=topic, name=name, value=value)
