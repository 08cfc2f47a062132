"""Topics in an image: made, changed, deleted, and told to those who follow."""

import pytest
from tests.unit.metadata.images import find_partition

from ottla.metadata.directory_ids import MIGRATING
from ottla.metadata.errors import MetadataError
from ottla.metadata.topics import EMPTY_TOPICS, TopicChanges, Topics, merge
from ottla.model.uuid import Uuid
from ottla.wire.metadata_records.partitions import ClearElrRecord, PartitionChangeRecord, PartitionRecord
from ottla.wire.metadata_records.topics import RemoveTopicRecord, TopicRecord

ID = Uuid(b"topic-id-0000001")
OTHER_ID = Uuid(b"topic-id-0000002")
DIRECTORY = Uuid(b"directory-000001")


def partition(number: int = 0, topic_id: Uuid = ID, **fields: object) -> PartitionRecord:
    defaults = {
        "partition_id": number,
        "topic_id": topic_id,
        "replicas": (1, 2),
        "isr": (1, 2),
        "removing_replicas": (),
        "adding_replicas": (),
        "leader": 1,
        "leader_epoch": 4,
        "partition_epoch": 7,
        "directories": (DIRECTORY, DIRECTORY),
    }
    return PartitionRecord(**{**defaults, **fields})  # type: ignore[arg-type]


def topics(*partitions: PartitionRecord, name: str = "t", base: Topics = EMPTY_TOPICS) -> Topics:
    changes = TopicChanges(base)
    changes.replay_topic(TopicRecord(name=name, topic_id=partitions[0].topic_id))
    for one in partitions:
        changes.replay_partition(one)
    return changes.apply()


def change(**fields: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=ID, **fields)  # type: ignore[arg-type]


def test_a_topic_is_found_by_name_and_by_id() -> None:
    image = topics(partition(0), partition(1))
    topic = image.find("t")
    assert topic is not None
    assert topic is image.find_by_id(ID)
    assert sorted(topic.partitions) == [0, 1]
    assert find_partition(image, "t", 1) == partition(1)
    assert image.find("other") is None
    assert image.find_by_id(OTHER_ID) is None
    assert find_partition(image, "t", 2) is None


def test_a_changed_leader_raises_both_epochs_even_if_it_is_the_same() -> None:
    after = merge(partition(), change(leader=1))
    assert (after.leader, after.leader_epoch, after.partition_epoch) == (1, 5, 8)


def test_a_change_without_a_leader_raises_the_partition_epoch_alone() -> None:
    after = merge(partition(), change(isr=(1,)))
    assert (after.isr, after.leader, after.leader_epoch, after.partition_epoch) == ((1,), 1, 4, 8)


def test_what_a_change_leaves_out_stays() -> None:
    before = partition(eligible_leader_replicas=(2,), last_known_elr=(1,), leader_recovery_state=1)
    after = merge(before, change())
    assert after == partition(
        eligible_leader_replicas=(2,), last_known_elr=(1,), leader_recovery_state=1, partition_epoch=8
    )


def test_eligible_leaders_that_are_none_are_kept_as_none() -> None:
    before = partition(eligible_leader_replicas=(2,), last_known_elr=(1,))
    after = merge(before, change(eligible_leader_replicas=(), last_known_elr=()))
    assert after.eligible_leader_replicas is None
    assert after.last_known_elr is None


def test_a_partition_from_before_directory_ids_lies_in_migrating() -> None:
    image = topics(partition(directories=()))
    assert find_partition(image, "t", 0) == partition(directories=(MIGRATING, MIGRATING))


def test_replicas_may_change_without_directories_only_where_there_were_none() -> None:
    old = partition(directories=(MIGRATING, MIGRATING))
    assert merge(old, change(replicas=(1, 2, 3))).directories == (MIGRATING,) * 3
    with pytest.raises(MetadataError, match="3 replicas in 2 directories"):
        merge(partition(), change(replicas=(1, 2, 3)))


def test_images_share_what_did_not_change() -> None:
    first = topics(partition(0, ID), name="a")
    both = topics(partition(0, OTHER_ID), name="b", base=first)
    assert both.find("a") is first.find("a")
    assert TopicChanges(both).apply() is both


def test_an_image_does_not_change_when_a_new_one_is_made_of_it() -> None:
    image = topics(partition(0))
    changes = TopicChanges(image)
    changes.replay_partition_change(change(isr=(2,)))
    after = changes.apply()
    assert find_partition(image, "t", 0) == partition(0)
    assert find_partition(after, "t", 0) == partition(0, isr=(2,), partition_epoch=8)


def test_changes_tell_what_was_and_what_is() -> None:
    changes = TopicChanges(topics(partition(0), partition(1)))
    changes.replay_partition_change(change(leader=2))
    changes.replay_partition(partition(2))
    told = {(one.topic, one.partition): (one.before, one.after) for one in changes}
    assert told == {
        ("t", 0): (partition(0), partition(0, leader=2, leader_epoch=5, partition_epoch=8)),
        ("t", 2): (None, partition(2)),
    }


def test_a_deleted_topic_is_told_with_all_its_partitions() -> None:
    changes = TopicChanges(topics(partition(0), partition(1)))
    assert changes.replay_remove_topic(RemoveTopicRecord(topic_id=ID)) == "t"
    assert {(one.partition, one.after) for one in changes} == {(0, None), (1, None)}
    after = changes.apply()
    assert len(after) == 0
    assert after.find("t") is None


def test_a_topic_deleted_and_made_again_has_its_new_id() -> None:
    changes = TopicChanges(topics(partition(0)))
    changes.replay_remove_topic(RemoveTopicRecord(topic_id=ID))
    changes.replay_topic(TopicRecord(name="t", topic_id=OTHER_ID))
    changes.replay_partition(partition(0, OTHER_ID))
    after = changes.apply()
    assert set(changes.deleted) == {ID}
    assert changes.created == {OTHER_ID: "t"}
    topic = after.find("t")
    assert topic is not None
    assert topic.id == OTHER_ID
    assert [(one.topic_id, one.after is None) for one in changes] == [(ID, True), (OTHER_ID, False)]


def test_a_topic_made_and_deleted_at_once_never_was() -> None:
    changes = TopicChanges(EMPTY_TOPICS)
    changes.replay_topic(TopicRecord(name="t", topic_id=ID))
    changes.replay_partition(partition(0))
    changes.replay_remove_topic(RemoveTopicRecord(topic_id=ID))
    assert not changes
    assert changes.apply() is EMPTY_TOPICS


def test_clearing_eligible_leaders_touches_only_partitions_that_have_some() -> None:
    image = topics(partition(0, eligible_leader_replicas=(2,)), partition(1))
    changes = TopicChanges(image)
    changes.replay_clear_elr(ClearElrRecord(topic_name="t"))
    assert changes.find_changed(ID) == {0: partition(0, partition_epoch=8)}


def test_clearing_eligible_leaders_of_no_topic_in_particular_means_all() -> None:
    image = topics(partition(0, last_known_elr=(1,)), name="a")
    image = topics(partition(0, OTHER_ID, eligible_leader_replicas=(2,)), name="b", base=image)
    changes = TopicChanges(image)
    changes.replay_clear_elr(ClearElrRecord(topic_name=""))
    assert len(list(changes)) == 2


@pytest.mark.parametrize(
    "replay",
    [
        lambda changes: changes.replay_partition(partition(0)),
        lambda changes: changes.replay_partition_change(change(leader=1)),
        lambda changes: changes.replay_remove_topic(RemoveTopicRecord(topic_id=ID)),
        lambda changes: changes.replay_clear_elr(ClearElrRecord(topic_name="t")),
    ],
    ids=["partition", "partition change", "removal", "clearing"],
)
def test_records_about_an_unknown_topic_are_refused(replay: object) -> None:
    with pytest.raises(MetadataError, match="not known"):
        replay(TopicChanges(EMPTY_TOPICS))  # type: ignore[operator]


def test_a_change_of_an_unknown_partition_is_refused() -> None:
    changes = TopicChanges(topics(partition(1)))
    with pytest.raises(MetadataError, match=r"partition 0 .* is not known"):
        changes.replay_partition_change(change(leader=1))
