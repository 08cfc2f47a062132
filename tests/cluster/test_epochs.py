"""Epochs run out: a producer that has had its last one goes on with another id, and with nothing lost.

The records of some ids are brought near the end by hand, which would take a producer months. Then the
directory is given to a node, and to Apache Kafka, which have to go on from there in the same way.
"""

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from tests.differential.transaction_scenarios import Told, wait_until_stable
from tests.java.apache_kafka import ApacheKafka
from tests.support.data_plane import create_topic, fetch
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient
from tests.support.readiness import wait_until_led
from tests.support.transaction_talk import TransactionTalk

from ottla.coordination.runtime.key_partition import partition_of_key
from ottla.coordination.transaction.transaction import EPOCH_MAX
from ottla.model.uuid import Uuid
from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.builder import build_batch
from ottla.wire.coordinator_records.framing import TRANSACTION_RECORDS, CoordinatorRecord
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

LAST = EPOCH_MAX - 1
"""The last epoch that a client gets."""
IDS = ("goes-on", "is-fenced", "recovers", "announces")


@pytest.fixture(scope="module")
def worn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Uuid]]:
    """Make a directory with transactional ids that are one epoch away from their last."""
    root = tmp_path_factory.mktemp("worn")
    with OttlaNode(root) as node, PlainClient(node.bootstrap) as client:
        topics = {name: create_topic(client, name) for name in IDS}
        for name in IDS:
            talk = TransactionTalk(client, name, topics)
            talk.find_coordinator()
            assert talk.init().error_code is ErrorCode.NONE
        image = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=TRANSACTION_RECORDS.topic),)))
    partitions = len(image.topics[0].partitions)
    for name in IDS:
        where = f"{TRANSACTION_RECORDS.topic}-{partition_of_key(name, partitions)}"
        wear(root / "data" / where / "00000000000000000000.log")
    # Whoever opens it next shall read it all.
    (root / "data" / ".kafka_cleanshutdown").unlink()
    return root / "data", topics


def wear(segment: Path) -> None:
    """Write the newest record of a transactional id once more, with one of its last epochs."""
    *_, last = iter_batches(memoryview(segment.read_bytes()))
    (record,) = iter_batch_records(last)
    assert record.key is not None
    known = TRANSACTION_RECORDS.decode(record.key, record.value)
    assert isinstance(known, CoordinatorRecord)
    worn_out = replace(known.value, producer_epoch=LAST - 1)
    batch = build_batch(
        [record._replace(offset=0, value=TRANSACTION_RECORDS.encode_value(worn_out, known.value_version))],
        leader_epoch=last.header.leader_epoch,
    )
    batch[:8] = (last.last_offset + 1).to_bytes(8, "big")
    with segment.open("ab") as file:
        file.write(batch)


@contextmanager
def worn_client(
    worn: tuple[Path, dict[str, Uuid]], broker: type[OttlaNode | ApacheKafka], root: Path
) -> Iterator[tuple[PlainClient, dict[str, Uuid]]]:
    data = root / "data"
    shutil.copytree(worn[0], data)
    server: AbstractContextManager[OttlaNode | ApacheKafka] = broker(root, data_directory=data)
    with server as running, PlainClient(running.bootstrap) as client:
        for topic in IDS:
            wait_until_led(client, topic)
        yield client, worn[1]


def worn_talk(client: PlainClient, name: str, topics: dict[str, Uuid], version: int = 2) -> TransactionTalk:
    talk = TransactionTalk(client, name, topics, version)
    talk.find_coordinator()
    assert talk.init().producer_epoch == LAST
    return talk


def marker_epochs(client: PlainClient, topic: str) -> list[int]:
    batches = iter_batches(memoryview(fetch(client, topic, 0).records or b""))
    return [batch.header.producer_epoch for batch in batches if batch.header.is_control]


# What producers do, and are told


def go_on_with_another_id(client: PlainClient, topics: dict[str, Uuid]) -> Told:
    """Commit with the last epoch. The answer has another id; the old one is no use to anybody."""
    talk = worn_talk(client, "goes-on", topics)
    told: Told = [talk.write("goes-on", b"with the last epoch")]
    zombie, first_id = talk.twin(), talk.producer_id
    told.append(talk.end(True).error_code)
    told += [talk.producer_id != first_id, talk.producer_epoch]
    # The answer was lost, and the client asks again; then it asks for what did not happen.
    again = zombie.end(True, takes=False)
    told += [again.error_code, again.producer_id == talk.producer_id, again.producer_epoch]
    told.append(zombie.end(False, takes=False).error_code)
    told += [zombie.write("goes-on", b"of a zombie"), zombie.write("recovers", b"of a zombie")]
    told += [talk.write("goes-on", b"with another id"), talk.end(True).error_code, talk.producer_epoch]
    told.append(zombie.end(True, takes=False).error_code)
    wait_until_stable(talk, "goes-on")
    told += [talk.committed_values("goes-on"), marker_epochs(client, "goes-on")]
    return told


def be_fenced_with_the_last_epoch(client: PlainClient, topics: dict[str, Uuid]) -> Told:
    """Be fenced in the middle of a transaction: there is one epoch left for that."""
    talk = worn_talk(client, "is-fenced", topics)
    told: Told = [talk.write("is-fenced", b"never")]
    successor = TransactionTalk(client, "is-fenced", topics)
    told += [successor.init().error_code, successor.producer_id != talk.producer_id]
    told.append(successor.producer_epoch)
    told += [talk.write("is-fenced", b"never"), talk.end(True).error_code]
    told += [successor.write("is-fenced", b"of the successor"), successor.end(True).error_code]
    wait_until_stable(talk, "is-fenced")
    told += [talk.committed_values("is-fenced"), marker_epochs(client, "is-fenced")]
    return told


def recover_with_the_last_epoch(client: PlainClient, topics: dict[str, Uuid]) -> Told:
    """Come back after an error with the last epoch, twice, because the first answer was lost."""
    talk = worn_talk(client, "recovers", topics)
    known = (talk.producer_id, talk.producer_epoch)
    told: Told = [talk.init(expected=known).error_code, talk.producer_id != known[0], talk.producer_epoch]
    given = talk.producer_id
    told += [talk.init(expected=known).error_code, talk.producer_id == given, talk.producer_epoch]
    told += [talk.write("recovers", b"after the error"), talk.end(True).error_code, talk.producer_epoch]
    told.append(talk.init(expected=known).error_code)
    wait_until_stable(talk, "recovers")
    told.append(talk.committed_values("recovers"))
    return told


def announce_with_the_last_epoch(client: PlainClient, topics: dict[str, Uuid]) -> Told:
    """Use version 1, where the epoch stays, until the next instance gets another id."""
    talk = worn_talk(client, "announces", topics, version=1)
    told: Told = []
    for value in (b"first", b"second"):
        told += [talk.add("announces"), talk.write("announces", value), talk.end(True).error_code]
    told.append(talk.producer_epoch)
    first_id = talk.producer_id
    successor = TransactionTalk(client, "announces", topics, version=1)
    told += [successor.init().error_code, successor.producer_id != first_id, successor.producer_epoch]
    told += [talk.add("announces"), talk.end(True).error_code]
    told += [successor.add("announces"), successor.write("announces", b"third")]
    told.append(successor.end(True).error_code)
    wait_until_stable(talk, "announces")
    told += [talk.committed_values("announces"), marker_epochs(client, "announces")]
    return told


SCENARIOS = (
    go_on_with_another_id,
    be_fenced_with_the_last_epoch,
    recover_with_the_last_epoch,
    announce_with_the_last_epoch,
)


def test_commit_with_the_last_epoch_gives_another_id(
    worn: tuple[Path, dict[str, Uuid]], tmp_path: Path
) -> None:
    with worn_client(worn, OttlaNode, tmp_path) as (client, topics):
        told = go_on_with_another_id(client, topics)
    assert told[:7] == [ErrorCode.NONE, ErrorCode.NONE, True, 0, ErrorCode.NONE, True, 0]
    assert told[-2:] == [[b"with the last epoch", b"with another id"], [EPOCH_MAX, 1]]


def test_transaction_with_the_last_epoch_can_still_be_fenced(
    worn: tuple[Path, dict[str, Uuid]], tmp_path: Path
) -> None:
    with worn_client(worn, OttlaNode, tmp_path) as (client, topics):
        told = be_fenced_with_the_last_epoch(client, topics)
    assert told[1:3] == [ErrorCode.NONE, True]
    assert told[4:6] == [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    assert told[-2] == [b"of the successor"]


def test_producer_recovers_with_the_last_epoch(worn: tuple[Path, dict[str, Uuid]], tmp_path: Path) -> None:
    with worn_client(worn, OttlaNode, tmp_path) as (client, topics):
        told = recover_with_the_last_epoch(client, topics)
    assert told[:6] == [ErrorCode.NONE, True, 0, ErrorCode.NONE, True, 0]
    assert told[-1] == [b"after the error"]


def test_next_instance_gets_another_id_with_version_1(
    worn: tuple[Path, dict[str, Uuid]], tmp_path: Path
) -> None:
    with worn_client(worn, OttlaNode, tmp_path) as (client, topics):
        told = announce_with_the_last_epoch(client, topics)
    assert told[6:10] == [LAST, ErrorCode.NONE, True, 0]
    assert told[-2:] == [[b"first", b"second", b"third"], [LAST, LAST, 0]]


@pytest.mark.thorough(guard="tests/cluster/test_epochs.py::test_next_instance_gets_another_id_with_version_1")
def test_apache_kafka_goes_on_from_worn_epochs_in_the_same_way(
    worn: tuple[Path, dict[str, Uuid]], tmp_path: Path
) -> None:
    told: list[list[Told]] = []
    for broker in (ApacheKafka, OttlaNode):
        with worn_client(worn, broker, tmp_path / broker.__name__) as (client, topics):
            told.append([scenario(client, topics) for scenario in SCENARIOS])
    assert told[1] == told[0]
