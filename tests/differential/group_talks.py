"""Conversations with a group coordinator, to be held with Apache Kafka and with ourselves.

A talk is a function that sends requests and notes the answers. What a broker makes up (member ids, topic ids)
is noted by the order in which it appeared, so that the notes of two brokers can be compared line by line.
"""

import inspect
import json
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

from tests.java.oracle import Oracle
from tests.support.group_requests import OTHER_TOPIC, TOPIC, join_request
from tests.support.plain_client import PlainClient
from tests.support.readiness import start_coordinators, wait_until_led

from ottla.model.uuid import ZERO_UUID, Uuid
from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.wire.coordinator_records.framing import GROUP_RECORDS, CoordinatorRecord
from ottla.wire.declare import fields_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.join_group import JoinGroupResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

UNKNOWN_ID = Uuid(b"0123456789abcdef")
RETRIABLE = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)


class Talk:
    """One side of the comparison: connections to a broker, and the notes."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._connections: dict[str, PlainClient] = {}
        self._names: dict[str, str] = {}
        self._groups: set[str] = set()
        self._written_before: Counter[str] = Counter()
        self.notes: list[str] = []
        self.topic_id = ZERO_UUID

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def client(self, who: str = "main") -> PlainClient:
        if who not in self._connections:
            self._connections[who] = PlainClient(self._bootstrap)
        return self._connections[who]

    def prepare(self) -> None:
        """Make the topics, and wait until the coordinator is there."""
        client = self.client()
        topics = tuple(
            CreatableTopic(name=name, num_partitions=3, replication_factor=1, assignments=(), configs=())
            for name in (TOPIC, OTHER_TOPIC)
        )
        client.ask(CreateTopicsRequest(topics=topics))
        for name in (TOPIC, OTHER_TOPIC):
            wait_until_led(client, name, 3)
        start_coordinators(client)
        described = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),)))
        self.topic_id = described.topics[0].topic_id
        # Apache Kafka may have had other talks about a group of the same name.
        self._written_before.update(_group_of(record) for record in read_group_records(client))

    def ask(self, label: str, request: Any, version: int | None = None, who: str = "main") -> Any:
        """Ask and note the answer."""
        if hasattr(request, "group_id"):
            self._groups.add(request.group_id)
        response = self.client(who).ask(request, version)
        self.note(label, response, version)
        return response

    def send(self, who: str, request: Any, version: int | None = None) -> None:
        """Ask without waiting."""
        self._groups.add(request.group_id)
        self.client(who).send(request, version)

    def receive(self, label: str, who: str) -> Any:
        """Note the answer to what was sent."""
        response = self.client(who).receive()
        self.note(label, response, None)
        return response

    def note(self, label: str, response: Any, version: int | None) -> None:
        if isinstance(response, JoinGroupResponse) and response.member_id:
            self._names.setdefault(response.member_id, f"<member {len(self._names) + 1}>")
        self.notes.append(f"{label}{'' if version is None else f' v{version}'}: {self._essence(response)}")

    def note_records(self) -> None:
        """Note what the coordinator has written down of the groups that were talked about, group by group."""
        records: dict[str, list[str]] = {}
        for record in read_group_records(self.client()):
            group = _group_of(record)
            if group in self._groups:
                text = f"{self._essence(record.key)} -> {self._essence(record.value)} v{record.value_version}"
                records.setdefault(group, []).append(text)
        for group in sorted(records):
            self.notes += records[group][self._written_before[group] :]

    def _essence(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._names.get(value, value)
        if isinstance(value, Uuid):
            return "no id" if value == ZERO_UUID else "the id" if value == self.topic_id else "another id"
        if hasattr(type(value), "__wire_fields__"):
            fields = {name: getattr(value, name) for name in fields_of(type(value))}
            # A hash of topics has their ids in it, and a version is an offset of the metadata log.
            for name in ("host", "port", "error_message", "version", "metadata_hash"):
                fields.pop(name, None)
            return {
                name: "some time" if "timestamp" in name and field > 0 else self._essence(field)
                for name, field in fields.items()
            }
        if isinstance(value, tuple):
            elements = [self._essence(element) for element in value]
            return sorted(elements, key=repr) if elements and isinstance(elements[0], dict) else elements
        return value


def _group_of(record: CoordinatorRecord) -> str:
    key: Any = record.key
    group: str = key.group if hasattr(key, "group") else key.group_id
    return group


def read_group_records(client: PlainClient) -> Iterator[CoordinatorRecord]:
    """Read `__consumer_offsets`, one partition after the other."""
    topic = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=GROUP_RECORDS.topic),))).topics[0]
    for partition in sorted(part.partition_index for part in topic.partitions):
        offset = 0
        while batches := list(iter_batches(memoryview(_fetch(client, topic.topic_id, partition, offset)))):
            for batch in batches:
                offset = batch.last_offset + 1
                if batch.is_control:
                    continue  # a marker, of a transaction that committed offsets
                for record in iter_batch_records(batch):
                    assert record.key is not None
                    decoded = GROUP_RECORDS.decode(record.key, record.value)
                    assert isinstance(decoded, CoordinatorRecord)
                    yield decoded


def _fetch(client: PlainClient, topic_id: Uuid, partition: int, offset: int) -> bytes:
    part = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        topics=(FetchTopic(topic_id=topic_id, partitions=(part,)),),
        forgotten_topics_data=(),
    )
    answer = client.ask(request, 17).responses[0].partitions[0]
    assert answer.error_code is ErrorCode.NONE, answer
    return bytes(answer.records or b"")


def join_alone(talk: Talk, group: str, version: int | None = None, who: str = "main") -> tuple[str, int]:
    """Join as the first member, and return the member id and the generation."""
    answer = talk.ask("join", join_request(group), version, who)
    if answer.error_code is ErrorCode.MEMBER_ID_REQUIRED:
        answer = talk.ask("join with the id", join_request(group, answer.member_id), version, who)
    return answer.member_id, answer.generation_id


TalkFunction = Callable[[Talk], None]
Arrange = Callable[[list[str]], Iterator[str]]


def differences(
    oracle: Oracle,
    apache: Callable[[], str],
    ottla: str,
    talk_about: TalkFunction,
    arranged: Arrange = iter,
) -> str:
    """Hold a talk with both, and return where their notes differ, line by line.

    `apache` starts Apache Kafka if its notes are not recorded. `arranged` puts the notes of what was written
    into an order that does not depend on chance.
    """
    question = inspect.getsource(talk_about)
    notes = json.loads(oracle.answer(question, lambda: json.dumps(_notes_of(apache(), talk_about, arranged))))
    pairs = zip_longest(notes, _notes_of(ottla, talk_about, arranged))
    return "".join(
        f"\n  Apache Kafka: {theirs}\n  Ottla:        {ours}" for theirs, ours in pairs if theirs != ours
    )


def _notes_of(bootstrap: str, talk_about: TalkFunction, arranged: Arrange) -> list[str]:
    talk = Talk(bootstrap)
    try:
        talk.prepare()
        talk_about(talk)
        answered = len(talk.notes)
        talk.note_records()
    finally:
        talk.close()
    return [*talk.notes[:answered], *arranged(talk.notes[answered:])]
