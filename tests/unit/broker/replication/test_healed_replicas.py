"""A damaged replica is healed from those that have the records, copied again, or its records are lost."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.group_world import ManualClock, topic_id
from tests.support.replicas import TOPIC, ManualScheduler, ReplicaNode, partition_record
from tests.unit.broker.logs.test_healing_round import AtOnce
from tests.unit.storage.damages.test_damage import SIZE, written_log
from tests.unit.storage.damages.test_healing import damage, find_damage, sound_bytes
from tests.unit.storage.logs import NOW_MS, append, append_transactional, offsets_of

from ottla.broker.logs.partition import Partition
from ottla.broker.replication import healing
from ottla.broker.replication.healing import FAILURES_MAX, RETRY_MS_MAX, WAITS_MAX, Healing
from ottla.metadata.directory_ids import LOST, UNASSIGNED
from ottla.metadata.features import DIRECTORIES_FROM, METADATA_VERSION
from ottla.model.ids import Offset
from ottla.model.uuid import Uuid
from ottla.runtime.connections.peer import Unanswered
from ottla.storage.damages.bridged import read_bridged
from ottla.storage.log import Log
from ottla.wire.declare import replace
from ottla.wire.error_code import ErrorCode
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.wire.metadata_records.partitions import PartitionRecord

Answer = Callable[[Any], Any]
ME = 2


NOTHING = memoryview(b"")


def answer(records: memoryview = NOTHING, error: ErrorCode = ErrorCode.NONE) -> FetchResponse:
    """Return what a broker answers to a fetch."""
    data = PartitionData(
        partition_index=0, error_code=error, high_watermark=12, records=records, aborted_transactions=()
    )
    return FetchResponse(responses=(FetchableTopicResponse(topic_id=topic_id(TOPIC), partitions=(data,)),))


def sound(request: Any) -> FetchResponse:
    """Answer as a broker does that has everything, one batch at a time."""
    return answer(sound_bytes(request.topics[0].partitions[0].fetch_offset))


def lacking(_request: Any) -> FetchResponse:
    """Answer as a broker does whose log begins later or ends before."""
    return answer(error=ErrorCode.OFFSET_OUT_OF_RANGE)


class Ward:
    """Node 2 with a damaged replica, and what the other nodes say. It is a `Broker` for what heals."""

    def __init__(
        self, log: Log | None = None, leader: int = 1, in_sync: tuple[int, ...] = (1, 2, 3), replicas: int = 3
    ) -> None:
        self.clock = ManualClock(NOW_MS)
        self.scheduler = ManualScheduler(self.clock)
        self.node_id = ME
        self.log = written_log() if log is None else log
        node = ReplicaNode(ME, self.clock, self.scheduler)
        self.partition = Partition(TOPIC, topic_id(TOPIC), 0, self.log, node)
        self.record = partition_record(leader, in_sync, replicas=replicas)
        self.partition.follow(self.record, ME)
        # What the others answer, and who was asked from where.
        self.answers: dict[int, Answer] = {}
        self.asked: list[tuple[int, int]] = []
        self.asked_ms: list[int] = []
        self.dead: set[int] = set()
        self.metadata_version = DIRECTORIES_FROM
        # Where the log ended when it was said that it is going to be cut.
        self.ends: list[int] = []
        self.copied_from: list[int] = []
        self.told: list[tuple[Uuid, int]] = []
        self.reported: list[Partition] = []
        self.checked: list[int] = []
        self.changes = 0
        self.workers: Any = AtOnce()
        self.fetch_version_max = 18
        self.settings = SimpleNamespace(replica_socket_timeout_ms=30_000)
        self.healing = Healing(self.itself, self.scheduler)

    @property
    def itself(self) -> Any:
        return self

    replication = directory_reports = scrubber = deletions = itself

    @property
    def image(self) -> Any:
        topic = SimpleNamespace(partitions={0: self.record})
        features = {METADATA_VERSION: self.metadata_version}
        return SimpleNamespace(topics=SimpleNamespace(find_by_id=lambda _id: topic), features=features)

    def is_alive(self, broker_id: int) -> bool:
        return broker_id not in self.dead

    def peer(self, broker_id: int, _client_id: str) -> Any:
        def ask(request: Any, answered: Answer, _timeout_ms: int, *, version_max: int) -> None:
            self.asked.append((broker_id, request.topics[0].partitions[0].fetch_offset))
            self.asked_ms.append(self.clock.monotonic_ms())
            self.scheduler.call_soon(lambda: answered(self._answer(broker_id, request)))

        return SimpleNamespace(ask=ask, close=lambda: None)

    def _answer(self, broker_id: int, request: Any) -> Any:
        given: Answer = self.answers.get(broker_id) or sound
        return given(request)

    def add_lost(self, lost_id: Uuid, number: int) -> None:
        self.told.append((lost_id, number))

    def is_to_be_cut(self, partition: Partition) -> None:
        self.ends.append(partition.log.log_end_offset)

    def copy_from(self, _partition: Partition, offset: int) -> None:
        self.copied_from.append(offset)

    def add(self, partition: Any) -> None:
        if isinstance(partition, Partition):
            self.reported.append(partition)

    def check(self, _partition: Partition, offset: int) -> None:
        self.checked.append(offset)

    def changed(self, _partition: Partition) -> None:
        self.changes += 1

    def follow(self, record: PartitionRecord) -> None:
        """Let the metadata say something else."""
        self.record = record
        self.partition.follow(record, ME)

    def find(self) -> None:
        """Have healed what is damaged."""
        self.healing.found(self.partition, find_damage(self.log))

    def run(self, ms: int = 0) -> None:
        """Let this much time pass."""
        for _ in range(ms + 1):
            for _ in range(100):
                if not self.scheduler.run_once():
                    break
            if ms:
                self.clock.advance(1)

    def is_whole(self) -> bool:
        return find_damage(self.log) == [] and offsets_of(self.log) == offsets_of(written_log())


def test_a_damaged_batch_is_fetched_from_the_leader_and_put_back() -> None:
    ward = Ward()
    damage(ward.log, 4)
    ward.find()
    assert [(one.first_offset, one.next_offset) for one in ward.log.unhealed] == [(4, 5)]
    ward.run()
    assert ward.asked == [(1, 4)]
    assert ward.is_whole()
    assert (ward.log.unhealed, ward.healing.healed_ranges, ward.changes) == ((), 1, 1)
    assert (ward.told, ward.copied_from, ward.reported) == ([], [], [])


def test_what_is_damaged_is_known_once_and_in_its_order() -> None:
    ward = Ward()
    ward.dead = {1, 3}
    for offset in (7, 4):
        damage(ward.log, offset)
        ward.find()
    ward.find()
    assert [one.first_offset for one in ward.log.unhealed] == [4, 7]
    ward.dead = set()
    ward.run(RETRY_MS_MAX)
    assert ward.is_whole()
    assert ward.healing.healed_ranges == 2


def test_several_batches_are_fetched_until_all_are_there() -> None:
    ward = Ward()
    for offset in (3, 4, 5):
        damage(ward.log, offset)
    ward.find()
    ward.run()
    assert ward.is_whole()
    assert {broker for broker, _ in ward.asked} == {1, 3} or {broker for broker, _ in ward.asked} == {1}
    assert [offset for _, offset in ward.asked] == [3, 4, 5]


def test_the_only_replica_heals_what_follows_from_its_neighbours() -> None:
    ward = Ward(in_sync=(1,), replicas=1)
    damage(ward.log, 4)
    damage(ward.log, 7, at=7)
    ward.find()
    ward.run()
    assert ward.asked == []
    # A wrong base offset is put right; nobody has the other batch.
    assert [one.first_offset for one in find_damage(ward.log)] == [4]
    assert ward.log.unhealed == ()


@pytest.mark.parametrize(
    "useless",
    [
        lacking,
        lambda _request: answer(memoryview(bytes(sound_bytes(4))[:-1] + b"?")),
    ],
)
def test_a_broker_without_the_records_is_not_asked_again(useless: Answer) -> None:
    ward = Ward()
    ward.answers[1] = useless
    damage(ward.log, 4)
    ward.find()
    ward.run(RETRY_MS_MAX)
    assert [broker for broker, _ in ward.asked].count(1) == 1
    assert ward.asked[-1][0] == 3
    assert ward.is_whole()


def test_those_in_sync_are_asked_before_others() -> None:
    ward = Ward(leader=3, in_sync=(2, 3, 4), replicas=4)
    ward.answers[3] = lacking
    damage(ward.log, 4)
    ward.find()
    ward.run()
    assert ward.asked[0] == (3, 4), "the leader"
    assert ward.is_whole()


def test_what_no_other_replica_has_is_lost() -> None:
    ward = Ward()
    ward.answers = {1: lacking, 3: lacking}
    damage(ward.log, 4)
    damage(ward.log, 7)
    ward.find()
    ward.run()
    assert sorted(ward.asked) == [(1, 4), (1, 7), (3, 4), (3, 7)], "for other damage they are asked anew"
    assert [one.first_offset for one in ward.log.lost] == [4, 7]
    assert ward.log.unhealed == ()
    assert ward.healing.healed_ranges == 0
    assert not ward.healing._patients


@pytest.mark.parametrize(
    "silent",
    [
        lambda _request: Unanswered("it is down"),
        lambda _request: FetchResponse(responses=()),
        lambda _request: answer(error=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        lambda _request: answer(),
    ],
)
def test_a_broker_that_cannot_answer_now_is_asked_again_after_longer_and_longer_pauses(
    silent: Answer,
) -> None:
    ward = Ward()
    ward.answers = {1: silent, 3: silent}
    damage(ward.log, 4)
    ward.find()
    ward.run(30_000)
    pauses = [later - earlier for earlier, later in zip(ward.asked_ms, ward.asked_ms[1:], strict=False)]
    assert pauses[:4] == [50, 100, 200, 400]
    assert max(pauses) == pauses[-1] == RETRY_MS_MAX
    # One that has it may not know yet that it is committed: they take turns.
    assert [broker for broker, _ in ward.asked[:4]] == [1, 3, 1, 3]
    ward.answers.clear()
    ward.run(RETRY_MS_MAX)
    assert ward.is_whole()


def test_with_nobody_alive_it_waits() -> None:
    ward = Ward()
    ward.dead = {1, 3}
    damage(ward.log, 4)
    ward.find()
    ward.run(1000)
    assert ward.asked == []
    ward.dead = {1}
    ward.run(RETRY_MS_MAX)
    assert ward.asked == [(3, 4)]
    assert ward.is_whole()


def test_an_answer_to_an_old_question_changes_nothing() -> None:
    ward = Ward()
    damage(ward.log, 4)
    ward.find()
    ward.healing.forget(ward.partition)
    ward.run(RETRY_MS_MAX)
    assert len(ward.asked) == 1
    assert len(ward.log.unhealed) == 1

    ward = Ward()
    damage(ward.log, 4)
    ward.find()
    # It was cut off while the question was on its way.
    ward.log.unhealed = ()
    ward.run()
    assert ward.healing.healed_ranges == 0
    assert not ward.healing._patients


def test_all_stops_when_the_node_stops() -> None:
    ward = Ward()
    damage(ward.log, 4)
    ward.find()
    ward.healing.stop()
    ward.run(RETRY_MS_MAX)
    assert not ward.healing._patients
    assert len(ward.asked) == 1


def test_damage_of_a_segment_that_is_gone_is_forgotten() -> None:
    ward = Ward()
    damage(ward.log, 4)
    (found,) = find_damage(ward.log)
    ward.healing.found(ward.partition, [found._replace(base_offset=Offset(77))])
    assert ward.log.unhealed == ()
    assert ward.asked == []


# Copying again


def _cut_off(ward: Ward) -> None:
    record = partition_record(1, (1, 3), 1, 1, replicas=3)
    ward.follow(replace(record, directories=(UNASSIGNED, LOST, UNASSIGNED)))


def test_too_much_to_be_held_in_memory_is_copied_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(healing, "HEALED_BYTES_MAX", SIZE)
    ward = Ward()
    for offset in (3, 4, 5):
        damage(ward.log, offset)
    ward.find()
    ward.run()
    assert [offset for _, offset in ward.asked] == [3, 4], "two batches are more than one"
    assert ward.healing.is_about_to_cut(ward.partition)
    assert len(ward.told) == 1
    _cut_off(ward)
    ward.run(RETRY_MS_MAX)
    assert (ward.ends, ward.copied_from) == ([12], [3])
    assert ward.reported == [ward.partition]
    assert ward.log.unhealed == ()
    assert not ward.healing.is_about_to_cut(ward.partition)


def test_what_the_leader_alone_may_have_is_copied_again() -> None:
    ward = Ward(leader=ME)
    append(ward.log)
    damage(ward.log, 12)
    ward.log.high_watermark = Offset(12)
    ward.healing.found(ward.partition, find_damage(ward.log, 12))
    assert ward.asked == []
    assert ward.told == [(topic_id(TOPIC), 0)]
    ward.run(1900)
    assert len(ward.told) == 1
    ward.run(8000)
    assert 2 <= len(ward.told) <= 5, "again every two seconds at most"
    assert ward.copied_from == []


@pytest.mark.parametrize(
    ("changes", "may_be_cut"),
    [
        # The leader may be asking for it to be in sync, by an earlier fetch, until the metadata has its loss.
        ({}, False),
        ({"directories": (LOST, LOST, LOST)}, True),
        ({"isr": (1, 2, 3), "directories": (LOST, LOST, LOST)}, False),
        ({"leader": ME, "isr": (1, 3), "directories": (LOST, LOST, LOST)}, False),
        ({"eligible_leader_replicas": (2,)}, False),
        ({"eligible_leader_replicas": (2,), "directories": (LOST, LOST, LOST)}, True),
    ],
)
def test_a_replica_is_cut_only_when_it_cannot_be_made_the_leader(
    changes: dict[str, Any], may_be_cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(healing, "HEALED_BYTES_MAX", 0)
    ward = Ward()
    for offset in (4, 5):
        damage(ward.log, offset)
    ward.follow(replace(partition_record(1, (1, 3), 1, 1, replicas=3), **changes))
    ward.find()
    ward.run(100)
    assert bool(ward.copied_from) is may_be_cut
    assert len(ward.told) == (not may_be_cut)


def test_a_replica_is_cut_at_once_if_the_metadata_knows_no_lost_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(healing, "HEALED_BYTES_MAX", 0)
    ward = Ward(in_sync=(1, 3))
    ward.metadata_version = DIRECTORIES_FROM - 1
    for offset in (4, 5):
        damage(ward.log, offset)
    ward.find()
    ward.run(100)
    assert (ward.told, ward.copied_from) == ([], [4])


def test_the_only_one_in_sync_waits_for_another_and_then_gives_the_records_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(healing, "HEALED_BYTES_MAX", 0)
    ward = Ward(in_sync=(2,))
    for offset in (4, 5):
        damage(ward.log, offset)
    ward.find()
    ward.run(20_000)
    assert (ward.told, ward.log.lost, ward.copied_from) == ([], (), [])
    ward.run(RETRY_MS_MAX * WAITS_MAX)
    assert [one.first_offset for one in ward.log.lost] == [4]
    assert not ward.healing.is_about_to_cut(ward.partition)


def test_one_that_is_dead_is_not_waited_for_as_another_in_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(healing, "HEALED_BYTES_MAX", 0)
    ward = Ward(in_sync=(1, 2))
    for offset in (4, 5):
        damage(ward.log, offset)
    ward.find()
    ward.run()
    assert len(ward.told) == 1
    ward.dead = {1}
    ward.run(30_000)
    assert len(ward.told) == 1


def test_a_disk_that_fails_each_time_makes_it_copied_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        """Workers whose work fails."""

        rounds = 0

        def run_steps(self, steps: Any, ended: Callable[[], None]) -> Any:
            Failing.rounds += 1
            round_: Any = ward.healing._patients[ward.partition]._round
            round_.error = RuntimeError("no room")
            ended()

    ward = Ward()
    ward.workers = Failing()
    damage(ward.log, 4)
    ward.find()
    ward.run(RETRY_MS_MAX)
    assert Failing.rounds == FAILURES_MAX
    assert ward.healing.is_about_to_cut(ward.partition)


def test_what_is_not_damaged_any_more_is_checked_again() -> None:
    ward = Ward()
    damage(ward.log, 4)
    ward.find()
    damage(ward.log, 4)
    ward.run()
    assert ward.checked == [4]
    assert ward.log.unhealed == ()
    assert ward.healing.healed_ranges == 0


def test_a_log_that_is_being_cleaned_is_healed_afterwards() -> None:
    ward = Ward()
    damage(ward.log, 4)
    ward.log.cleaning = object()  # type: ignore[assignment]
    ward.find()
    ward.run()
    assert len(ward.log.unhealed) == 1
    ward.log.cleaning = None
    ward.run(RETRY_MS_MAX)
    assert ward.is_whole()


def test_a_segment_that_is_swapped_is_completed_and_synced_first() -> None:
    ward = Ward()
    damage(ward.log, 10)
    (found,) = find_damage(ward.log)
    assert found.base_offset == ward.log.active_segment.base_offset
    # What the others have of it is empty, so the sizes differ.
    ward.answers[1] = lambda _request: answer(sound_bytes(11))
    ward.find()
    ward.run(RETRY_MS_MAX)
    assert ward.healing.healed_ranges == 1
    assert ward.log.active_segment.base_offset == 12
    assert find_damage(ward.log) == []


# What a start has found


def _bridged(log: Log, first: int, last: int, was_synced: bool = True) -> None:
    found: Any = SimpleNamespace(first_offset=Offset(first), next_offset=Offset(last), was_synced=was_synced)
    log.damages = (*log.damages, found)


def test_what_a_start_has_bridged_is_fetched_and_put_in() -> None:
    ward = Ward()
    _bridged(ward.log, 4, 5)
    _bridged(ward.log, 7, 8, was_synced=False)
    _bridged(ward.log, 9, 9)
    ward.healing.take_loaded(ward.partition)
    (found,) = ward.log.unhealed
    assert (found.first_offset, found.next_offset, found.position, found.end) == (4, 5, SIZE, 2 * SIZE)
    assert found.is_bridged
    assert [one.first_offset for one in ward.log.damages] == [7, 9]
    ward.run()
    assert ward.is_whole()
    assert ward.healing.healed_ranges == 1


def test_what_an_earlier_start_has_bridged_is_fetched_and_then_forgotten() -> None:
    ward = Ward()
    _bridged(ward.log, 4, 5)
    ward.log.damages, ward.log.bridged = (), ((Offset(4), Offset(5)), (Offset(12), Offset(15)))
    ward.healing.take_loaded(ward.partition)
    ward.run()
    assert ward.is_whole()
    assert ward.log.bridged == read_bridged(ward.log.volume.disk, ward.log.path) == ((12, 15),)


@pytest.mark.parametrize(("first", "last"), [(10, 12), (9, 12), (11, 12)])
def test_what_a_start_has_bridged_may_reach_to_the_end_of_a_segment(first: int, last: int) -> None:
    ward = Ward()
    _bridged(ward.log, first, last)
    ward.healing.take_loaded(ward.partition)
    (found,) = ward.log.unhealed
    assert (found.position, found.end) == ((first - 9) * SIZE, 3 * SIZE)


def test_what_a_start_has_lost_at_an_end_of_the_log_is_no_bridge() -> None:
    ward = Ward()
    _bridged(ward.log, 12, 15)
    ward.healing.take_loaded(ward.partition)
    assert ward.log.unhealed == ()
    assert ward.log.damages == ()


def test_a_bridge_among_transactions_is_copied_again() -> None:
    log = written_log()
    append_transactional(log, producer_id=7, sequence=0)
    log.flush()
    ward = Ward(log)
    _bridged(ward.log, 4, 5)
    ward.healing.take_loaded(ward.partition)
    ward.run()
    assert ward.healing.is_about_to_cut(ward.partition)
