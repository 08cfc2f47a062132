"""Which records are fetched again for the dead letters: those that could not be read, in few pieces."""

from ottla.model.ids import TopicPartition
from ottla.pipelines.sink.unreadable import ledger_of, parse_places, ranges_around

WHERE = TopicPartition("t", 1)


def test_places_are_read_by_partition_in_order_and_each_once() -> None:
    assert parse_places("") == {}
    assert parse_places("1:7,0:3,1:2,1:7") == {0: [3], 1: [2, 7]}


def test_near_offsets_are_fetched_together_and_far_ones_apart() -> None:
    def covered(*offsets: int) -> list[tuple[int, int]]:
        return [(item.start_offset, item.stop_offset) for item in ranges_around(WHERE, offsets)]

    assert covered() == []
    assert covered(5) == [(5, 6)]
    assert covered(5, 6, 105) == [(5, 106)]
    assert covered(5, 200, 300, 5000) == [(5, 6), (200, 301), (5000, 5001)]


def test_ledger_of_dead_letters_is_not_that_of_the_rows() -> None:
    assert ledger_of("spend") != "spend"
