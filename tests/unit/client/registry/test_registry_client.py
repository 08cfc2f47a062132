"""A client of a registry asks nothing twice that cannot change, and tries another URL where one is gone."""

import json
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest

from ottla.client.registry import client as module
from ottla.client.registry.client import (
    Registered,
    RegistryClient,
    RegistryRefused,
    RegistryUnreachable,
)
from ottla.schemas.parsed import Reference

SCHEMA = '{"type": "int"}'


class Answering:
    """What is asked of any URL, and what is answered."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.answer: Callable[[httpx.Request], httpx.Response] = lambda _request: httpx.Response(200, json={})

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        self.asked.append((request.method, str(request.url), body))
        return self.answer(request)

    def says(self, content: Any, status: int = 200) -> None:
        self.answer = lambda _request: httpx.Response(status, json=content)


@pytest.fixture
def answering() -> Answering:
    return Answering()


def client(answering: Answering, urls: Any = "http://a") -> RegistryClient:
    made = RegistryClient(urls)
    headers = made._client.headers
    made._client.close()
    made._client = httpx.Client(transport=httpx.MockTransport(answering), headers=headers)
    return made


def test_a_schema_is_registered_once_and_then_known(answering: Answering) -> None:
    answering.says({"id": 7, "version": 2, "guid": "g"})
    with client(answering) as registry:
        found = registry.register("a/b", SCHEMA)
        assert found == Registered(7, "AVRO", SCHEMA, (), "a/b", 2, "g")
        assert registry.register("a/b", SCHEMA) is found
        assert answering.asked == [("POST", "http://a/subjects/a%2Fb/versions", {"schema": SCHEMA})]
        # Another way to ask is another question.
        registry.register("a/b", SCHEMA, normalize=True)
        registry.register("c", SCHEMA)
        registry.find("a/b", SCHEMA)
    assert [url for _, url, _ in answering.asked[1:]] == [
        "http://a/subjects/a%2Fb/versions?normalize=true",
        "http://a/subjects/c/versions",
        "http://a/subjects/a%2Fb",
    ]


def test_what_is_no_avro_says_its_type_and_its_references(answering: Answering) -> None:
    answering.says({"id": 7})
    reference = Reference("other.proto", "other", 3)
    found = client(answering).register("s", "text", "PROTOBUF", [reference])
    assert answering.asked[0][2] == {
        "schema": "text",
        "schemaType": "PROTOBUF",
        "references": [{"name": "other.proto", "subject": "other", "version": 3}],
    }
    # A registry that answers with the id alone has registered what was sent.
    assert found == Registered(7, "PROTOBUF", "text", (reference,), "s")


def test_schemas_are_found_by_id_by_guid_and_by_version_and_kept(answering: Answering) -> None:
    registry = client(answering)
    answering.says({"schema": SCHEMA})
    by_id = registry.by_id(7)
    assert by_id == Registered(7, "AVRO", SCHEMA)
    assert registry.by_id(7) is by_id
    assert registry.by_id(7, "s") == by_id
    answering.says({"schema": SCHEMA, "id": 9})
    assert registry.by_guid("g") == Registered(9, "AVRO", SCHEMA, guid="g")
    assert registry.by_guid("g") is registry.by_guid("g")
    assert registry.version("s", 2) is registry.version("s", 2)
    assert [url for _, url, _ in answering.asked] == [
        "http://a/schemas/ids/7",
        "http://a/schemas/ids/7?subject=s",
        "http://a/schemas/guids/g",
        "http://a/subjects/s/versions/2?deleted=true",
    ]
    answering.says({"schema": SCHEMA})
    assert registry.by_guid("h").id == -1, "an old registry does not tell it"


def test_the_latest_version_is_asked_for_each_time(answering: Answering) -> None:
    registry = client(answering)
    for version in (1, 2):
        answering.says({"id": version, "version": version, "subject": "s", "schema": SCHEMA})
        assert registry.latest("s").version == version


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"is_compatible": True, "messages": ["ignored"]}, []),
        ({"is_compatible": False, "messages": ["a", "b"]}, ["a", "b"]),
        ({"is_compatible": False, "messages": []}, ["the schema is not compatible"]),
        ({"is_compatible": False}, ["the schema is not compatible"]),
    ],
)
def test_what_stands_against_a_schema_is_told(answering: Answering, answer: Any, expected: list[str]) -> None:
    answering.says(answer)
    assert client(answering).incompatibilities("s", SCHEMA) == expected
    assert answering.asked[0][1] == "http://a/compatibility/subjects/s/versions?verbose=true"


def test_references_are_resolved_with_the_inner_ones_first(answering: Answering) -> None:
    known = {
        "b": {"id": 2, "schema": "B", "references": [{"name": "c", "subject": "c", "version": 1}]},
        "c": {"id": 3, "schema": "C"},
    }
    answering.answer = lambda request: httpx.Response(200, json=known[request.url.path.split("/")[2]])
    wanted = [Reference("b", "b", 1), Reference("c", "c", 1), Reference("b", "other", 9)]
    assert list(client(answering).resolve(wanted).items()) == [("c", "C"), ("b", "B")]
    assert len(answering.asked) == 2


# Errors


def test_a_refusal_has_the_code_and_the_words_of_the_registry(answering: Answering) -> None:
    answering.says({"error_code": 40401, "message": "Subject not found"}, 404)
    with pytest.raises(RegistryRefused, match=r"refused: Subject not found \(error 40401\)") as caught:
        client(answering).latest("s")
    assert (caught.value.code, caught.value.retriable) == (40401, False)
    for content in (b"<html>", b"", b'["error_code"]', b'{"message": "x"}'):
        answering.answer = partial(_error, content)
        with pytest.raises(RegistryRefused, match="HTTP 500, and no message") as caught:
            client(answering).latest("s")
        assert caught.value.code == 500


def _error(content: bytes, _request: httpx.Request) -> httpx.Response:
    return httpx.Response(500, content=content)


def test_an_answer_without_content_is_nothing(answering: Answering) -> None:
    answering.answer = lambda _request: httpx.Response(204)
    assert client(answering).ask("DELETE", "/subjects/s") is None
    answering.answer = lambda _request: httpx.Response(200, content=b"no json")
    assert client(answering).ask("GET", "/") is None


def test_options_that_are_false_are_left_out(answering: Answering) -> None:
    client(answering).ask("GET", "/x", permanent=False, deleted=True, limit=0, name="n")
    assert answering.asked[0][1] == "http://a/x?deleted=true&limit=0&name=n"


def hosts(answering: Answering) -> list[str]:
    return [httpx.URL(url).host for _, url, _ in answering.asked]


def test_a_url_that_does_not_answer_is_asked_last_from_then_on(answering: Answering) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "a":
            raise httpx.ConnectError("refused")
        return httpx.Response(200, json={"id": 1})

    answering.answer = answer
    registry = client(answering, " http://a/ , ,http://b")
    registry.latest("s")
    registry.latest("s")
    assert hosts(answering) == ["a", "b", "b"]


@pytest.mark.parametrize("status", [502, 503, 504])
def test_an_instance_that_cannot_serve_now_is_passed_over_once(answering: Answering, status: int) -> None:
    answering.answer = lambda request: httpx.Response(
        status if request.url.host == "a" else 200, json={"error_code": 1, "message": "m", "id": 1}
    )
    registry = client(answering, ["http://a", "http://b"])
    registry.latest("s")
    registry.latest("s")
    assert hosts(answering) == ["a", "b", "a", "b"]
    # The only one there is says itself what is wrong.
    with pytest.raises(RegistryRefused):
        client(answering).latest("s")


def test_when_nobody_answers_each_url_is_named_with_its_reason(answering: Answering) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "a":
            raise httpx.ConnectError("refused")
        if request.url.host == "b":
            raise httpx.ReadTimeout("")
        return httpx.Response(503)

    answering.answer = answer
    with pytest.raises(RegistryUnreachable, match="no schema registry answers") as caught:
        client(answering, "http://a,http://b,http://c").latest("s")
    assert "(http://a: refused; http://b: ReadTimeout; http://c: HTTP 503)" in str(caught.value)
    assert caught.value.retriable


# Connections


def test_a_client_needs_a_url() -> None:
    listed: tuple[Any, ...] = ("", " , ", [])
    for urls in listed:
        with pytest.raises(ValueError, match="needs the URL of a registry"):
            RegistryClient(urls)


def test_a_password_goes_with_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, Any]] = []
    monkeypatch.setattr("httpx.Client", lambda **told: made.append(told))
    RegistryClient("http://a", password="p")
    RegistryClient("http://a", username="u")
    RegistryClient("http://a", username="u", password="p", timeout_s=4.0)
    assert [told["auth"] for told in made] == [None, ("u", ""), ("u", "p")]
    assert [told["timeout"] for told in made] == [30.0, 30.0, 4.0]
    kind = "application/vnd.schemaregistry.v1+json"
    assert made[0]["headers"] == {"Accept": kind, "Content-Type": kind}


def test_certificates_matter_where_something_is_encrypted() -> None:
    assert module._tls(["http://a"], "/no/such/file", None) is False
    assert module._tls(["http://a", "HTTPS://b"], None, None) is True
    with pytest.raises(OSError, match="No such file"):
        module._tls(["https://a"], "/no/such/file", None)
    with pytest.raises(OSError, match="No such file"):
        module._tls(["https://a"], None, ("/no/such/file", "/no/such/file"))
    authorities = ssl.get_default_verify_paths().cafile
    context = module._tls(["https://a"], authorities, None) if authorities else ssl.create_default_context()
    assert not authorities or context.verify_flags & ssl.VERIFY_X509_PARTIAL_CHAIN
