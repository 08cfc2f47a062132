"""Our own client without an event loop, alike against Ottla and against Apache Kafka."""

import signal
import subprocess
import sys
import threading
import uuid
from contextlib import suppress
from typing import Any

import pytest
from tests.clients.served_topics import make_topic

from ottla.client.errors import BrokerError, ClientError, NoBrokerReached
from ottla.client.sync import Admin, Consumer, Producer
from ottla.model.ids import TopicPartition


@pytest.fixture
def topic() -> str:
    """A name that no other test uses: the brokers are shared."""
    return f"sync-{uuid.uuid4().hex[:12]}"


def test_records_go_round(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.topics.create(topic, partitions=1)
        with pytest.raises(BrokerError, match="TOPIC_ALREADY_EXISTS"):
            admin.topics.create(topic)
    with Producer(bootstrap) as producer:
        deliveries = [producer.send(topic, b"%d" % number) for number in range(10_000)]
        assert [delivery.result().offset for delivery in deliveries[-3:]] == [9997, 9998, 9999]
        assert all(delivery.is_done for delivery in deliveries)
        last = producer.send(topic, b"10000")
    assert last.result().offset == 10_000, "what was sent before closing can be asked for after it"
    with pytest.raises(ClientError, match="closed"):
        producer.send(topic, b"late")
    with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        values = [next(consumer).value for _ in range(10_000)]
    assert values == [b"%d" % number for number in range(10_000)]


def test_threads_share_a_producer_and_each_keeps_its_order(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)
    with Producer(bootstrap) as producer:

        def work(name: int) -> None:
            for number in range(500):
                producer.send(topic, b"%d" % number, key=b"%d" % name)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        found: dict[bytes, list[int]] = {}
        for _ in range(2000):
            record = next(consumer)
            found.setdefault(record.key, []).append(int(record.value))
    assert found == {b"%d" % name: list(range(500)) for name in range(4)}


def test_any_thread_may_ask_how_a_consumer_is(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)
    with Producer(bootstrap) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number)
    with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert next(consumer).value == b"0"
        found = []
        thread = threading.Thread(target=lambda: found.append(consumer.health()))
        thread.start()
        thread.join()
        assert (found[0].is_healthy, found[0].lag) == (True, 9), "what was read ahead was not handed over"
        assert found[0].partitions[0].position == 1
    assert consumer.health().sentence == "the consumer is not open"


def test_a_record_that_cannot_be_sent_fails_alone(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)
    with Producer(bootstrap) as producer:
        bad = producer.send(topic, b"nowhere", partition=7)
        good = producer.send(topic, b"here")
        with pytest.raises(ValueError, match="no partition 7"):
            bad.result()
        assert good.result().offset == 0
        with pytest.raises(TypeError, match="without a serializer"):
            producer.send(topic, {"not": "bytes"})


def test_only_committed_transactions_are_seen(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)
    with Producer(bootstrap, transactional_id=topic) as producer:
        with producer.transaction():
            producer.send(topic, b"first")
        with suppress(ZeroDivisionError), producer.transaction():
            producer.send(topic, b"aborted")
            raise ZeroDivisionError
        with producer.transaction():
            producer.send(topic, b"second")
            producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, topic)
    with Consumer(bootstrap, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert [next(consumer).value for _ in range(2)] == [b"first", b"second"]
    with Admin(bootstrap) as admin:
        # The commit is answered before its marker is in the group's log.
        offsets = admin.group_offsets.list(topic, require_stable=True)
        assert offsets[TopicPartition(topic, 0)].offset == 1


def test_what_was_read_ahead_is_neither_committed_nor_lost(bootstrap: str, topic: str) -> None:
    where = TopicPartition(topic, 0)
    make_topic(bootstrap, topic)
    with Admin(bootstrap) as admin, Producer(bootstrap) as producer:
        for number in range(20):
            producer.send(topic, b"%d" % number)
        producer.flush()
        with Consumer(bootstrap, group_id=topic, auto_offset_reset="earliest") as consumer:
            consumer.subscribe([topic])
            assert [next(consumer).offset for _ in range(3)] == [0, 1, 2]
            consumer.commit()
            assert admin.group_offsets.list(topic)[where].offset == 3
            assert consumer.position(where) == 3
            assert [record.offset for record in consumer.poll(10_000, max_records=2)] == [3, 4]
            assert next(consumer).offset == 5
            consumer.seek(where, 10)
            assert next(consumer).offset == 10
        # Closing commits what was handed over, and not what was read ahead of it.
        assert admin.group_offsets.list(topic)[where].offset == 11


def test_callbacks_may_use_the_consumer(bootstrap: str, topic: str) -> None:
    seen: list[tuple[str, frozenset[TopicPartition]]] = []
    make_topic(bootstrap, topic)
    with Consumer(bootstrap, group_id=topic) as consumer:

        def assigned(partitions: frozenset[TopicPartition]) -> None:
            seen.append(("assigned", consumer.assignment() & partitions))

        consumer.subscribe([topic], on_assigned=assigned)
        while not seen:
            consumer.poll(100)
        assert seen == [("assigned", frozenset({TopicPartition(topic, 0)}))]


@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
def test_a_callback_may_commit_when_the_consumer_closes(
    bootstrap: str, topic: str, group_protocol: str
) -> None:
    make_topic(bootstrap, topic)
    with Admin(bootstrap) as admin, Producer(bootstrap) as producer:
        assert producer.send_and_wait(topic, b"only").offset == 0
        settings: dict[str, Any] = {"enable_auto_commit": False, "auto_offset_reset": "earliest"}
        with Consumer(bootstrap, group_id=topic, group_protocol=group_protocol, **settings) as consumer:
            consumer.subscribe([topic], on_revoked=lambda _partitions: consumer.commit())
            assert next(consumer).value == b"only"
        assert admin.group_offsets.list(topic)[TopicPartition(topic, 0)].offset == 1


_INTERRUPTED = """
import sys
from ottla.client.sync import Consumer
with Consumer(sys.argv[1], group_id=sys.argv[2], auto_offset_reset="earliest") as consumer:
    consumer.subscribe([sys.argv[2]])
    for record in consumer:
        print(record.offset, flush=True)
"""


def test_ctrl_c_leaves_the_group_and_commits(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)
    with Admin(bootstrap) as admin, Producer(bootstrap) as producer:
        producer.send(topic, b"only").result()
        command = [sys.executable, "-c", _INTERRUPTED, bootstrap, topic]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "0\n"
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        # Others may have something to say after it: a commit that was tried in vain, for one.
        assert "KeyboardInterrupt" in errors.splitlines()
        assert admin.groups.describe(topic).members == ()
        assert admin.group_offsets.list(topic)[TopicPartition(topic, 0)].offset == 1


def test_a_wrong_address_is_told_in_one_sentence() -> None:
    for client in (Admin, Producer, Consumer):
        with pytest.raises(
            NoBrokerReached, match=r"no broker answers at 127\.0\.0\.1:1; check that it is running"
        ):
            client("127.0.0.1:1")
