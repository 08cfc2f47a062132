"""`why`, `trace`, `hot`, `audit` and `doctor`, against Ottla with a journal and against Apache Kafka."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from confluent_kafka import Consumer, Producer
from tests.cli.typing import Typed, fail, run, succeed

from ottla.testing.node import ThreadNode


@pytest.fixture(scope="module")
def journal_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {"ottla.journal.enable": "true", "ottla.journal.interval.ms": "1000"}
    with ThreadNode(tmp_path_factory.mktemp("explained"), settings) as node:
        wait_for_journal(node.bootstrap)
        yield node.bootstrap


def wait_for_journal(bootstrap: str) -> None:
    """Wait for the journal, which begins with the first thing that happens."""
    succeed("topic", "create", "anything", bootstrap=bootstrap)
    deadline = time.monotonic() + 180
    while ask(10, "why", "silent", "nobody", "--over=0.1", "--json", bootstrap=bootstrap).data["missing"]:
        assert time.monotonic() < deadline


@pytest.fixture(params=["ottla", pytest.param("apache-kafka", marks=pytest.mark.live_oracle)])
def bootstrap(request: pytest.FixtureRequest) -> str:
    name = "journal_bootstrap" if request.param == "ottla" else "kafka_bootstrap"
    found: str = request.getfixturevalue(name)
    return found


def write(bootstrap: str, topic: str, count: int, **settings: Any) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "till", **settings})
    for number in range(count):
        producer.produce(topic, f"payment {number:04}", f"acct-{number % 5}")
    assert producer.flush(60) == 0


def member(bootstrap: str, topic: str, group: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": f"{group}-1",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    return consumer


def read(consumer: Consumer, count: int) -> None:
    deadline = time.monotonic() + 180
    while count:
        assert time.monotonic() < deadline
        message = consumer.poll(1)
        if message is not None and not message.error():
            count -= 1
            consumer.commit(message=message, asynchronous=False)


def ask(code: int, *words: str, bootstrap: str) -> Typed:
    typed = run(*words, bootstrap=bootstrap)
    assert typed.code == code, (typed.code, typed.out, typed.err)
    return typed


def test_a_group_that_nobody_has_is_a_cause(bootstrap: str) -> None:
    answer = ask(10, "why", "silent", "nobody", "--over=0.1", "--json", bootstrap=bootstrap).data
    assert (answer["verdict"], answer["cause"], answer["strength"]) == ("cause", "no-such-group", "proved")
    assert answer["evidence"]
    assert answer["advice"]
    text = ask(10, "why", "silent", "nobody", "--over=0.1", bootstrap=bootstrap).out
    assert text.startswith("there is no group nobody")


@pytest.mark.live_oracle
def test_what_cannot_be_known_is_said(kafka_bootstrap: str, journal_bootstrap: str) -> None:
    words = ("why", "silent", "nobody", "--over=0.1", "--json")
    assert not ask(10, *words, bootstrap=journal_bootstrap).data["missing"]
    (missing,) = ask(10, *words, bootstrap=kafka_bootstrap).data["missing"]
    assert "the cluster has no journal" in missing


def test_a_group_that_reads_is_healthy(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, "--partitions=2", bootstrap=bootstrap)
    consumer = member(bootstrap, name, name)
    write(bootstrap, name, 50, partitioner="murmur2_random")
    read(consumer, 50)
    for question in ("twice", "slow", "order"):
        words = ("why", question, name, "--json")
        answer = ask(0, *words, bootstrap=bootstrap).data
        assert (answer["verdict"], answer["cause"]) == ("healthy", None), answer
        assert answer["sentence"].startswith("nothing wrong found")
    consumer.close()


def a_moment() -> int:
    """Return a time that is after all that has happened, and before all that comes.

    What happens in the same millisecond would belong to it.
    """
    begun_ms = now_ms = int(time.time() * 1000)
    while now_ms < begun_ms + 4:
        time.sleep(0.001)
        now_ms = int(time.time() * 1000)
    return begun_ms + 2


def test_a_reset_is_found_in_the_offsets_of_any_kafka(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    write(bootstrap, name, 20)
    consumer = member(bootstrap, name, name)
    read(consumer, 20)
    consumer.close()
    before_ms = a_moment()
    succeed("group", "reset", name, "--to-earliest", "--execute", bootstrap=bootstrap)
    answer = ask(10, "why", "twice", name, "--json", bootstrap=bootstrap).data
    assert answer["cause"] == "offsets-reset"
    assert "offsets 0 to 19" in answer["sentence"]
    then = ask(0, "why", "twice", name, f"--at={before_ms}", "--json", bootstrap=bootstrap).data
    assert then["verdict"] == "healthy"
    assert re.fullmatch(rf"group {name}, at \d{{4}}-.*Z", then["subject"])


def test_a_group_that_reads_again_was_silent_in_the_past(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    write(bootstrap, name, 20)
    long_ago_ms = int(time.time() * 1000) - 3_600_000
    consumer = member(bootstrap, name, name)
    read(consumer, 20)
    reading_ms = a_moment()
    consumer.close()
    empty_ms = a_moment()
    consumer = member(bootstrap, name, name)
    write(bootstrap, name, 5)
    read(consumer, 5)
    words = ("why", "silent", name, "--json")
    empty = ask(10, *words, f"--at={empty_ms}", bootstrap=bootstrap).data
    assert empty["cause"] == "no-members"
    assert any("no history is kept" in text for text in empty["missing"])
    assert ask(10, *words, f"--at={long_ago_ms}", bootstrap=bootstrap).data["cause"] == "no-such-group"
    typed = run(*words, f"--at={reading_ms}", bootstrap=bootstrap)
    assert typed.data["cause"] in (None, "end-of-log"), typed.data
    slow = ask(0, "why", "slow", name, f"--at={reading_ms}", "--json", bootstrap=bootstrap).data
    assert "keeps up" in slow["sentence"]
    consumer.close()


def test_a_partition_that_is_not_there_has_no_story(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, "--partitions=2", bootstrap=bootstrap)
    assert fail("trace", f"{name}/9@0", bootstrap=bootstrap) == f"{name} has no partition 9, only 0 to 1"
    assert "UNKNOWN_TOPIC_OR_PARTITION" in fail("trace", f"{name}-x/0@0", bootstrap=bootstrap)


@pytest.mark.parametrize("typed", ["10", "1790000000"])
def test_a_time_without_a_unit_is_not_taken_for_1970(typed: str) -> None:
    refused = run("why", "silent", "readers", f"--at={typed}", bootstrap="127.0.0.1:1")
    assert refused.code == 2
    assert "10m for ten minutes ago" in refused.err


def test_added_partitions_are_found_on_any_kafka(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, "--partitions=2", bootstrap=bootstrap)
    write(bootstrap, name, 40, partitioner="murmur2_random")
    succeed("topic", "alter", name, "--partitions=7", bootstrap=bootstrap)
    write(bootstrap, name, 40, partitioner="murmur2_random")
    answer = ask(10, "why", "order", name, "--json", bootstrap=bootstrap).data
    assert answer["cause"] == "partitions-added"
    assert "7 instead of 2" in answer["sentence"]


def test_the_story_of_a_record(bootstrap: str, name: str, tmp_path: Path) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    write(bootstrap, name, 30, **{"enable.idempotence": True})
    consumer = member(bootstrap, name, name)
    read(consumer, 30)
    has_journal = "ottla" in name
    deadline = time.monotonic() + 180
    while True:
        picture = tmp_path / "story.svg"
        story = succeed("trace", f"{name}/0@12", "--json", f"--svg={picture}", bootstrap=bootstrap).data
        kinds = [step["kind"] for step in story["steps"]]
        if not has_journal or "delivered" in kinds:
            break
        assert time.monotonic() < deadline, story
        consumer.poll(0.1)
    assert (story["record"], story["key"], story["value"]) == (f"{name}/0@12", "acct-2", "payment 0012")
    assert kinds[0] == "produced"
    assert kinds.count("committed") == 1
    assert kinds[-1] == "going"
    (committed,) = [step for step in story["steps"] if step["kind"] == "committed"]
    assert committed["text"] == f"group {name} has committed 13 by {name}-1"
    if has_journal:
        assert "till at 127.0.0.1" in story["steps"][0]["text"]
        assert story["missing"] == []
    else:
        assert "the cluster has no journal" in story["missing"][0]
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")
    found = succeed("trace", name, "--text=0017", "--json", bootstrap=bootstrap).data
    assert found["record"] == f"{name}/0@17"
    newest = succeed("trace", name, "--key=acct-3", bootstrap=bootstrap).out
    assert newest.startswith(f"{name}/0@28  key acct-3")
    assert "has no record at offset 99" in fail("trace", f"{name}/0@99", bootstrap=bootstrap)
    assert run("trace", name, bootstrap=bootstrap).code == 2
    consumer.close()


def test_hot_keys_are_named(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, "--partitions=3", bootstrap=bootstrap)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(100):
        producer.produce(name, b"x", b"hot" if number % 10 else b"%d" % number)
    assert producer.flush(60) == 0
    heat = succeed("hot", name, "--json", bootstrap=bootstrap).data
    assert heat["records"] == 100
    assert heat["keys"][0] == {"key": "hot", "records": 90, "at_most_too_high_by": 0, "share": 0.9}
    assert heat["busiest_partition"] >= 0.9
    split = {item["change"]: item["busiest_partition"] for item in heat["forecasts"]}
    assert split["the hottest key split in 4"] < 0.9
    assert "hot" in succeed("hot", name, bootstrap=bootstrap).out


def test_guarantees_are_judged_hop_by_hop(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    write(bootstrap, name, 10, **{"enable.idempotence": False})
    consumer = member(bootstrap, name, name)
    read(consumer, 10)
    consumer.close()
    found = succeed("audit", name, "--json", bootstrap=bootstrap).data
    hops = {hop["hop"]: hop["guarantee"] for hop in found["hops"]}
    assert hops[f"producers of {name}"] == "at least once"
    # Commits alone do not show that they follow the processing.
    assert hops[f"group {name} reads"] == "unknown"
    assert f"topic {name}" in hops
    assert "enable.idempotence=true" in succeed("audit", name, bootstrap=bootstrap).out


def test_the_doctor_says_what_to_do(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    write(bootstrap, name, 5)
    consumer = member(bootstrap, name, name)
    read(consumer, 2)
    consumer.close()
    rows = ask(10, "doctor", "--json", bootstrap=bootstrap).data
    assert [row["area"] for row in rows] == sorted(
        (row["area"] for row in rows), key=["lag", "members", "brokers", "producers", "network"].index
    )
    assert {
        "area": "members",
        "fine": False,
        "finding": f"group {name} has no members and 3 unread records",
        "next": f"ottla why silent {name}",
    } in rows


def test_the_lab_lists_its_troubles() -> None:
    rows = succeed("lab", "--json").data
    assert {"silent", "twice", "order", "slow"} == {row["question"] for row in rows}
    assert "there is no trouble 'nonsense'" in fail("lab", "nonsense")


def test_the_lab_plays_a_trouble_and_explains_it() -> None:
    text = succeed("lab", "sent-twice", "--seed=3").out
    assert "records are in the log twice" in text
    answer = json.loads(succeed("lab", "sent-twice", "--seed=3", "--healthy", "--json").out)
    assert answer["verdict"] == "healthy"


def test_what_was_deleted_before_it_was_read_is_lost(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, "--partitions", "1", bootstrap=bootstrap)
    write(bootstrap, name, 10)
    consumer = member(bootstrap, name, f"{name}-group")
    read(consumer, 4)
    consumer.close()
    answer = ask(11, "why", "lost", f"{name}-group", bootstrap=bootstrap)
    assert answer.out.startswith("nothing is proved")
    assert "keeps up" not in answer.out
    succeed("topic", "truncate", name, "--yes", bootstrap=bootstrap)
    lost = ask(10, "why", "lost", f"{name}-group", "--json", bootstrap=bootstrap).data
    assert (lost["cause"], lost["strength"]) == ("deleted-unread", "proved")
    assert "6 offsets" in lost["sentence"]
    if lost["journal_ms"] is None:
        assert ask(11, "why", "lost", name, "--topic", bootstrap=bootstrap).out.startswith(
            "nothing is proved"
        )
        return
    # The journal is written once a second. Before that, only that they are gone too early is known.
    deadline = time.monotonic() + 180
    answer = run("why", "lost", name, "--topic", "--json", bootstrap=bootstrap)
    while answer.data["cause"] != "deleted-by-admin":
        assert time.monotonic() < deadline, answer.out
        answer = run("why", "lost", name, "--topic", "--json", bootstrap=bootstrap)
    assert answer.data["strength"] == "proved"


def test_the_journal_is_shown_in_lines(journal_bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=journal_bootstrap)
    deadline = time.monotonic() + 180
    lines: list[Any] = []
    while not lines:
        assert time.monotonic() < deadline
        lines = succeed(
            "journal", "--topic", name, "--kind", "topic-created", "--json", bootstrap=journal_bootstrap
        ).lines
    assert lines[0]["facts"]["topic"] == name
    text = succeed("journal", "--topic", name, bootstrap=journal_bootstrap).out
    assert re.search(
        rf"^\d{{4}}-\d\d-\d\d .*topic-created  topic/{name}  topic {name}, partitions 1$", text, re.MULTILINE
    )
    assert succeed("journal", "--topic", "nosuch", bootstrap=journal_bootstrap).out == ""
    assert succeed("journal", "--client", "nobody", "--group", "none", bootstrap=journal_bootstrap).out == ""
