"""`ottla lag`, against Ottla and against Apache Kafka."""

import asyncio
import signal
import subprocess
import sys
import urllib.request

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.cli.typing import run, succeed

from ottla.client.cluster import GROUP
from ottla.client.share import ShareConsumer
from ottla.client.share.record import AcknowledgeType
from ottla.explain.access import open_access
from ottla.model.uuid import Uuid
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest


def write(bootstrap: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        producer.produce(topic, f"{number}", partition=0)
    assert producer.flush(60) == 0


def commit(bootstrap: str, topic: str, group: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def test_a_group_has_a_label_by_its_lag(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    write(bootstrap, name, 150)
    commit(bootstrap, name, name, 30)
    (row,) = [
        row for row in succeed("lag", "--once", "--json", bootstrap=bootstrap).data if row["group"] == name
    ]
    assert (row["lag"], row["looks"], row["members"]) == (120, "caution", 0)
    assert row["lag_seconds"] >= 0
    assert 0 < row["deleted_in"] <= 7 * 86_400
    (part,) = succeed("lag", name, "--once", "--json", "--critical=120", bootstrap=bootstrap).data
    assert (part["topic"], part["partition"], part["looks"]) == (name, 0, "critical")


def test_speeds_say_what_will_come(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    write(bootstrap, name, 5)
    commit(bootstrap, name, name, 3)
    (part,) = succeed("lag", name, "--over=0.2", "--json", bootstrap=bootstrap).data
    assert (part["reads_per_second"], part["writes_per_second"]) == (0.0, 0.0)
    assert (part["outlook"], part["caught_up_in"]) == ("not reading", None)
    commit(bootstrap, name, name, 5)
    text = succeed("lag", name, "--over=0.2", bootstrap=bootstrap).out
    assert "caught up" in text


def test_what_the_lag_of_zero_does_not_tell_is_said(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, "-p", "1", bootstrap=bootstrap)
    write(bootstrap, name, 5)
    commit(bootstrap, name, f"{name}-past", 9)
    (part,) = succeed("lag", f"{name}-past", "--over=0.2", "--json", bootstrap=bootstrap).data
    assert (part["lag"], part["outlook"], part["caught_up_in"]) == (0, "past the end", None)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name, "auto.offset.reset": "earliest"})
    consumer.subscribe([name])
    while consumer.poll(0.2) is None:
        pass
    consumer.commit(asynchronous=False)
    succeed("topic", "alter", name, "--partitions", "2", bootstrap=bootstrap)
    succeed("produce", name, "-p", "1", "-v", "unread", bootstrap=bootstrap)
    rows = succeed("lag", "--once", "--json", bootstrap=bootstrap).data
    assert [row["outlook"] for row in rows if row["group"] == name] == ["1 unassigned"]
    consumer.close()


def test_records_deleted_before_they_were_read_are_counted(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    write(bootstrap, name, 9)
    commit(bootstrap, name, name, 2)
    assert run("lag", name, "--once", "--fail-on=critical", bootstrap=bootstrap).code == 0
    succeed("topic", "truncate", name, "--yes", bootstrap=bootstrap)
    alarm = run("lag", name, "--once", "--json", "--fail-on=critical", bootstrap=bootstrap)
    assert alarm.code == 10
    assert [row["deleted_unread"] for row in alarm.data] == [7]


def test_an_alarm_is_an_exit_code(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    write(bootstrap, name, 20)
    commit(bootstrap, name, name, 0)
    words = ("lag", name, "--once", "--warning=20")
    assert run(*words, "--fail-on=critical", bootstrap=bootstrap).code == 0
    assert run(*words, "--fail-on=warning", bootstrap=bootstrap).code == 10


def test_an_unknown_group_is_named_with_the_next_step(bootstrap: str) -> None:
    typed = run("lag", "nowhere", bootstrap=bootstrap)
    assert typed.code == 1
    assert "`ottla group list` lists the groups" in typed.err


@pytest.mark.parametrize("words", [("--once", "--watch"), ("--metrics=0",)])
def test_options_that_do_not_go_together_are_refused(words: tuple[str, ...]) -> None:
    assert run("lag", *words).code == 2


def test_watching_serves_metrics_until_it_is_stopped(ottla_bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=ottla_bootstrap)
    write(ottla_bootstrap, name, 12)
    commit(ottla_bootstrap, name, name, 2)
    words = ["lag", "-b", ottla_bootstrap, "--watch", "--metrics=0", "--over=0.1", "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "ottla", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stderr.readline().split()[1]
        text = ""
        while f'ottla_lag_records{{group="{name}"}} 10.0' not in text:
            assert process.stdout.readline()
            text = urllib.request.urlopen(url).read().decode()
        assert f'ottla_lag_level{{group="{name}"}} 0.0' in text
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait() == 130


@pytest.mark.live_oracle
def test_a_share_group_has_a_lag(kafka_bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=kafka_bootstrap)
    write(kafka_bootstrap, name, 7)
    asyncio.run(begin_share_group(kafka_bootstrap, name, 2))
    (row,) = succeed("lag", name, "--once", "--json", bootstrap=kafka_bootstrap).data
    assert (row["topic"], row["partition"], row["lag"]) == (name, 0, 5)


def test_records_that_a_share_group_is_done_with_are_no_lag(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    succeed("config", "set", "group", name, "share.auto.offset.reset=earliest", bootstrap=bootstrap)
    write(bootstrap, name, 5)
    asyncio.run(work_on_all_but_the_first(bootstrap, name, 5))
    (row,) = succeed("lag", name, "--once", "--json", bootstrap=bootstrap).data
    assert (row["topic"], row["partition"], row["lag"], row["looks"]) == (name, 0, 1, "normal")
    (group,) = [
        row for row in succeed("lag", "--once", "--json", bootstrap=bootstrap).data if row["group"] == name
    ]
    assert (group["lag"], group["members"], group["state"]) == (1, 0, "Empty")


async def work_on_all_but_the_first(bootstrap: str, name: str, count: int) -> None:
    """Be a member of a share group that gives the first record back, and is done with the others."""
    properties = {"bootstrap.servers": bootstrap, "group.id": name, "share.acknowledgement.mode": "explicit"}
    async with ShareConsumer(properties=properties) as consumer, asyncio.timeout(60):
        consumer.subscribe([name])
        done: set[int] = set()
        while len(done) < count - 1:
            for record in await consumer.poll(500):
                if record.offset == 0:
                    consumer.acknowledge(record, AcknowledgeType.RELEASE)
                else:
                    consumer.acknowledge(record, AcknowledgeType.ACCEPT)
                    done.add(record.offset)
            await consumer.commit()


async def begin_share_group(bootstrap: str, name: str, offset: int) -> None:
    """Make a share group of a topic, both of one name, that begins at an offset."""
    async with open_access({"bootstrap.servers": bootstrap}) as access:
        connection = await access.cluster.connection(await access.cluster.coordinator(GROUP, name))
        member_id = str(Uuid(bytes(range(16))))

        async def beat(epoch: int) -> int:
            answer = await connection.ask(
                ShareGroupHeartbeatRequest(
                    group_id=name, member_id=member_id, member_epoch=epoch, subscribed_topic_names=(name,)
                )
            )
            assert answer.error_code is ErrorCode.NONE, answer
            return int(answer.member_epoch)

        await beat(0)
        await beat(-1)
        partition = AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=offset)
        topic = AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=(partition,))
        request = AlterShareGroupOffsetsRequest(group_id=name, topics=(topic,))
        # The group is told of the topic by a record that the coordinator writes in its own time.
        async with asyncio.timeout(60):
            while not await access.admin.share_groups.offsets(name):
                await connection.ask(request)
