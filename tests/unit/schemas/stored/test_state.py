"""What records add up to, and what instances tell each other."""

import json

import pytest

from ottla.registry.leading.protocol import (
    DUPLICATE_URLS,
    Assignment,
    Identity,
    decode_assignment,
    decode_identity,
    elect,
    encode_assignment,
    encode_identity,
)
from ottla.registry.serving.paths import without_context
from ottla.schemas.parsed import Reference
from ottla.schemas.stored.records import (
    Record,
    UnreadableRecord,
    clear_subject_record,
    decode,
    delete_subject_record,
    schema_record,
    schema_tombstone,
)
from ottla.schemas.stored.state import State
from ottla.schemas.stored.subjects import Subject
from ottla.schemas.stored.values import StoredSchema


def _stored(subject: str = "s", version: int = 1, schema_id: int = 1, text: str = '"int"') -> StoredSchema:
    return StoredSchema(subject, version, schema_id, "AVRO", text)


def _replay(*records: Record) -> State:
    state = State()
    for record in records:
        state.replay(decode(record.key, record.value, 0))
    return state


def test_a_record_that_takes_the_id_of_another_schema_is_ignored() -> None:
    state = _replay(schema_record(_stored()), schema_record(_stored("t", text='"long"')))
    assert state.find("t", 1) is None
    assert [schema.subject for schema in state.places(1, ".")] == ["s"]


def test_deleting_a_subject_deletes_versions_up_to_one() -> None:
    state = _replay(
        schema_record(_stored()),
        delete_subject_record("s", 1),
        schema_record(_stored(version=2, schema_id=2, text='"long"')),
    )
    assert [schema.version for schema in state.versions("s")] == [2]
    assert [schema.version for schema in state.versions("s", deleted=True)] == [1, 2]
    assert state.next_version("s") == 3


def test_what_is_gone_leaves_nothing_behind() -> None:
    referring = StoredSchema("u", 1, 2, "AVRO", '"s"', (Reference("s", "s", 1),))
    state = _replay(schema_record(_stored()), schema_record(referring))
    assert [schema.subject for schema in state.referrers(("s", 1))] == ["u"]
    for key in (("u", 1), ("s", 1)):
        record = schema_tombstone(*key)
        state.replay(decode(record.key, record.value, 0))
    assert state.referrers(("s", 1), deleted=True) == []
    assert state.find_by_id(1, ".") is None
    assert list(state.subjects(Subject("*", ""), deleted=True)) == []
    # An id is not used again as long as the instance lives.
    assert state.highest_id(".") == 2


def test_clearing_a_subject_forgets_deleted_versions_only() -> None:
    state = _replay(
        schema_record(_stored()),
        delete_subject_record("s", 1),
        schema_record(_stored("t")),
        clear_subject_record(None),
    )
    assert state.versions("s", deleted=True) == []
    assert state.versions("t")


@pytest.mark.parametrize("key", [None, b"", b"{}", b"[1]", b'{"keytype":"SCHEMA"}', b"\xff"])
def test_records_that_no_registry_wrote_are_refused(key: bytes | None) -> None:
    with pytest.raises(UnreadableRecord):
        decode(key, b'{"id": 1}', 0)


def test_the_writer_stays_and_otherwise_the_smallest_url_is_chosen() -> None:
    a, b = Identity("h", 1), Identity("h", 2)
    assert elect({"x": b, "y": a}).leader_id == "y"
    assert elect({"x": b._replace(is_leader=True), "y": a}).leader_id == "x"
    assert elect({"x": a._replace(is_eligible=False)}) == Assignment(None, None)
    assert elect({"x": a, "y": a}).error == DUPLICATE_URLS


def test_messages_of_the_election_survive_a_round_trip() -> None:
    identity = Identity("h", 8081, is_leader=True)
    assert json.loads(encode_identity(identity)) == {
        "version": 1,
        "host": "h",
        "port": 8081,
        "master_eligibility": True,
        "scheme": "http",
        "leader": True,
    }
    assert decode_identity(encode_identity(identity)) == identity
    for assignment in (Assignment("m", identity), Assignment(None, None, DUPLICATE_URLS)):
        assert decode_assignment(encode_assignment(assignment)) == assignment


@pytest.mark.parametrize(
    ("path", "meant", "query"),
    [
        ("/subjects", "/subjects", []),
        ("/contexts", "/contexts", []),
        ("/contexts/.c", "/contexts/.c", []),
        ("/contexts/.c/subjects", "/subjects", [("subjectPrefix", ":.c:")]),
        ("/contexts/c/subjects/a%2Fb/versions", "/subjects/%3A.c%3Aa%2Fb/versions", []),
        ("/contexts/.c/config", "/config/%3A.c%3A", []),
        ("/contexts/./mode/s", "/mode/s", []),
        ("/contexts/.c/schemas/ids/1", "/schemas/ids/1", [("subject", ":.c:")]),
        (
            "/contexts/.c/compatibility/subjects/s/versions/1",
            "/compatibility/subjects/%3A.c%3As/versions/1",
            [],
        ),
    ],
)
def test_paths_below_a_context_mean_others(path: str, meant: str, query: list[tuple[str, str]]) -> None:
    assert without_context(path, []) == (meant, query)
