"""A quorum of one: from an empty directory on, through restarts."""

from random import Random

import pytest
from tests.support.deciding import new_topic
from tests.support.quorum_node import START_MS, QuorumNode
from tests.unit.metadata.images import count_partitions, have_same_content

from ottla.metadata.errors import MetadataError
from ottla.metadata.features import METADATA_VERSION, default_levels
from ottla.model.ids import Offset
from ottla.model.uuid import METADATA_TOPIC_ID, Uuid
from ottla.quorum.batches import MetadataBatch, decode_batch
from ottla.quorum.controller.decision import RECORDS_MAX
from ottla.quorum.metadata_quorum import OtherVoters
from ottla.quorum.quorum_state import decode_quorum_state
from ottla.quorum.snapshot_file import FORMAT_SNAPSHOT, decode_snapshot
from ottla.quorum.voters import DYNAMIC, Endpoint, VoterHistory, voter
from ottla.records.batch import iter_batches
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.log_dirs.partition_metadata import decode_partition_metadata
from ottla.testing.simulated_disk import SimulatedDisk
from ottla.wire.control_records import KRaftVersionRecord, LeaderChangeMessage, VotersRecord
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.metadata_records.configs import ConfigRecord
from ottla.wire.metadata_records.features import FeatureLevelRecord
from ottla.wire.metadata_records.metadata_transactions import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from ottla.wire.metadata_records.no_op import NoOpRecord
from ottla.world.disk import Reason

FIRST_SEGMENT = "/data/__cluster_metadata-0/00000000000000000000.log"


def new_disk() -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.now_ms = START_MS
    return disk


def read_log(disk: SimulatedDisk, path: str = FIRST_SEGMENT) -> list[MetadataBatch]:
    return [decode_batch(raw) for raw in iter_batches(memoryview(disk.read_file(path)))]


def files(disk: SimulatedDisk, path: str = "/data/__cluster_metadata-0") -> list[str]:
    return [entry.name for entry in disk.list(path)]


def test_a_formatted_directory_has_the_files_that_kafka_writes() -> None:
    disk = new_disk()
    node = QuorumNode(disk)
    assert [entry.name for entry in disk.list("/data")] == [
        "__cluster_metadata-0", "bootstrap.checkpoint", "meta.properties",
    ]  # fmt: skip
    bootstrap = decode_snapshot(disk.read_file("/data/bootstrap.checkpoint"), "bootstrap")
    assert {record.name: record.feature_level for record in bootstrap.records} == default_levels()
    first = decode_snapshot(disk.read_file(f"{node.metadata_path}/{FORMAT_SNAPSHOT.file_name}"), "first")
    assert first.quorum.kraft_version == DYNAMIC
    assert first.quorum.voters is not None
    assert [one.voter_id for one in first.quorum.voters] == [1]
    topic_id = disk.read_file(f"{node.metadata_path}/partition.metadata")
    assert decode_partition_metadata(topic_id) == METADATA_TOPIC_ID


def test_an_empty_log_begins_as_kafkas_does() -> None:
    disk = new_disk()
    QuorumNode(disk)
    control, first = read_log(disk)
    assert [type(record) for record in control.records] == [
        LeaderChangeMessage, KRaftVersionRecord, VotersRecord,
    ]  # fmt: skip
    assert isinstance(first.records[0], BeginTransactionRecord)
    assert isinstance(first.records[-1], EndTransactionRecord)
    assert [type(record) for record in first.records[1:-1]] == [FeatureLevelRecord] * 6 + [ConfigRecord]
    assert first.records[1].name == METADATA_VERSION


def test_every_start_begins_an_epoch_that_is_remembered_first() -> None:
    disk = new_disk()
    for epoch in (1, 2, 3):
        node = QuorumNode(disk)
        assert node.driver.epoch == epoch
        state = decode_quorum_state(disk.read_file(f"{node.metadata_path}/quorum-state"))
        assert (state.leader_id, state.leader_epoch) == (1, epoch)
        disk.kill()
    changes = [batch for batch in read_log(disk) if batch.is_control]
    assert [batch.position.epoch for batch in changes] == [1, 2, 3]
    assert [len(batch.records) for batch in changes] == [3, 1, 1], "the voters are recorded once"


def test_an_epoch_that_was_remembered_but_never_used_is_not_used_again() -> None:
    disk = new_disk()
    node = QuorumNode(disk)
    text = disk.read_file(f"{node.metadata_path}/quorum-state").replace(
        b'"leaderEpoch":1', b'"leaderEpoch":8'
    )
    disk.kill()
    disk.write_file_atomically(f"{node.metadata_path}/quorum-state", text)
    assert QuorumNode(disk).driver.epoch == 9


def test_another_address_of_the_controller_is_recorded() -> None:
    disk = new_disk()
    QuorumNode(disk)
    disk.kill()
    node = QuorumNode(disk, port=7000)
    me = voter(1, node.directory_id, [Endpoint("CONTROLLER", "127.0.0.1", 7001)])
    assert node.driver.replica.voters.voters == (me,)
    disk.kill()
    QuorumNode(disk, port=7000)
    assert [len(batch.records) for batch in read_log(disk) if batch.is_control] == [3, 3, 1]


def test_what_was_answered_is_there_after_a_restart() -> None:
    disk = new_disk()
    node = QuorumNode(disk)
    node.come_up()
    assert node.create(new_topic("t", 3, 1, configs={"retention.ms": "7"})) == [ErrorCode.NONE]
    before = node.image
    disk.cut_power()
    after = QuorumNode(disk).image
    assert have_same_content(after, before)


def test_records_of_a_decision_are_one_batch() -> None:
    disk = new_disk()
    node = QuorumNode(disk)
    before = len(read_log(disk))
    node.controller.append([NoOpRecord(), NoOpRecord()])
    node.controller.append([NoOpRecord()])
    assert [len(batch.records) for batch in read_log(disk)[before:]] == [2, 1]


def test_more_than_a_batch_can_hold_is_split_and_published_as_a_whole() -> None:
    disk = new_disk()
    node = QuorumNode(disk)
    before, end = len(read_log(disk)), node.driver.log_end_offset
    records = [FeatureLevelRecord(name=f"f{number}", feature_level=1) for number in range(RECORDS_MAX + 5)]
    node.controller.append(records)
    assert [len(batch.records) for batch in read_log(disk)[before:]] == [RECORDS_MAX, 5]
    # A quorum of several may commit one batch and not the other.
    node.driver.log.recovery_point = Offset(end + RECORDS_MAX)
    node.driver._synced(None)
    assert "f0" not in node.image.features
    node.quorum.flush()
    assert {"f0", f"f{RECORDS_MAX + 4}"} <= node.image.features.keys()


def test_nothing_is_published_before_it_is_synced() -> None:
    disk = new_disk()
    node = QuorumNode(disk)
    end = node.driver.high_watermark
    node.controller.append([NoOpRecord()])
    assert node.driver.high_watermark == end
    assert node.image.offset == end - 1
    node.quorum.flush()
    assert node.driver.high_watermark == end + 1
    assert node.image.offset == end


def test_a_failed_sync_is_the_end() -> None:
    disk = new_disk()
    node = QuorumNode(disk)
    before = node.image
    node.controller.append([NoOpRecord()])
    disk.fail("sync", Reason.IO_ERROR)
    with pytest.raises(LogDirectoryOffline):
        node.quorum.flush()
    disk.heal()
    with pytest.raises(LogDirectoryOffline):
        node.quorum.flush()
    assert node.image is before, "nobody was told of what may be lost"


def ask_for_topic(node: QuorumNode, name: str) -> list[ErrorCode]:
    """Ask for a topic, and return the list that the answer will be in."""
    answers: list[ErrorCode] = []
    node.quorum.ask(
        CreateTopicsRequest(topics=(new_topic(name, 1, 1),)),
        None,
        lambda response: answers.append(response.topics[0].error_code),
    )
    return answers


def test_when_a_sync_fails_everybody_who_waits_is_refused_and_the_node_gives_up() -> None:
    disk = new_disk()
    node = QuorumNode(disk)
    node.come_up()
    waiting = ask_for_topic(node, "t")
    error = LogDirectoryOffline("/data", "it is broken")
    node.driver._synced(error)
    assert waiting == [ErrorCode.NOT_CONTROLLER]
    assert node.given_up == [error]
    assert ask_for_topic(node, "later") == [ErrorCode.NOT_CONTROLLER]
    assert node.image.topics.find("t") is None


def test_when_the_log_cannot_be_written_the_request_is_refused_and_the_node_gives_up() -> None:
    disk = new_disk()
    node = QuorumNode(disk)
    node.come_up()
    waiting = ask_for_topic(node, "before")
    disk.fail("write", Reason.NO_SPACE)
    assert ask_for_topic(node, "t") == [ErrorCode.NOT_CONTROLLER]
    assert waiting == [ErrorCode.NOT_CONTROLLER]
    assert [type(error) for error in node.given_up] == [LogDirectoryOffline]


def test_a_sign_of_life_that_cannot_be_written_is_the_end() -> None:
    disk = new_disk()
    node = QuorumNode(disk)
    disk.fail("write", Reason.NO_SPACE)
    node.tick(START_MS + 500)
    assert [type(error) for error in node.given_up] == [LogDirectoryOffline]


def test_a_node_that_has_not_started_is_not_the_controller() -> None:
    node = QuorumNode(new_disk(), starts=False)
    assert ask_for_topic(node, "t") == [ErrorCode.NOT_CONTROLLER]


def test_a_node_that_stops_refuses_what_it_has_not_answered() -> None:
    disk = new_disk()
    node = QuorumNode(disk)
    node.come_up()
    waiting = ask_for_topic(node, "t")
    node.quorum.close()
    assert waiting == [ErrorCode.NOT_CONTROLLER]
    assert node.image.topics.find("t") is None
    disk.kill()
    assert QuorumNode(disk).image.topics.find("t") is not None, (
        "it is in the log, so the next leader commits it"
    )


def test_a_transaction_that_another_controller_left_open_is_aborted() -> None:
    disk = new_disk()
    node = QuorumNode(disk)
    feature = FeatureLevelRecord(name="group.version", feature_level=0)
    node.controller.append([BeginTransactionRecord(name="half"), feature])
    node.quorum.flush()
    assert "group.version" in node.image.features
    disk.kill()
    node = QuorumNode(disk)
    assert "group.version" in node.image.features
    assert isinstance(read_log(disk)[-1].records[0], AbortTransactionRecord)


def test_first_records_that_were_left_half_are_written_again() -> None:
    disk = new_disk()
    node = QuorumNode(disk)
    control, first = read_log(disk)
    disk.kill()
    # Keep the beginning of the transaction only.
    from ottla.quorum.batches import encode_batch, encode_control_batch

    content = encode_control_batch(control.records, Offset(0), 1, START_MS)
    content += encode_batch(first.records[:3], 30, Offset(3), 1, START_MS)
    file = disk.open(FIRST_SEGMENT)
    file.truncate(0)
    file.write(0, (content,))
    file.sync()
    node = QuorumNode(disk)
    assert node.image.features == default_levels()
    last = read_log(disk)[-1]
    assert isinstance(last.records[0], AbortTransactionRecord)
    assert isinstance(last.records[1], BeginTransactionRecord)


def test_a_node_that_is_one_of_several_voters_does_not_lead_alone() -> None:
    disk = new_disk()
    node = QuorumNode(disk)
    others = (
        voter(1, node.directory_id, [Endpoint("CONTROLLER", "h", 1)]),
        voter(2, Uuid(b"directory-000002"), [Endpoint("CONTROLLER", "h", 2)]),
    )
    from ottla.quorum.batches import encode_control_batch

    records = VoterHistory(DYNAMIC, others).records()
    batch = encode_control_batch(records, node.driver.log_end_offset, 1, START_MS)
    node.driver.replica.append(batch, 1, node.driver.now)
    node.driver.log.flush()
    disk.kill()
    node = QuorumNode(disk, starts=False)
    node.quorum.start()
    node.driver.flush()
    assert node.quorum.controller is None
    assert node.image.offset == -1, "nothing is known to be committed"
    for _ in range(10):
        node.now_ms += 10_000
        node.driver._wake()
        assert node.quorum.controller is None
    assert node.driver.epoch == 2, "it led epoch 1; before it begins one it asks whether it would be elected"


def test_a_copied_directory_with_another_id_is_not_the_voter() -> None:
    disk = new_disk()
    QuorumNode(disk)
    disk.kill()
    meta = disk.read_file("/data/meta.properties").decode().splitlines()
    other = [
        line if not line.startswith("directory.id") else "directory.id=3n9LwqijR0S7KDdmqZP55w"
        for line in meta
    ]
    disk.write_file_atomically("/data/meta.properties", "\n".join(other).encode())
    with pytest.raises(OtherVoters, match="directory"):
        QuorumNode(disk)


def test_a_sign_of_life_is_written_when_nothing_else_is() -> None:
    disk = new_disk()
    node = QuorumNode(disk)
    assert node.tick(START_MS + 100) == 400
    end = node.driver.log_end_offset
    assert node.tick(START_MS + 500) == 500
    assert node.driver.log_end_offset == end + 1
    assert isinstance(read_log(disk)[-1].records[0], NoOpRecord)
    node.tick(START_MS + 900)
    assert node.driver.log_end_offset == end + 1


def test_signs_of_life_can_be_switched_off() -> None:
    disk = new_disk()
    node = QuorumNode(disk, configs={"metadata.max.idle.interval.ms": "0"})
    end = node.driver.log_end_offset
    node.tick(START_MS + 1_000_000)
    assert node.driver.log_end_offset == end


def tick_until_written(node: QuorumNode, now_ms: int) -> None:
    for _ in range(1000):
        if node.tick(now_ms) > 0:
            return
    raise AssertionError("a snapshot takes so many steps at most")


def test_a_snapshot_is_written_after_an_hour() -> None:
    disk = new_disk()
    node = QuorumNode(disk, configs={"metadata.max.idle.interval.ms": "0"})
    node.come_up()
    node.create(new_topic("t", 2000, 1))
    tick_until_written(node, START_MS + 3_599_999)
    assert sum(name.endswith(".checkpoint") for name in files(disk)) == 1
    tick_until_written(node, START_MS + 3_600_000)
    end = node.driver.log_end_offset
    assert f"{end:020d}-0000000001.checkpoint" in files(disk)
    before = node.image
    disk.cut_power()
    assert have_same_content(QuorumNode(disk).image, before)


def test_a_snapshot_is_written_after_so_many_bytes() -> None:
    disk = new_disk()
    configs = {
        "metadata.log.max.record.bytes.between.snapshots": "20000",
        "metadata.max.idle.interval.ms": "0",
    }
    node = QuorumNode(disk, configs=configs)
    node.come_up()
    tick_until_written(node, START_MS)
    assert sum(name.endswith(".checkpoint") for name in files(disk)) == 1
    node.create(new_topic("t", 500, 1))
    tick_until_written(node, START_MS)
    assert sum(name.endswith(".checkpoint") for name in files(disk)) == 2
    tick_until_written(node, START_MS)
    assert sum(name.endswith(".checkpoint") for name in files(disk)) == 2


def test_a_snapshot_has_what_was_committed_when_it_was_begun() -> None:
    disk = new_disk()
    node = QuorumNode(disk, configs={"metadata.log.max.record.bytes.between.snapshots": "1000"})
    node.come_up()
    node.create(new_topic("before", 1500, 1))
    node.tick(START_MS)
    end = node.image.offset + 1
    node.create(new_topic("meanwhile", 3, 1))
    tick_until_written(node, START_MS)
    snapshot = decode_snapshot(disk.read_file(f"{node.metadata_path}/{end:020d}-0000000001.checkpoint"), "s")
    names = {getattr(record, "name", None) for record in snapshot.records}
    assert "before" in names
    assert "meanwhile" not in names


def test_an_unfinished_snapshot_is_removed_at_the_next_start() -> None:
    disk = new_disk()
    node = QuorumNode(disk, configs={"metadata.log.max.record.bytes.between.snapshots": "1000"})
    node.come_up()
    node.create(new_topic("t", 3000, 1))
    node.tick(START_MS)
    node.tick(START_MS)
    assert any(name.endswith(".part") for name in files(disk))
    before = node.image
    disk.kill()
    node = QuorumNode(disk)
    assert not any(name.endswith(".part") for name in files(disk))
    assert have_same_content(node.image, before)


def test_old_snapshots_and_the_log_before_them_are_let_go() -> None:
    disk = new_disk()
    configs = {
        "metadata.max.retention.bytes": "1",
        "metadata.max.idle.interval.ms": "0",
        "internal.metadata.log.segment.bytes": "100000",
    }
    node = QuorumNode(disk, configs=configs)
    node.come_up()
    for number in range(14):
        assert node.create(new_topic(f"t{number}", 300, 1)) == [ErrorCode.NONE]
    assert sum(name.endswith(".log") for name in files(disk)) > 1
    node.write_snapshot()
    assert sum(name.endswith(".checkpoint") for name in files(disk)) == 1, "the one of formatting is gone"
    assert sum(name.endswith(".log") for name in files(disk)) == 1
    before = node.image
    disk.cut_power()
    node = QuorumNode(disk, configs=configs)
    assert have_same_content(node.image, before)
    assert count_partitions(node.image.topics) == 4_200


def test_a_log_that_lost_what_a_snapshot_has_goes_on_after_the_snapshot() -> None:
    disk = new_disk()
    node = QuorumNode(disk)
    node.come_up()
    node.write_snapshot()
    before = node.image
    disk.kill()
    file = disk.open(FIRST_SEGMENT)
    file.truncate(300)
    file.sync()
    node = QuorumNode(disk)
    assert have_same_content(node.image, before)
    assert node.image.offset == before.offset + 1, "the change of the leader"


def test_a_log_that_begins_after_the_newest_snapshot_is_refused() -> None:
    disk = new_disk()
    node = QuorumNode(disk)
    node.come_up()
    node.write_snapshot()
    newest = f"{node.image.offset + 1:020d}-0000000001.checkpoint"
    log = node.driver.log
    log.increment_log_start_offset(log.high_watermark)
    node.create(new_topic("t", 1, 1))
    from ottla.storage.roll import roll

    roll(log, log.log_end_offset, START_MS)
    log.increment_log_start_offset(log.high_watermark)
    for deletion in log.delete_old_segments(START_MS):
        deletion.run(disk)
    log.flush()
    assert newest in files(disk)
    disk.kill()
    with pytest.raises(MetadataError, match="newest snapshot"):
        QuorumNode(disk)


def test_a_clean_stop_leaves_the_broker_fenced_and_leading_nothing() -> None:
    disk = new_disk()
    node = QuorumNode(disk)
    epoch = node.come_up()
    node.create(new_topic("t", 2, 1))
    node.stop()
    disk.kill()
    node = QuorumNode(disk)
    assert node.image.brokers[1].fenced
    assert {one.leader for topic in node.image.topics for one in topic.partitions.values()} == {-1}
    node.come_up(previous_broker_epoch=epoch)
    partitions = [one for topic in node.image.topics for one in topic.partitions.values()]
    assert {(one.leader, one.leader_recovery_state) for one in partitions} == {(1, 0)}


def test_segments_that_come_back_after_a_power_cut_do_not_end_the_log() -> None:
    disk = new_disk()
    configs = {
        "internal.metadata.log.segment.bytes": "1000",
        "metadata.max.retention.bytes": "1000",
        "metadata.log.max.record.bytes.between.snapshots": "3000",
    }
    node = QuorumNode(disk, configs=configs)
    node.come_up()
    node.write_snapshot()
    for number in range(40):
        node.create(new_topic(f"t-{number}", 1, 1))
    log = node.driver.log
    before = len(log.segments)
    node.tick(START_MS)
    # This one comes while the snapshot is being written, and is not in it.
    node.create(new_topic("last", 1, 1))
    while len(log.segments) >= before:
        assert node.tick(START_MS) == 0 or len(log.segments) < before
    assert before - len(log.segments) >= 3, "several segments went at once"
    for seed in range(40):
        rest = disk.copy()
        rest.cut_power(Random(seed))
        assert QuorumNode(rest, configs=configs).image.topics.find("last") is not None, f"{seed=}"
