"""A committed offset has the fields of its record's value, in their order, which replaying relies on."""

from ottla.coordination.group.offsets.committed_offsets import CommittedOffset
from ottla.wire.coordinator_records.offsets import OffsetCommitValue
from ottla.wire.declare import fields_of


def test_fields_are_those_of_the_value() -> None:
    ours = [name.removesuffix("_ms") for name in CommittedOffset._fields]
    assert ours == [*fields_of(OffsetCommitValue), "place"]
