"""Whatever was decided, in whatever order: an image, its snapshot and its log say the same."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.deciding import DecidingController, directory_of, new_topic, registration
from tests.unit.metadata.images import have_same_content

from ottla.metadata.delta import MetadataDelta
from ottla.metadata.image import EMPTY_IMAGE, MetadataImage
from ottla.metadata.loader import MetadataLoader
from ottla.metadata.snapshot_records import snapshot_records
from ottla.model.ids import Offset
from ottla.model.uuid import ZERO_UUID
from ottla.quorum.batches import decode_batch, encode_batch
from ottla.quorum.controller.brokers.heartbeat import decide_heartbeat
from ottla.quorum.controller.configs import decide_incremental_alter_configs
from ottla.quorum.controller.partitions.elections import decide_elect_leaders
from ottla.quorum.controller.partitions.reassignments import decide_alter_reassignments
from ottla.quorum.controller.topics.delete_topics import decide_delete_topics
from ottla.quorum.controller.topics.new_topics import decide_create_partitions
from ottla.quorum.snapshot_file import decode_snapshot, encode_snapshot
from ottla.quorum.voters import VoterHistory
from ottla.records.batch import BatchView
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.elect_leaders import ElectLeadersRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

BROKERS = 4
names = st.sampled_from(("a", "b", "c"))
brokers = st.integers(0, BROKERS - 1)
replicas = st.lists(brokers, min_size=1, max_size=3, unique=True).map(tuple)

steps = st.one_of(
    st.tuples(st.just("create"), names, st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.just("delete"), names),
    st.tuples(st.just("grow"), names, st.integers(1, 6)),
    st.tuples(st.just("config"), names, st.sampled_from(("1", "2", None))),
    st.tuples(st.just("fence"), brokers),
    st.tuples(st.just("unfence"), brokers),
    st.tuples(st.just("stop"), brokers),
    st.tuples(st.just("elect"), st.integers(0, 1)),
    st.tuples(st.just("move"), names, st.one_of(st.none(), replicas)),
)


def take(controller: DecidingController, step: tuple[Any, ...]) -> None:
    """Make a decision. Refusals are fine: most of what chance asks for is impossible."""
    match step:
        case ("create", name, partitions, factor):
            controller.create(new_topic(name, partitions, factor, configs={"min.insync.replicas": "2"}))
        case ("delete", name):
            state = DeleteTopicState(name=name, topic_id=ZERO_UUID)
            controller.ask(decide_delete_topics, DeleteTopicsRequest(topics=(state,), timeout_ms=0))
        case ("grow", name, count):
            topic = CreatePartitionsTopic(name=name, partition_count=count, assignments=None)
            ask = CreatePartitionsRequest(topics=(topic,), timeout_ms=0, validate_only=False)
            controller.ask(decide_create_partitions, ask)
        case ("config", name, value):
            config = AlterableConfig(
                name="min.insync.replicas", config_operation=0 if value else 1, value=value
            )
            resource = AlterConfigsResource(resource_type=2, resource_name=name, configs=(config,))
            controller.ask(
                decide_incremental_alter_configs,
                IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False),
            )
        case (("fence" | "unfence" | "stop") as wish, broker_id):
            controller.ask(
                decide_heartbeat,
                BrokerHeartbeatRequest(
                    broker_id=broker_id,
                    broker_epoch=controller.image.brokers[broker_id].broker_epoch,
                    current_metadata_offset=1 << 40,
                    want_fence=wish == "fence",
                    want_shut_down=wish == "stop",
                ),
            )
        case ("elect", kind):
            controller.ask(
                decide_elect_leaders, ElectLeadersRequest(election_type=kind, topic_partitions=None)
            )
        case ("move", name, wanted):
            one = ReassignablePartition(partition_index=0, replicas=wanted)
            ask_move = AlterPartitionReassignmentsRequest(
                topics=(ReassignableTopic(name=name, partitions=(one,)),)
            )
            controller.ask(decide_alter_reassignments, ask_move)


def history(taken: list[tuple[Any, ...]]) -> tuple[DecidingController, list[list[Any]]]:
    controller = DecidingController([registration(number) for number in range(BROKERS)])
    batches: list[list[Any]] = [list(snapshot_records(controller.image))]
    for step in taken:
        take(controller, step)
        if controller.records:
            batches.append(list(controller.records))
        controller.records = ()
    return controller, batches


def replayed(records: Any) -> MetadataImage:
    delta = MetadataDelta(EMPTY_IMAGE)
    for record in records:
        delta.replay(record)
    return delta.apply(EMPTY_IMAGE.position)


@given(st.lists(steps, max_size=40))
@settings(max_examples=150, deadline=None)
def test_an_image_is_what_its_snapshot_says(taken: list[tuple[Any, ...]]) -> None:
    controller, _ = history(taken)
    assert have_same_content(replayed(snapshot_records(controller.image)), controller.image)
    content = b"".join(encode_snapshot(snapshot_records(controller.image), 30, 1, 0, VoterHistory(), 0))
    assert have_same_content(replayed(decode_snapshot(content, "s").records), controller.image)


@given(st.lists(steps, max_size=40), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_an_image_is_what_its_log_says_however_it_is_read(taken: list[tuple[Any, ...]], chance: Any) -> None:
    controller, batches = history(taken)
    loader = MetadataLoader(EMPTY_IMAGE)
    offset = Offset(0)
    for records in batches:
        raw = encode_batch(records, 30, offset, 1, 0)
        batch = decode_batch(BatchView(memoryview(raw)))
        loader.feed(batch.records, batch.position)
        offset = Offset(offset + len(records))
        if chance.random() < 0.3:
            loader.take()
    assert have_same_content(loader.take()[0], controller.image)


@given(st.lists(steps, max_size=60))
@settings(max_examples=200, deadline=None)
def test_partitions_stay_sound(taken: list[tuple[Any, ...]]) -> None:
    """What must hold of every partition at every moment, whatever was decided."""
    controller = DecidingController([registration(number) for number in range(BROKERS)])
    for step in taken:
        before = controller.image.topics
        take(controller, step)
        for topic in controller.image.topics:
            assert sorted(topic.partitions) == list(range(len(topic.partitions)))
            old = before.find_by_id(topic.id)
            for number, partition in topic.partitions.items():
                assert len(set(partition.replicas)) == len(partition.replicas)
                assert set(partition.isr) <= set(partition.replicas)
                eligible = set(partition.eligible_leader_replicas or ())
                assert eligible.isdisjoint(partition.isr)
                assert partition.leader == -1 or partition.leader in partition.isr
                assert partition.directories == tuple(map(directory_of, partition.replicas))
                if partition.leader >= 0:
                    assert not controller.image.brokers[partition.leader].fenced
                if old is not None and number in old.partitions:
                    assert partition.leader_epoch >= old.partitions[number].leader_epoch
                    assert partition.partition_epoch >= old.partitions[number].partition_epoch
                    if partition.leader != old.partitions[number].leader:
                        assert partition.leader_epoch > old.partitions[number].leader_epoch
