"""What the records of the config topic add up to, and what a worker does about it."""

import pytest

from ottla.connect.configs.keys import Key, Kind
from ottla.connect.errors import RestError
from ottla.connect.herding.decide import (
    decide_create,
    decide_delete,
    decide_tasks,
    is_key_due,
    wanted_units,
)
from ottla.connect.herding.reconcile import decide_steps, wanted_by
from ottla.connect.herding.units import Unit
from ottla.connect.store import records
from ottla.connect.store.configs import ConfigState, Restart
from ottla.connect.store.offsets import OffsetState
from ottla.connect.store.records import StoredRecord, UnreadableRecord

CONFIG = {"name": "a", "connector.class": "X"}


def _replayed(*stored: StoredRecord) -> ConfigState:
    state = ConfigState()
    for record in stored:
        state.replay(record.key, record.value)
    return state


def test_tasks_count_from_their_commit_on() -> None:
    state = _replayed(records.connector_record("a", CONFIG), records.task_record("a", 0, {"n": "0"}))
    assert wanted_units(state) == [Unit("a")]

    commit = records.commit_record("a", 1)
    state.replay(commit.key, commit.value)

    assert wanted_units(state) == [Unit("a"), Unit("a", 0)]
    assert state.tasks["a"] == [{"n": "0"}]


@pytest.mark.parametrize("name", ["x" * 40_000, "ü" * 501])
def test_a_name_that_workers_cannot_tell_each_other_is_ignored(name: str) -> None:
    record = records.connector_record(name, CONFIG)
    with pytest.raises(UnreadableRecord, match="is no name of a connector"):
        ConfigState().replay(record.key, record.value)
    gone = records.connector_record(name, None)
    ConfigState().replay(gone.key, gone.value)


def test_what_is_no_number_or_nested_too_deeply_is_no_record() -> None:
    with pytest.raises(UnreadableRecord, match="names no task"):
        ConfigState().replay("task-a-²".encode(), b'{"properties":{}}')
    with pytest.raises(UnreadableRecord, match="not JSON"):
        ConfigState().replay(b"connector-a", b"[" * 100_000)


def test_fewer_tasks_drop_the_rest() -> None:
    state = _replayed(records.connector_record("a", CONFIG))
    for record in decide_tasks(state, "a", [{"n": "0"}, {"n": "1"}]):
        state.replay(record.key, record.value)
    for record in decide_tasks(state, "a", [{"n": "0"}]):
        state.replay(record.key, record.value)

    assert state.tasks["a"] == [{"n": "0"}]
    assert decide_tasks(state, "a", [{"n": "0"}]) == []


def test_a_commit_whose_tasks_were_compacted_away_does_not_count() -> None:
    state = _replayed(records.connector_record("a", CONFIG), records.commit_record("a", 2))

    assert "a" not in state.tasks


def test_a_deleted_connector_leaves_nothing() -> None:
    state = _replayed(*decide_create(ConfigState(), "a", CONFIG, "PAUSED"))
    assert state.target_state("a") == "PAUSED"

    for record in decide_delete(state, "a"):
        state.replay(record.key, record.value)

    assert (state.connectors, state.tasks, state.target_states) == ({}, {}, {})


def test_a_connector_cannot_be_created_twice() -> None:
    state = _replayed(*decide_create(ConfigState(), "a", CONFIG, None))

    with pytest.raises(RestError, match="Connector a already exists"):
        decide_create(state, "a", CONFIG, None)


def test_stopped_is_paused_for_workers_that_do_not_know_it() -> None:
    record = records.target_state_record("a", "STOPPED")

    assert record == (b"target-state-a", b'{"state":"PAUSED","state.v2":"STOPPED"}')


def test_a_restart_is_an_event_and_changes_nothing() -> None:
    state = _replayed(records.connector_record("a", CONFIG))
    record = records.restart_record("a", include_tasks=True, only_failed=False)

    assert state.replay(record.key, record.value) == Restart("a", True, False)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"nobody-knows-it", b"{}"),
        (b"connector-a", b"[]"),
        (b"connector-a", b"{"),
        (b"connector-a", b'{"properties":3}'),
        (b"commit-a", b'{"tasks":"many"}'),
        (b"task-a", b'{"properties":{}}'),
        (b"\xff", None),
    ],
)
def test_a_record_that_no_worker_writes_is_refused(key: bytes, value: bytes | None) -> None:
    with pytest.raises(UnreadableRecord):
        ConfigState().replay(key, value)


def test_a_worker_restarts_what_has_another_configuration_and_leaves_the_rest() -> None:
    state = _replayed(records.connector_record("a", CONFIG), records.connector_record("b", CONFIG))
    running = wanted_by([Unit("a"), Unit("b")], state)
    changed = records.connector_record("a", {**CONFIG, "more": "1"})
    state.replay(changed.key, changed.value)

    steps = decide_steps(wanted_by([Unit("a"), Unit("b")], state), running)

    assert (steps.stop, list(steps.start)) == ([Unit("a")], [Unit("a")])


def test_a_stopped_connector_has_no_tasks_that_run() -> None:
    state = _replayed(
        records.connector_record("a", CONFIG),
        records.task_record("a", 0, {}),
        records.commit_record("a", 1),
        records.target_state_record("a", "STOPPED"),
    )

    assert list(wanted_by([Unit("a"), Unit("a", 0)], state)) == [Unit("a")]


def test_tasks_that_are_committed_wait_until_the_earlier_ones_are_fenced() -> None:
    tasks = decide_tasks(_replayed(records.connector_record("a", CONFIG)), "a", [{"n": "0"}, {"n": "1"}])
    state = _replayed(records.connector_record("a", CONFIG), *tasks)
    assert (state.unfenced, state.fenced_tasks) == ({"a"}, {})
    fenced = records.fencing_record("a", 2)
    assert fenced == (b"tasks-fencing-a", b'{"tasks":2}')
    state.replay(*fenced)
    assert (state.unfenced, state.fenced_tasks) == (set(), {"a": 2})
    for record in decide_delete(state, "a"):
        state.replay(record.key, record.value)
    # Tasks of the deleted connector may still be at work.
    assert state.fenced_tasks == {"a": 2}
    with pytest.raises(UnreadableRecord, match="no number of tasks"):
        state.replay(b"tasks-fencing-a", b"{}")


def test_all_tasks_of_an_earlier_generation_stop_also_those_that_have_the_same_configuration() -> None:
    state = _replayed(records.connector_record("a", CONFIG))
    for record in decide_tasks(state, "a", [{"n": "0"}, {"n": "1"}]):
        state.replay(record.key, record.value)
    units = [Unit("a"), Unit("a", 0), Unit("a", 1)]
    before = wanted_by(units, state)
    for record in decide_tasks(state, "a", [{"n": "0"}]):
        state.replay(record.key, record.value)

    steps = decide_steps(wanted_by(units, state), before)

    assert steps.stop == [Unit("a", 0), Unit("a", 1)]
    assert list(steps.start) == [Unit("a", 0)]


def test_a_key_is_due_when_it_is_old_and_the_one_before_still_counts() -> None:
    first, second = records.session_key_record("Zmlyc3Q=", 1_000), records.session_key_record("c2Vj", 61_000)
    assert is_key_due(None, 0, 60_000)
    state = _replayed(first)
    assert not is_key_due(state.session_key, 60_999, 60_000)
    assert is_key_due(state.session_key, 61_000, 60_000)
    state.replay(second.key, second.value)
    assert state.session_key is not None
    assert state.previous_session_key is not None
    assert (state.session_key.key, state.previous_session_key.key) == ("c2Vj", "Zmlyc3Q=")


OFFSET_KEY = b'["c",{"file":"a"}]'


@pytest.mark.parametrize("key", [None, b"{}", b'["c"]', b'["c",{},1]', b'["c",[]]', b"x"])
def test_an_offset_that_no_source_can_have_written_is_refused(key: bytes | None) -> None:
    state = OffsetState()
    state.replay(OFFSET_KEY, b'{"at":1}')
    with pytest.raises(UnreadableRecord):
        state.replay(key, b'{"at":2}')
    assert state.find("c", {"file": "a"}) == {"at": 1}


def test_the_last_offset_of_a_partition_counts_until_it_is_forgotten() -> None:
    state = OffsetState()
    for at in (1, 2):
        state.replay(OFFSET_KEY, b'{"at":%d}' % at)
    assert state.of("c") == [({"file": "a"}, {"at": 2})]
    assert state.of("other") == []
    assert state.find("other", {"file": "a"}) is None
    state.replay(OFFSET_KEY, None)
    assert state.find("c", {"file": "a"}) is None
    state.replay(OFFSET_KEY, None)


@pytest.mark.parametrize(
    ("default", "shown"), [(None, None), (True, "true"), (["a", "b"], "a,b"), (7, "7"), ("", "")]
)
def test_a_default_is_shown_as_a_configuration_would_have_it(default: object, shown: str | None) -> None:
    key = Key("k", Kind.STRING, "", default)
    assert key.definition()["default_value"] == shown
    assert not key.definition()["required"]
