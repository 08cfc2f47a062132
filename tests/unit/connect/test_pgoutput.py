"""Messages of logical decoding: bytes as PostgreSQL writes them, and bytes that nobody would write."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.connect.connectors.sql.pgoutput import (
    UNCHANGED,
    Begin,
    Change,
    Commit,
    InvalidChange,
    Relation,
    RelationColumn,
    Truncate,
    decode,
)
from ottla.connect.connectors.sql.postgres_transactions import Visible

RELATION = bytes.fromhex("52000040017075626c69630074006400020169640000000017ffffffff006e00000006a400080006")
INSERT = bytes.fromhex("49000040014e00027400000001376e")
UPDATE = bytes.fromhex("55000040014b00027400000001316e4e000274000000013275")
DELETE = bytes.fromhex("44000040014f00027400000001327400000003312e30")
BEGIN = bytes.fromhex("4200000000010000000000000000000005000002f0")
COMMIT = bytes.fromhex("4300000000000100000000000000010000300000000000000005")


def test_messages_are_read() -> None:
    columns = (RelationColumn("id", 23, -1, True), RelationColumn("n", 1700, 0x80006, False))
    assert decode(RELATION) == Relation(0x4001, "public", "t", columns)
    assert decode(BEGIN) == Begin(0x1000000, 5, 0x2F0)
    assert decode(COMMIT) == Commit(0x1000030)
    assert decode(INSERT) == Change("c", 0x4001, after=("7", None))
    assert decode(UPDATE) == Change("u", 0x4001, ("1", None), True, ("2", UNCHANGED))
    assert decode(DELETE) == Change("d", 0x4001, ("2", "1.0"))
    assert decode(bytes.fromhex("54000000010000004001")) == Truncate((0x4001,))
    assert decode(b"O" + bytes(8)) is None


@pytest.mark.parametrize("message", [RELATION, INSERT, UPDATE, DELETE, BEGIN, COMMIT])
def test_a_message_that_is_cut_off_is_refused(message: bytes) -> None:
    for length in range(1, len(message)):
        with pytest.raises(InvalidChange):
            decode(message[:length])


@given(st.binary(max_size=60))
def test_other_bytes_are_refused_and_nothing_else(data: bytes) -> None:
    with contextlib.suppress(InvalidChange):
        decode(data)


def test_a_snapshot_says_which_transactions_it_has() -> None:
    visible = Visible.parse("100:105:101,103")

    assert [xid for xid in range(98, 108) if visible.has(xid)] == [98, 99, 100, 102, 104]
    # Numbers of transactions go on after 32 bits. The log has only the lower ones.
    beyond = Visible.parse(f"{(1 << 32) + 2}:{(1 << 32) + 5}:")
    assert beyond.has((1 << 32) - 1)
    assert beyond.has(4)
    assert not beyond.has(5)
