"""The application against a real broker: `kafka` is a fresh one for each test, in this very process."""

import json
from collections.abc import Iterator

import pytest
from bookings.book import BOOKINGS, ORDERS, REJECTED, Booker

from ottla.testing.node import ThreadNode

PRICES = {"coffee": 3, "tea": 2}


@pytest.fixture
def booker(kafka: ThreadNode) -> Iterator[Booker]:
    for topic in (ORDERS, BOOKINGS, REJECTED):
        kafka.create_topic(topic)
    booker = Booker(kafka.bootstrap, PRICES.__getitem__)
    yield booker
    booker.close()


def order(item: str, count: int) -> str:
    return json.dumps({"item": item, "count": count})


def booked(kafka: ThreadNode) -> list[dict[str, object]]:
    return [json.loads(value) for value in kafka.values(BOOKINGS)]


def test_orders_are_booked(kafka: ThreadNode, booker: Booker) -> None:
    kafka.produce(ORDERS, order("coffee", 2), order("tea", 1), key="alice")
    booker.run_until(2)
    assert booked(kafka) == [{"item": "coffee", "total": 6}, {"item": "tea", "total": 2}]
    assert [record.key for record in kafka.records(BOOKINGS)] == [b"alice", b"alice"]


def test_what_cannot_be_understood_is_set_aside(kafka: ThreadNode, booker: Booker) -> None:
    kafka.produce(ORDERS, "not json", order("wine", 1), order("tea", 3))
    booker.run_until(3)
    assert booked(kafka) == [{"item": "tea", "total": 6}]
    assert kafka.values(REJECTED) == [b"not json", order("wine", 1).encode()]


def test_an_order_whose_commit_fails_is_booked_once(kafka: ThreadNode, booker: Booker) -> None:
    kafka.produce(ORDERS, order("coffee", 1))
    with kafka.faults.refuse("txn_offset_commit", "group_authorization_failed", times=1) as refused:
        assert booker.run_until(1) == 1
        assert refused.hits == 1
    assert booked(kafka) == [{"item": "coffee", "total": 3}]


def test_bookings_survive_a_restart_of_the_broker(kafka: ThreadNode, booker: Booker) -> None:
    kafka.produce(ORDERS, order("coffee", 1))
    booker.run_until(1)
    kafka.restart()
    kafka.produce(ORDERS, order("tea", 1))
    booker.run_until(1)
    assert booked(kafka) == [{"item": "coffee", "total": 3}, {"item": "tea", "total": 2}]


def test_an_older_broker_will_do(kafka: ThreadNode) -> None:
    for topic in (ORDERS, BOOKINGS, REJECTED):
        kafka.create_topic(topic)
    kafka.produce(ORDERS, order("tea", 1))
    kafka.faults.pretend("2.8")
    booker = Booker(kafka.bootstrap, PRICES.__getitem__)
    booker.run_until(1)
    booker.close()
    assert booked(kafka) == [{"item": "tea", "total": 2}]
