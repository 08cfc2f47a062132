"""What a visitor changes: planned first, asked for, and then done."""

import asyncio
import html
import json
import re
from collections.abc import Iterator

import pytest
from tests.cli.typing import succeed
from tests.console.conftest import QUICK
from tests.console.test_pages import text_of
from tests.support.console_visitor import ConsoleVisitor

from ottla.client.admin import Admin
from ottla.client.producer import Producer
from ottla.model.ids import TopicPartition
from ottla.testing.node import ThreadNode


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadNode]:
    """A node that may be changed."""
    with ThreadNode(tmp_path_factory.mktemp("acts"), QUICK) as running:
        yield running


@pytest.fixture(scope="module")
def acting(node: ThreadNode) -> Iterator[ConsoleVisitor]:
    """Somebody who changes it."""
    with ConsoleVisitor.of(node.bootstrap) as looking:
        yield looking


def hidden_fields(page: str, sure: str = "yes") -> dict[str, str]:
    """Return the fields of the form that carries a plan out."""
    forms = re.findall(r"<form[^>]*>.*?</form>", page, re.DOTALL)
    (form,) = [one for one in forms if f'name="sure" value="{sure}"' in one]
    fields = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form)
    texts = re.findall(r'<textarea name="([^"]+)"[^>]*>(.*?)</textarea>', form, re.DOTALL)
    return {name: html.unescape(value) for name, value in (*fields, *texts)}


def commands_of(page: str) -> list[str]:
    return [html.unescape(one) for one in re.findall(r'data-copy="([^"]*)"', page)]


def test_a_topic_is_created_after_it_was_looked_at(acting: ConsoleVisitor, node: ThreadNode) -> None:
    form = {"name": "made", "partitions": "2", "replicas": "1", "configs": "retention.ms=1000"}
    plan = acting.post("/create-topic", form)
    assert "This is what the cluster would create" in plan.text
    assert "made" not in acting.page("/topics")
    command = "ottla topic create made --partitions 2 --replication-factor 1 --config retention.ms=1000"
    assert f"{command} --bootstrap {node.bootstrap}" in commands_of(plan.text)
    done = acting.post("/create-topic", hidden_fields(plan.text))
    assert done.headers["location"] == "/c/c/topics/made"
    assert "made" in acting.page("/topics")
    assert re.search(r"retention\.ms 1000 set on this topic", text_of(acting.page("/topics/made/configs")))


def test_what_cannot_be_created_is_a_sentence(acting: ConsoleVisitor) -> None:
    for form, said in (
        ({"name": "a b", "partitions": "1"}, "Topic name is invalid"),
        ({"name": "x", "partitions": "none"}, "no number of partitions"),
        ({"name": "x", "replicas": "7"}, "replication"),
        ({"name": "x", "configs": "retention"}, "line 1 is not"),
        ({"name": "x", "configs": "no.such.config=1"}, "no.such.config"),
    ):
        answer = acting.post("/create-topic", form)
        assert answer.status_code == 400
        assert said in text_of(answer.text)


def test_partitions_and_configs_are_changed_after_a_plan(acting: ConsoleVisitor, node: ThreadNode) -> None:
    node.create_topic("grows")
    plan = acting.post("/topics/grows/change", {"what": "partitions", "partitions": "3"})
    assert "Keys go to other partitions" in plan.text
    assert "There are 1." in plan.text
    acting.post("/topics/grows/change", hidden_fields(plan.text))
    assert "There are 3." in acting.page("/topics/grows/change")
    plan = acting.post("/topics/grows/change", {"what": "configs", "configs": "retention.ms=5000"})
    assert re.search(r"retention\.ms 604800000 5000", text_of(plan.text))
    acting.post("/topics/grows/change", hidden_fields(plan.text))
    plan = acting.post("/topics/grows/change", {"what": "configs", "configs": "retention.ms="})
    assert re.search(r"retention\.ms 5000 what the broker has no longer set", text_of(plan.text))
    assert acting.post("/topics/grows/change", {"what": "partitions", "partitions": "1"}).status_code == 400
    assert acting.post("/topics/grows/change", {"what": "evil"}).status_code == 400


def test_a_topic_is_deleted_only_by_its_name(acting: ConsoleVisitor, node: ThreadNode) -> None:
    node.create_topic("goes")
    node.produce("goes", "x")
    plan = acting.post("/topics/goes/change", {"what": "delete"})
    assert "deleted for good: 1 records" in text_of(plan.text)
    fields = hidden_fields(plan.text)
    assert acting.post("/topics/goes/change", {**fields, "name": "go"}).status_code == 400
    assert "goes" in acting.page("/topics")
    done = acting.post("/topics/goes/change", {**fields, "name": "goes"})
    assert done.headers["location"] == "/c/c/topics"
    assert "goes" not in acting.page("/topics")


def test_a_topic_is_emptied_only_by_its_name(acting: ConsoleVisitor, node: ThreadNode) -> None:
    node.create_topic("empties")
    node.produce("empties", "x")
    plan = acting.post("/topics/empties/change", {"what": "empty"})
    acting.post("/topics/empties/change", {**hidden_fields(plan.text), "name": "empties"})
    assert "There are no records here" in acting.page("/topics/empties/records")


async def commit(bootstrap: str, group: str, topics: tuple[str, ...]) -> None:
    async with Admin(bootstrap) as admin:
        await admin.group_offsets.alter(group, {TopicPartition(topic, 0): 5 for topic in topics})


def test_a_group_is_reset_in_one_topic_after_a_plan(acting: ConsoleVisitor, node: ThreadNode) -> None:
    for topic in ("first", "second"):
        node.create_topic(topic)
        for number in range(10):
            node.produce(topic, str(number))
    asyncio.run(commit(node.bootstrap, "reset", ("first", "second")))
    form = {"topic": "first", "to": "shift", "number": "-2"}
    plan = acting.post("/groups/reset/reset", form)
    assert re.search(r"first 0 5 3 -2 ▲ again", text_of(plan.text))
    assert "second" not in text_of(plan.text).partition("Move the group")[0]
    (command,) = [one for one in commands_of(plan.text) if "reset" in one]
    assert command == (
        f"ottla group reset reset --topic first --shift-by=-2 --execute --bootstrap {node.bootstrap}"
    )
    assert re.search(r"first 0 5 10 5", text_of(acting.page("/groups/reset")))
    acting.post("/groups/reset/reset", hidden_fields(plan.text))
    page = text_of(acting.page("/groups/reset"))
    assert re.search(r"first 0 3 10 7", page)
    assert re.search(r"second 0 5 10 5", page)


@pytest.mark.parametrize(
    "form",
    [
        {"topic": "", "to": "earliest"},
        {"topic": "first", "to": "offset", "number": "x"},
        {"topic": "first", "to": "time", "number": "yesterday"},
        {"topic": "first", "to": "evil", "number": "1"},
        {"topic": "nowhere", "to": "earliest"},
    ],
)
def test_what_is_no_reset_is_a_sentence(acting: ConsoleVisitor, form: dict[str, str]) -> None:
    answer = acting.post("/groups/any/reset", form)
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text


def test_a_group_is_deleted_after_it_was_asked(acting: ConsoleVisitor, node: ThreadNode) -> None:
    node.create_topic("read")
    asyncio.run(commit(node.bootstrap, "old group", ("read",)))
    asked = acting.post("/groups/old%20group/delete", {})
    assert "Delete the group old group" in text_of(asked.text)
    # It was made behind the back of the console.
    assert "old group" in acting.page("/groups?fresh=1")
    assert acting.post("/groups/old%20group/delete", hidden_fields(asked.text)).status_code == 303
    assert "old group" not in acting.page("/groups")


def test_a_record_is_written_and_its_copy_can_be_edited(acting: ConsoleVisitor, node: ThreadNode) -> None:
    node.create_topic("written")
    form = {
        "key": "k",
        "value": '{"n": 9007199254740993}',
        "headers": "source: me\n",
        "key_encoding": "text",
        "value_encoding": "text",
    }
    page = acting.post("/topics/written/produce", form)
    assert "partition 0, offset 0" in page.text
    copy = acting.page("/topics/written/produce?partition=0&offset=0")
    assert html.unescape(copy).count('{"n": 9007199254740993}') == 1
    assert "source: me" in copy
    binary = {**form, "value": "//4A", "value_encoding": "base64", "key_null": "1"}
    acting.post("/topics/written/produce", binary)
    assert node.values("written") == [b'{"n": 9007199254740993}', b"\xff\xfe\x00"]
    assert "//4A" in html.unescape(acting.page("/topics/written/produce?partition=0&offset=1"))
    assert acting.post("/topics/written/produce", {**binary, "value": "?"}).status_code == 400


def test_many_records_are_looked_at_before_they_are_written(acting: ConsoleVisitor, node: ThreadNode) -> None:
    node.create_topic("many")
    lines = "\n".join(json.dumps({"key": str(number), "value": f"v{number}"}) for number in range(30))
    looked = acting.post("/topics/many/produce/many", {"records": lines, "form": "jsonl"})
    assert "Write 30 records?" in looked.text
    assert node.values("many") == []
    acting.post("/topics/many/produce/many", hidden_fields(looked.text, sure="30"))
    assert node.values("many") == [f"v{number}".encode() for number in range(30)]
    comma = acting.post("/topics/many/produce/many", {"records": 'key,value\r\na,"b,c"\r\n', "form": "csv"})
    acting.post("/topics/many/produce/many", hidden_fields(comma.text, sure="1"))
    assert node.values("many")[-1] == b"b,c"


def test_a_record_of_10_megabytes_breaks_no_page(acting: ConsoleVisitor, node: ThreadNode) -> None:
    node.create_topic("heavy", configs={"max.message.bytes": "11000000"})
    value = b'{"html": "' + b"<b>" * 3_400_000 + b'"}'

    async def write() -> None:
        async with Producer(node.bootstrap, max_request_size=11_000_000) as producer:
            await (await producer.send("heavy", value, key=b"k"))

    asyncio.run(write())
    page = acting.page("/topics/heavy/records")
    assert len(page) < 30_000
    assert "<b>" not in page
    for form in ("pretty", "raw", "hex"):
        page = acting.page(f"/topics/heavy/records/0/0?as={form}")
        assert "This is the beginning" in page
        assert len(page) < 400_000
    assert acting.get("/topics/heavy/records/0/0/value").content == value
    copy = acting.get("/topics/heavy/produce?partition=0&offset=0")
    assert copy.status_code == 413


@pytest.mark.parametrize(
    ("form", "text", "said"),
    [
        ("jsonl", '{"value": "x"}\n{"vlaue": "x"}', "line 2"),
        ("jsonl", "nope", "line 1"),
        ("jsonl", '{"value": "x", "partition": -1}', "line 1"),
        ("jsonl", "", "no record"),
        ("csv", "a,b\n1,2", "must name the columns"),
        ("csv", "key,value,partition\n1,2,x", "line"),
    ],
)
def test_input_that_is_wrong_writes_nothing(acting: ConsoleVisitor, form: str, text: str, said: str) -> None:
    answer = acting.post("/topics/many/produce/many", {"records": text, "form": form})
    assert answer.status_code == 400
    assert said in answer.text


def test_exports_are_what_was_written(acting: ConsoleVisitor, node: ThreadNode) -> None:
    node.create_topic("exported", 2)
    for number in range(20):
        node.produce("exported", f"=cmd{number}", key=str(number), headers=[("h", b"1")])
    lines = acting.get("/topics/exported/export/file?form=jsonl").text.splitlines()
    printed = succeed("consume", "exported", "--json", "--bootstrap", node.bootstrap).out.splitlines()
    assert sorted(lines) == sorted(printed)
    table = acting.get("/topics/exported/export/file?form=csv").text.splitlines()
    assert len(table) == 21
    assert "'=cmd" in table[1], "a spreadsheet would take it for a formula"
    assert len(acting.get("/topics/exported/export/file?form=jsonl&count=3").text.splitlines()) == 3
    assert acting.get("/topics/exported/export/file?form=evil").status_code == 400
    assert acting.get("/topics/nowhere/export/file").status_code == 404


def test_a_parquet_file_has_keys_and_values_as_they_are(acting: ConsoleVisitor, node: ThreadNode) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    import io

    node.create_topic("columns")
    node.produce("columns", b"\xff\x00", key="k", headers=[("h", b"1")])
    data = acting.get("/topics/columns/export/file?form=parquet").content
    (row,) = parquet.read_table(io.BytesIO(data)).to_pylist()
    assert row["value"] == b"\xff\x00"
    assert row["headers"] == [{"name": "h", "value": b"1"}]


def test_an_open_transaction_is_shown_and_aborted_after_it_was_asked(
    acting: ConsoleVisitor, node: ThreadNode
) -> None:
    node.create_topic("ledger")

    async def run() -> None:
        async with Producer(node.bootstrap, transactional_id="pay-1") as producer:
            producer.begin_transaction()
            await (await producer.send("ledger", b"x"))
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(None, look)

    def look() -> None:
        page = text_of(acting.page("/transactions"))
        assert re.search(r"pay-1 ● Ongoing [\d.]+ m?s ledger-0", page)
        asked = acting.post("/transactions/abort", {"name": "pay-1"})
        assert "Abort it?" in asked.text
        assert "Ongoing" in acting.page("/transactions")
        assert acting.post("/transactions/abort", hidden_fields(asked.text)).status_code == 303
        assert "Ongoing" not in text_of(acting.page("/transactions")).partition("pay-1")[2]

    asyncio.run(run())
