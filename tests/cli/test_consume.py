"""`ottla consume` and `ottla produce`, as people who know kcat use them: on Ottla and on Apache Kafka."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.cli.typing import fail, run, succeed
from tests.support.ottla_node import OttlaNode

from ottla.testing.node import ThreadNode

BINARY = bytes(range(256))


def write(bootstrap: str, topic: str, *values: str, partition: int = 0) -> None:
    options = (f"--partition={partition}", *(f"--value={value}" for value in values))
    succeed("produce", topic, *options, bootstrap=bootstrap)


def values(bootstrap: str, *words: str) -> list[str]:
    return succeed("consume", *words, "--format=value", bootstrap=bootstrap).out.split()


def refused(*words: str, bootstrap: str) -> str:
    """Type what is used wrongly, and return what is said."""
    typed = run(*words, bootstrap=bootstrap)
    assert typed.code == 2, typed
    return " ".join(typed.err.split())


@contextmanager
def following(bootstrap: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Run `consume --follow` until the end of the block."""
    command = [sys.executable, "-m", "ottla", "consume", *words, "--follow", "--bootstrap", bootstrap]
    environment = {**os.environ, "OTTLA_CONFIG": "/dev/null"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            _, process.said = process.communicate(timeout=60)  # type: ignore[attr-defined]


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


# Copies


def test_anything_survives_a_copy_in_json(bootstrap: str, name: str) -> None:
    source, copy = f"{name}-1", f"{name}-2"
    for topic in (source, copy):
        succeed("topic", "create", topic, "--partitions=3", bootstrap=bootstrap)
    producer = Producer({"bootstrap.servers": bootstrap})
    contents: list[Any] = [b"text", "Grüße".encode(), BINARY, b"\xff", b"", None]
    number = 0
    for key in contents:
        for value in contents:
            number += 1
            headers = [("h", value), ("n", None), ("h", b"\x80\x00"), ("t", b"text")]
            producer.produce(
                source,
                value,
                key,
                partition=number % 3,
                timestamp=1_700_000_000_000 + number,
                headers=headers,
            )
    producer.flush(60)
    whole = succeed("consume", source, "--json", bootstrap=bootstrap).out
    wrote = succeed("produce", copy, "--format=json", "--json", stdin=whole, bootstrap=bootstrap)
    assert wrote.data["records"] == number
    copied = succeed("consume", copy, "--json", bootstrap=bootstrap).out
    assert sorted(copied.splitlines()) == sorted(whole.replace(source, copy).splitlines())
    read = succeed("consume", copy, "-f", "%{k:hex}|%{s:hex}|%S|%T\\n", bootstrap=bootstrap).out.splitlines()
    assert f"{BINARY.hex()}|{BINARY.hex()}|256|1700000000015" in read


def test_a_copy_into_fewer_partitions_says_what_to_do(bootstrap: str, name: str) -> None:
    source, copy = f"{name}-1", f"{name}-2"
    succeed("topic", "create", source, "--partitions=2", bootstrap=bootstrap)
    succeed("topic", "create", copy, bootstrap=bootstrap)
    write(bootstrap, source, "a", partition=1)
    whole = succeed("consume", source, "--json", bootstrap=bootstrap).out
    said = fail("produce", copy, "--format=json", stdin=whole, bootstrap=bootstrap)
    assert said == f"'{copy}' has no partition 1, only 0 to 0; use --repartition to choose partitions by key"
    succeed("produce", copy, "--format=json", "--repartition", stdin=whole, bootstrap=bootstrap)
    succeed("produce", copy, "--format=json", "--partition=0", stdin=whole, bootstrap=bootstrap)
    assert values(bootstrap, copy) == ["a", "a"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"value": "%", "value_encoding": "base64"}', "is not base64"),
        ('{"value": "xx", "value_encoding": "hex"}', "non-hexadecimal"),
        ('{"value": "x", "value_encoding": "rot13"}', "unknown encoding 'rot13'"),
        ('{"value": 1, "value_encoding": "hex"}', "must be a string"),
        ('{"value": "x", "timestamp_ms": 99999999999999999999}', "timestamp_ms must be a number from 0"),
        ('{"value": "x", "timestamp_ms": "now"}', "timestamp_ms must be a number from 0"),
        ('{"value": "x", "partition": 99999999999999999999}', "partition must be a number from 0"),
        ('{"value": "x", "headers": [["a"]]}', "a header must be"),
        ('{"value": "x", "headers": 7}', "not iterable"),
        ('{"value": "\\ud800"}', "surrogates not allowed"),
        ("{", "line 1 is not a record"),
    ],
)
def test_a_line_that_is_no_record_is_told_with_its_number(ottla_bootstrap: str, line: str, said: str) -> None:
    told = fail("produce", "never-made", "--format=json", stdin=line + "\n", bootstrap=ottla_bootstrap)
    assert told.startswith("line 1 is not a record")
    assert said in told
    assert "\n" not in told


def test_values_are_written_and_shown_in_hex_and_base64(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    words = ("produce", name, "--key-format=hex", "--value-format=base64", "-K", "|")
    succeed(*words, stdin="00ff|/w==\n", bootstrap=bootstrap)
    succeed("produce", name, "-v", "\udcfe", "-H", "h=\udcfd", bootstrap=bootstrap)
    shown = succeed("consume", name, "--key-format=base64", "--value-format=hex", bootstrap=bootstrap)
    assert shown.out == "AP8=\tff\nfe\n"
    first, second = succeed("consume", name, "-J", "--value-format=hex", bootstrap=bootstrap).lines
    assert (first["key"], first["key_encoding"]) == ("AP8=", "base64")
    assert (first["value"], first["value_encoding"]) == ("ff", "hex")
    assert second["headers"] == [["h", "/Q==", "base64"]]
    assert fail("produce", name, "--value-format=hex", stdin="xyz\n", bootstrap=bootstrap).startswith(
        "line 1 is not hex: "
    )


@pytest.mark.parametrize("option", ["-K", "-D"])
def test_a_delimiter_has_to_be_something(option: str) -> None:
    typed = run("produce", "t", option, "")
    assert (typed.code, "at least one character" in typed.err) == (2, True)


# Where to begin and to end


def test_the_last_records_are_counted_not_their_offsets(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(60)
    for number in range(6):
        producer.begin_transaction()
        producer.produce(name, f"v{number}")
        producer.flush(60)
        if number in (2, 5):
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
    # The end of a transaction is answered before its marker is in the log.
    while values(bootstrap, name, "-q") != ["v0", "v1", "v3", "v4"]:
        pass
    assert values(bootstrap, name, "-o", "-1") == ["v4"]
    assert values(bootstrap, name, "-o", "-3") == ["v1", "v3", "v4"]
    assert values(bootstrap, name, "-o", "-100") == ["v0", "v1", "v3", "v4"]
    assert values(bootstrap, name, "-o", f"-{2**63 - 1}") == ["v0", "v1", "v3", "v4"]
    assert values(bootstrap, name, "-o", "-1", "--read-uncommitted") == ["v5"]


def test_the_last_records_of_an_empty_topic_are_none(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    typed = succeed("consume", name, "-o", "-1", bootstrap=bootstrap)
    assert (typed.out, typed.err) == ("", f"no records: {name} has no records in that range\n")


def test_an_offset_past_the_end_is_told(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, "--partitions=2", bootstrap=bootstrap)
    write(bootstrap, name, "a", "b", "c")
    assert fail("consume", name, "-o", "4", bootstrap=bootstrap) == (
        f"offset 4 does not exist yet: {name}-0 ends at 3; add --follow to wait for it"
    )
    at_the_end = succeed("consume", name, "-o", "3", bootstrap=bootstrap)
    assert (at_the_end.out, at_the_end.err) == ("", f"no records: {name} has no records in that range\n")
    assert values(bootstrap, name, "-o", "1") == ["b", "c"]
    assert succeed("consume", name, "-p", "1", bootstrap=bootstrap).err == f"no records: {name} is empty\n"
    assert succeed("consume", name, "-p", "1", "-q", bootstrap=bootstrap).err == ""
    with following(bootstrap, name, "-o", "4", "-p", "0") as process:
        write(bootstrap, name, "d", "e")
        assert next_line(process) == "e"


def test_older_records_that_are_gone_are_told(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, bootstrap=bootstrap)
    write(bootstrap, name, "a", "b")
    succeed("topic", "truncate", name, "--yes", bootstrap=bootstrap)
    write(bootstrap, name, "c")
    typed = succeed("consume", name, "-o", "0", bootstrap=bootstrap)
    assert (typed.out, typed.err) == ("c\n", f"older records were deleted: {name}-0 begins at 2\n")


def test_times_and_offsets_bound_what_is_read(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, "--config=retention.ms=-1", bootstrap=bootstrap)
    lines = "".join(f'{{"value": "v{number}", "timestamp_ms": {number + 1}000}}\n' for number in range(5))
    succeed("produce", name, "--format=json", stdin=lines, bootstrap=bootstrap)
    assert values(bootstrap, name, "-o", "s@2000", "-o", "e@4000") == ["v1", "v2"]
    assert values(bootstrap, name, "-o", "@1970-01-01T00:00:04+00:00") == ["v3", "v4"]
    assert values(bootstrap, name, "-o", "e@1970-01-01T00:00:02Z") == ["v0"]
    assert values(bootstrap, name, "-o", "1", "--until-offset", "3") == ["v1", "v2"]
    assert "only one beginning can be given" in refused(
        "consume", name, "-o", "1", "-o", "2", bootstrap=bootstrap
    )
    assert "only one end can be given" in refused(
        "consume", name, "-o", "e@1", "-o", "e@2", bootstrap=bootstrap
    )
    with following(bootstrap, name, "-o", "3", "--until-offset", "6") as process:
        write(bootstrap, name, "v5", "v6")
        assert [next_line(process) for _ in range(3)] == ["v3", "v4", "v5"]
        assert process.wait(60) == 0


# How it looks


def test_records_look_as_kcat_prints_them(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, "--config=retention.ms=-1", bootstrap=bootstrap)
    lines = '{"key": "k", "value": "v", "timestamp_ms": 1000}\n{"value": null, "timestamp_ms": 61500}\n'
    succeed("produce", name, "--format=json", stdin=lines, bootstrap=bootstrap)

    def out(*options: str) -> str:
        return succeed("consume", name, *options, bootstrap=bootstrap).out

    assert out() == "k\tv\n(null)\n"
    assert out("-K:", "-Z", "-D", ";\\x41") == "k:v;ANULL:NULL;A"
    assert out("-K:", "-e", "-u") == "k:v\n:(null)\n"
    assert out("--format=value", "-Z") == "v\nNULL\n"
    assert out("-f", "%k=%s %S %{T:s} %{T:utc}\\n") == (
        "k=v 1 1 1970-01-01T00:00:01.000+00:00\n= -1 61 1970-01-01T00:01:01.500+00:00\n"
    )
    assert out("-f", "%{T:%M:%S}%%\\t", "-c1") == "00:01%\t"
    assert out("-f", "%R%s", "-c1") == "\0\0\0\1v"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", out("-f", "%{T:iso}", "-c1"))
    assert "unknown format %{t:hex}" in refused("consume", name, "-f", "%{t:hex}", bootstrap=bootstrap)
    assert json.loads(out("-J", "-c1"))["key"] == "k"


# Which topics


def test_several_topics_and_patterns_are_read(bootstrap: str, name: str) -> None:
    for suffix in ("a.x", "a.y", "b"):
        succeed("topic", "create", f"{name}.{suffix}", bootstrap=bootstrap)
        write(bootstrap, f"{name}.{suffix}", suffix)
    pattern = "^" + re.escape(name)
    assert values(bootstrap, f"{name}.b", f"{name}.a.x") == ["b", "a.x"]
    assert values(bootstrap, "-t", f"{name}.b", "-t", f"{name}.a.x") == ["b", "a.x"]
    assert values(bootstrap, rf"{pattern}\.a\..*") == ["a.x", "a.y"]
    assert values(bootstrap, rf"{pattern}\.a") == ["a.x", "a.y"]
    assert values(bootstrap, rf"{pattern}\.[a-z]$") == ["b"]
    assert values(bootstrap, rf"{pattern}\.b$", f"{name}.a.y") == ["a.y", "b"]
    assert sorted(values(bootstrap, rf"{pattern}\.", "--group", name, "-c", "3")) == ["a.x", "a.y", "b"]
    assert fail("consume", "^nothing-like-this", bootstrap=bootstrap) == (
        "no topic matches ^nothing-like-this; `ottla topic list` lists the topics"
    )
    assert "'^(' is not a valid regular expression" in refused("consume", "^(", bootstrap=bootstrap)
    assert "no topic given: name at least one topic to read" in refused("consume", bootstrap=bootstrap)


# Groups


def test_a_group_reads_the_partitions_that_are_named(bootstrap: str, name: str) -> None:
    succeed("topic", "create", name, "--partitions=2", bootstrap=bootstrap)
    write(bootstrap, name, "a", "b", partition=0)
    write(bootstrap, name, "c", partition=1)
    words = ("consume", name, "--format=value", "--group", name, "-p", "0")
    assert succeed(*words, "-c", "1", bootstrap=bootstrap).out == "a\n"
    assert succeed(*words, bootstrap=bootstrap).out == "b\n"
    again = succeed(*words, bootstrap=bootstrap)
    assert (again.out, again.err) == ("", f"no records: group {name} has already read all of {name}\n")
    parts = succeed("group", "describe", name, "--json", bootstrap=bootstrap).data["partitions"]
    assert [(part["partition"], part["offset"]) for part in parts] == [(0, 2)]
    assert fail("consume", name, "--group", name, "-p", "7", bootstrap=bootstrap) == (
        f"{name} has no partition 7, only 0 to 1"
    )
    assert fail("consume", "nowhere", "--group", name, bootstrap=bootstrap).startswith(
        "topic 'nowhere' does not exist"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-o", "5"), "use `ottla group reset g` to move the group"),
        (("-o", "-5"), "use `ottla group reset g` to move the group"),
        (("-o", "@2h"), "use `ottla group reset g` to move the group"),
        (("-o", "e@2h"), "would commit the records that were left out"),
        (("--until", "2h"), "would commit the records that were left out"),
        (("--until-offset", "2"), "would commit the records that were left out"),
        (("--skip-damaged",), "--skip-damaged does not work with --group"),
    ],
)
def test_what_a_group_cannot_do_is_refused(options: tuple[str, ...], said: str) -> None:
    assert said in refused("consume", "t", "--group", "g", *options, bootstrap="127.0.0.1:1")


# What goes wrong


def damage(directory: Path, value: bytes) -> None:
    """Change a byte of a record, in the files of a node that runs."""
    (log,) = directory.rglob("00000000000000000000.log")
    content = log.read_bytes()
    with log.open("r+b") as file:
        file.seek(content.index(value))
        file.write(b"?")


def test_a_damaged_batch_is_told_and_can_be_left_out(kafka: ThreadNode) -> None:
    kafka.create_topic("damaged")
    for value in ("first", "second", "third"):
        write(kafka.bootstrap, "damaged", value)
    damage(kafka.data_directory / "damaged-0", b"second")
    typed = run("consume", "damaged", bootstrap=kafka.bootstrap)
    assert (typed.code, typed.out) == (1, "first\n") or (typed.code, typed.out) == (1, "")
    assert typed.err.startswith(
        "Error: a batch of damaged-0 at offsets 1 to 1 is damaged: its checksum does not match; "
    )
    assert typed.err.count("\n") == 1
    skipped = succeed("consume", "damaged", "--skip-damaged", bootstrap=kafka.bootstrap)
    assert skipped.out == "first\nthird\n"
    assert skipped.err == (
        "skipped a damaged batch of damaged-0 at offsets 1 to 1: its checksum does not match\n"
    )
    assert values(kafka.bootstrap, "damaged", "-o", "2") == ["third"]
    assert values(kafka.bootstrap, "damaged", "-o", "-2", "--skip-damaged") == ["first", "third"]
    assert "is damaged" in fail("consume", "damaged", "-o", "-2", bootstrap=kafka.bootstrap)
    said = fail("consume", "damaged", "--group", "g", bootstrap=kafka.bootstrap)
    assert "damaged-0" in said
    assert "\n" not in said


def test_following_goes_on_when_the_broker_comes_back(tmp_path: Path) -> None:
    with OttlaNode(tmp_path) as node:
        succeed("topic", "create", "followed", bootstrap=node.bootstrap)
        write(node.bootstrap, "followed", "before")
        with (
            following(node.bootstrap, "followed") as alone,
            following(node.bootstrap, "followed", "--group", "g") as member,
        ):
            assert next_line(alone) == next_line(member) == "before"
            node.kill()
            assert alone.stderr is not None
            assert alone.stderr.readline().endswith("; waiting\n")
            node.start()
            write(node.bootstrap, "followed", "after")
            assert next_line(alone) == next_line(member) == "after"
        assert (alone.returncode, member.returncode) == (130, 130)
        assert "Traceback" not in alone.said + member.said  # type: ignore[attr-defined]


@pytest.mark.thorough(guard="tests/simulation/node/test_consuming.py")
def test_following_finds_partitions_and_topics_that_come_later(ottla_bootstrap: str, name: str) -> None:
    succeed("topic", "create", f"{name}-1", bootstrap=ottla_bootstrap)
    write(ottla_bootstrap, f"{name}-1", "first")
    with following(ottla_bootstrap, f"^{name}") as process:
        assert next_line(process) == "first"
        succeed("topic", "alter", f"{name}-1", "--partitions=2", bootstrap=ottla_bootstrap)
        write(ottla_bootstrap, f"{name}-1", "second", partition=1)
        assert next_line(process) == "second"
        succeed("topic", "create", f"{name}-2", bootstrap=ottla_bootstrap)
        write(ottla_bootstrap, f"{name}-2", "third")
        assert next_line(process) == "third"


@pytest.mark.thorough(guard="tests/simulation/node/test_consuming.py")
def test_a_topic_that_is_deleted_ends_the_following(kafka: ThreadNode) -> None:
    kafka.create_topic("short-lived")
    write(kafka.bootstrap, "short-lived", "a", "b")
    with following(kafka.bootstrap, "short-lived") as process:
        assert [next_line(process), next_line(process)] == ["a", "b"]
        succeed("topic", "delete", "short-lived", "--yes", bootstrap=kafka.bootstrap)
        assert process.wait(120) == 1
    assert process.said.startswith("Error: ")  # type: ignore[attr-defined]
    assert "Traceback" not in process.said  # type: ignore[attr-defined]
