"""How far copies are behind: known by fresh reports without errors, and unknown otherwise."""

from typing import Any

from ottla.mirror.copies import Copy, copies_of
from ottla.mirror.progress import PartitionProgress, Progress
from ottla.model.ids import TopicPartition

NOW_MS = 1_000_000
MIRRORS = {"payments": "berlin"}


def part(number: int, **facts: Any) -> dict[str, Any]:
    told = {"copied_to": 7, "source_end": 9, "lag": 2, "error": None, "seen_at_ms": NOW_MS - 3000}
    return {"topic": "payments", "partition": number, **told, **facts}


def status(*parts: dict[str, Any], **facts: Any) -> dict[str, Any]:
    told = {"source": "berlin", "exact": True, "at_ms": NOW_MS - 2000, "topic_errors": {}}
    return {**told, "partitions": list(parts), **facts}


def copies(*statuses: dict[str, Any], partitions: int = 1) -> list[Copy]:
    return copies_of(statuses, MIRRORS, {"payments": partitions, "other": 4}, NOW_MS)


def test_a_fresh_report_without_an_error_is_believed() -> None:
    assert copies(status(part(0))) == [Copy("berlin", "payments", 0, 7, 9, 2, None, 3)]


def test_what_has_an_error_has_no_lag_even_if_the_report_has_one() -> None:
    (copy,) = copies(status(part(0, error="it was made again")))
    assert (copy.lag, copy.error) == (None, "it was made again")


def test_what_was_never_seen_has_no_lag() -> None:
    (copy,) = copies(status(part(0, lag=None, source_end=-1, seen_at_ms=-1)))
    assert (copy.lag, copy.source_silent_s) == (None, None)
    assert copy.error == "it is not known yet where the source and the copy end"


def test_an_old_report_says_nothing_of_now() -> None:
    (copy,) = copies(status(part(0), at_ms=NOW_MS - 61_000))
    assert (copy.lag, copy.error) == (
        None,
        "its mirror reported 61 seconds ago for the last time: see whether `ottla mirror run` runs",
    )
    (copy,) = copies(status(part(0), at_ms=NOW_MS - 60_000))
    assert copy.lag == 2


def test_copies_on_which_nobody_reports_are_unknown() -> None:
    first, second = copies(status(part(0)), partitions=2)
    assert (first.lag, second.lag) == (2, None)
    assert "no mirror of berlin reports on it" in (second.error or "")
    (copy,) = copies()
    assert (copy.name, copy.lag) == ("payments-0", None)
    (copy,) = copies(status(source="paris"), status(part(0), source="rome"))
    assert (copy.source, copy.lag) == ("berlin", None)


def test_topics_that_could_not_be_copied_are_named() -> None:
    known = status(part(0), topic_errors={"late": "no rights", "other": "it is not a mirror of berlin"})
    missing, copy = copies(known)
    # What is there and no mirror was made writable by somebody, or was there before.
    assert (missing.name, missing.lag, missing.error, copy.lag) == ("late", None, "no rights", 2)
    (copy,) = copies(status(topic_errors={"payments": "no rights"}))
    assert (copy.lag, copy.error) == (None, "no rights")


def test_what_was_made_writable_is_behind_nobody_but_other_ways_have_no_mark() -> None:
    other = {**part(0), "topic": "other"}
    assert [copy.topic for copy in copies(status(part(0), other))] == ["payments"]
    assert [copy.topic for copy in copies(status(other, exact=False))] == ["other", "payments"]


def test_a_new_link_has_met_no_error_and_copied_nothing() -> None:
    progress = Progress("berlin")
    assert (progress.errors, progress.bytes_per_second, progress.last_error_at_ms) == (0, 0.0, -1)
    assert (progress.error, progress.last_error) == (None, None)


def test_the_throughput_is_that_since_the_last_measurement() -> None:
    progress = Progress("berlin")
    part = PartitionProgress(TopicPartition("payments", 0))
    progress.partitions[TopicPartition("payments", 0)] = part
    part.bytes_copied = 5_000
    progress.measure(10.0)
    assert progress.bytes_per_second == 0.0, "it is not known since when"
    part.bytes_copied += 300
    progress.measure(12.0)
    assert progress.bytes_per_second == 150.0
    progress.measure(12.0)
    assert progress.bytes_per_second == 150.0
    progress.measure(13.0)
    assert progress.bytes_per_second == 0.0


def test_an_error_lasts_until_the_same_work_succeeds() -> None:
    progress = Progress("berlin")
    progress.note_error("copying", "it is down")
    progress.note_error("following", "it is down")
    progress.note_error("rules", "not allowed")
    assert (progress.error, progress.errors) == ("it is down; not allowed", 3)
    progress.note_success("copying")
    progress.note_success("rules")
    assert progress.error == "it is down"
    progress.note_success("following")
    assert not progress.error
    assert progress.last_error == "not allowed"
