"""Each request of each client has the outcome that the table says, and the table leaves nothing out.

What changes on purpose is written anew by `python -m tests.unit.broker.authorization.sweep`, and read.
"""

from collections.abc import Iterable

import pytest
from tests.unit.broker.authorization.sweep import (
    CLOSED,
    NOBODY,
    STRANGER,
    Row,
    all_versions,
    merged,
    read_table,
    sweep,
)

from ottla.broker.serving.handlers import declared_of
from ottla.broker.serving.served_apis import SERVED, Listener
from ottla.wire.apis import ApiKey

ANSWERED_BEFORE_LOGIN = {"API_VERSIONS", "SASL_HANDSHAKE"}
# In these versions an answer has no place for the error: it is empty.
EMPTY = {("LIST_GROUPS", "0-5"), ("DESCRIBE_LOG_DIRS", "1-2"), ("LIST_TRANSACTIONS", "0-2"), ("FETCH", "4-6")}


def of_last_versions(rows: Iterable[Row]) -> set[Row]:
    """Return what the table says of the last version of each API."""
    return {
        row._replace(versions=last)
        for row in rows
        if (last := row.versions.rpartition("-")[2]) == str(SERVED[ApiKey[row.api]].versions.last)
    }


def test_the_last_version_of_each_api_is_answered_as_the_table_says() -> None:
    rows = set(sweep(lambda key: all_versions(key)[-1:]))
    assert rows == of_last_versions(read_table())


@pytest.mark.thorough(guard="tests/unit/broker/authorization/test_sweep.py")
def test_every_version_is_answered_as_the_table_says() -> None:
    assert list(merged(list(sweep(all_versions)))) == read_table()


def test_nobody_gets_an_answer_before_the_login_but_to_what_begins_it() -> None:
    answered = {row.api for row in read_table() if row.who == STRANGER and row.outcome != CLOSED}
    assert answered == ANSWERED_BEFORE_LOGIN


def test_who_has_no_rights_is_refused_wherever_a_right_is_asked_for() -> None:
    for row in read_table():
        if row.who == NOBODY and declared_of(ApiKey[row.api]).rights:
            is_refused = "AUTHORIZATION_FAILED" in row.outcome
            assert is_refused != ((row.api, row.versions) in EMPTY), row


def test_every_api_is_in_the_table_for_each_listener_and_each_right() -> None:
    known = {(row.api, row.listener, row.who) for row in read_table()}
    for key, served in SERVED.items():
        for listener in served.listeners:
            whos = [
                NOBODY,
                *(f"{one.operation.name} {one.resource_type.name}" for one in declared_of(key).rights),
            ]
            if listener is Listener.BROKER:
                whos.append(STRANGER)
            assert all((key.name, listener.name, who) in known for who in whos), key
