"""Partitions as values."""

from ottla.model.ids import TopicPartition


def test_partition_is_written_as_its_directory_is_named() -> None:
    assert str(TopicPartition("orders-eu", 12)) == "orders-eu-12"


def test_partitions_sort_by_number_and_not_by_text() -> None:
    ten, two, other = TopicPartition("a", 10), TopicPartition("a", 2), TopicPartition("b", 0)
    assert sorted([other, ten, two]) == [two, ten, other]
