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


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ('{"keytype":"SCHEMA","version":1,"magic":1}', '{"id":1,"schema":"\\"int\\""}'),
        ('{"keytype":"SCHEMA","subject":7,"version":1,"magic":1}', '{"id":1,"schema":"\\"int\\""}'),
        ('{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', "[]"),
        ('{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', '{"id":1}'),
        ('{"keytype":"DELETE_SUBJECT","magic":0}', '{"version":1}'),
        ('{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', '{"subject":"s"}'),
        ('{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', '{"version":"1"}'),
        ('{"keytype":"MODE","subject":"s","magic":0}', "{}"),
        ('{"keytype":"MODE","magic":0}', '["READONLY"]'),
        ('{"keytype":"CONFIG","magic":0}', '"FULL"'),
    ],
)
def test_values_that_no_registry_wrote_are_refused(key: str, value: str) -> None:
    with pytest.raises(UnreadableRecord):
        decode(key.encode(), value.encode(), 0)


def test_what_other_registries_and_releases_wrote_is_understood() -> None:
    """Unknown kinds, no type, no `deleted`, magic 0, references before what they name, duplicates."""
    schema = '{"subject":"s","version":%d,"id":%d,"md5":"AA==","schema":"\\"int\\""}'
    references = '"references":[{"name":"n","subject":"later","version":1}]'
    state = _replay(
        Record(b'{"keytype":"NOOP","magic":0}', None),
        Record(b'{"keytype":"SOMETHING","magic":9,"a":[1]}', b'{"b":2}'),
        Record(b'{"keytype":"SCHEMA","subject":"s","version":3,"magic":0}', (schema % (3, 7)).encode()),
        Record(b'{"keytype":"SCHEMA","subject":"s","version":3,"magic":0}', (schema % (3, 7)).encode()),
        Record(
            b'{"keytype":"SCHEMA","subject":"r","version":1,"magic":1}',
            f'{{"subject":"r","version":1,"id":900,{references},"schema":"\\"n\\"","deleted":false}}'.encode(),
        ),
        schema_record(_stored("later", schema_id=5, text='"long"')),
        Record(b'{"keytype":"DELETE_SUBJECT","subject":"gone","magic":0}', b'{"subject":"gone","version":4}'),
        Record(b'{"keytype":"CLEAR_SUBJECT","subject":"gone","magic":0}', b'{"subject":"gone"}'),
        Record(b'{"keytype":"CONFIG","subject":":.c:","magic":0}', b'{"compatibilityLevel":"NONE","x":1}'),
        Record(b'{"keytype":"MODE","subject":":.c:","magic":0}', b'{"subject":":.c:","mode":"IMPORT"}'),
    )
    assert [(one.version, one.id, one.schema_type, one.is_deleted) for one in state.versions("s")] == [
        (3, 7, "AVRO", False)
    ]
    assert [one.subject for one in state.referrers(("later", 1))] == ["r"]
    assert state.highest_id(".") == 900
    assert state.next_version("s") == 4
    assert state.config_in_scope(":.c:any") == {"compatibilityLevel": "NONE"}
    assert state.mode_in_scope(":.c:any") == "IMPORT"
    assert state.mode_in_scope("any") is None
    assert list(state.subjects(Subject.parse(""))) == ["later", "r", "s"]


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


def test_half_a_character_is_kept_as_it_came() -> None:
    state = _replay(schema_record(_stored(text='"\ud800"')))
    found = state.find("s", 1)
    assert found is not None
    assert found.text == '"\ud800"'
