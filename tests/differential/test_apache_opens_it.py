"""Apache Kafka 4.3.1 and Ottla keep the same directory, one after the other, and neither loses anything.

What is compared is in `tests/census.py`: topics and ids, configs, quotas, users, groups, transactions, both
ends of every log, and a digest of every record. Directories are copied before they are handed over.
"""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.differential.busy_cluster import Resender, make_busy
from tests.golden.directories import manifest, unpack
from tests.golden.metadata_logs import SINGLE_NODES
from tests.java.apache_kafka import ApacheKafka
from tests.java.complaints import AFTER_A_KILL, complaints
from tests.java.jars import QUICK_START
from tests.support.acknowledged_load import AcknowledgedLoad
from tests.support.census import Census, differences, take_census
from tests.support.data_plane import create_topic
from tests.support.ottla_node import OttlaNode
from tests.support.plain_client import PlainClient

pytestmark = pytest.mark.live_oracle

FROZEN = {
    "log.retention.ms": "-1",
    "auto.create.topics.enable": "false",
    "log.cleaner.enable": "false",
    "offsets.retention.minutes": "2147483",
    "transactional.id.expiration.ms": "2147483647",
}
"""Nothing is to go away by itself while it is compared."""

TELLS_MORE = (*QUICK_START, "-Xmx512m", "-Dorg.apache.logging.log4j.level=INFO")


def apache_kafka(root: Path, data: Path, settings: Mapping[str, str] = FROZEN) -> ApacheKafka:
    """Return an Apache Kafka that says how it loads its logs."""
    return ApacheKafka(root, settings, data_directory=data, java_options=TELLS_MORE)


def copied(directory: Path, name: str) -> Path:
    """Copy a data directory with its times and its holes."""
    return Path(shutil.copytree(directory, directory.with_name(name)))


def census_of(node: OttlaNode | ApacheKafka) -> Census:
    with PlainClient(node.bootstrap) as client:
        return take_census(client)


def go_on(node: OttlaNode | ApacheKafka, resenders: list[Resender]) -> None:
    """Send the last batches again, and then new ones."""
    with PlainClient(node.bootstrap) as client:
        for resender in resenders:
            resender.resend(client)
            resender.move_on()
            resender.send(client)


def start_resenders(node: OttlaNode | ApacheKafka) -> list[Resender]:
    with PlainClient(node.bootstrap) as client:
        resenders = [Resender(client, topic, 0) for topic in ("plain", "segments", "compacted", "shortened")]
        for resender in resenders:
            resender.send(client)
        return resenders


def test_apache_kafka_goes_on_after_a_clean_stop_and_ottla_after_it(tmp_path: Path) -> None:
    with OttlaNode(tmp_path / "ottla", FROZEN, data_directory=tmp_path / "data") as ottla:
        make_busy(ottla.bootstrap)
        resenders = start_resenders(ottla)
        before = census_of(ottla)

    copy = copied(tmp_path / "data", "copy")
    with apache_kafka(tmp_path / "kafka", copy) as kafka:
        assert differences(before, census_of(kafka)) == []
        go_on(kafka, resenders)
        before = census_of(kafka)
    assert complaints(kafka.read_log()) == []
    skipped = re.search(r"Skipping recovery of (\d+) logs", kafka.read_log())
    assert skipped is not None
    assert int(skipped[1]) == len(before.logs) + 1, "all of them, and the one that is being deleted"

    with OttlaNode(tmp_path / "again", FROZEN, data_directory=copy) as ottla:
        assert differences(before, census_of(ottla)) == []
        go_on(ottla, resenders)
    assert complaints(ottla.read_log()) == []


def test_apache_kafka_goes_on_after_a_kill_under_load(tmp_path: Path) -> None:
    with OttlaNode(tmp_path / "ottla", FROZEN, data_directory=tmp_path / "data") as ottla:
        make_busy(ottla.bootstrap)
        resenders = start_resenders(ottla)
        with PlainClient(ottla.bootstrap) as client:
            create_topic(client, "load", 3)
        before = census_of(ottla)
        load = AcknowledgedLoad(ottla.bootstrap, "load", 3)
        try:
            load.wait_for(5000)
            ottla.kill()
        finally:
            load.give_up()

    with apache_kafka(tmp_path / "kafka", copied(tmp_path / "data", "copy")) as kafka:
        load.check(kafka.bootstrap)
        opened = census_of(kafka)
        # Where a log starts is written down from time to time, here as with Apache Kafka.
        assert differences(before, without(opened, before, "load", "shortened")) == []
        go_on(kafka, resenders)
    assert complaints(kafka.read_log(), AFTER_A_KILL) == []

    with OttlaNode(tmp_path / "again", FROZEN, data_directory=tmp_path / "data") as ottla:
        load.check(ottla.bootstrap)
        assert differences(opened, census_of(ottla)) == [], "both recover the same from one directory"


def without(census: Census, older: Census, *topics: str) -> Census:
    """Return a census in which some topics are as they were."""
    unchanged = {partition: log for partition, log in older.logs.items() if partition[0] in topics}
    return census._replace(logs={**census.logs, **unchanged})


def without_producers(census: Census) -> Census:
    logs = {partition: log._replace(producers=frozenset()) for partition, log in census.logs.items()}
    return census._replace(logs=logs)


def test_ottla_goes_on_where_apache_kafka_stopped_and_hands_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with apache_kafka(tmp_path / "kafka", data) as kafka:
        make_busy(kafka.bootstrap)
        resenders = start_resenders(kafka)
        before = census_of(kafka)

    with OttlaNode(tmp_path / "ottla", FROZEN, data_directory=copied(data, "copy")) as ottla:
        assert differences(before, census_of(ottla)) == []
        go_on(ottla, resenders)
        before = census_of(ottla)
    assert complaints(ottla.read_log()) == []

    with apache_kafka(tmp_path / "back", tmp_path / "copy") as kafka:
        assert differences(before, census_of(kafka)) == []
        go_on(kafka, resenders)
    assert complaints(kafka.read_log()) == []


@pytest.mark.parametrize("archive", SINGLE_NODES)
def test_a_golden_directory_goes_through_ottla_to_apache_kafka(archive: str, tmp_path: Path) -> None:
    data = unpack(archive, tmp_path)
    settings = {**FROZEN, "node.id": "1", "delegation.token.secret.key": "there is a token in it"}
    expected = {
        (one["topic"], one["partition"]): (one["topicId"], one["logStart"], one["logEnd"])
        for one in manifest()[archive]["partitions"]
    }
    with OttlaNode(tmp_path / "ottla", settings, data_directory=data) as ottla:
        before = census_of(ottla)
    found = {
        (topic, number): (str(before.topics[topic][0]), log.start_offset, log.end_offset)
        for (topic, number), log in before.logs.items()
    }
    assert found == expected
    assert {
        f"{group}/{topic}-{number}": commit for (group, topic, number), commit in before.commits.items()
    } == {
        name: (commit["offset"], commit["metadata"])
        for name, commit in manifest()[archive]["committedOffsets"].items()
    }

    with apache_kafka(tmp_path / "kafka", data, settings) as kafka:
        after = census_of(kafka)
    # Groups of every kind are there afterwards, whether Ottla had a use for their records or not.
    groups = manifest()[archive]["groups"]
    assert groups.items() <= after.groups.items()
    assert {name: kind for name, kind in groups.items() if kind in ("classic", "consumer")}.items() <= (
        before.groups.items()
    )
    # The producers are of 2023. Both forget such, but not at the same time.
    assert (
        differences(without_producers(before)._replace(groups=after.groups), without_producers(after)) == []
    )
    assert complaints(kafka.read_log()) == []
