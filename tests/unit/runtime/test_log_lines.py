"""What a stranger can cause must not fill the log."""

import logging

import pytest

from ottla.runtime.log_lines import (
    INTERVAL_MS,
    LINE_CHARACTERS_MAX,
    LINES_MAX,
    JsonFormatter,
    RepeatedLines,
)


def test_repeated_lines_are_counted_instead_of_written(caplog: pytest.LogCaptureFixture) -> None:
    now_ms = 0
    lines = RepeatedLines(logging.getLogger("test.lines"), lambda: now_ms)
    for number in range(100):
        lines.warn("garbage", f"peer {number}")
    assert len(caplog.messages) == LINES_MAX

    now_ms = INTERVAL_MS
    lines.warn("garbage", "peer 100")

    assert caplog.messages[-2:] == [
        f"garbage: {100 - LINES_MAX} more such lines were suppressed",
        "garbage: peer 100",
    ]


def test_kinds_are_counted_apart(caplog: pytest.LogCaptureFixture) -> None:
    lines = RepeatedLines(logging.getLogger("test.lines"), lambda: 0)
    for kind in ("one", "two"):
        for _ in range(LINES_MAX):
            lines.warn(kind, "again")
    assert len(caplog.messages) == 2 * LINES_MAX


def test_json_lines_hold_one_object_each() -> None:
    record = logging.LogRecord("ottla", logging.INFO, "file", 1, "two\nlines and %s", ("more",), None)
    line = JsonFormatter().format(record)
    assert "\n" not in line
    assert '"message": "two\\nlines and more"' in line


def test_a_bug_that_a_peer_can_repeat_is_told_a_few_times(caplog: pytest.LogCaptureFixture) -> None:
    lines = RepeatedLines(logging.getLogger("test.lines"), lambda: 0)
    for number in range(100):
        lines.fail("a bug", f"peer {number}", KeyError("bug"))
    assert len(caplog.records) == LINES_MAX
    assert all(record.exc_info for record in caplog.records)


def test_what_a_peer_wrote_stays_one_line_of_bounded_length(caplog: pytest.LogCaptureFixture) -> None:
    lines = RepeatedLines(logging.getLogger("test.lines"), lambda: 0)
    lines.warn("garbage", "a topic\nERROR forged\x1b[2J" + "x" * 100_000)
    (message,) = caplog.messages
    assert message.startswith("garbage: a topic\\nERROR forged\\x1b[2Jxxx")
    assert len(message) < 2 * LINE_CHARACTERS_MAX
