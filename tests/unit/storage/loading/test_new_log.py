"""Making many logs at once: all of them are safe when that returns, with few syncs."""

from random import Random

import pytest
from tests.unit.storage.logs import NOW_MS, ROOT, append, offsets_of

from ottla.model.ids import Offset, TopicPartition
from ottla.model.uuid import Uuid
from ottla.storage.config import LogConfig
from ottla.storage.errors import LogDirectoryOffline, StorageError
from ottla.storage.loading.load import load_log
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.loading.new_log import TOGETHER_MIN, NewLog, make_logs
from ottla.storage.log import Log
from ottla.storage.volume import Volume
from ottla.testing.simulated_disk import SimulatedDisk
from ottla.world.disk import Reason

TOPIC_ID = Uuid(b"orders' topic id")
CONFIG = LogConfig(verifies_transactions=False)


def new_disk() -> SimulatedDisk:
    disk = SimulatedDisk(1)
    disk.make_directory(ROOT)
    disk.sync_directory("/")
    return disk


def wanted(count: int) -> list[NewLog]:
    return [
        NewLog(f"{ROOT}/orders-{number}", TopicPartition("orders", number), TOPIC_ID, CONFIG)
        for number in range(count)
    ]


def load(volume: Volume, number: int) -> Log:
    path = f"{ROOT}/orders-{number}"
    return load_log(volume, LoadRequest(path, TopicPartition("orders", number), CONFIG))


@pytest.mark.parametrize("count", [1, TOGETHER_MIN - 1, TOGETHER_MIN, 3 * TOGETHER_MIN])
@pytest.mark.parametrize("seed", range(5))
def test_new_logs_survive_a_power_cut(count: int, seed: int) -> None:
    disk = new_disk()
    for log in make_logs(Volume(disk, ROOT), wanted(count), NOW_MS):
        append(log)
        log.flush()
    disk.cut_power(Random(seed))
    volume = Volume(disk, ROOT)
    for number in range(count):
        log = load(volume, number)
        assert log.topic_id == TOPIC_ID
        assert offsets_of(log) == [(0, 0)]


def test_many_logs_are_synced_together(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = new_disk()
    synced: list[str] = []
    monkeypatch.setattr(disk, "sync_directory", synced.append)
    make_logs(Volume(disk, ROOT), wanted(10 * TOGETHER_MIN), NOW_MS)
    assert synced == []


def test_logs_are_synced_one_by_one_where_a_file_system_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = new_disk()
    monkeypatch.setattr(disk, "sync_all", lambda _path: False)
    make_logs(Volume(disk, ROOT), wanted(TOGETHER_MIN), NOW_MS)
    disk.cut_power(Random(1))
    volume = Volume(disk, ROOT)
    assert all(load(volume, number).topic_id == TOPIC_ID for number in range(TOGETHER_MIN))


def test_what_a_crash_left_by_halves_is_completed() -> None:
    disk = new_disk()
    disk.make_directory(f"{ROOT}/orders-0")
    [log] = make_logs(Volume(disk, ROOT), wanted(1), NOW_MS)
    assert log.topic_id == TOPIC_ID
    assert log.log_end_offset == Offset(0)
    append(log)


def test_a_directory_of_another_topic_is_not_taken() -> None:
    disk = new_disk()
    make_logs(Volume(disk, ROOT), wanted(1), NOW_MS)
    other = [wanted(1)[0]._replace(topic_id=Uuid(b"the id of others"))]
    with pytest.raises(StorageError, match="set aside first"):
        make_logs(Volume(disk, ROOT), other, NOW_MS)


@pytest.mark.parametrize("operation", ["create", "write", "sync", "sync_directory"])
def test_a_disk_that_fails_takes_the_directory_offline(operation: str) -> None:
    disk = new_disk()
    volume = Volume(disk, ROOT)
    disk.fail(operation, Reason.NO_SPACE)
    with pytest.raises(LogDirectoryOffline):
        make_logs(volume, wanted(2), NOW_MS)
    assert volume.error is not None
