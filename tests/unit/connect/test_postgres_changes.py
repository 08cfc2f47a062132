"""Changes of PostgreSQL: what is made there, which rows and changes become records, and what is forgotten."""

import asyncio
from collections.abc import Mapping, Sequence
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
from ottla.connect.connectors.sql.postgres_changes import PostgresChangesTask
from ottla.connect.connectors.sql.postgres_transactions import Visible
from ottla.connect.connectors.sql.postgres_values import NUMERIC_OID, TIMESTAMP_OID
from ottla.connect.connectors.sql.replication_stream import ReadTo
from ottla.connect.data.record import Record
from ottla.connect.errors import ConnectError
from ottla.connect.plugins import Offset
from ottla.connect.running.task import SourceContext

(PLUGIN,) = postgres_changes.PLUGINS
INT8, TEXT = 20, 25
ITEMS = Relation(
    7, "public", "items", (RelationColumn("id", INT8, -1, True), RelationColumn("a", TEXT, -1, False))
)
COLUMNS = [("id", INT8, -1, True, True), ("a", TEXT, -1, False, False)]
HIGH = "FFFFFFFF/FFFFFFFF"


class Stream:
    """Sends the log from its beginning on."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._place = 0
        self.is_closed = False

    async def read(self, count: int, wait_s: float) -> list[bytes | ReadTo]:
        begin, self._place = self._place, min(self._place + count, len(self._server.log))
        sent = self._server.log[begin : self._place]
        return [
            item if isinstance(item, ReadTo) else b"%d" % (begin + number) for number, item in enumerate(sent)
        ]

    def confirm(self, lsn: int) -> None:
        self._server.confirmations.append(lsn)

    def close(self) -> None:
        self.is_closed = True


class Server:
    """Stands where PostgreSQL does. The log has messages, of which a test adds some."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.level = "logical"
        self.tables = [("other", "items", False), ("public", "items", False), ("public", "more", False)]
        self.columns: list[tuple[str, int, int, bool, bool]] = COLUMNS
        self.roots: dict[int, str] = {}
        self.published: list[str] | None = None
        self.unidentified: list[tuple[str, str]] = []
        self.publishes_all = False
        self.publishes_roots = False
        self.slots: list[str] = []
        self.rows: dict[str, list[tuple[Any, ...]]] = {}
        self.snapshot = "100:100:"
        self.confirmed = "0/10"
        self.inserted = HIGH
        self.log: list[Message | ReadTo | None] = []
        self.asked: list[tuple[str, tuple[Any, ...]]] = []
        self.confirmations: list[int] = []
        self.is_closed = False
        monkeypatch.setattr(postgres_changes, "decode", lambda data: self.log[int(data)])
        monkeypatch.setattr(PostgresChangesTask, "_open", lambda task: self)

        async def follow(_task: PostgresChangesTask) -> Stream:
            return Stream(self)

        monkeypatch.setattr(PostgresChangesTask, "_follow", follow)

    def close(self) -> None:
        self.is_closed = True

    def texts(self, statement: str, parameters: Sequence[Any] = ()) -> tuple[list[Column], list[Any]]:
        return self.query(statement, parameters)

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
        found: Mapping[str, Sequence[Any]] = {
            "SHOW wal_level": [(self.level,)],
            "pubviaroot": [(1,)] if self.publishes_roots else [],
            "SELECT puballtables": [] if self.published is None else [(self.publishes_all,)],
            "pg_publication_tables": [tuple(name.split(".")) for name in self.published or ()],
            "pg_partition_root": [("public", self.roots[parameters[0]])]
            if parameters and parameters[0] in self.roots
            else [],
            "c.relreplident = 'n'": self.unidentified,
            "FROM pg_class c JOIN pg_attribute": self.columns,
            "c.relkind": self.tables,
            "AND active": [],
            "SELECT 1 FROM pg_replication_slots": [(1,)]
            if parameters and parameters[0] in self.slots
            else [],
            "confirmed_flush_lsn": [(self.confirmed,)],
            "pg_current_snapshot": [(self.snapshot,)],
            "pg_current_wal_insert_lsn": [(self.inserted,)],
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
    server.rows = {"public.items": [("1", "x"), ("2", None), ("3", "z")], "public.more": [("9", "m")]}
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
    end = 0xFFFFFFFF_FFFFFFFF
    kept = {"snapshot_txns": "100:105:101,103", "snapshot_end_lsn": end}
    assert first.source_offset == {"lsn": 0x10, **kept}
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
    assert offset == {"lsn": 16 * 105 + 1, "txId": 105, **kept}


@pytest.mark.parametrize(("mode", "reads"), [("initial", True), ("initial_only", True), ("no_data", False)])
def test_reading_rows_and_following_changes_can_each_be_left_out(
    server: Server, mode: str, reads: bool
) -> None:
    server.rows = {"public.items": [("1", "x")]}
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
        ("d", {"id": 1, "a": "x"}, None),
        None,
        ("c", None, {"id": 2, "a": "x"}),
        ("d", {"id": 2, "a": None}, None),
        None,
        ("d", {"id": 3, "a": None}, None),
        None,
    ]
    assert [record.key for record in records] == [{"id": key} for key in (1, 1, 1, 1, 2, 2, 2, 3, 3)]
    assert {str(record.source_offset) for record in records} == {"{'lsn': 4294967393, 'txId': 5}"}
    source = records[0].value["source"]
    assert (source["txId"], source["lsn"], source["snapshot"]) == (5, 0x1_0000_0060, "false")
    # A second after the beginning of 2000.
    assert source["ts_ms"] == records[0].timestamp_ms == records[3].timestamp_ms == 946_684_801_000
    schema = records[0].value_schema
    assert schema is not None
    assert [item.name for item in schema.fields] == ["before", "after", "source", "op", "ts_ms"]
    asyncio.run(task.committed())
    assert server.confirmations == [0x1_0000_0068]
    # If it comes again, it is in the topic already.
    assert poll(start({"lsn": 0x1_0000_0061})) == []


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
    by_default = [record.value and record.value["op"] for record in poll(start(AT))]
    assert by_default == ["c", "u", "d", None]
    emptied = poll(start(AT, skipped_operations="none"))[-1]
    assert (emptied.key, emptied.key_schema, shown([emptied])) == (None, None, [("t", None, None)])


def test_another_key_ends_the_old_row_and_begins_a_new_one(server: Server) -> None:
    server.slots = ["debezium"]
    change = Change("u", 7, before=("3", None), is_key_only=True, after=("30", "x"))
    server.log = [ITEMS, *transaction(5, 60, change)]
    deleted, tombstone, created = poll(start(AT))
    assert shown([deleted, tombstone, created]) == [
        ("d", {"id": 3, "a": None}, None),
        None,
        ("c", None, {"id": 30, "a": "x"}),
    ]
    assert [record.key for record in (deleted, tombstone, created)] == [{"id": 3}, {"id": 3}, {"id": 30}]
    (moved_to,), (same,), (moved_from,) = deleted.headers, tombstone.headers, created.headers
    assert moved_to == same == ("__debezium.newkey", deleted.key_schema, {"id": 30})
    assert moved_from == ("__debezium.oldkey", created.key_schema, {"id": 3})
    without = poll(start(AT, tombstones_on_delete="false"))
    assert [record.value["op"] for record in without] == ["d", "c"]


def test_numbers_of_transactions_that_come_again_drop_no_change(server: Server) -> None:
    server.rows, server.snapshot, server.inserted = {"public.items": [("1", "x")]}, "100:100:", "0/80"
    task = start(table_include_list="public.items")
    assert [len(poll(task)) for _ in range(2)] == [1, 0]
    # After 2^31 transactions a number looks as if it were of the past.
    later = 100 + (1 << 31) + 5
    changes = [(99, 0x60), (later, 0x80), (99, 0x90)]
    server.log = [ITEMS]
    for xid, lsn in changes:
        server.log += transaction(xid, lsn, Change("c", 7, after=(str(lsn), None)))
    records = poll(task)
    assert [record.value["after"]["id"] for record in records] == [0x80, 0x90]
    assert [record.source_offset for record in records] == [
        {"lsn": 0x81, "txId": later},
        {"lsn": 0x91, "txId": 99},
    ]
    again = start({"lsn": 0x20, "snapshot_txns": "100:100:", "snapshot_end_lsn": 0x80})
    assert [record.value["after"]["id"] for record in poll(again)] == [0x80, 0x90]


def test_changes_of_tables_that_are_not_followed_any_more_are_left_out(server: Server) -> None:
    server.slots, server.published = ["debezium"], ["public.items", "public.more"]
    more = Relation(8, "public", "more", ITEMS.columns)
    changes: list[Message] = [
        Change("c", 7, after=("1", "x")),
        Change("c", 8, after=("2", "x")),
        Truncate((8,)),
    ]
    server.log = [ITEMS, more, *transaction(5, 60, *changes)]
    records = poll(start(AT, table_include_list="public.items", skipped_operations="none"))
    assert [record.topic for record in records] == ["p.public.items"]


def test_changes_of_a_table_that_is_gone_are_delivered_with_the_key_of_their_time(server: Server) -> None:
    server.slots, server.tables, server.columns = ["debezium"], [], []
    server.log = [ITEMS, *transaction(5, 60, Change("c", 7, after=("1", "x")))]
    (record,) = poll(start(AT))
    assert (record.key, record.value["after"]) == ({"id": 1}, {"id": 1, "a": "x"})
    assert server.told("PUBLICATION ") == []


@pytest.mark.parametrize(
    ("identity", "marked", "keys"),
    [("d", {"id"}, {"id"}), ("i", {"a"}, {"a"}), ("f", {"id", "a"}, {"id"}), ("n", set(), {"id"})],
)
def test_the_key_is_the_one_that_the_log_knows(
    server: Server, identity: str, marked: set[str], keys: set[str]
) -> None:
    server.slots = ["debezium"]
    columns = tuple(item._replace(is_key=item.name in marked) for item in ITEMS.columns)
    relation = ITEMS._replace(columns=columns, identity=identity)
    server.log = [relation, *transaction(5, 60, Change("c", 7, after=("1", "x")))]
    (record,) = poll(start(AT))
    assert record.key is not None
    assert set(record.key) == keys


def test_a_partitioned_table_is_one(server: Server) -> None:
    server.tables = [("public", "days", True)]
    server.rows, server.roots = {"public.days": [("1", "x")]}, {9: "days"}
    task = start()
    (made,) = [text for text, _ in server.told("CREATE PUBLICATION")]
    assert made.endswith('FOR TABLE "public"."days" WITH (publish_via_partition_root = true)')
    (row,) = poll(task)
    assert "ONLY" not in server.told("DECLARE")[0][0]
    partition = Relation(9, "public", "days_2026", ITEMS.columns)
    server.log = [partition, *transaction(200, 0x90, Change("c", 9, after=("2", None)))]
    (change,) = poll(task)
    assert row.topic == change.topic == "p.public.days"
    server.published = ["public.days_2026", "public.days"]
    with pytest.raises(ConnectError, match=r"SET \(publish_via_partition_root = true\)"):
        start(publication_autocreate_mode="disabled")
    start()
    assert len(server.told("ALTER PUBLICATION")) == 1
    server.publishes_roots = True
    start(publication_autocreate_mode="disabled")


def test_a_publication_may_have_all_tables(server: Server) -> None:
    start(publication_autocreate_mode="all_tables")
    (made,) = [text for text, _ in server.told("CREATE PUBLICATION")]
    assert made.endswith("FOR ALL TABLES WITH (publish_via_partition_root = true)")


def test_a_publication_of_all_tables_lacks_none(server: Server) -> None:
    server.published, server.publishes_all = [], True
    start()
    assert server.told("ALTER PUBLICATION") == []


def test_a_followed_table_that_cannot_be_updated_any_more_is_told(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.unidentified = [("public", "more"), ("other", "items")]
    start(table_include_list=r"public\..*")
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith("public.more has no primary key: while it is published")
    assert 'ALTER TABLE "public"."more" REPLICA IDENTITY FULL' in told


def test_only_the_rows_that_are_there_need_no_slot(server: Server) -> None:
    server.level, server.rows = "replica", {"public.items": [("1", "x")]}
    task = start(table_include_list="public.items", snapshot_mode="initial_only", slot_drop_on_stop="true")
    assert [len(poll(task)) for _ in range(3)] == [1, 0, 0]
    asyncio.run(task.stop())
    assert server.slots == []
    assert server.told("PUBLICATION ") == server.told("pg_drop_replication_slot") == []


def test_what_is_hidden_is_neither_in_the_row_before_nor_in_the_one_after(server: Server) -> None:
    server.slots = ["debezium"]
    stamp = RelationColumn("at", TIMESTAMP_OID, -1, False)
    relation = ITEMS._replace(columns=(*ITEMS.columns, stamp), identity="f")
    # It could not be converted.
    cells = ("1", "secret", "infinity")
    changes = (Change("u", 7, before=cells, after=("1", UNCHANGED, "infinity")),)
    server.log = [relation, *transaction(5, 60, *changes)]
    (record,) = poll(
        start(
            AT,
            **{
                "column.exclude.list": "public.items.at,public.items.id",
                "column.mask.with.2.chars": ".*[.]a",
            },
        )
    )
    assert shown([record]) == [("u", {"a": "**"}, {"a": "**"})]
    # A key has all of its columns.
    assert record.key == {"id": 1}
    assert record.value_schema is not None
    after = record.value_schema.field_named("after")
    assert after is not None
    assert [item.name for item in after.schema.fields] == ["a"]


def test_a_column_of_the_key_is_not_masked(server: Server) -> None:
    server.slots = ["debezium"]
    keyed = (ITEMS.columns[0], ITEMS.columns[1]._replace(is_key=True))
    server.log = [ITEMS._replace(columns=keyed), *transaction(5, 60, Change("c", 7, after=("1", "x")))]
    task = start(AT, **{"column.mask.with.2.chars": ".*[.]a"})
    with pytest.raises(ConnectError, match=r"column 'a' of public\.items is a part of the key"):
        poll(task)


@pytest.mark.parametrize(("mode", "found"), [("precise", "1.50"), ("double", 1.5), ("string", "1.50")])
def test_decimals_have_the_form_that_was_asked_for(server: Server, mode: str, found: object) -> None:
    server.slots = ["debezium"]
    columns = (ITEMS.columns[0], RelationColumn("n", NUMERIC_OID, -1, False))
    server.log = [ITEMS._replace(columns=columns), *transaction(5, 60, Change("c", 7, after=("1", "1.50")))]
    (record,) = poll(start(AT, decimal_handling_mode=mode))
    assert record.value["after"]["n"] == found


def test_heartbeats_have_the_position_and_may_change_the_database(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [100.0]
    monkeypatch.setattr(postgres_changes, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    server.slots = ["debezium"]
    query = "INSERT INTO beats VALUES (now())"
    task = start(AT, **{"heartbeat.interval.ms": "5000", "heartbeat.action.query": query})
    server.log = [ReadTo(0xAB)]
    assert (poll(task), server.told(query)) == ([], [])
    now_s[0] += 5.0
    server.log += [ITEMS, *transaction(5, 0xB0, Change("c", 7, after=("1", "x")))[:-1]]
    assert len(poll(task)) == 1
    # Not in the middle of a transaction.
    server.log.append(Commit(0xB8))
    (beat,) = poll(task)
    assert (beat.topic, beat.key, beat.source_offset) == (
        "__debezium-heartbeat.p",
        {"serverName": "p"},
        {"lsn": 0xB8},
    )
    assert list(beat.value) == ["ts_ms"]
    assert len(server.told(query)) == 1
    assert poll(task) == []


def test_a_value_that_cannot_be_converted_names_its_row_and_column(server: Server) -> None:
    server.slots = ["debezium"]
    relation = ITEMS._replace(
        columns=(ITEMS.columns[0], RelationColumn("at", TIMESTAMP_OID, -1, False)),
    )
    cells = (("1", "infinity"), ("2", "2026-01-02 03:04:05"))
    changes = [Change("c", 7, after=row) for row in cells]
    server.log = [relation, *transaction(5, 60, *changes)]
    wrong, right = poll(start(AT))
    assert str(wrong.problem) == (
        "column 'at' of the row id=1 of 'public.items': 'infinity' cannot be converted: it is not one day or "
        "time"
    )
    assert wrong.source_offset == right.source_offset == {"lsn": 61, "txId": 5}
    assert (right.problem, right.value["after"]) == (None, {"id": 2, "at": 1_767_323_045_000_000})


def test_a_large_transaction_comes_in_pieces_that_are_one_for_the_topic(server: Server) -> None:
    server.slots = ["debezium"]
    task = start(AT, max_batch_size="3")
    changes = [Change("c", 7, after=(str(number), None)) for number in range(5)]
    server.log = [
        ITEMS,
        *transaction(5, 60, *changes),
        *transaction(6, 80, Change("c", 7, after=("9", None))),
    ]
    pieces, ends = [], []
    for _ in range(4):
        pieces.append([record.value["after"]["id"] for record in poll(task)])
        ends.append(may_commit(task))
    assert pieces == [[0], [1, 2, 3], [4], [9]]
    assert ends == [False, False, True, True]
    # Only what was committed meanwhile is confirmed.
    assert server.confirmations == [68]
    asyncio.run(task.committed())
    assert server.confirmations == [68, 88]


def test_a_backlog_of_large_transactions_is_not_one_for_the_topic(server: Server) -> None:
    server.slots = ["debezium"]
    task = start(AT, max_batch_size="4")
    changes = [Change("c", 7, after=(str(number), None)) for number in range(3)]
    server.log = [ITEMS, *(item for n in range(5) for item in transaction(5 + n, 60 + 20 * n, *changes))]
    found, ends = [], 0
    for _ in range(7):
        found += [record.value["after"]["id"] for record in poll(task)]
        if may_commit(task):
            ends += 1
            # Nothing of the transaction that has begun is confirmed.
            asyncio.run(task.committed())
            assert server.confirmations[-1] == 60 + 20 * (len(found) // 3 - 1) + 8
    assert (found, ends) == ([0, 1, 2] * 5, 5)


@pytest.mark.parametrize("is_key", [False, True])
def test_a_column_that_may_not_be_empty_now_could_be_when_the_log_was_written(
    server: Server, is_key: bool
) -> None:
    server.slots = ["debezium"]
    server.columns = [COLUMNS[0], ("a", TEXT, -1, True, is_key)]
    everything = tuple(item._replace(is_key=True) for item in ITEMS.columns)
    relation = ITEMS._replace(columns=everything, identity="f")
    changes = [Change("c", 7, after=("1", "x")), Change("c", 7, after=("2", None))]
    server.log = [relation, *transaction(5, 60, *changes)]
    full, empty = poll(start(AT))
    for record, is_optional in ((full, False), (empty, True)):
        assert record.value_schema is not None
        after = record.value_schema.field_named("after")
        assert after is not None
        column = after.schema.field_named("a")
        assert column is not None
        assert column.schema.is_optional is is_optional
    assert empty.value["after"] == {"id": 2, "a": None}


def test_a_table_may_get_another_key_of_which_the_log_says_nothing(server: Server) -> None:
    server.slots = ["debezium"]
    everything = tuple(item._replace(is_key=True) for item in ITEMS.columns)
    relation = ITEMS._replace(columns=everything, identity="f")
    task = start(AT, max_batch_size="4")
    server.log = [relation, *transaction(5, 60, Change("c", 7, after=("1", "x")))]
    (before,) = poll(task)
    server.columns = [("id", INT8, -1, True, False), ("a", TEXT, -1, True, True)]
    server.log += [relation, *transaction(6, 80, Change("c", 7, after=("2", "y")))]
    (after,) = poll(task)
    assert (before.key, after.key) == ({"id": 1}, {"a": "y"})


def test_a_masked_column_without_text_is_not_shown_by_mistake(server: Server) -> None:
    server.slots = ["debezium"]
    columns = (*ITEMS.columns, RelationColumn("n", NUMERIC_OID, -1 + 2 + 4, False))
    change = Change("c", 7, after=("1", "x", "1.5"))
    server.log = [ITEMS._replace(columns=columns), *transaction(5, 60, change)]
    mask = {"column.mask.with.2.chars": ".*[.]n"}
    with pytest.raises(ConnectError, match=r"column 'n' of public\.items has no text"):
        poll(start(AT, **mask))
    (record,) = poll(start(AT, **mask, **{"column.exclude.list": ".*[.]n"}))
    assert record.value["after"] == {"id": 1, "a": "x"}


def test_a_piece_is_not_confirmed_before_the_end_of_its_transaction(server: Server) -> None:
    server.slots = ["debezium"]
    task = start(AT)
    server.log = [ITEMS, *transaction(5, 60, Change("c", 7, after=("1", "x")))[:-1]]
    assert [record.source_offset for record in poll(task)] == [{"lsn": 61, "txId": 5}]
    assert not may_commit(task)
    # The server says how far it has read, in the middle of what it sends.
    server.log.append(ReadTo(90))
    assert (poll(task), may_commit(task), server.confirmations) == ([], False, [])
    server.log.append(Commit(68))
    assert (poll(task), may_commit(task)) == ([], True)
    asyncio.run(task.committed())
    assert server.confirmations == [68]


def test_the_slot_moves_on_also_when_nothing_concerns_us(server: Server) -> None:
    server.slots = ["debezium"]
    task = start(AT)
    server.log = [ReadTo(0xAB), ReadTo(0x30)]
    assert (poll(task), server.confirmations) == ([], [])
    assert (poll(task), server.confirmations) == ([], [0xAB])
    server.log += transaction(7, 0xF0)
    poll(task)
    poll(task)
    assert server.confirmations[-1] == 0xF8


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
    assert Visible.parse(text).has(xid) is has


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
