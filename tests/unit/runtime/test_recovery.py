"""Loading many logs, here and in other processes."""

from pathlib import Path

import pytest
from tests.unit.runtime.serving import load_logs
from tests.unit.storage.logs import NOW_MS, append, batch

from ottla.model.ids import Offset, TopicPartition
from ottla.runtime import recovery
from ottla.runtime.disk import RealDisk
from ottla.storage.config import LogConfig
from ottla.storage.errors import LogDirectoryOffline
from ottla.storage.loading.load import load_log
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.volume import Volume

CONFIG = LogConfig(segment_bytes=10_000)


def make_logs(path: Path, count: int) -> list[LoadRequest]:
    """Make logs with a torn end each, and return how to load them."""
    volume = Volume(RealDisk(), str(path))
    requests = []
    for number in range(count):
        directory = f"{path}/orders-{number}"
        volume.disk.make_directory(directory)
        request = LoadRequest(directory, TopicPartition("orders", number), CONFIG, now_ms=NOW_MS)
        log = load_log(volume, request)
        for sequence in range(3 + number):
            records = batch(value=b"x" * 2000, producer_id=5, epoch=0, sequence=sequence)
            append(log, records, leader_epoch=sequence // 2)
        log.active_segment.file.write(log.active_segment.size, [b"torn"])
        requests.append(request)
    return requests


@pytest.mark.parametrize("workers", [1, 2])
def test_logs_are_the_same_wherever_they_were_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    requests = make_logs(tmp_path, 6)
    monkeypatch.setattr(recovery, "_WORTHWHILE_BYTES", 0)
    volume = Volume(RealDisk(), str(tmp_path))
    logs = load_logs(volume, requests, workers)
    for number, log in enumerate(logs):
        assert log.topic_partition == TopicPartition("orders", number)
        assert log.volume is volume
        assert log.log_end_offset == 3 + number
        assert log.active_segment.file.size() == log.active_segment.size
        assert log.leader_epochs.latest == (2 + number) // 2
        again = append(log, batch(value=b"x" * 2000, producer_id=5, epoch=0, sequence=2 + number))
        assert (again.is_duplicate, again.last_offset) == (True, 2 + number)
        append(log, leader_epoch=99)
        assert log.read(Offset(0), 100).length > 0
        log.close()


def test_a_clean_stop_needs_no_other_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = make_logs(tmp_path, 2)
    volume = Volume(RealDisk(), str(tmp_path))
    for log in load_logs(volume, requests, 1):
        log.close()
    monkeypatch.setattr(recovery, "_load_in_workers", None)
    clean = [request._replace(is_clean=True) for request in requests]
    assert [log.log_end_offset for log in load_logs(volume, clean, 8)] == [3, 4]


def test_a_failure_in_a_worker_takes_the_directory_offline_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = make_logs(tmp_path, 2)
    broken = tmp_path / "orders-9"
    broken.mkdir()
    (broken / "00000000000000000000.log").mkdir()
    (broken / "00000000000000000000.log" / "x").touch()
    (broken / "leader-epoch-checkpoint").mkdir()
    requests.append(LoadRequest(str(broken), TopicPartition("orders", 9), CONFIG, now_ms=NOW_MS))
    monkeypatch.setattr(recovery, "_WORTHWHILE_BYTES", 0)
    volume = Volume(RealDisk(), str(tmp_path))
    with pytest.raises(LogDirectoryOffline, match="orders-9"):
        load_logs(volume, requests, 2)
    assert volume.error is not None


@pytest.mark.parametrize(
    ("logs_min", "bytes_min", "expected"),
    [(3, 1 << 40, True), (4, 1 << 40, False), (4, 1, True), (4, 0, True)],
)
def test_many_logs_or_large_ones_are_worth_other_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logs_min: int, bytes_min: int, expected: bool
) -> None:
    requests = make_logs(tmp_path, 3)
    monkeypatch.setattr(recovery, "_WORTHWHILE_LOGS", logs_min)
    monkeypatch.setattr(recovery, "_WORTHWHILE_BYTES", bytes_min)
    assert recovery._is_worthwhile(Volume(RealDisk(), str(tmp_path)), requests) is expected
