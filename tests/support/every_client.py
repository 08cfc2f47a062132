"""Every kind of client, each of which leaves in a cluster what its kind leaves there."""

from contextlib import suppress

from tests.clients.served_topics import make_topic
from tests.support.plain_client import PlainClient
from tests.support.readiness import ask_once_ready
from tests.support.streams_topologies import counting

from ottla.client.sync import Admin, Consumer, Producer, ShareConsumer
from ottla.model.ids import TopicPartition
from ottla.wire.config_kinds import ResourceType
from ottla.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest


def use_every_client(bootstrap: str, mark: str) -> None:
    """Write, read, commit, abort. Topics, groups and transactional ids have names with the `mark`."""
    topic = f"topic-{mark}"
    make_topic(bootstrap, topic, 2)
    _write(bootstrap, topic, f"transactional-{mark}")
    for protocol in ("classic", "consumer"):
        with Consumer(
            bootstrap,
            group_id=f"{protocol}-{mark}",
            group_protocol=protocol,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer:
            consumer.subscribe([topic])
            assert {next(consumer).value, next(consumer).value} == {b"plain", b"committed"}
            consumer.commit()
    _share(bootstrap, topic, f"queue-{mark}")
    _stream(bootstrap, topic, f"streams-{mark}")


def _write(bootstrap: str, topic: str, transactional_id: str) -> None:
    with Producer(bootstrap) as producer:
        producer.send(topic, b"plain", key=b"k", partition=0).result()
    with Producer(bootstrap, transactional_id=transactional_id) as producer:
        with producer.transaction():
            producer.send(topic, b"committed", partition=1)
            producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, f"of-{transactional_id}")
        with suppress(ZeroDivisionError), producer.transaction():
            producer.send(topic, b"aborted", partition=0).result()
            raise ZeroDivisionError


def _share(bootstrap: str, topic: str, group: str) -> None:
    with Admin(bootstrap) as admin:
        admin.configs.alter(ResourceType.GROUP, group, {"share.auto.offset.reset": "earliest"})
    with ShareConsumer(bootstrap, group_id=group) as consumer:
        consumer.subscribe([topic])
        assert next(iter(consumer)).topic == topic
        consumer.commit()


def _stream(bootstrap: str, topic: str, group: str) -> None:
    ask = StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id="member",
        member_epoch=0,
        endpoint_information_epoch=-1,
        rebalance_timeout_ms=60_000,
        topology=counting(group, topic),
        process_id="process",
        client_tags=(),
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
    )
    with PlainClient(bootstrap) as client:
        ask_once_ready(client, ask, lambda answer: [answer.error_code])
