"""The hash of a group's topics."""

from tests.support.consumer_world import ChangingTopics

from ottla.coordination.group.consumer.metadata_hash import MetadataHashes, topic_hash
from ottla.coordination.group.environment import TopicFacts
from ottla.model.uuid import Uuid

FACTS = TopicFacts("orders", Uuid(b"0123456789abcdef"), 2)


def test_no_topics_hash_to_zero() -> None:
    hashes = MetadataHashes(ChangingTopics(orders=1))
    assert hashes.of_group([]) == 0
    assert hashes.of_group(["gone"]) == 0


def test_the_order_of_names_does_not_matter() -> None:
    hashes = MetadataHashes(ChangingTopics(a=1, b=2))
    assert hashes.of_group(["a", "b"]) == hashes.of_group(["b", "gone", "a"]) != 0


def test_everything_about_a_topic_counts() -> None:
    variants = [
        topic_hash(FACTS, []),
        topic_hash(FACTS._replace(name="order"), []),
        topic_hash(FACTS._replace(topic_id=Uuid(b"0123456789abcdeF")), []),
        topic_hash(FACTS._replace(partition_count=3), []),
        topic_hash(FACTS, [["r1"], []]),
        topic_hash(FACTS, [[], ["r1"]]),
        topic_hash(FACTS, [["r1", "r2"], []]),
        topic_hash(FACTS, [["r1r2"], []]),
    ]
    assert len(set(variants)) == len(variants)


def test_racks_are_a_set_in_any_order() -> None:
    assert topic_hash(FACTS, [["b", "a"], []]) == topic_hash(FACTS, [["a", "b"], []])


def test_a_hash_fits_a_signed_long() -> None:
    assert all(
        -(1 << 63) <= topic_hash(FACTS._replace(partition_count=count), []) < 1 << 63 for count in range(50)
    )


def test_a_topic_that_grew_is_noticed_without_being_told() -> None:
    topics = ChangingTopics(orders=1)
    hashes = MetadataHashes(topics)
    before = hashes.of_group(["orders"])
    topics.grow("orders", 2)
    assert hashes.of_group(["orders"]) != before


def test_changed_racks_are_noticed_when_told() -> None:
    topics = ChangingTopics(orders=1)
    hashes = MetadataHashes(topics)
    before = hashes.of_group(["orders"])
    topics.rack_names[topics.facts["orders"].topic_id] = [["r1"]]
    assert hashes.of_group(["orders"]) == before
    hashes.forget(["orders"])
    assert hashes.of_group(["orders"]) != before
