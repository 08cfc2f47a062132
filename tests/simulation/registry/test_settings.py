"""Configs and modes: what they change, where they hold, and what is refused."""

import json
from typing import Any

import pytest
from tests.simulation.registry.world import SimulatedRegistry


def _record(name: str, *fields: str) -> str:
    listed = [{"name": field, "type": "int", "default": 0} for field in fields]
    return json.dumps({"type": "record", "name": name, "fields": listed})


def _name_of(subject: str) -> str:
    return f"R{subject[2:]}"


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ({"compatibility": "full_transitive"}, {"compatibilityLevel": "FULL_TRANSITIVE"}),
        ({"compatibilityLevel": "NONE"}, {"compatibilityLevel": "NONE"}),
        ({"compatibilityPolicy": "lenient"}, {"compatibilityPolicy": "LENIENT"}),
        ({"normalize": True}, {"normalize": True}),
        ({"validateFields": False}, {"validateFields": False}),
        ({"compatibilityGroup": "major"}, {"compatibilityGroup": "major"}),
        ({"defaultMetadata": {"properties": {"a": "b"}}}, {"defaultMetadata": {"properties": {"a": "b"}}}),
        ({"overrideRuleSet": {}, "unknown": 1}, {}),
    ],
)
def test_a_config_keeps_what_it_can_use(
    registry: SimulatedRegistry, subject: str, body: dict[str, Any], kept: dict[str, Any]
) -> None:
    path = f"/config/{subject}"
    echoed = {"compatibility" if name == "compatibilityLevel" else name: kept[name] for name in kept}

    assert registry.ask("PUT", path, body) == (200, echoed)

    assert registry.ask("GET", path)[1] == {"compatibilityLevel": "BACKWARD", **kept}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"compatibility": 1}, 42203),
        ({"compatibilityPolicy": "SOME"}, 42212),
        ({"compatibilityPolicy": 1}, 42212),
        ({"normalize": "yes"}, 400),
        ({"validateRules": 1}, 400),
        ({"overrideMetadata": "x"}, 400),
        ({"alias": 1}, 400),
    ],
)
def test_a_config_that_means_nothing_is_refused(
    registry: SimulatedRegistry, subject: str, body: dict[str, Any], code: int
) -> None:
    assert registry.ask("PUT", f"/config/{subject}", body)[1]["error_code"] == code
    assert registry.ask("GET", f"/config/{subject}")[1]["error_code"] == 40408


def test_what_a_config_does_not_name_stays_and_null_removes(
    registry: SimulatedRegistry, subject: str
) -> None:
    path = f"/config/{subject}"
    registry.ask("PUT", path, {"compatibility": "FULL", "normalize": True})
    registry.ask("PUT", path, {"compatibility": "NONE"})
    assert registry.ask("GET", path)[1] == {"compatibilityLevel": "NONE", "normalize": True}
    registry.ask("PUT", path, {"normalize": None})
    assert registry.ask("GET", path)[1] == {"compatibilityLevel": "NONE"}

    assert registry.ask("DELETE", path) == (200, {"compatibilityLevel": "NONE"})

    assert registry.ask("GET", path)[1]["error_code"] == 40408
    assert registry.ask("DELETE", path)[1]["error_code"] == 40401
    assert registry.ask("GET", f"{path}?defaultToGlobal=true")[1] == {"compatibilityLevel": "BACKWARD"}


def test_no_setting_is_for_a_reserved_name(registry: SimulatedRegistry) -> None:
    for kind, body in (("config", {"compatibility": "NONE"}), ("mode", {"mode": "READONLY"})):
        assert registry.ask("PUT", f"/{kind}/__EMPTY", body)[1]["error_code"] == 42208
        assert registry.ask("GET", f"/{kind}?defaultToGlobal=true")[0] == 200


def test_settings_of_all_hold_where_there_are_no_others(registry: SimulatedRegistry, subject: str) -> None:
    own = f"{subject}-own"
    try:
        assert registry.ask("PUT", "/config", {"compatibility": "FORWARD"})[0] == 200
        assert registry.ask("PUT", "/mode", {"mode": "READONLY"}) == (200, {"mode": "READONLY"})
        assert registry.ask("GET", f"/config/{subject}?defaultToGlobal=true")[1] == {
            "compatibilityLevel": "FORWARD"
        }
        assert registry.ask("GET", f"/mode/{subject}?defaultToGlobal=true") == (200, {"mode": "READONLY"})
        assert registry.ask("GET", f"/mode/{subject}")[1]["error_code"] == 40409
        refused = registry.ask("POST", f"/subjects/{subject}/versions", {"schema": '"int"'})[1]
        assert refused["error_code"] == 42205
        registry.ask("PUT", f"/mode/{own}", {"mode": "READWRITE"})
        assert registry.register(own, '"int"')["version"] == 1
        # This one cannot be overridden.
        registry.ask("PUT", "/mode", {"mode": "READONLY_OVERRIDE"})
        assert registry.ask("POST", f"/subjects/{own}/versions", {"schema": '"long"'})[0] == 422
        assert registry.ask("GET", "/mode") == (200, {"mode": "READONLY_OVERRIDE"})
    finally:
        assert registry.ask("DELETE", "/mode")[0] == 200
        assert registry.ask("DELETE", "/config") == (200, {"compatibilityLevel": "FORWARD"})
    assert registry.ask("GET", "/mode") == (200, {"mode": "READWRITE"})
    assert registry.ask("DELETE", "/mode") == (200, {"mode": "READWRITE"})
    assert registry.ask("DELETE", "/config") == (200, {"compatibilityLevel": "BACKWARD"})


def test_what_is_read_only_keeps_its_config_and_versions(registry: SimulatedRegistry, subject: str) -> None:
    registry.register(subject, '"int"')
    registry.ask("PUT", f"/config/{subject}", {"compatibility": "NONE"})
    registry.ask("PUT", f"/mode/{subject}", {"mode": "READONLY"})
    for method, path, body in (
        ("PUT", f"/config/{subject}", {"compatibility": "FULL"}),
        ("DELETE", f"/config/{subject}", None),
        ("DELETE", f"/subjects/{subject}", None),
        ("DELETE", f"/subjects/{subject}/versions/1", None),
    ):
        assert registry.ask(method, path, body)[1]["error_code"] == 42205, path


def test_import_wants_an_empty_subject_or_force(registry: SimulatedRegistry, subject: str) -> None:
    registry.register(subject, '"int"')
    path = f"/mode/{subject}"
    assert registry.ask("PUT", path, {"mode": "IMPORT"})[1]["error_code"] == 42205
    assert registry.ask("PUT", path, {"mode": "READONLY"})[0] == 200
    assert registry.ask("PUT", f"{path}?force=true", {"mode": "IMPORT"}) == (200, {"mode": "IMPORT"})
    # What is in this mode already may be put in it again.
    assert registry.ask("PUT", path, {"mode": "IMPORT"})[0] == 200
    assert registry.ask("GET", f"/subjects/{subject}/versions") == (200, [1])


def test_import_forgets_what_was_deleted_softly(registry: SimulatedRegistry, subject: str) -> None:
    registry.register(subject, '"int"')
    registry.ask("DELETE", f"/subjects/{subject}")
    assert registry.ask("PUT", f"/mode/{subject}", {"mode": "IMPORT"})[0] == 200
    assert registry.ask("GET", f"/subjects/{subject}/versions?deleted=true")[1]["error_code"] == 40401


def test_import_forgets_nothing_that_is_referred_to(registry: SimulatedRegistry, subject: str) -> None:
    registry.register(f"{subject}-base", '{"type":"record","name":"n.Base","fields":[]}')
    registry.register(
        f"{subject}-user",
        '{"type":"record","name":"n.User","fields":[{"name":"b","type":"n.Base"}]}',
        references=[{"name": "n.Base", "subject": f"{subject}-base", "version": 1}],
    )
    for end in ("user", "base"):
        registry.ask("DELETE", f"/subjects/{subject}-{end}")
    refused = registry.ask("PUT", f"/mode/{subject}-base", {"mode": "IMPORT"})[1]
    assert refused["error_code"] == 42206


def test_a_mode_is_taken_away_from_a_context_and_all_in_it(registry: SimulatedRegistry, subject: str) -> None:
    context = f":.{subject}:"
    for name in (context, f"{context}a"):
        assert registry.ask("PUT", f"/mode/{name}", {"mode": "readonly"})[0] == 200
    assert registry.ask("DELETE", f"/mode/{context}") == (200, {"mode": "READONLY"})
    assert registry.ask("GET", f"/mode/{context}a") == (200, {"mode": "READONLY"})
    registry.ask("PUT", f"/mode/{context}", {"mode": "READONLY"})
    assert registry.ask("DELETE", f"/mode/{context}?recursive=true")[0] == 200
    assert registry.ask("GET", f"/mode/{context}a")[1]["error_code"] == 40409
    assert registry.ask("DELETE", f"/mode/{context}a")[1]["error_code"] == 40401


def test_a_mode_of_null_is_none(registry: SimulatedRegistry, subject: str) -> None:
    registry.ask("PUT", f"/mode/{subject}", {"mode": "READONLY"})
    assert registry.ask("PUT", f"/mode/{subject}", {"mode": None})[0] == 200
    assert registry.ask("GET", f"/mode/{subject}")[1]["error_code"] == 40409


def test_settings_of_a_subject_go_with_its_last_version(registry: SimulatedRegistry, subject: str) -> None:
    for number, path in enumerate((f"/subjects/{subject}", f"/subjects/{subject}/versions/1")):
        registry.register(subject, _record(_name_of(subject), "a"))
        registry.ask("PUT", f"/config/{subject}", {"compatibility": "NONE"})
        registry.ask("PUT", f"/mode/{subject}", {"mode": "READWRITE"})
        assert registry.ask("DELETE", path)[0] == 200
        assert registry.ask("GET", f"/config/{subject}")[0] == 200, "it is deleted softly"
        assert registry.ask("DELETE", f"{path}?permanent=true")[0] == 200, number
        assert registry.ask("GET", f"/config/{subject}")[1]["error_code"] == 40408
        assert registry.ask("GET", f"/mode/{subject}")[1]["error_code"] == 40409


def test_settings_of_a_subject_stay_while_a_version_is_left(
    registry: SimulatedRegistry, subject: str
) -> None:
    for fields in ("a", "ab"):
        registry.register(subject, _record(_name_of(subject), *fields))
    registry.ask("PUT", f"/config/{subject}", {"compatibility": "NONE"})
    for more in ("", "?permanent=true"):
        assert registry.ask("DELETE", f"/subjects/{subject}/versions/1{more}") == (200, 1)
    assert registry.ask("GET", f"/config/{subject}")[0] == 200


def test_versions_are_counted_in_metadata_when_they_are_given(
    registry: SimulatedRegistry, subject: str
) -> None:
    name = _name_of(subject)
    first = registry.register(subject, _record(name, "a"), version=1)
    assert first["metadata"] == {"properties": {"confluent:version": "1"}}
    # From then on each version has its number there.
    second = registry.register(subject, _record(name, "a", "b"))
    assert second["metadata"] == {"properties": {"confluent:version": "2"}}
    wrong = {"schema": _record(name, "a", "b", "c"), "version": 5}
    assert registry.ask("POST", f"/subjects/{subject}/versions", wrong)[1]["error_code"] == 42201
    # The number alone makes no other schema of it.
    assert registry.register(subject, _record(name, "a"))["version"] == 1


def test_metadata_is_completed_by_config_and_by_the_version_before(
    registry: SimulatedRegistry, subject: str
) -> None:
    name = _name_of(subject)
    registry.ask(
        "PUT",
        f"/config/{subject}",
        {
            "defaultMetadata": {"properties": {"a": "default", "b": "default"}},
            "overrideMetadata": {"properties": {"c": "override"}},
        },
    )
    first = registry.register(
        subject, _record(name, "a"), metadata={"properties": {"b": "mine", "c": "mine"}}
    )
    assert first["metadata"]["properties"] == {"a": "default", "b": "mine", "c": "override"}
    registry.ask("DELETE", f"/config/{subject}")
    second = registry.register(subject, _record(name, "a", "b"))
    assert second["metadata"] == first["metadata"]


def test_metadata_alone_makes_a_version_of_the_schema_there_is(
    registry: SimulatedRegistry, subject: str
) -> None:
    path = f"/subjects/{subject}/versions"
    metadata = {"properties": {"team": "red"}}
    assert registry.ask("POST", path, {"metadata": metadata})[1]["error_code"] == 42201
    first = registry.register(subject, _record(_name_of(subject), "a"))
    status, second = registry.ask("POST", path, {"metadata": metadata})
    assert (status, second["version"], second["schema"]) == (200, 2, first["schema"])
    assert second["metadata"] == metadata


def test_reserved_fields_are_neither_used_nor_given_up(registry: SimulatedRegistry, subject: str) -> None:
    name = _name_of(subject)
    registry.ask("PUT", f"/config/{subject}", {"validateFields": True, "compatibility": "NONE"})
    reserved = {"properties": {"confluent:reserved": "x, y"}}
    registry.register(subject, _record(name, "a"), metadata=reserved)
    path = f"/subjects/{subject}/versions"
    used = registry.ask("POST", path, {"schema": _record(name, "a", "y"), "metadata": reserved})
    assert used[0] == 409
    assert "FIELD_CONFLICTS_WITH_RESERVED_FIELD" in used[1]["message"]
    fewer = {"schema": _record(name, "a", "b"), "metadata": {"properties": {"confluent:reserved": "x"}}}
    given_up = registry.ask("POST", path, fewer)
    assert given_up[0] == 409
    assert "The field y is reserved in the old schema" in given_up[1]["message"]
    assert registry.register(subject, _record(name, "a", "b"), metadata=reserved)["version"] == 2


def test_a_deleted_schema_that_comes_back_leaves_its_number(
    registry: SimulatedRegistry, subject: str
) -> None:
    name = _name_of(subject)
    path = f"/subjects/{subject}/versions"
    for fields in ("a", "ab"):
        registry.register(subject, _record(name, *fields))
    registry.ask("DELETE", f"{path}/1")
    assert registry.register(subject, _record(name, "a"))["version"] == 3
    assert registry.ask("GET", f"{path}?deleted=true") == (200, [2, 3])


def test_an_id_that_is_taken_is_not_given_to_another_schema(
    registry: SimulatedRegistry, subject: str
) -> None:
    context = f":.{subject}:"
    registry.ask("PUT", f"/mode/{context}", {"mode": "IMPORT"})
    path = f"/subjects/{context}a/versions"
    assert registry.ask("POST", path, {"schema": '"int"', "id": 7, "version": 3})[1]["id"] == 7
    taken = registry.ask("POST", path, {"schema": '"long"', "id": 7, "version": 4})[1]
    assert taken["error_code"] == 42205
    # The same schema may be imported again, and under another version.
    assert registry.ask("POST", path, {"schema": '"int"', "id": 7, "version": 3})[0] == 200
    assert registry.ask("POST", path, {"schema": '"int"', "id": 7, "version": 9})[1]["version"] == 9
    assert registry.ask("GET", path) == (200, [3, 9])


def test_lenient_compatibility_forgives(registry: SimulatedRegistry, subject: str) -> None:
    def json_schema(*names: str) -> str:
        return json.dumps({"type": "object", "properties": {name: {"type": "string"} for name in names}})

    registry.register(subject, json_schema("a"), "JSON")
    path = f"/compatibility/subjects/{subject}/versions"
    body = {"schema": json_schema("a", "b"), "schemaType": "JSON"}
    assert registry.ask("POST", path, body)[1] == {"is_compatible": False}
    verbose = registry.ask("POST", f"{path}?verbose=true", body)[1]["messages"]
    assert verbose[-1] == "{validateFields: 'false', compatibility: 'BACKWARD'}"
    registry.ask("PUT", f"/config/{subject}", {"compatibilityPolicy": "LENIENT"})
    assert registry.ask("POST", path, body)[1] == {"is_compatible": True}


def test_a_version_to_compare_with_must_be_there(registry: SimulatedRegistry, subject: str) -> None:
    path = f"/compatibility/subjects/{subject}/versions"
    assert registry.ask("POST", f"{path}/latest", {"schema": '"int"'}) == (200, {"is_compatible": True})
    assert registry.ask("POST", path, {"schema": '"int"'}) == (200, {"is_compatible": True})
    assert registry.ask("POST", f"{path}/1", {"schema": '"int"'})[1]["error_code"] == 40402
    assert registry.ask("POST", path, {"schema": " "})[1]["error_code"] == 42201
