"""Every command that talks to a cluster, against Ottla and against Apache Kafka, as text and as JSON."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.cli.typing import fail, run, succeed
from tests.support.plain_client import PlainClient
from tests.support.transaction_talk import TransactionTalk

from ottla.testing.node import ThreadNode
from ottla.wire.error_code import ErrorCode


def write(bootstrap: str, topic: str, *values: str) -> None:
    succeed("produce", topic, *(f"--value={value}" for value in values), bootstrap=bootstrap)


def read_as_group(bootstrap: str, topic: str, group: str, count: int) -> None:
    """Read some records as a member of a group that leaves again."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    for _ in range(count):
        message = consumer.poll(60)
        assert message is not None
        consumer.commit(message=message, asynchronous=False)
    consumer.close()


# Topics


def shown_until(holds: Callable[[Any], bool], *words: str, bootstrap: str) -> Any:
    """Ask until the answer is as it should be: some changes are told of before they are everywhere."""
    deadline = time.monotonic() + 180
    while not holds(shown := succeed(*words, "--json", bootstrap=bootstrap).data):
        assert time.monotonic() < deadline, shown
    return shown


def test_a_topic_is_created_described_altered_and_deleted(bootstrap: str, name: str) -> None:
    made = succeed(
        "topic", "create", name, "--partitions=2", "--config=retention.ms=9000000", bootstrap=bootstrap
    )
    assert made.out == f"created topic {name} with 2 partitions\n"
    described = succeed("topic", "describe", name, "--json", bootstrap=bootstrap).data
    assert described["topic"] == name
    assert described["configs"] == {"retention.ms": "9000000"}
    assert [part["partition"] for part in described["partitions"]] == [0, 1]
    assert {part["next_offset"] for part in described["partitions"]} == {0}
    text = succeed("topic", "describe", name, bootstrap=bootstrap).out
    assert "configs:            retention.ms=9000000" in text
    assert "PARTITION  LEADER  REPLICAS  IN SYNC  FIRST OFFSET  NEXT OFFSET" in text
    altered = succeed(
        "topic", "alter", name, "--partitions=3", "--unset=retention.ms", "--json", bootstrap=bootstrap
    )
    assert altered.data == {"topic": name, "partitions": 3, "configs": {"retention.ms": None}}
    described = shown_until(
        lambda shown: shown["configs"] == {}, "topic", "describe", name, bootstrap=bootstrap
    )
    assert len(described["partitions"]) == 3
    listed = succeed("topic", "list", "--json", bootstrap=bootstrap).data
    assert {"topic": name, "partitions": 3, "topic_id": described["topic_id"]} in listed
    assert name in succeed("topic", "list", bootstrap=bootstrap).out
    assert succeed("topic", "delete", name, "--yes", bootstrap=bootstrap).out == f"deleted {name}\n"
    assert name not in succeed("topic", "list", bootstrap=bootstrap).out


def test_a_topic_that_is_there_already_is_named_with_the_next_step(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    said = fail("topic", "create", name, bootstrap=bootstrap)
    assert said.startswith(f"cannot create topic '{name}': ")
    assert said.endswith("(TOPIC_ALREADY_EXISTS); choose another name, or add --if-not-exists")
    again = succeed("topic", "create", name, "--if-not-exists", "--json", bootstrap=bootstrap)
    assert again.data == {"topic": name, "created": False}


@pytest.mark.parametrize(
    "words",
    [("describe",), ("delete", "--yes"), ("truncate", "--yes"), ("alter", "--partitions=2")],
    ids=lambda words: words[0],
)
def test_an_unknown_topic_is_named_with_the_next_step(bootstrap: str, words: tuple[str, ...]) -> None:
    said = fail("topic", words[0], "nowhere", *words[1:], bootstrap=bootstrap)
    assert "nowhere" in said
    assert said.endswith("; `ottla topic list` lists the topics")


def test_a_misspelt_topic_is_not_read_but_named(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    said = fail("consume", name.replace("misspelt", "mispelt"), bootstrap=bootstrap)
    assert said.endswith(f"UNKNOWN_TOPIC_OR_PARTITION; did you mean {name}?")


def test_nothing_is_deleted_unless_somebody_says_yes(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    typed = run("topic", "delete", name, bootstrap=bootstrap, stdin="n\n")
    assert (typed.code, typed.err.splitlines()[-1]) == (1, "Error: nothing was done")
    assert name in succeed("topic", "list", bootstrap=bootstrap).out
    succeed("topic", "delete", name, bootstrap=bootstrap, stdin="y\n")


def test_truncating_keeps_the_topic_and_its_offsets(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    write(bootstrap, name, "a", "b")
    cut = succeed("topic", "truncate", name, "--yes", "--json", bootstrap=bootstrap)
    assert cut.data == {"topic": name, "first_offsets": {"0": 2}}
    assert succeed("consume", name, bootstrap=bootstrap).out == ""
    assert (
        succeed("topic", "truncate", name, "--yes", bootstrap=bootstrap).out
        == f"deleted all records of {name}\n"
    )


# Configs


def test_configs_are_set_shown_and_taken_back(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    done = succeed("config", "set", "topic", name, "retention.ms=123456", bootstrap=bootstrap)
    assert done.out == f"changed retention.ms of topic {name}\n"
    words = ("config", "get", "topic", name, "retention.ms")
    shown = shown_until(lambda shown: shown[0]["from"] == "topic", *words, bootstrap=bootstrap)
    assert shown == [{"config": "retention.ms", "value": "123456", "from": "topic", "read_only": False}]
    assert "retention.ms  123456  topic" in succeed(*words, bootstrap=bootstrap).out
    unset = succeed("config", "set", "topic", name, "--unset=retention.ms", "--json", bootstrap=bootstrap)
    assert unset.data == {"changed": ["retention.ms"], "dry_run": False}
    shown_until(lambda shown: shown[0]["from"] != "topic", *words, bootstrap=bootstrap)


def test_a_wrong_config_is_refused_with_the_brokers_words(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    said = fail("config", "set", "topic", name, "retention.ms=soon", bootstrap=bootstrap)
    assert said.startswith(f"cannot change configs of topic {name}: Invalid value soon")
    assert "KEY=VALUE, --unset" in run("config", "set", "topic", name, bootstrap=bootstrap).err
    assert "nowhere" in fail("config", "get", "topic", "nowhere", bootstrap=bootstrap)


def test_a_broker_has_configs(bootstrap: str) -> None:
    shown = succeed("config", "get", "broker", "0", "node.id", "--json", bootstrap=bootstrap).data
    assert shown == [{"config": "node.id", "value": "0", "from": "static_broker", "read_only": True}]
    succeed("config", "set", "broker", "all", "log.cleaner.threads=1", "--dry-run", bootstrap=bootstrap)


# Records


def test_what_is_written_line_by_line_is_read(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    wrote = succeed("produce", name, "-K:", stdin="alice:coffee\nbob:tea\n", bootstrap=bootstrap)
    assert wrote.out == f"2 records written to {name}, the last at {name}-0 offset 1\n"
    assert succeed("consume", name, bootstrap=bootstrap).out == "alice\tcoffee\nbob\ttea\n"
    assert succeed("consume", name, "--format=value", "-o", "1", bootstrap=bootstrap).out == "tea\n"
    assert succeed("consume", name, "-f", "%t/%p@%o %k=%s\\n", "-c1", bootstrap=bootstrap).out == (
        f"{name}/0@0 alice=coffee\n"
    )


def test_keys_headers_and_tombstones_survive_a_copy_in_json(bootstrap: str, name: str) -> None:
    source, copy = f"{name}-1", f"{name}-2"
    for topic in (source, copy):
        succeed("topic", "create", topic, bootstrap=bootstrap)
    succeed("produce", source, "-v", "x", "-k", "key", "-H", "a=1", "-H", "b", bootstrap=bootstrap)
    succeed("produce", source, "-v", "", "-k", "gone", "--null", "--compression=zstd", bootstrap=bootstrap)
    first, second = (line for line in succeed("consume", source, "--json", bootstrap=bootstrap).lines)
    assert (first["key"], first["value"], first["headers"]) == ("key", "x", [["a", "1"], ["b", None]])
    assert (second["key"], second["value"]) == ("gone", None)
    whole = succeed("consume", source, "--json", bootstrap=bootstrap).out
    wrote = succeed("produce", copy, "--format=json", "--json", stdin=whole, bootstrap=bootstrap)
    assert wrote.data == {"topic": copy, "records": 2, "last_partition": 0, "last_offset": 1}
    assert succeed("consume", copy, "--json", bootstrap=bootstrap).out == whole.replace(source, copy)


def test_reading_begins_and_ends_where_it_is_told_to(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, "--config=retention.ms=-1", bootstrap=bootstrap)
    lines = "".join(f'{{"value": "v{number}", "timestamp_ms": {number + 1}000}}\n' for number in range(5))
    succeed("produce", name, "--format=json", stdin=lines, bootstrap=bootstrap)

    def values(*options: str) -> list[str]:
        return succeed("consume", name, "--format=value", *options, bootstrap=bootstrap).out.split()

    assert values("-o", "-2") == ["v3", "v4"]
    assert values("-o", "@3500") == ["v3", "v4"]
    assert values("--until", "3000") == ["v0", "v1"]
    assert values("-o", "end") == []
    assert values("-p", "0", "-c", "1") == ["v0"]


def test_reading_as_a_group_goes_on_where_it_was(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    write(bootstrap, name, "a", "b", "c")
    once = ("consume", name, "--format=value", "--group", name)
    assert succeed(*once, "-c", "1", bootstrap=bootstrap).out == "a\n"
    assert succeed(*once, "-c", "2", bootstrap=bootstrap).out == "b\nc\n"


def test_only_committed_records_are_read_unless_asked_for(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(name, "lost")
    producer.flush(60)
    producer.abort_transaction(60)
    # The abort is answered before its marker is in the log, and until then nothing behind it is stable.
    shown_until(lambda shown: shown["state"] == "CompleteAbort", "txn", "describe", name, bootstrap=bootstrap)
    write(bootstrap, name, "kept")
    assert succeed("consume", name, bootstrap=bootstrap).out == "kept\n"
    assert succeed("consume", name, "--read-uncommitted", bootstrap=bootstrap).out == "lost\nkept\n"


def test_wrong_wishes_are_refused_in_one_sentence(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    assert fail("consume", "nowhere", bootstrap=bootstrap).endswith("`ottla topic list` lists the topics")
    assert fail("consume", name, "-p", "7", bootstrap=bootstrap) == f"{name} has no partition 7, only 0 to 0"
    assert fail("produce", name, "-K:", stdin="nothing\n", bootstrap=bootstrap) == (
        "line 1 has no ':' between key and value"
    )
    assert "line 1 is not a record" in fail(
        "produce", name, "--format=json", stdin="[]\n", bootstrap=bootstrap
    )


# Groups


def test_a_group_is_listed_described_reset_and_deleted(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    write(bootstrap, name, *"abcde")
    read_as_group(bootstrap, name, name, 2)
    (listed,) = (
        row
        for row in succeed("group", "list", "--lag", "--json", bootstrap=bootstrap).data
        if row["group"] == name
    )
    assert (listed["state"], listed["lag"], listed["looks"]) == ("Empty", 3, "normal")
    assert "GROUP" in succeed("group", "list", bootstrap=bootstrap).out
    described = succeed("group", "describe", name, "--json", bootstrap=bootstrap).data
    assert (described["lag"], described["members"]) == (3, [])
    (part,) = described["partitions"]
    assert (part["offset"], part["next_offset"], part["lag"], part["member"]) == (2, 5, 3, None)
    assert part["lag_seconds"] >= 0
    text = succeed("group", "describe", name, "--watch", "0.1", bootstrap=bootstrap).out
    assert "READS PER SECOND" in text
    plan = succeed("group", "reset", name, "--to-earliest", bootstrap=bootstrap)
    assert "this is only a plan; add --execute to apply it" in plan.err
    assert succeed("group", "describe", name, "--json", bootstrap=bootstrap).data["lag"] == 3
    moved = succeed("group", "reset", name, "--to-offset=1", "--execute", "--json", bootstrap=bootstrap).data
    assert moved == [{"topic": name, "partition": 0, "offset": 2, "new_offset": 1}]
    assert succeed("group", "describe", name, "--json", bootstrap=bootstrap).data["lag"] == 4
    assert succeed("group", "delete", name, "--yes", bootstrap=bootstrap).out == f"deleted {name}\n"


def test_a_lag_has_its_age_in_every_partition(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, "--partitions=4", "--config=retention.ms=-1", bootstrap=bootstrap)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0})
    producer.init_transactions(60)
    now_ms = int(time.time() * 1000)
    for number in range(3):
        producer.begin_transaction()
        for partition in range(4):
            # Larger than what is asked for at a time.
            size = 100_000 if partition == 0 else 10
            age_ms = 1000 * (1000 * (partition + 1) - number)
            producer.produce(name, b"x" * size, partition=partition, timestamp=now_ms - age_ms)
        producer.commit_transaction(60)
    # Read of each partition: nothing, one, two with the marker between them, and all but the last marker.
    client = Consumer({"bootstrap.servers": bootstrap, "group.id": name})
    read = {0: 0, 1: 1, 2: 4, 3: 5}
    client.commit(
        offsets=[TopicPartition(name, part, offset) for part, offset in read.items()], asynchronous=False
    )
    client.close()
    words = ("group", "describe", name)
    described = shown_until(lambda shown: shown["lag"] == 6 + 5 + 2 + 1, *words, bootstrap=bootstrap)
    ages = {part["partition"]: part["lag_seconds"] for part in described["partitions"]}
    assert ages.keys() == {0, 1, 2, 3}
    for partition, age_s in {0: 1000, 1: 1999, 2: 2998}.items():
        assert age_s <= ages[partition] <= age_s + 200, ages
    assert ages[3] == 0.0, "there is nothing to read but the end of a transaction"


def test_a_lag_whose_first_records_are_gone_has_the_age_of_what_is_left(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    write(bootstrap, name, *"ab")
    read_as_group(bootstrap, name, name, 1)
    succeed("topic", "truncate", name, "--yes", bootstrap=bootstrap)
    write(bootstrap, name, "c")
    (part,) = succeed("group", "describe", name, "--json", bootstrap=bootstrap).data["partitions"]
    assert part["lag_seconds"] is not None


def test_a_reset_says_what_it_did(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, "--partitions=2", bootstrap=bootstrap)
    succeed("produce", name, "--partition=0", "-v", "a", "-v", "b", bootstrap=bootstrap)
    read_as_group(bootstrap, name, name, 1)
    words = ("group", "reset", name, "--topic", name, "--to-latest", "--execute")
    first = succeed(*words, bootstrap=bootstrap).out.splitlines()
    assert first[0].split() == ["TOPIC", "PARTITION", "OFFSET", "NEW", "OFFSET"]
    assert [line.split()[1:] for line in first[1:3]] == [["0", "1", "2"], ["1", "-", "0"]]
    assert first[3] == f"moved group {name} in 2 partitions"
    again = succeed(*words, bootstrap=bootstrap).out.splitlines()
    assert again[3] == f"group {name} already has these offsets: nothing changed"
    back = succeed("group", "reset", name, "--to-earliest", "--execute", bootstrap=bootstrap).out
    assert back.splitlines()[3] == f"moved group {name} in 1 partition; 1 already had that offset"


def test_the_members_of_a_group_are_shown_with_their_lag(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    write(bootstrap, name, "a", "b")
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": name, "auto.offset.reset": "earliest", "client.id": "me"}
    )
    consumer.subscribe([name])
    message = consumer.poll(60)
    assert message is not None
    consumer.commit(message=message, asynchronous=False)
    described = succeed("group", "describe", name, "--json", bootstrap=bootstrap).data
    (member,) = described["members"]
    assert (member["client"], member["partitions"], member["lag"]) == ("me", 1, 1)
    assert described["partitions"][0]["member"] == member["member"]
    said = fail("group", "delete", name, "--yes", bootstrap=bootstrap)
    assert said.endswith("(NON_EMPTY_GROUP)") or "stop its members first" in said
    assert "stop the group's members first" in fail(
        "group", "reset", name, "--to-latest", "--execute", bootstrap=bootstrap
    )
    consumer.close()


def test_the_ledger_of_a_pipeline_is_called_one_and_has_no_lag(bootstrap: str, name: str) -> None:
    ledger = f"ottla.ledger.{name}.0"
    write(bootstrap, name, *map(str, range(20)))
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": ledger})
    consumer.commit(offsets=[TopicPartition(name, 0, 3)], asynchronous=False)
    consumer.close()

    rows = succeed("group", "list", "--lag", "--json", bootstrap=bootstrap).data
    assert [(row["lag"], row["looks"]) for row in rows if row["group"] == ledger] == [(None, "ledger")]
    described = succeed("group", "describe", ledger, "--json", bootstrap=bootstrap).data
    assert (described["lag"], described["looks"]) == (None, "ledger")
    (part,) = described["partitions"]
    assert (part["offset"], part["lag"], part["looks"], part["lag_seconds"]) == (3, None, None, None)
    text = succeed("group", "describe", ledger, bootstrap=bootstrap).out
    assert "its offsets count the batches that were delivered" in text


def test_unknown_groups_are_named_with_the_next_step(bootstrap: str) -> None:
    for words in (("describe", "nobody"), ("delete", "nobody", "--yes")):
        said = fail("group", *words, bootstrap=bootstrap)
        assert "nobody" in said
        assert said.endswith("`ottla group list` lists the groups")
    assert "no target given" in run("group", "reset", "nobody", bootstrap=bootstrap).err


def test_a_partition_that_is_not_there_is_named_to_who_writes(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    said = fail("produce", name, "--value=lost", "--partition=7", bootstrap=bootstrap)
    assert said == f"{name!r} has no partition 7, only 0 to 0"


# Transactions


def test_a_transaction_is_listed_described_and_aborted(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(name, "open")
    producer.flush(60)
    (listed,) = (
        row
        for row in succeed("txn", "list", "--json", bootstrap=bootstrap).data
        if row["transactional_id"] == name
    )
    assert listed["state"] == "Ongoing"
    described = succeed("txn", "describe", name, "--json", bootstrap=bootstrap).data
    assert (described["state"], described["partitions"]) == ("Ongoing", [f"{name}-0"])
    assert "open for seconds:" in succeed("txn", "describe", name, bootstrap=bootstrap).out
    assert "Ongoing" in succeed("txn", "list", bootstrap=bootstrap).out
    assert succeed("txn", "abort", "--topic", name, "--yes", bootstrap=bootstrap).err == (
        f"no transaction hangs in {name}\n"
    )
    done = succeed("txn", "abort", name, "--yes", bootstrap=bootstrap)
    assert done.out == f"aborted {name}, which was Ongoing; its producer is fenced\n"
    write(bootstrap, name, "after")
    assert succeed("consume", name, bootstrap=bootstrap).out == "after\n"
    producer.purge()


def test_a_transaction_that_hangs_is_found_in_its_topic_and_aborted(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    with PlainClient(bootstrap) as client:
        talk = TransactionTalk(client, name, {}, version=1)
        talk.find_coordinator()
        talk.init()
        # The coordinator was not told of this partition, so it will never end the transaction there.
        assert talk.write(name, b"never committed", version=9) is ErrorCode.NONE
    write(bootstrap, name, "after")
    assert succeed("consume", name, bootstrap=bootstrap).out == ""
    words = ("txn", "abort", "--topic", name, "--open-for=0", "--yes")

    found = succeed(*words, "--json", bootstrap=bootstrap).data

    assert found == [{"topic": name, "partition": 0, "producer_id": talk.producer_id, "first_offset": 0}]
    assert succeed("consume", name, bootstrap=bootstrap).out == "after\n"
    assert succeed(*words, bootstrap=bootstrap).err == f"no transaction hangs in {name}\n"


def test_an_unknown_transactional_id_is_named(bootstrap: str) -> None:
    for words in (("describe", "nobody"), ("abort", "nobody", "--yes")):
        said = fail("txn", *words, bootstrap=bootstrap)
        assert said == (
            "cannot describe 'nobody': TRANSACTIONAL_ID_NOT_FOUND; "
            "`ottla txn list` lists the transactional ids"
        )
    assert "either a TRANSACTIONAL_ID or a --topic" in run("txn", "abort", bootstrap=bootstrap).err


# The rest


def test_a_cluster_is_measured_and_left_as_it_was(bootstrap: str) -> None:
    measured = succeed("bench", "--records=500", "--size=10", "--json", bootstrap=bootstrap).data
    assert (measured["records"], measured["size_bytes"]) == (500, 10)
    assert measured["written_per_second"] > 0
    assert "ottla-bench" not in succeed("topic", "list", bootstrap=bootstrap).out


def test_following_ends_with_ctrl_c(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    write(bootstrap, name, "first")
    command = [sys.executable, "-m", "ottla", "consume", name, "--follow", "--bootstrap", bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "first\n"
        write(bootstrap, name, "second")
        assert process.stdout.readline() == "second\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")


def test_waiting_for_lines_ends_with_ctrl_c(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    command = [sys.executable, "-m", "ottla", "produce", name, "--bootstrap", bootstrap]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        process.stdin.write("first\n")
        process.stdin.flush()
        while succeed("consume", name, bootstrap=bootstrap).out != "first\n":
            pass
        process.send_signal(signal.SIGINT)
        # Its stdin stays open: it must not wait for another line.
        process.wait(60)
        assert process.stderr is not None
        assert (process.returncode, process.stderr.read()) == (130, "")


def test_a_broker_that_is_not_there_is_named_at_once() -> None:
    said = fail("topic", "list", bootstrap="127.0.0.1:1")
    assert said.startswith("no broker answers at 127.0.0.1:1")
    assert said.endswith("Start a node with `ottla up`, or name another broker with --bootstrap")


REFUSALS = {
    "create_topics": (
        ("topic", "create", "secret"),
        "topic_authorization_failed",
        "cannot create topic 'secret'",
    ),
    "delete_topics": (("topic", "delete", "secret", "--yes"), "topic_authorization_failed", "cannot delete"),
    "describe_configs": (("config", "get", "topic", "secret"), "topic_authorization_failed", "topic secret"),
    "find_coordinator": (("group", "describe", "secret"), "group_authorization_failed", "secret"),
    "list_groups": (("group", "list"), "cluster_authorization_failed", "cannot list its groups"),
    "metadata": (("consume", "secret"), "topic_authorization_failed", "cannot read topic 'secret'"),
}


@pytest.mark.parametrize("api", REFUSALS)
def test_who_has_no_permission_is_told_whom_to_ask(kafka: ThreadNode, api: str) -> None:
    words, error, said_first = REFUSALS[api]
    if api == "metadata":
        # Only once: the brokers must be known before a topic can be refused.
        _succeed_then_refuse(kafka, error)
    else:
        kafka.faults.refuse(api, error)
    said = fail(*words, bootstrap=kafka.bootstrap)
    assert said_first in said
    rule = "create topic:NAME`" if api == "create_topics" else ""
    assert f"; ask the administrator for a rule such as `ottla acl add USER {rule}" in said


def _succeed_then_refuse(kafka: ThreadNode, error: str) -> None:
    kafka.faults.delay("metadata", 0, times=1)
    kafka.faults.refuse("metadata", error)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"vlaue": "x", "key": "k"}', "there is no field 'vlaue'; did you mean 'value'?"),
        ('{"key": "k"}', 'it has no value; write "value": null'),
        ('{"key": "k", "value": "v", "colour": 1}', "there is no field 'colour'; it may have topic, "),
    ],
)
def test_a_record_with_a_typo_is_no_tombstone(ottla_bootstrap: str, name: str, line: str, said: str) -> None:
    succeed("topic", "create", name, bootstrap=ottla_bootstrap)
    assert said in fail("produce", name, "--format=json", stdin=line + "\n", bootstrap=ottla_bootstrap)
    tombstone = '{"key": "k", "value": null}\n'
    succeed("produce", name, "--format=json", stdin=tombstone, bootstrap=ottla_bootstrap)
    (only,) = succeed("consume", name, "--json", bootstrap=ottla_bootstrap).lines
    assert (only["key"], only["value"]) == ("k", None)


def test_a_misspelt_config_of_a_broker_is_doubted(ottla_bootstrap: str) -> None:
    words = ("config", "set", "broker", "all")
    misspelt = succeed(*words, "log.retenton.ms=1d", bootstrap=ottla_bootstrap)
    assert "did you mean log.retention.ms?" in misspelt.err
    for right in ("log.retention.ms=1d", "my.plugin=on"):
        assert succeed(*words, right, bootstrap=ottla_bootstrap).err == ""
    taken_back = succeed(*words, "--unset=log.retenton.ms", "--unset=my.plugin", bootstrap=ottla_bootstrap)
    assert taken_back.err == ""
    succeed(*words, "--unset=log.retention.ms", bootstrap=ottla_bootstrap)


@pytest.mark.parametrize(
    ("given", "said"),
    [("retenton.ms=1d", "did you mean retention.ms?"), ("retention.ms=7days", "write a number, 7d, 1h")],
)
def test_a_wrong_config_of_a_topic_says_what_was_meant(
    ottla_bootstrap: str, name: str, given: str, said: str
) -> None:
    assert said in fail("topic", "create", name, f"--config={given}", bootstrap=ottla_bootstrap)


def test_a_broker_is_a_number_or_all_of_them(ottla_bootstrap: str) -> None:
    for command in ("get", "set"):
        words = ("log.retention.ms=5000000",) if command == "set" else ()
        typed = run("config", command, "broker", "default", *words, bootstrap=ottla_bootstrap)
        assert typed.code == 2
        assert "'default' is not the id of a broker: give a number, or 'all'" in typed.err
