"""What a source cannot make a record of: left out if that is tolerated, and otherwise the end of the task."""

import logging

import pytest

from ottla.client.consumer.record import ConsumerRecord
from ottla.connect.catalog import all_plugins
from ottla.connect.configs.shared_keys import CONNECTOR_CLASS, DLQ_HEADERS, DLQ_TOPIC, TOLERANCE
from ottla.connect.data.record import Record
from ottla.connect.errors import DataError, ToleranceExceeded
from ottla.connect.running.conversion import Conversion
from ottla.connect.running.tolerance import Skipped, Stage, Tolerance
from ottla.connect.settings import WorkerSettings
from ottla.records.attributes import TimestampType

PROBLEM = DataError("column 'at' of the row id=1 of 'public.items': 'infinity' cannot be converted")


def convert(**options: str) -> None:
    config = {CONNECTOR_CLASS: "X", **{name.replace("_", "."): value for name, value in options.items()}}
    conversion = Conversion(all_plugins(), config, WorkerSettings().defaults, Tolerance(config, "c", 0))
    conversion.transform(Record("t", None, None, None, None, None, problem=PROBLEM))


def test_what_is_not_tolerated_ends_the_task_and_says_why() -> None:
    with pytest.raises(ToleranceExceeded) as raised:
        convert()
    assert raised.value.__cause__ is PROBLEM


def test_what_is_tolerated_is_left_out_and_told_if_that_is_wanted(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR), pytest.raises(Skipped):
        convert(errors_tolerance="all", errors_log_enable="true")
    assert caplog.messages == [f"task c-0: a record failed in TASK_POLL (X): {PROBLEM}"]


def test_a_dead_letter_has_room_for_the_record_and_not_for_all_that_is_said_of_it() -> None:
    tolerance = Tolerance({TOLERANCE: "all", DLQ_TOPIC: "dead", DLQ_HEADERS: "true"}, "c", 0)
    origin = ConsumerRecord("t", 0, -1, TimestampType.CREATE_TIME, 7, 0, None, b"{", ())
    tolerance.report(Stage.VALUE_CONVERTER, "X", origin, DataError("\ud800" + "x" * 1_000_000))
    (letter,) = tolerance.dead_letters
    said = {name: text or b"" for name, text in letter.headers}
    assert said["__connect.errors.offset"] == b"7"
    assert said["__connect.errors.exception.message"].startswith(b"\\ud800xxx")
    assert sum(len(text) for text in said.values()) < 20_000
