"""The REST API: routes, parameters, error codes."""

import json
from typing import Any

import pytest
from tests.simulation.registry.world import SimulatedRegistry

INT = '"int"'


def record(*fields: tuple[str, Any] | tuple[str, Any, Any], name: str = "R") -> str:
    """Return an Avro record. A third part of a field is its default."""
    listed = [dict(zip(("name", "type", "default"), field, strict=False)) for field in fields]
    return json.dumps({"type": "record", "name": name, "fields": listed})


V1 = record(("a", "int"))
V2 = record(("a", "int"), ("b", "string", "x"))
BAD = record(("a", "int"), ("z", "string"))


def test_a_schema_can_be_read_back_in_every_way(registry: SimulatedRegistry, subject: str) -> None:
    answer = registry.register(subject, V1)
    text = answer["schema"]
    assert json.loads(text) == json.loads(V1)
    assert answer["version"] == 1
    for path in (
        f"/subjects/{subject}/versions/1",
        f"/subjects/{subject}/versions/latest",
        f"/subjects/{subject}/versions/-1",
        f"/schemas/ids/{answer['id']}?subject={subject}",
        f"/schemas/guids/{answer['guid']}",
    ):
        status, found = registry.ask("GET", path)
        assert (status, found["schema"]) == (200, text), path
    assert registry.ask("GET", f"/schemas/ids/{answer['id']}/schema") == (200, json.loads(V1))
    assert registry.ask("GET", f"/subjects/{subject}/versions") == (200, [1])
    assert registry.ask("POST", f"/subjects/{subject}", {"schema": V1})[1]["version"] == 1
    assert subject in registry.ask("GET", f"/schemas/ids/{answer['id']}/subjects")[1]
    listed = registry.ask("GET", f"/schemas?subjectPrefix={subject}")[1]
    assert [item["id"] for item in listed] == [answer["id"]]


def test_the_same_schema_has_the_same_id_everywhere(registry: SimulatedRegistry, subject: str) -> None:
    first = registry.register(subject, V1)
    assert registry.register(subject, V1.replace(":", " : ")) == first
    other = registry.register(f"{subject}-other", V1)
    assert (other["id"], other["version"]) == (first["id"], 1)


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", "/nope", None, 404),
        ("PATCH", "/subjects", None, 405),
        ("GET", "/subjects/none/versions", None, 40401),
        ("GET", "/schemas/ids/987654", None, 40403),
        ("GET", "/schemas/ids/987654/schema", None, 40403),
        ("GET", "/schemas/ids/x", None, 404),
        ("POST", "/subjects/none", {"schema": INT}, 40401),
        ("DELETE", "/subjects/none", None, 40401),
        ("GET", "/config/none", None, 40408),
        ("GET", "/mode/none", None, 40409),
        ("POST", "/subjects/bad/versions", {"schema": '{"type":"what"}'}, 42201),
        ("POST", "/subjects/bad/versions", {"schema": "{", "schemaType": "JSON"}, 42201),
        ("POST", "/subjects/bad/versions", {"schema": "message {", "schemaType": "PROTOBUF"}, 42201),
        ("POST", "/subjects/bad/versions", {"schema": INT, "schemaType": "XML"}, 42201),
        ("POST", "/subjects/bad/versions", {"schema": ""}, 42201),
        ("POST", "/subjects/bad/versions", {"schema": {"type": "int"}}, 400),
        ("POST", "/subjects/bad/versions", b"{", 400),
        ("POST", "/subjects/bad/versions", b"[]", 400),
        ("POST", "/subjects/bad/versions", None, 422),
        ("POST", "/subjects/__GLOBAL/versions", {"schema": INT}, 42208),
        ("PUT", "/config/x", {"compatibility": "SOME"}, 42203),
        ("PUT", "/mode/x", {"mode": "SOME"}, 42204),
        ("PUT", "/mode/x", {"mode": "FORWARD"}, 42204),
        ("PUT", "/mode/x", {}, 42204),
        ("GET", "/exporters", None, 40400),
    ],
)
def test_what_is_wrong_is_told_by_its_code(
    registry: SimulatedRegistry, method: str, path: str, body: Any, code: int
) -> None:
    status, answer = registry.ask(method, path, body)
    assert answer["error_code"] == code
    assert status == (code if code < 1000 else code // 100)
    assert answer["message"]


@pytest.mark.parametrize("version", ["0", "-2", "abc", "2147483648", "1e3"])
def test_versions_are_numbers_or_latest(registry: SimulatedRegistry, subject: str, version: str) -> None:
    registry.register(subject, INT)
    assert registry.ask("GET", f"/subjects/{subject}/versions/{version}")[1]["error_code"] == 42202


def test_subjects_may_have_any_letters(registry: SimulatedRegistry, subject: str) -> None:
    name = f"{subject} a/b:ü%"
    registry.register(name, INT)
    assert name in registry.ask("GET", "/subjects")[1]


def test_an_incompatible_schema_is_refused_with_the_reason(registry: SimulatedRegistry, subject: str) -> None:
    registry.register(subject, V1)
    status, answer = registry.ask("POST", f"/subjects/{subject}/versions", {"schema": BAD})
    assert (status, answer["error_code"]) == (409, 40901)
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in answer["message"]
    path = f"/compatibility/subjects/{subject}/versions/latest"
    assert registry.ask("POST", path, {"schema": BAD}) == (200, {"is_compatible": False})
    assert registry.ask("POST", path, {"schema": V2}) == (200, {"is_compatible": True})
    verbose = registry.ask("POST", f"{path}?verbose=true", {"schema": BAD})[1]
    assert "'/fields/1'" in verbose["messages"][0]


def test_levels_say_which_versions_count(registry: SimulatedRegistry, subject: str) -> None:
    registry.register(subject, record(("a", "int")))
    registry.register(subject, record(("a", "int"), ("b", "int", 0)))
    registry.register(subject, record(("a", "int"), ("b", "int", 0), ("c", "int", 0)))
    # It can read what the last version wrote, but not what the first wrote.
    later = {"schema": record(("a", "int"), ("b", "int"), ("c", "int"))}
    path = f"/compatibility/subjects/{subject}/versions"
    for level, verdict in (("BACKWARD", True), ("BACKWARD_TRANSITIVE", False), ("NONE", True)):
        registry.ask("PUT", f"/config/{subject}", {"compatibility": level.lower()})
        assert registry.ask("GET", f"/config/{subject}")[1] == {"compatibilityLevel": level}
        assert registry.ask("POST", path, later)[1] == {"is_compatible": verdict}


def test_deleting_is_soft_first_and_then_for_good(registry: SimulatedRegistry, subject: str) -> None:
    for schema in (V1, V2):
        registry.register(subject, schema)
    base = f"/subjects/{subject}"
    assert registry.ask("DELETE", f"{base}/versions/1?permanent=true")[1]["error_code"] == 40407
    assert registry.ask("DELETE", f"{base}?permanent=true")[1]["error_code"] == 40405
    assert registry.ask("DELETE", f"{base}/versions/1") == (200, 1)
    assert registry.ask("DELETE", f"{base}/versions/1")[1]["error_code"] == 40406
    assert registry.ask("GET", f"{base}/versions") == (200, [2])
    assert registry.ask("GET", f"{base}/versions?deleted=true") == (200, [1, 2])
    assert registry.ask("GET", f"{base}/versions?deletedAsNegative=true") == (200, [-1, 2])
    assert registry.register(subject, V1)["version"] == 3
    assert registry.ask("DELETE", base) == (200, [2, 3])
    assert registry.ask("DELETE", base)[1]["error_code"] == 40404
    assert registry.ask("DELETE", f"{base}?permanent=true") == (200, [2, 3])
    assert registry.register(subject, V1)["version"] == 1


def test_what_is_referred_to_cannot_be_deleted(registry: SimulatedRegistry, subject: str) -> None:
    registry.register(f"{subject}-base", record(("s", "string"), name="n.Base"))
    references = [{"name": "n.Base", "subject": f"{subject}-base", "version": -1}]
    user = record(("b", "n.Base"), name="n.User")
    answer = registry.register(subject, user, references=references)
    assert answer["references"][0]["version"] == 1
    assert registry.ask("GET", f"/subjects/{subject}-base/versions/1/referencedby") == (200, [answer["id"]])
    assert registry.ask("DELETE", f"/subjects/{subject}-base")[1]["error_code"] == 42206
    assert registry.ask("POST", f"/subjects/{subject}-x/versions", {"schema": user})[1]["error_code"] == 42201
    registry.ask("DELETE", f"/subjects/{subject}")
    assert registry.ask("DELETE", f"/subjects/{subject}-base") == (200, [1])
    # Even a deleted schema keeps what it refers to.
    refusal = registry.ask("DELETE", f"/subjects/{subject}-base?permanent=true")[1]
    assert refusal["error_code"] == 42206


def test_modes_say_what_may_be_done(registry: SimulatedRegistry, subject: str) -> None:
    path = f"/subjects/{subject}/versions"
    registry.ask("PUT", f"/mode/{subject}", {"mode": "READONLY"})
    assert registry.ask("POST", path, {"schema": INT})[1]["error_code"] == 42205
    assert registry.ask("PUT", f"/mode/{subject}", {"mode": "IMPORT"})[0] == 200
    assert registry.ask("POST", path, {"schema": INT})[1]["error_code"] == 42205
    imported = {"schema": record(("i", "int"), name=f"I{subject[2:]}"), "id": 700_000, "version": 5}
    assert registry.ask("POST", path, imported)[1]["id"] == 700_000
    assert registry.ask("POST", path, {**imported, "schema": INT})[1]["error_code"] == 42205
    assert registry.ask("GET", path) == (200, [5])
    assert registry.ask("DELETE", f"/mode/{subject}") == (200, {"mode": "IMPORT"})
    # The next id comes after all that were imported.
    new = registry.register(f"{subject}-2", record(("n", "int"), name=f"N{subject[2:]}"))
    assert new["id"] > 700_000


def test_contexts_have_subjects_and_ids_of_their_own(registry: SimulatedRegistry, subject: str) -> None:
    context = f".{subject}"
    answer = registry.register(f":{context}:a", V1)
    assert (answer["id"], answer["version"]) == (1, 1)
    assert registry.ask("GET", f"/contexts/{context}/subjects") == (200, [f":{context}:a"])
    assert registry.ask("GET", f"/contexts/{context}/subjects/a/versions/1")[1]["id"] == 1
    assert registry.ask("GET", f"/contexts/{context}/schemas/ids/1")[1]["schema"] == answer["schema"]
    assert context in registry.ask("GET", "/contexts")[1]
    registry.ask("PUT", f"/config/:{context}:", {"compatibility": "NONE"})
    inherited = registry.ask("GET", f"/config/:{context}:a?defaultToGlobal=true")[1]
    assert inherited == {"compatibilityLevel": "NONE"}
    assert registry.ask("DELETE", f"/contexts/{context}")[1]["error_code"] == 42211
    registry.ask("DELETE", f"/subjects/:{context}:a")
    registry.ask("DELETE", f"/subjects/:{context}:a?permanent=true")
    assert registry.ask("DELETE", f"/contexts/{context}") == (204, None)


def test_normalization_finds_the_same_schema_in_another_spelling(
    registry: SimulatedRegistry, subject: str
) -> None:
    one = {"type": "object", "properties": {"a": {"type": "string"}}}
    other = {"properties": {"a": {"type": "string"}}, "type": "object"}
    path = f"/subjects/{subject}/versions?normalize=true"
    first = registry.ask("POST", path, {"schema": json.dumps(one), "schemaType": "JSON"})[1]
    second = registry.ask("POST", path, {"schema": json.dumps(other), "schemaType": "JSON"})[1]
    assert first["id"] == second["id"]


def test_metadata_makes_groups_of_versions(registry: SimulatedRegistry, subject: str) -> None:
    registry.ask("PUT", f"/config/{subject}", {"compatibilityGroup": "major"})

    def major(number: str) -> dict[str, Any]:
        return {"properties": {"major": number}}

    registry.register(subject, V1, metadata=major("1"))
    assert registry.register(subject, BAD, metadata=major("2"))["version"] == 2
    found = registry.ask("GET", f"/subjects/{subject}/metadata?key=major&value=1")[1]
    assert found["version"] == 1


def test_an_alias_stands_for_another_subject(registry: SimulatedRegistry, subject: str) -> None:
    registry.register(subject, V1)
    registry.ask("PUT", f"/config/{subject}-alias", {"alias": subject})
    assert registry.ask("GET", f"/subjects/{subject}-alias/versions/1")[1]["subject"] == subject


def test_answers_have_the_type_that_the_client_takes(registry: SimulatedRegistry) -> None:
    def content_type(accept: str) -> str:
        assert registry.ask("GET", "/subjects", Accept=accept)[0] == 200
        return registry.headers["content-type"]

    assert content_type("application/json") == "application/json"
    assert content_type("*/*") == "application/vnd.schemaregistry.v1+json"
    assert registry.ask("GET", "/subjects", Accept="text/html")[0] == 406
    assert registry.ask("POST", "/subjects/x/versions", b"x", Content_Type="text/plain")[0] == 415
