"""Changes of PostgreSQL: what is made there, which rows and changes become records, and what is forgotten."""

import asyncio
import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.connect.connectors.sql import postgres_changes
from ottla.connect.connectors.sql.database import Column
from ottla.connect.connectors.sql.pgoutput import (
    UNCHANGED,
    Begin,
    Change,
    Commit,
    Message,
    Relation,
    RelationColumn,
    Truncate,
)
from ottla.connect.connectors.sql.postgres_changes import PostgresChangesTask, _Visible, from_text
from ottla.connect.data.record import Record
from ottla.connect.data.schema import (
    BOOLEAN,
    BYTES,
    DATE_SCHEMA,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    Schema,
    decimal_schema,
    optional,
)
from ottla.connect.errors import ConnectError
from ottla.connect.plugins import Offset
from ottla.connect.running.task import SourceContext

(PLUGIN,) = postgres_changes.PLUGINS
INT8, TEXT = 20, 25
ITEMS = Relation(
    7, "public", "items", (RelationColumn("id", INT8, -1, True), RelationColumn("a", TEXT, -1, False))
)
COLUMNS = [Column("id", INT64, True), Column("a", optional(STRING))]


class Server:
    """Stands where PostgreSQL does. The log has messages, of which a test adds some."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.level = "logical"
        self.tables = [("other", "items"), ("public", "items"), ("public", "more")]
        self.published: list[str] | None = None
        self.slots: list[str] = []
        self.rows: dict[str, list[tuple[Any, ...]]] = {}
        self.snapshot = "100:100:"
        self.confirmed = "0/10"
        self.now = "0/20"
        self.log: list[Message | None] = []
        self.asked: list[tuple[str, tuple[Any, ...]]] = []
        self.limits: list[int] = []
        self.is_closed = False
        monkeypatch.setattr(postgres_changes, "decode", lambda data: self.log[int(data)])
        monkeypatch.setattr(PostgresChangesTask, "_open", lambda task: self)

    def close(self) -> None:
        self.is_closed = True

    def columns(self, table: str) -> list[Column]:
        return COLUMNS

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> tuple[list[Column], list[Any]]:
        self.asked.append((statement, tuple(parameters)))
        return [], list(self._rows(statement, tuple(parameters)))

    def _rows(self, statement: str, parameters: tuple[Any, ...]) -> Sequence[Any]:
        words = statement.split()
        if statement.startswith("FETCH"):
            place = int(words[-1].removeprefix("ottla_"))
            rows = self.rows.get(self._cursors[place], [])
            count, rows[:] = int(words[1]), rows
            taken, rows[:] = rows[:count], rows[count:]
            return taken
        if statement.startswith("DECLARE"):
            self._cursors[int(words[1].removeprefix("ottla_"))] = words[-1].replace('"', "")
        elif "create_logical" in statement:
            self.slots.append(parameters[0])
        elif "peek_binary" in statement:
            self.limits.append(parameters[1])
            return [(b"%d" % place,) for place in range(len(self.log))][: parameters[1]]
        found: Mapping[str, Sequence[Any]] = {
            "SHOW wal_level": [(self.level,)],
            "FROM pg_tables": self.tables,
            "pg_publication_tables": [(name,) for name in self.published or ()],
            "FROM pg_publication WHERE": [] if self.published is None else [(1,)],
            "SELECT 1 FROM pg_replication_slots": [(1,)]
            if parameters and parameters[0] in self.slots
            else [],
            "confirmed_flush_lsn": [(self.confirmed,)],
            "pg_current_snapshot": [(self.snapshot,)],
            "pg_current_wal_lsn": [(self.now,)],
        }
        return next((rows for text, rows in found.items() if text in statement), [])

    _cursors: dict[int, str] = {}  # noqa: RUF012 - one server for each test

    def told(self, text: str) -> list[tuple[str, tuple[Any, ...]]]:
        """Return what was asked that has a text in it."""
        return [item for item in self.asked if text in item[0]]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server(monkeypatch)
    made._cursors = {}
    return made


def config(**options: str) -> dict[str, str]:
    named = {name.replace("_", "."): value for name, value in options.items()}
    return {"topic.prefix": "p", "database.dbname": "shop", "poll.interval.ms": "1", **named}


async def started(position: dict[str, Any] | None = None, **options: str) -> PostgresChangesTask:
    task = PostgresChangesTask(config(**options))
    await task.start(SourceContext("c", 0, lambda partition: position))
    return task


def poll(task: PostgresChangesTask) -> list[Record]:
    return list(asyncio.run(task.poll()))


def start(position: dict[str, Any] | None = None, **options: str) -> PostgresChangesTask:
    return asyncio.run(started(position, **options))


def may_commit(task: PostgresChangesTask) -> bool:
    return task.may_commit


def shown(records: Sequence[Record]) -> list[Any]:
    """Return what is said of each change: what was done, the row before, the row after."""
    return [
        None if record.value is None else (record.value["op"], record.value["before"], record.value["after"])
        for record in records
    ]


def transaction(xid: int, commit_lsn: int, *changes: Message) -> list[Message]:
    return [Begin(commit_lsn, 1_000_000, xid), *changes, Commit(commit_lsn + 8)]


AT = {"lsn": 50}


def test_the_rows_that_are_there_come_first_and_as_one_moment_shows_them(server: Server) -> None:
    server.rows = {"public.items": [(1, "x"), (2, None), (3, "z")], "public.more": [(9, "m")]}
    server.snapshot = "100:105:101,103"
    task = start(
        table_include_list=r"public\..*", snapshot_fetch_size="2", slot_name="s", publication_name='p"q'
    )
    assert server.slots == ["s"]
    created = '"p""q" FOR TABLE "public"."items", "public"."more"'
    assert [text for text, _ in server.told("CREATE PUBLICATION")] == [f"CREATE PUBLICATION {created}"]
    assert not may_commit(task)
    polled = [poll(task) for _ in range(3)]
    assert [len(records) for records in polled] == [2, 1, 1]
    assert not may_commit(task)
    first = polled[0][0]
    assert shown([first]) == [("r", None, {"id": 1, "a": "x"})]
    assert (first.topic, first.key, first.source_partition) == ("p.public.items", {"id": 1}, {"server": "p"})
    # The slot was made before, so nothing between it and the rows is lost.
    assert first.source_offset == {"lsn": 0x10, "snapshot_txns": "100:105:101,103"}
    assert first.value["source"]["snapshot"] == "true"
    assert (first.value["source"]["table"], first.value["source"]["db"]) == ("items", "shop")
    assert (first.value["source"]["txId"], first.value["source"]["lsn"]) == (None, 0x10)
    assert polled[2][0].topic == "p.public.more"
    begin = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
    assert len(server.told(begin)) == 1
    # What the rows have already is left out of the changes.
    server.log = [ITEMS]
    for xid in (99, 101, 102, 105):
        server.log += transaction(xid, 16 * xid, Change("c", 7, after=(str(xid), None)))
    changes = poll(task)
    assert may_commit(task)
    assert [record.value["after"]["id"] for record in changes] == [101, 105]
    assert len(server.told("COMMIT")) == 1
    offset = dict(changes[-1].source_offset or {})
    assert offset == {"lsn": 16 * 105 + 8, "txId": 105, "snapshot_txns": "100:105:101,103"}


@pytest.mark.parametrize(("mode", "reads"), [("initial", True), ("initial_only", True), ("no_data", False)])
def test_reading_rows_and_following_changes_can_each_be_left_out(
    server: Server, mode: str, reads: bool
) -> None:
    server.rows = {"public.items": [(1, "x")]}
    task = start(table_include_list="public.items", snapshot_mode=mode)
    server.log = [ITEMS, *transaction(200, 0x90, Change("c", 7, after=("2", None)))]
    records = [record for _ in range(3) for record in poll(task)]
    kinds = [record.value["op"] for record in records]
    assert kinds[:1] == (["r"] if reads else ["c"])
    assert ("c" in kinds) == (mode != "initial_only")
    again = start({"lsn": 0x10}, table_include_list="public.items", snapshot_mode=mode)
    assert [record.value["op"] for record in poll(again)] == ([] if mode == "initial_only" else ["c"])


def test_changes_have_the_row_before_and_after_as_far_as_the_log_has_it(server: Server) -> None:
    server.slots = ["debezium"]
    task = start(AT)
    assert may_commit(task)
    server.log = [
        ITEMS,
        None,
        *transaction(
            5,
            0x1_0000_0060,
            Change("c", 7, after=("1", "x")),
            Change("u", 7, after=("1", UNCHANGED)),
            Change("u", 7, before=("1", "x"), after=("2", UNCHANGED)),
            Change("d", 7, before=("2", "x"), is_key_only=True),
            Change("d", 7, before=("3", None)),
        ),
    ]
    records = poll(task)
    assert shown(records) == [
        ("c", None, {"id": 1, "a": "x"}),
        ("u", None, {"id": 1, "a": "__debezium_unavailable_value"}),
        ("u", {"id": 1, "a": "x"}, {"id": 2, "a": "x"}),
        ("d", {"id": 2, "a": None}, None),
        None,
        ("d", {"id": 3, "a": None}, None),
        None,
    ]
    assert [record.key for record in records] == [{"id": key} for key in (1, 1, 2, 2, 2, 3, 3)]
    assert {str(record.source_offset) for record in records} == {"{'lsn': 4294967400, 'txId': 5}"}
    source = records[0].value["source"]
    assert (source["txId"], source["lsn"], source["snapshot"]) == (5, 0x1_0000_0060, "false")
    # A second after the beginning of 2000.
    assert source["ts_ms"] == records[0].timestamp_ms == records[4].timestamp_ms == 946_684_801_000
    schema = records[0].value_schema
    assert schema is not None
    assert [item.name for item in schema.fields] == ["before", "after", "source", "op", "ts_ms"]
    asyncio.run(task.committed())
    assert server.told("pg_replication_slot_advance")[-1][1] == ("debezium", "1/68")
    # It is read again, and is in the topic already.
    assert poll(task) == []


def test_what_the_topic_has_is_not_written_again_after_a_restart(server: Server) -> None:
    server.slots = ["debezium"]
    server.log = [ITEMS]
    for lsn in (41, 49, 50, 60):
        server.log += transaction(5, lsn, Change("c", 7, after=(str(lsn), None)))
    assert [record.value["after"]["id"] for record in poll(start(AT))] == [50, 60]
    visible = {**AT, "snapshot_txns": "6:6:"}
    assert poll(start(visible)) == []


def test_some_kinds_of_changes_and_the_mark_of_a_deletion_can_be_left_out(server: Server) -> None:
    server.slots = ["debezium"]
    changes = (
        Change("c", 7, after=("1", "x")),
        Change("u", 7, after=("1", "y")),
        Change("d", 7, before=("1", None), is_key_only=True),
        Truncate((7,)),
    )
    server.log = [ITEMS, *transaction(5, 60, *changes)]
    records = poll(start(AT, skipped_operations="u,t", tombstones_on_delete="false"))
    assert [record.value["op"] for record in records] == ["c", "d"]
    with pytest.raises(ConnectError, match="TRUNCATE of items: the rows are gone"):
        poll(start(AT))


def test_a_transaction_that_is_not_complete_waits(server: Server) -> None:
    server.slots = ["debezium"]
    task = start(AT)
    server.log = [ITEMS, *transaction(5, 60, Change("c", 7, after=("1", "x")))]
    server.log.pop()
    assert poll(task) == []
    server.log.append(Commit(68))
    assert len(poll(task)) == 1


def test_who_is_behind_reads_more_at_once(server: Server) -> None:
    server.slots = ["debezium"]
    task = start(AT, max_batch_size="2")
    server.log = [ITEMS] * 100
    for _ in range(6):
        poll(task)
    assert server.limits == [2, 4, 8, 16, 32, 32]
    server.log = [ITEMS]
    poll(task)
    poll(task)
    assert server.limits[-2:] == [32, 2]


def test_the_slot_moves_on_also_when_nothing_concerns_us(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [100.0]
    monkeypatch.setattr(postgres_changes, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    server.slots = ["debezium"]
    task = start(AT)

    def places() -> list[Any]:
        return [parameters[1] for _, parameters in server.told("slot_advance")]

    server.now = "0/AB"
    poll(task)
    assert places() == ["0/AB"]
    server.now = "1/C"
    now_s[0] += 9.0
    poll(task)
    assert places() == ["0/AB"], "not each time"
    now_s[0] += 2.0
    poll(task)
    assert places() == ["0/AB", "1/C"]


def test_stopping_closes_the_connection_and_may_drop_the_slot(server: Server) -> None:
    server.slots = ["debezium"]
    asyncio.run(start(AT).stop())
    assert server.is_closed
    assert server.told("pg_drop_replication_slot") == []
    asyncio.run(start(AT, slot_drop_on_stop="true").stop())
    assert [parameters for _, parameters in server.told("pg_drop_replication_slot")] == [("debezium",)]


def test_what_is_missing_is_said_at_the_start(server: Server) -> None:
    with pytest.raises(ConnectError, match="replication slot 'debezium' is gone"):
        start(AT)
    with pytest.raises(ConnectError, match="no table matches"):
        start(table_include_list="none")
    server.published = ["public.items"]
    with pytest.raises(ConnectError, match=r"does not have public\.more: add them"):
        start(table_include_list=r"public\..*", publication_autocreate_mode="disabled")
    server.level = "replica"
    with pytest.raises(ConnectError, match="wal_level of PostgreSQL is replica"):
        start()


@pytest.mark.parametrize(
    ("options", "published", "added"),
    [
        ({"table_include_list": r"public\..*"}, ["public.items"], '"public"."more"'),
        ({"schema_include_list": "other"}, ["public.items"], '"other"."items"'),
        ({"schema_exclude_list": "public"}, [], '"other"."items"'),
        ({"table_exclude_list": r"public\..*"}, [], '"other"."items"'),
        ({"table_include_list": "public.items"}, ["public.items"], None),
    ],
)
def test_a_publication_gets_the_tables_that_it_lacks(
    server: Server, options: dict[str, str], published: list[str], added: str | None
) -> None:
    server.published = published
    start(None, **options)
    expected = [] if added is None else [f'ALTER PUBLICATION "dbz_publication" ADD TABLE {added}']
    assert [text for text, _ in server.told("PUBLICATION ")] == expected


@pytest.mark.parametrize(
    ("text", "xid", "has"),
    [
        ("10:10:", 9, True),
        ("10:10:", 10, False),
        ("10:20:12,15", 12, False),
        ("10:20:12,15", 13, True),
        ("10:20:12,15", 20, False),
        # The log has 32 bits of the number of a transaction.
        ("4294967290:4294967300:4294967297", 1, False),
        ("4294967290:4294967300:4294967297", 2, True),
        ("4294967290:4294967300:4294967297", 4294967289, True),
        ("4294967290:4294967300:", 4, False),
    ],
)
def test_a_snapshot_says_which_transactions_it_shows(text: str, xid: int, has: bool) -> None:
    assert _Visible.parse(text).has(xid) is has


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (decimal_schema(2), "1.50", Decimal("1.50")),
        (DATE_SCHEMA, "2026-01-02", datetime.date(2026, 1, 2)),
        (TIME_SCHEMA, "01:02:03", datetime.time(1, 2, 3)),
        (
            TIMESTAMP_SCHEMA,
            "2026-01-02 03:04:05",
            datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
        ),
        (
            TIMESTAMP_SCHEMA,
            "2026-01-02 03:04:05+00",
            datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
        ),
        (BOOLEAN, "t", True),
        (BOOLEAN, "f", False),
        (INT32, "-7", -7),
        (INT64, "7", 7),
        (FLOAT64, "1.5", 1.5),
        (BYTES, "\\x00ff", b"\x00\xff"),
        (STRING, "7", "7"),
    ],
)
def test_values_are_read_as_postgresql_writes_them(schema: Schema, text: str, value: object) -> None:
    found = from_text(schema, text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("offset", "problem"),
    [
        (({"server": "p"}, {"lsn": 1}), None),
        (({"server": "p"}, None), None),
        (({}, None), "should contain the key 'server'"),
        (({"server": "p"}, {}), "a number for the key 'lsn'"),
        (({"server": "p"}, {"lsn": "1"}), "a number for the key 'lsn'"),
    ],
)
def test_offsets_that_are_set_by_hand_are_checked(offset: Offset, problem: str | None) -> None:
    if problem is None:
        PLUGIN.check_offsets({}, [offset])
    else:
        with pytest.raises(ConnectError, match=problem):
            PLUGIN.check_offsets({}, [offset])
