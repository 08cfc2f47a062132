"""Schemas: versions, differences, and changes that are planned first; records by their schemas."""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping

import pytest
from tests.console.conftest import QUICK
from tests.console.test_acts import commands_of, hidden_fields
from tests.console.test_pages import text_of
from tests.support.console_visitor import ConsoleVisitor
from tests.support.registry_process import RegistryProcess

from ottla.client.producer import Producer
from ottla.client.registry.avro import AvroSerializer
from ottla.client.registry.client import RegistryClient
from ottla.testing.node import ThreadNode


def order(*more: Mapping[str, object]) -> dict[str, object]:
    return {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, *more]}


NOTE = {"name": "note", "type": "string", "default": ""}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadNode]:
    """A node whose registry may be changed."""
    with ThreadNode(tmp_path_factory.mktemp("schemas"), QUICK) as running:
        yield running


@pytest.fixture(scope="module")
def registry(node: ThreadNode) -> Iterator[RegistryProcess]:
    """A registry with two versions of a subject."""
    with RegistryProcess(node.bootstrap) as running:
        running.register("orders-value", order())
        running.register("orders-value", order(NOTE))
        yield running


@pytest.fixture
def acting(node: ThreadNode, registry: RegistryProcess) -> Iterator[ConsoleVisitor]:
    """Somebody who changes schemas."""
    url = registry.url.replace("http://", "http://who:secret@")
    with ConsoleVisitor.of(node.bootstrap, url) as looking:
        yield looking


def test_subjects_are_listed_with_their_latest_versions(
    acting: ConsoleVisitor, registry: RegistryProcess
) -> None:
    page = acting.page("/schemas?q=ORDERS-")
    assert re.search(r"orders-value AVRO 2 \d+", text_of(page))
    assert "compatibility BACKWARD" in page
    # A password in the URL is no part of the command.
    assert commands_of(page) == [f"ottla schema list --registry {registry.url}"]
    assert "secret" not in page
    assert "No subject has such a name" in acting.page("/schemas?q=nothing")


def test_two_versions_are_compared(acting: ConsoleVisitor) -> None:
    page = acting.page("/schemas/orders-value")
    assert '<span class="added">+      &#34;name&#34;: &#34;note&#34;' in page
    assert "ottla schema diff orders-value --from 1 --to 2" in commands_of(page)[0]
    page = acting.page("/schemas/orders-value?version=1&from=2")
    assert '<span class="removed">-      &#34;name&#34;: &#34;note&#34;' in page
    assert acting.get("/schemas/nothing").status_code == 404


def test_a_schema_that_does_not_fit_is_not_offered(acting: ConsoleVisitor) -> None:
    wrong = {"name": "id", "type": "string"}
    form = {"subject": "orders-value", "type": "AVRO", "schema": json.dumps({**order(), "fields": [wrong]})}
    plan = acting.post("/register-schema", form)
    assert "It does not fit" in plan.text
    assert "sure" not in plan.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "{"}, "not a schema of type AVRO"),
        ({"schema": ""}, "a schema is needed"),
        ({"subject": ""}, "a subject is needed"),
        ({"type": "XML"}, "the type is one of"),
        ({"references": "x"}, "is not NAME=SUBJECT:VERSION"),
        ({"schema": json.dumps(order()) + "\u200b"}, "invisible characters"),
    ],
)
def test_what_is_no_schema_is_a_sentence(acting: ConsoleVisitor, change: dict[str, str], said: str) -> None:
    form = {"subject": "other-value", "type": "AVRO", "schema": json.dumps(order()), **change}
    answer = acting.post("/register-schema", form)
    assert answer.status_code == 400
    assert said in text_of(answer.text)


def test_a_schema_is_registered_and_deleted_after_a_plan(
    acting: ConsoleVisitor, registry: RegistryProcess
) -> None:
    name = "a b/made-value"
    text = json.dumps(order(), indent=2)
    for _ in range(2):
        # The second time shows that nothing is remembered of what was deleted.
        form = {"subject": name, "type": "AVRO", "schema": text.replace("\n", "\r\n")}
        plan = acting.post("/register-schema", form)
        assert "the first version of a new subject" in plan.text
        command = "ottla schema register 'a b/made-value' schema.avsc --type AVRO --registry"
        assert commands_of(plan.text) == [f"{command} {registry.url}"]
        assert "made-value" not in acting.page("/schemas")
        done = acting.post("/register-schema", hidden_fields(plan.text))
        assert done.headers["location"] == "/c/c/schemas/a%20b%2Fmade-value"
        again = acting.post("/register-schema", form)
        assert "It is there already, as version" in text_of(again.text)
        asked = acting.post("/schemas/a%20b%2Fmade-value/delete", {})
        assert "made-value" in acting.page("/schemas")
        fields = hidden_fields(asked.text)
        assert acting.post("/schemas/a%20b%2Fmade-value/delete", fields).status_code == 400
        acting.post("/schemas/a%20b%2Fmade-value/delete", {**fields, "name": name})
        assert "made-value" not in acting.page("/schemas")


def test_a_new_version_begins_as_the_latest_one(acting: ConsoleVisitor) -> None:
    page = acting.page("/register-schema?subject=orders-value")
    assert "&#34;note&#34;" in page


def test_records_are_decoded_by_their_schemas_or_say_why_not(
    acting: ConsoleVisitor, node: ThreadNode, registry: RegistryProcess
) -> None:
    node.create_topic("orders")

    async def write() -> None:
        with RegistryClient(registry.url) as client:
            value = AvroSerializer(client, json.dumps(order(NOTE)))("orders", {"id": 2**53 + 1, "note": "x"})
        assert value is not None
        async with Producer(node.bootstrap) as producer:
            for one in (value, value[:5], b"\0\0\0\x4e\x20x"):
                await producer.send("orders", one)

    asyncio.run(write())
    page = acting.page("/topics/orders/records/0/0?as=pretty")
    assert "9007199254740993" in page
    assert re.search(r"Avro schema \d+", page)
    assert "the bytes do not fit Avro schema" in acting.page("/topics/orders/records/0/1")
    page = acting.page("/topics/orders/records/0/2")
    assert "does not give schema 20000" in page
    assert "secret" not in page


def test_without_a_registry_the_page_says_how_to_name_one(visitor: ConsoleVisitor) -> None:
    assert "--registry URL" in visitor.page("/schemas")
    assert visitor.get("/schemas/x").status_code == 404
