"""Logs on a simulated disk, and batches to append to them, for the tests of this directory."""

from collections.abc import Sequence
from typing import Final

from ottla.model.ids import LeaderEpoch, Offset, TopicPartition
from ottla.records.attributes import Codec
from ottla.records.batch import BatchView, iter_batches
from ottla.records.builder import build_batch
from ottla.records.codec import Record
from ottla.records.control import EndTxnMarker, build_end_txn_batch
from ottla.storage.appending.append_info import AppendInfo, AppendOrigin
from ottla.storage.config import LogConfig
from ottla.storage.loading.load import load_log
from ottla.storage.loading.load_request import LoadRequest
from ottla.storage.log import Log
from ottla.storage.read import ReadLimit
from ottla.storage.volume import Volume
from ottla.testing.simulated_disk import SimulatedDisk

NOW_MS: Final = 1_750_000_000_000
ROOT: Final = "/data"
PATH: Final = "/data/orders-0"
PARTITION: Final = TopicPartition("orders", 0)

UNVERIFIED: Final = LogConfig(verifies_transactions=False)
"""Settings under which transactions need no coordinator."""


def new_disk(seed: int = 1) -> SimulatedDisk:
    disk = SimulatedDisk(seed)
    disk.now_ms = NOW_MS
    disk.make_directory(PATH)
    for path in ("/", ROOT):
        disk.sync_directory(path)
    return disk


def open_log(
    disk: SimulatedDisk,
    config: LogConfig = UNVERIFIED,
    *,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    is_clean: bool = False,
    now_ms: int = NOW_MS,
    cleaned_to: int = 0,
) -> Log:
    request = LoadRequest(
        PATH,
        PARTITION,
        config,
        Offset(recovery_point),
        Offset(log_start_offset),
        is_clean,
        now_ms,
        Offset(cleaned_to),
    )
    return load_log(Volume(disk, ROOT), request)


def new_log(config: LogConfig = UNVERIFIED) -> Log:
    return open_log(new_disk(), config)


def disk_of(log: Log) -> SimulatedDisk:
    disk = log.volume.disk
    assert isinstance(disk, SimulatedDisk)
    return disk


def batch(
    count: int = 1,
    *,
    timestamps: Sequence[int] | None = None,
    key: bytes | None = b"key",
    value: bytes = b"value",
    codec: Codec = Codec.NONE,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    is_transactional: bool = False,
    base_offset: int = 0,
    leader_epoch: int = -1,
    append_time: int | None = None,
) -> memoryview:
    times = timestamps or [NOW_MS] * count
    return memoryview(
        build_batch(
            [Record(base_offset + index, time, key, value) for index, time in enumerate(times)],
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=is_transactional,
            append_time=append_time,
        )
    )


def epoch_of(log: Log) -> LeaderEpoch:
    return LeaderEpoch(max(log.leader_epochs.latest, 0))


def append(
    log: Log, records: memoryview | None = None, *, leader_epoch: int | None = None, now_ms: int = NOW_MS
) -> AppendInfo:
    """Append as the leader of a partition without followers, in the epoch it has unless told otherwise."""
    info = log.append_as_leader(
        batch() if records is None else records,
        leader_epoch=epoch_of(log) if leader_epoch is None else LeaderEpoch(leader_epoch),
        now_ms=now_ms,
    )
    log.update_high_watermark(log.log_end_offset)
    return info


def append_transactional(
    log: Log, producer_id: int, sequence: int, count: int = 1, epoch: int = 0
) -> AppendInfo:
    return append(
        log, batch(count, producer_id=producer_id, epoch=epoch, sequence=sequence, is_transactional=True)
    )


def end_transaction(
    log: Log,
    producer_id: int,
    *,
    is_commit: bool,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    version: int = 1,
    moves_high_watermark: bool = True,
) -> AppendInfo:
    marker = build_end_txn_batch(
        EndTxnMarker(is_commit, coordinator_epoch),
        timestamp=NOW_MS,
        producer_id=producer_id,
        producer_epoch=epoch,
    )
    info = log.append_as_leader(
        memoryview(marker),
        leader_epoch=epoch_of(log),
        now_ms=NOW_MS,
        origin=AppendOrigin.COORDINATOR,
        transaction_version=version,
    )
    if moves_high_watermark:
        log.update_high_watermark(log.log_end_offset)
    return info


def batches_of(log: Log) -> list[BatchView]:
    """Read all batches of a log, by way of its reads."""
    found: list[BatchView] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        content = log.read(offset, 1 << 20, ReadLimit.LOG_END).read()
        whole = list(iter_batches(memoryview(content)))
        if not whole:
            break
        found += whole
        offset = Offset(whole[-1].last_offset + 1)
    return found


def offsets_of(log: Log) -> list[tuple[int, int]]:
    """Return the first and last offset of every batch."""
    return [(view.base_offset, view.last_offset) for view in batches_of(log)]


def files_of(log: Log) -> list[str]:
    return [entry.name for entry in disk_of(log).list(log.path)]
