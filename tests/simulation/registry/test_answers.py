"""What each route answers, with every parameter that it takes."""

import json
from typing import Any

import pytest
from tests.simulation.registry.world import SimulatedRegistry

from ottla import __version__


def _record(name: str, *fields: str) -> str:
    listed = [{"name": field, "type": "int", "default": 0} for field in fields]
    return json.dumps({"type": "record", "name": name, "fields": listed})


def _name_of(subject: str) -> str:
    return f"R{subject[2:]}"


@pytest.fixture
def versions(registry: SimulatedRegistry, subject: str) -> list[Any]:
    """Three versions of a subject, the first of which is deleted softly."""
    name = _name_of(subject)
    found = [registry.register(subject, _record(name, *"abc"[: count + 1])) for count in range(3)]
    assert registry.ask("DELETE", f"/subjects/{subject}/versions/1") == (200, 1)
    return found


def test_the_service_says_who_it_is(registry: SimulatedRegistry) -> None:
    assert registry.ask("GET", "/") == (200, {})
    assert registry.ask("GET", "/schemas/types") == (200, ["JSON", "PROTOBUF", "AVRO"])
    assert registry.ask("GET", "/v1/metadata/version")[1]["version"] == f"ottla-{__version__}"
    clusters = registry.ask("GET", "/v1/metadata/id")[1]["scope"]["clusters"]
    assert clusters == {
        "kafka-cluster": registry.registry.cluster_id,
        "schema-registry-cluster": "schema-registry",
    }
    assert registry.registry.cluster_id


def test_versions_are_listed_as_wanted(
    registry: SimulatedRegistry, subject: str, versions: list[Any]
) -> None:
    path = f"/subjects/{subject}/versions"
    listed = {
        query: registry.ask("GET", f"{path}?{query}")[1]
        for query in (
            "",
            "deleted=true",
            "deletedOnly=true",
            "deletedAsNegative=true",
            "deleted=true&limit=2",
            "deleted=true&offset=1",
            "deleted=true&offset=1&limit=1",
            "deleted=true&limit=0",
            "deleted=true&limit=-1",
            "deleted=true&offset=-2",
            "deleted=TRUE",
            "deleted=no",
        )
    }
    assert listed == {
        "": [2, 3],
        "deleted=true": [1, 2, 3],
        "deletedOnly=true": [1],
        "deletedAsNegative=true": [-1, 2, 3],
        "deleted=true&limit=2": [1, 2],
        "deleted=true&offset=1": [2, 3],
        "deleted=true&offset=1&limit=1": [2],
        "deleted=true&limit=0": [1, 2, 3],
        "deleted=true&limit=-1": [1, 2, 3],
        "deleted=true&offset=-2": [1, 2, 3],
        "deleted=TRUE": [1, 2, 3],
        "deleted=no": [2, 3],
    }
    assert registry.ask("GET", f"{path}?offset=x")[0] == 404


def test_subjects_are_listed_as_wanted(
    registry: SimulatedRegistry, subject: str, versions: list[Any]
) -> None:
    gone = f"{subject}-gone"
    registry.register(gone, _record(_name_of(subject), "a"))
    registry.ask("DELETE", f"/subjects/{gone}")
    path = f"/subjects?subjectPrefix={subject}"

    assert registry.ask("GET", path)[1] == [subject]
    assert registry.ask("GET", f"{path}&deleted=true")[1] == [subject, gone]
    # A subject with a version that is left is not deleted, whatever became of the others.
    assert registry.ask("GET", f"{path}&deletedOnly=true")[1] == [gone]
    assert registry.ask("GET", f"{path}&deleted=true&offset=1")[1] == [gone]
    assert registry.ask("GET", f"/subjects/{gone}/versions")[1]["error_code"] == 40401
    assert registry.ask("GET", f"/subjects/{gone}/versions?deletedOnly=true")[1] == [1]


def test_schemas_are_listed_as_wanted(registry: SimulatedRegistry, subject: str, versions: list[Any]) -> None:
    def listed(query: str) -> list[tuple[int, bool]]:
        answer = registry.ask("GET", f"/schemas?subjectPrefix={subject}&{query}")[1]
        return [(item["version"], item["deleted"]) for item in answer]

    assert listed("") == [(2, False), (3, False)]
    assert listed("deleted=true") == [(1, True), (2, False), (3, False)]
    assert listed("latestOnly=true") == [(3, False)]
    assert listed("deleted=true&limit=1") == [(1, True)]
    assert listed("ruleType=CONDITION") == []
    registry.ask("PUT", f"/config/{subject}-other", {"alias": subject})
    plain, with_aliases = (
        registry.ask("GET", f"/schemas?subjectPrefix={subject}&latestOnly=true{more}")[1][0]
        for more in ("", "&aliases=true")
    )
    assert "aliases" not in plain
    assert with_aliases["aliases"] == [f"{subject}-other"]


def test_an_id_leads_to_all_places_that_have_the_schema(
    registry: SimulatedRegistry, subject: str, versions: list[Any]
) -> None:
    other = f"{subject}-other"
    second = versions[1]
    registry.register(other, second["schema"])
    by_id = f"/schemas/ids/{second['id']}"

    assert registry.ask("GET", f"{by_id}/subjects")[1] == [subject, other]
    places = [{"subject": subject, "version": 2}, {"subject": other, "version": 1}]
    assert registry.ask("GET", f"{by_id}/versions")[1] == places
    assert registry.ask("GET", f"{by_id}/versions?offset=1")[1] == places[1:]
    assert registry.ask("GET", by_id)[1]["subject"] == subject
    assert registry.ask("GET", f"{by_id}?subject={other}")[1]["subject"] == other
    assert "maxId" not in registry.ask("GET", by_id)[1]
    highest = registry.ask("GET", f"{by_id}?fetchMaxId=true")[1]["maxId"]
    assert highest == max(item["id"] for item in versions)
    deleted = f"/schemas/ids/{versions[0]['id']}/versions"
    assert registry.ask("GET", deleted)[1] == []
    assert registry.ask("GET", f"{deleted}?deleted=true")[1] == [{"subject": subject, "version": 1}]


def test_a_guid_leads_to_the_ids_of_each_context(registry: SimulatedRegistry, subject: str) -> None:
    text = _record(_name_of(subject), "g")
    here = registry.register(subject, text)
    there = registry.register(f":.{subject}:x", text)
    assert here["guid"] == there["guid"]

    ids = registry.ask("GET", f"/schemas/guids/{here['guid'].upper()}/ids")[1]

    assert sorted((item["context"], item["id"]) for item in ids) == [
        (".", here["id"]),
        (f".{subject}", there["id"]),
    ]
    assert registry.ask("GET", "/schemas/guids/none")[1]["error_code"] == 40403


def test_ids_are_looked_for_in_the_context_of_a_subject(registry: SimulatedRegistry, subject: str) -> None:
    context = f".{subject}"
    # Other tests of this registry have contexts with the same ids.
    name = f"{subject}-a"
    inner = registry.register(f":{context}:{name}", _record(_name_of(subject), "inner"))
    registry.register(f":{context}:b", _record(_name_of(subject), "more"))

    def found(query: str) -> Any:
        return registry.ask("GET", f"/schemas/ids/{inner['id']}?{query}")[1].get("subject")

    assert found(f"subject=:{context}:{name}") == f":{context}:{name}"
    assert found(f"subject=:{context}:") == f":{context}:{name}"
    # Without a context the other contexts are searched, too, for a subject of this name.
    assert found(f"subject={name}") == f":{context}:{name}"
    assert found(f"subject=:{context}-none:{name}") is None


def test_references_are_shown_and_counted(registry: SimulatedRegistry, subject: str) -> None:
    context = f".{subject}"
    base, user = f":{context}:base", f":{context}:user"
    registry.register(base, '{"type":"record","name":"n.Base","fields":[]}')
    references = [{"name": "n.Base", "subject": "base", "version": 1}]
    text = '{"type":"record","name":"n.User","fields":[{"name":"b","type":"n.Base"}]}'
    registered = registry.register(user, text, references=references)
    version = f"/subjects/{user}/versions/1"

    assert registry.ask("GET", version)[1]["references"] == references
    qualified = [{"name": "n.Base", "subject": base, "version": 1}]
    assert registry.ask("GET", f"{version}?referenceFormat=qualified")[1]["references"] == qualified
    by_id = f"/schemas/ids/{registered['id']}?subject={user}"
    assert registry.ask("GET", by_id)[1]["references"] == references
    assert registry.ask("GET", f"{by_id}&referenceFormat=qualified")[1]["references"] == qualified
    resolved = registry.ask("GET", f"{version}/schema?format=resolved")[1]
    assert resolved["fields"][0]["type"]["name"] in ("Base", "n.Base")
    assert registry.ask("GET", f"{version}/schema")[1]["fields"][0]["type"] in ("Base", "n.Base")
    counted = f"/subjects/{base}/versions/1/referencedby"
    assert registry.ask("GET", counted)[1] == [registered["id"]]
    registry.ask("DELETE", f"/subjects/{user}")
    assert registry.ask("GET", counted)[1] == []
    assert registry.ask("GET", f"{counted}?deleted=true")[1] == [registered["id"]]


def test_a_subject_is_looked_for_in_other_contexts(registry: SimulatedRegistry, subject: str) -> None:
    context = f".{subject}"
    text = _record(_name_of(subject), "x")
    registry.register(f":{context}:{subject}", text)

    assert registry.ask("GET", f"/subjects/{subject}/versions/1")[1]["subject"] == f":{context}:{subject}"
    looked_up = registry.ask("POST", f"/subjects/{subject}", {"schema": text})[1]
    assert looked_up["subject"] == f":{context}:{subject}"
    assert registry.ask("GET", f"/subjects/{subject}/versions/2")[1]["error_code"] == 40401
    other = registry.ask("POST", f"/subjects/:{context}:{subject}", {"schema": '"string"'})
    assert other[1]["error_code"] == 40403


def test_deleted_versions_are_found_when_asked_for(
    registry: SimulatedRegistry, subject: str, versions: list[Any]
) -> None:
    base = f"/subjects/{subject}"
    assert registry.ask("GET", f"{base}/versions/1")[1]["error_code"] == 40402
    assert registry.ask("GET", f"{base}/versions/1?deleted=true")[1]["version"] == 1
    assert registry.ask("GET", f"{base}/versions/1/schema")[1]["error_code"] == 40402
    assert registry.ask("GET", f"{base}/versions/1/schema?deleted=true")[0] == 200
    text = {"schema": versions[0]["schema"]}
    assert registry.ask("POST", base, text)[1]["error_code"] == 40403
    assert registry.ask("POST", f"{base}?deleted=true", text)[1]["version"] == 1
    assert registry.ask("POST", base, {"schema": ""})[1]["error_code"] == 40403


def test_metadata_of_deleted_versions_is_found_when_asked_for(
    registry: SimulatedRegistry, subject: str
) -> None:
    def metadata(**properties: str) -> dict[str, Any]:
        return {"properties": properties}

    name = _name_of(subject)
    registry.register(subject, _record(name, "a"), metadata=metadata(team="red", kind="x"))
    registry.register(subject, _record(name, "a", "b"), metadata=metadata(team="blue"))
    path = f"/subjects/{subject}/metadata"

    assert registry.ask("GET", f"{path}?key=team&value=red")[1]["version"] == 1
    assert registry.ask("GET", f"{path}?key=team&value=red&key=kind&value=x")[1]["version"] == 1
    assert registry.ask("GET", f"{path}?key=team&value=blue&key=kind&value=x")[1]["error_code"] == 40403
    assert registry.ask("GET", path)[1]["version"] == 2
    registry.ask("DELETE", f"/subjects/{subject}/versions/1")
    assert registry.ask("GET", f"{path}?key=team&value=red")[1]["error_code"] == 40403
    assert registry.ask("GET", f"{path}?key=team&value=red&deleted=true")[1]["version"] == 1
    assert registry.ask("GET", f"/subjects/{subject}-none/metadata")[1]["error_code"] == 40401


def test_contexts_are_listed_by_prefix(registry: SimulatedRegistry, subject: str) -> None:
    for end in ("a", "b"):
        registry.register(f":.{subject}-{end}:x", '"int"')
    listed = registry.ask("GET", f"/contexts?contextPrefix=.{subject}")[1]
    assert listed == [f".{subject}-a", f".{subject}-b"]
    assert registry.ask("GET", f"/contexts?contextPrefix=.{subject}&offset=1")[1] == listed[1:]
    assert registry.ask("GET", "/contexts")[1][0] == "."


def test_paths_below_a_context_are_about_it(registry: SimulatedRegistry, subject: str) -> None:
    context, base = f".{subject}", f"/contexts/.{subject}"
    assert registry.ask("POST", f"{base}/subjects/a/versions", {"schema": '"int"'})[0] == 200
    assert registry.ask("GET", f"{base}/subjects/a/versions") == (200, [1])
    assert registry.ask("GET", f"{base}/subjects/:{context}:a/versions") == (200, [1])
    assert registry.ask("GET", f"{base}/schemas")[1][0]["subject"] == f":{context}:a"
    assert registry.ask("GET", f"{base}/schemas?subjectPrefix=b")[1] == []
    verdict = f"{base}/compatibility/subjects/a/versions/latest"
    assert registry.ask("POST", verdict, {"schema": '"string"'})[1] == {"is_compatible": False}
    assert registry.ask("PUT", f"{base}/config", {"compatibility": "FULL"})[0] == 200
    assert registry.ask("GET", f"/config/:{context}:")[1] == {"compatibilityLevel": "FULL"}
    assert registry.ask("PUT", f"{base}/mode/a", {"mode": "READONLY"})[0] == 200
    assert registry.ask("GET", f"/mode/:{context}:a") == (200, {"mode": "READONLY"})
    # Two segments alone name the context itself.
    assert registry.ask("DELETE", f"/contexts/{context}")[1]["error_code"] == 42211


@pytest.mark.parametrize(
    ("data", "status", "words"),
    [
        (b"", 422, "must not be null"),
        (b" \n", 422, "must not be null"),
        (b"null", 422, "must not be null"),
        (b'{"a', 400, "end-of-input in field name"),
        (b"\xff", 400, "UTF-8"),
        (b"[" * 40_000, 400, "nested too deeply"),
        (b"{,}", 400, "not JSON"),
        (b'"x"', 400, "it is an object"),
    ],
)
def test_bodies_that_are_no_objects_are_refused(
    registry: SimulatedRegistry, data: bytes, status: int, words: str
) -> None:
    found, answer = registry.ask("PUT", "/config/some", data)
    assert (found, answer["error_code"]) == (status, status)
    assert words in answer["message"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"schema": 1}, "schema"),
        ({"schemaType": 1}, "schemaType"),
        ({"id": "x"}, "id"),
        ({"version": "x"}, "version"),
        ({"references": {}}, "references"),
        ({"metadata": []}, "metadata"),
        ({"metadata": {"properties": ["x"]}}, "metadata.properties"),
        ({"metadata": {"properties": {"a": 1}}}, "metadata.properties"),
        ({"metadata": {"tags": ["x"]}}, "metadata.tags"),
        ({"metadata": {"tags": {"a": "x"}}}, "metadata.tags"),
        ({"ruleSet": []}, "ruleSet"),
        ({"ruleSet": {"domainRules": ["x"]}}, "ruleSet.domainRules"),
        ({"ruleSet": {"encodingRules": [{"kind": "NONE"}]}}, "ruleSet.encodingRules.kind"),
        ({"ruleSet": {"migrationRules": [{"mode": "NONE"}]}}, "ruleSet.migrationRules.mode"),
    ],
)
def test_requests_of_a_wrong_form_are_refused(
    registry: SimulatedRegistry, subject: str, body: dict[str, Any], named: str
) -> None:
    status, answer = registry.ask("POST", f"/subjects/{subject}/versions", {"schema": '"int"', **body})
    assert (status, answer["error_code"]) == (400, 400)
    assert answer["message"].startswith(f"Cannot deserialize {named}: ")


def test_rules_are_checked_and_not_kept(registry: SimulatedRegistry, subject: str) -> None:
    rules = {"domainRules": [{"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL"}]}
    assert "ruleSet" not in registry.register(subject, '"int"', ruleSet=rules)
