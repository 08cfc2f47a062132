"""Damage at rest: a file is changed while no process runs, and then a start has to cope.

Whatever it was, the start comes through, and there is never silently less. Every synced record is there at
its offset, or its offset is in a range that was reported. What was taken out is kept aside. No offset is used
twice. Readers of committed records see nothing that was aborted. A second start has nothing to add.

Not damaged are the fields of a batch's header that no checksum covers, base offset and leader epoch, and a
transaction index after a crash: nothing else says that there was one.
"""

from random import Random
from typing import NamedTuple

from crc32c import crc32c
from tests.simulation.storage.batches import CRC_FROM, HEADER, HEADER_BYTES, Batch, make_batch, read_batches
from tests.simulation.storage.clients import make_records
from tests.simulation.storage.truth import State, Truth
from tests.simulation.storage.world import DIRECTORY, Partition, World

from ottla.model.ids import LeaderEpoch, Offset
from ottla.storage.log import Log
from ottla.storage.names import FileKind, find_segment_file
from ottla.storage.read import ReadLimit
from ottla.testing.simulated_disk import SimulatedDisk

_PLENTY = 1 << 30
_UNCHECKED = frozenset((*range(8), *range(12, 16)))


class Wound(NamedTuple):
    """What was done to which file."""

    path: str
    what: str
    is_of_log: bool


class Found(NamedTuple):
    """What a reader of everything gets."""

    batches: list[Batch]
    # Offsets at which it got something that cannot be right, and saw it.
    refused: set[int]


def let_rot(world: World, rng: Random, end: str) -> None:
    """Stop the world in some way, damage a file of it, start it again and judge what is left."""
    partition = rng.choice(world.partitions)
    synced_here = world.synced_here.get(partition.truth, 0)
    if end == "power cut":
        world.cut_power()
    else:
        world.kill()
    _put_at_rest(world.disk)
    wound = _damage(world.disk, partition, rng, is_clean=end == "clean")
    if wound is None:
        return
    world.open()
    first = _judge(partition, wound, _known_end(world, partition, end, synced_here))
    _check_appends(partition.log, partition.truth, rng, world.now_ms)
    for _ in range(2):
        # The second time it was killed, and more is looked at. What that finds is in order the third time.
        world.kill()
        world.open()
        later = read_everything(partition.log)
        assert set(first.batches) <= set(later.batches), f"{wound}: a later start finds something else"
    again = [damage for damage in partition.log.damages if damage.was_synced and damage.kept]
    assert not again, f"{wound}: damage again: {again}"


def _known_end(world: World, partition: Partition, end: str, synced_here: int) -> int:
    """Return up to where the start knew that everything was synced.

    After a power cut that may be less than was. A kill takes nothing of what the process had synced itself.
    """
    synced_end = partition.truth.synced_end
    request = next(one for one in world.requests if one.topic_partition == partition.name)
    if end != "power cut":
        noted = min(synced_end, synced_here)
        assert request.synced >= noted, f"the start knows only of {request.synced}, of {noted}"
    return min(synced_end, request.synced)


def _put_at_rest(disk: SimulatedDisk) -> None:
    for path in _files(disk, DIRECTORY):
        disk.open(path).sync()
    for entry in disk.list(DIRECTORY):
        if entry.is_directory:
            disk.sync_directory(f"{DIRECTORY}/{entry.name}")
    disk.sync_directory(DIRECTORY)


def _files(disk: SimulatedDisk, directory: str) -> list[str]:
    found: list[str] = []
    for entry in disk.list(directory):
        path = f"{directory}/{entry.name}"
        found += _files(disk, path) if entry.is_directory else [path]
    return found


def _damage(disk: SimulatedDisk, partition: Partition, rng: Random, *, is_clean: bool) -> Wound | None:
    """Damage one of the files of a log. None if it has none that may be."""
    directory = f"{DIRECTORY}/{partition.name.topic}-{partition.name.partition}"
    logs, others = [], []
    for entry in disk.list(directory):
        file = find_segment_file(entry.name)
        if file is None or file.state.value:
            continue
        if file.kind is FileKind.LOG:
            logs.append(f"{directory}/{entry.name}")
        elif file.kind is not FileKind.TRANSACTION_INDEX:
            others.append(f"{directory}/{entry.name}")
        elif is_clean:
            others += [f"{directory}/{entry.name}"] * 3
    if others and rng.random() < 0.3:
        path = rng.choice(others)
        is_of_transactions = path.endswith(FileKind.TRANSACTION_INDEX.value)
        how = rng.choice(
            ("garbage", "remove") if is_of_transactions else ("flip", "cut", "garbage", "remove")
        )
        return _do(disk, path, how, rng, is_of_log=False)
    filled = [path for path in logs if disk.read_file(path)]
    if not filled:
        return None
    path = rng.choice(filled)
    # After a crash nothing tells that there was a segment before the first one.
    may_go = is_clean or (path != logs[0] and not partition.log.config.is_compacted)
    how = rng.choice(("flip", "flip", "flip", "zeros", "cut", "extend", *(["remove"] if may_go else [])))
    if how == "cut" and partition.log.config.is_compacted and not is_clean:
        # Nor that there was a batch before a gap.
        how = "flip"
    return _do(disk, path, how, rng, is_of_log=True)


def _do(disk: SimulatedDisk, path: str, how: str, rng: Random, *, is_of_log: bool) -> Wound | None:
    content = bytearray(disk.read_file(path))
    what = how
    if not content and how != "remove":
        how = what = "extend"
    match how:
        case "remove":
            disk.remove(path)
            disk.sync_directory(path.rpartition("/")[0])
            return Wound(path, what, is_of_log)
        case "flip":
            position = _pick(bytes(content), rng) if is_of_log else rng.randrange(len(content))
            content[position] ^= 1 << rng.randrange(8)
            what = f"flip at {position}"
        case "zeros":
            start = rng.randrange(len(content))
            length = min(rng.choice((16, 512)), len(content) - start)
            content[start : start + length] = bytes(length)
            what = f"{length} zeros at {start}"
        case "cut":
            del content[rng.randrange(len(content)) :]
            what = f"cut to {len(content)}"
        case "garbage":
            content = bytearray(b"\x07" + rng.randbytes(rng.randint(10, 100)))
        case "extend":
            content += rng.randbytes(rng.randint(1, 200))
    file = disk.open(path)
    file.truncate(0)
    file.write(0, (bytes(content),))
    file.sync()
    return Wound(path, what, is_of_log)


def _pick(content: bytes, rng: Random) -> int:
    """Return a position whose change a checksum would show."""
    while True:
        position = rng.randrange(len(content))
        start = 0
        while start + HEADER_BYTES <= len(content):
            size = 12 + int.from_bytes(content[start + 8 : start + 12])
            if start <= position < start + size:
                break
            start += size
        if position - start not in _UNCHECKED:
            return position


def read_everything(log: Log) -> Found:
    """Read as somebody does who wants all there is, and goes on behind what cannot be right."""
    found = Found([], set())
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, _PLENTY, ReadLimit.LOG_END).read()
        if not data:
            break
        before = offset
        for batch in _sound_batches(data):
            if batch.last_offset >= offset:
                found.batches.append(batch)
                offset = Offset(batch.last_offset + 1)
        if offset == before:
            # Its reader sees that it is damaged, and tries the next one.
            found.refused.add(offset)
            offset = Offset(offset + 1)
    return found


def _sound_batches(data: bytes) -> list[Batch]:
    sound: list[Batch] = []
    at = 0
    while at + HEADER_BYTES <= len(data):
        header = HEADER.unpack_from(data, at)
        end = at + 12 + header[1]
        if header[3] != 2 or header[1] < HEADER_BYTES - 12 or end > len(data):
            break
        if crc32c(data[at + CRC_FROM : end]) != header[4]:
            break
        sound += read_batches(data[at:end])
        at = end
    return sound


def _judge(partition: Partition, wound: Wound, known_end: int) -> Found:
    log, truth = partition.log, partition.truth
    found = read_everything(log)
    assert log.log_end_offset >= known_end, (
        f"{wound}: the log was synced up to {known_end} and now ends at {log.log_end_offset}"
    )
    ends = [batch.last_offset for batch in found.batches]
    assert ends == sorted(set(ends)), f"{wound}: offsets out of order"
    states = [truth.state, *truth.staged, *truth.others]
    missing = min((_missing(log, truth, state, found, known_end) for state in states), key=len)
    assert not missing, f"{wound}: {missing} are gone in silence, only {log.damages} was said"
    _check_invented(log, states, found, wound)
    _check_kept(log)
    _check_committed(log, truth, wound)
    if not wound.is_of_log:
        assert not [damage for damage in log.damages if damage.was_synced], f"{wound}: {log.damages}"
    return found


def _missing(log: Log, truth: Truth, state: State, found: Found, known_end: int) -> list[tuple[int, int]]:
    """Return the synced batches that are neither there nor reported.

    Where the start did not know that they were synced, it is enough if they are kept aside.
    """
    there = {batch.data for batch in found.batches}
    kept = b"".join([log.volume.disk.read_file(damage.kept) for damage in log.damages if damage.kept])
    return [
        (batch.base_offset, batch.last_offset)
        for batch in state.stored
        if max(truth.start, truth.start_max) <= batch.base_offset
        and batch.last_offset < truth.synced_end
        and batch.data not in there
        and batch.base_offset not in found.refused
        and not _is_reported(log, batch)
        and not (batch.last_offset >= known_end and (batch.data in kept or log.damages))
    ]


def _is_reported(log: Log, batch: Batch) -> bool:
    return any(
        damage.was_synced
        and damage.first_offset <= batch.base_offset
        and batch.last_offset < damage.next_offset
        for damage in log.damages
    )


def _check_invented(log: Log, states: list[State], found: Found, wound: Wound) -> None:
    known = {batch.data for state in states for batch in (*state.stored, *state.history)}
    for batch in found.batches:
        # In the place of what was lost.
        is_ours = (batch.count == 0 or batch.is_control) and _is_reported(log, batch)
        assert batch.data in known or is_ours, f"{wound}: {batch} came from nowhere"


def _check_kept(log: Log) -> None:
    for damage in log.damages:
        if damage.kept:
            size = log.volume.disk.open(damage.kept).size()
            assert size == damage.size_bytes, f"{size} bytes are kept of {damage}"


def _check_committed(log: Log, truth: Truth, wound: Wound) -> None:
    """What a reader of committed records is shown was not aborted, and was not lost without damage."""
    log.update_high_watermark(log.log_end_offset)
    shown = {batch.data for batch in read_committed(log)}
    for ended in truth.replay.ended:
        if ended.last_offset >= truth.synced_end:
            continue
        for batch in truth.stored:
            is_of_it = (
                batch.producer_id == ended.producer_id
                and batch.is_transactional
                and not batch.is_control
                and batch.count
                and ended.first_offset <= batch.base_offset < ended.last_offset
            )
            if is_of_it and ended.is_aborted:
                assert batch.data not in shown, f"{wound}: {batch} was aborted and is shown"


def read_committed(log: Log) -> list[Batch]:
    """Read as a consumer does that sees committed records only."""
    shown: list[Batch] = []
    offset = log.log_start_offset
    while offset < log.last_stable_offset:
        result = log.read(offset, _PLENTY, ReadLimit.LAST_STABLE)
        aborted = sorted(result.aborted or (), key=lambda ranged: ranged.first_offset)
        batches = _sound_batches(result.read())
        if not batches:
            offset = Offset(offset + 1)
            continue
        hidden: set[int] = set()
        for batch in batches:
            while aborted and aborted[0].first_offset <= batch.last_offset:
                hidden.add(aborted.pop(0).producer_id)
            if batch.is_control:
                if batch.count and batch.is_abort:
                    hidden.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in hidden):
                shown.append(batch)
        offset = Offset(max(offset + 1, batches[-1].last_offset + 1))
    return shown


def _check_appends(log: Log, truth: Truth, rng: Random, now_ms: int) -> None:
    """The next record gets an offset that no other has had."""
    end = log.log_end_offset
    info = log.append_as_leader(
        memoryview(make_batch(make_records(rng, now_ms))),
        leader_epoch=LeaderEpoch(max(truth.leader_epoch, log.leader_epochs.latest)),
        now_ms=now_ms,
    )
    assert info.first_offset == end, f"an append got {info.first_offset}, the log ended at {end}"
    log.flush()
