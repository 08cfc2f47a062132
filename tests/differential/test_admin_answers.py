"""Ask Apache Kafka and ourselves the same, and get the same answers."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.differential.admin_requests import Attempt, attempts
from tests.differential.conftest import UNUSUAL_PROPERTIES
from tests.java.recorded_broker import RecordedBroker, RecordedClient
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.wire.apis import api_of
from ottla.wire.declare import fields_of, spec_of
from ottla.wire.error_code import ErrorCode

PATIENCE = 50
ABOUT = ("name", "resource_name", "topic_name", "user", "partition_index", "partition_id")
OTHER_WORDS = {
    # Kafka's says how Java writes the entity.
    ("quotas key twice", "INVALID_REQUEST"),
}
"""Errors whose message is another one on purpose."""
UNFORESEEABLE = frozenset(
    ("high_watermark", "leader_epoch", "log_end_offset", "last_fetch_timestamp", "last_caught_up_timestamp",
     "host", "port", "cluster_id")
)  # fmt: skip


@pytest.fixture(scope="module")
def ottla(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    """A node of ours with what concerns topics set as on Apache Kafka."""
    names = ("log.retention.hours", "log.roll.hours", "min.insync.replicas", "message.max.bytes")
    properties = {name: UNUSUAL_PROPERTIES[name] for name in names}
    with OttlaNode(tmp_path_factory.mktemp("ottla"), {"node.id": "0", **properties}) as node:
        yield node


def test_answers_are_those_of_apache_kafka(kafka: RecordedBroker, ottla: OttlaNode) -> None:
    """One test, since each request finds what those before it have made."""
    differences: list[str] = []
    with kafka.client() as theirs, PlainClient(ottla.bootstrap) as ours:
        for attempt in attempts():
            for version in _versions(attempt):
                answer = ours.ask(attempt.request, version)
                answered = essence(answer)
                their_answer = ask_until_it_knows(theirs, attempt, version, answered)
                expected = essence(their_answer)
                if answered != expected:
                    differences.append(
                        f"{attempt.name} v{version}\n  Apache Kafka: {expected}\n  Ottla:        {answered}"
                    )
                differences += other_texts(attempt, version, answer, their_answer)
    assert not differences, "\n".join(differences)


def ask_until_it_knows(theirs: RecordedClient, attempt: Attempt, version: int, answered: Any) -> Any:
    """Return the answer of Apache Kafka to compare with.

    Its brokers follow what its controller has answered after a while. So a question that changes nothing is
    asked again, as long as the answer is another than that of Ottla.
    """
    tries = PATIENCE if type(attempt.request).__name__.startswith(("Describe", "List")) else 1
    for _ in range(tries - 1):
        expected = theirs.ask(attempt.request, version)
        if essence(expected) == answered:
            return expected
        time.sleep(0.1)
    return theirs.ask(attempt.request, version)


def other_texts(attempt: Attempt, version: int, ours: Any, theirs: Any) -> list[str]:
    """Name the errors of ours that do not say what Apache Kafka's says. It may say more.

    People look for these sentences, and tools do, too.
    """
    pairs = zip(sorted(texts_of(ours)), sorted(texts_of(theirs)), strict=True)
    return [
        f"{attempt.name} v{version}\n  Apache Kafka: {their_text}\n  Ottla:        {our_text}"
        for (_, our_text), (about, their_text) in pairs
        if their_text not in our_text and (attempt.name, about) not in OTHER_WORDS
    ]


def texts_of(value: Any) -> Iterator[tuple[str, str]]:
    """Give the errors in an answer: what each is about, and its message."""
    if hasattr(type(value), "__wire_fields__"):
        fields = {name: getattr(value, name) for name in fields_of(type(value))}
        if fields.get("error_code", ErrorCode.NONE) is not ErrorCode.NONE and "error_message" in fields:
            about = [str(fields[name]) for name in ABOUT if name in fields]
            yield " ".join([fields["error_code"].name, *about]), fields["error_message"] or ""
        for field in fields.values():
            yield from texts_of(field)
    elif isinstance(value, tuple):
        for element in value:
            yield from texts_of(element)


def _versions(attempt: Attempt) -> list[int]:
    if attempt.versions is not None:
        return list(attempt.versions)
    spec = spec_of(type(attempt.request))
    assert spec.api_key is not None
    versions = api_of(spec.api_key).stable_versions
    return list(range(versions.first, versions.last + 1))


def essence(value: Any) -> Any:
    """Return an answer without what may differ: ids, times, messages, the order of lists."""
    if isinstance(value, Uuid):
        return "no id" if value == ZERO_UUID else "some id"
    if hasattr(type(value), "__wire_fields__"):
        fields = {name: getattr(value, name) for name in fields_of(type(value)) if name not in UNFORESEEABLE}
        if fields.get("error_code", ErrorCode.NONE) is not ErrorCode.NONE:
            # Kafka has no message for some errors. One that says something is none the worse.
            fields.pop("error_message", None)
        return {name: essence(field) for name, field in fields.items()}
    if isinstance(value, tuple):
        return sorted((essence(element) for element in value), key=repr)
    return value
