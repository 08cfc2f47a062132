"""Declared messages as Python values."""

import copy
import pickle
from typing import Any

import pytest

from ottla.wire.declare import REQUIRED, fields_of, i32, message, replace, spec_of, struct, wire
from ottla.wire.messages.api_versions import ApiVersion
from ottla.wire.metadata_records.no_op import NoOpRecord
from ottla.wire.versions import NO_VERSIONS, VERSION_MAX, Versions


@struct
class Point:
    """Two numbers, the second with a default."""

    x: i32 = wire("0+", map_key=True)
    y: i32 = wire("1+", default=7, ignorable=True)


@message(api_key=99, versions="0-3", flexible="2+", listeners=("broker",), latest_version_unstable=True)
class Line:
    """A name and some points."""

    name: str | None = wire("0+", nullable="1+")
    points: tuple[Point, ...] = wire("0+")
    colour: str = wire("2+", default="", tag=4)
    width: i32 = wire("0-2", default=1, tag=5, tagged="2+")


def make() -> Line:
    return Line(name="diagonal", points=(Point(x=1), Point(x=2, y=3)))


def test_fields_are_attributes_in_the_order_they_travel() -> None:
    line = make()
    assert (line.name, line.points[0].x, line.points[1].y, line.colour) == ("diagonal", 1, 3, "")
    assert tuple(line) == ("diagonal", line.points, "", 1)  # type: ignore[arg-type]


def test_a_default_stands_in_for_what_is_left_out() -> None:
    assert Point(x=1).y == 7


def test_a_field_without_default_must_be_given() -> None:
    incomplete: Any = Point
    with pytest.raises(TypeError, match="x"):
        incomplete(y=1)
    with pytest.raises(TypeError, match="x"):
        # The constructor is made at the first call: the second must complain in the same way.
        incomplete()


def test_fields_are_given_by_name_only() -> None:
    positional: Any = Point
    with pytest.raises(TypeError):
        positional(1, 2)
    with pytest.raises(TypeError, match="z"):
        positional(x=1, z=2)


def test_messages_do_not_change() -> None:
    point: Any = Point(x=1)
    with pytest.raises(AttributeError):
        point.x = 2
    with pytest.raises(AttributeError):
        point.z = 2


def test_replace_makes_a_changed_copy() -> None:
    line = make()
    assert replace(line, name=None) == Line(name=None, points=line.points)
    assert line.name == "diagonal"
    assert type(replace(line, name=None)) is Line


def test_replace_refuses_a_field_that_does_not_exist() -> None:
    with pytest.raises(TypeError, match="Point has no field 'z'"):
        replace(Point(x=1), z=2)


def test_equal_messages_are_equal_keys() -> None:
    assert make() == make()
    assert len({make(), make()}) == 1
    assert make() != replace(make(), name="other")


def test_a_message_without_fields_is_true() -> None:
    assert NoOpRecord()
    assert bool(Point(x=0)) is True


def test_representation_can_be_read() -> None:
    assert repr(Point(x=1)) == "Point(x=1, y=7)"


def test_messages_are_copied_and_pickled() -> None:
    version = ApiVersion(api_key=18, min_version=0, max_version=4)
    for copied in (copy.copy(version), copy.deepcopy(version), pickle.loads(pickle.dumps(version))):
        assert copied == version
        assert type(copied) is ApiVersion


def test_declaration_keeps_what_was_said() -> None:
    assert list(fields_of(Line)) == ["name", "points", "colour", "width"]
    x, y = fields_of(Point).values()
    assert (x.default, x.map_key, x.ignorable) == (REQUIRED, True, False)
    assert (y.versions, y.default, y.map_key, y.ignorable) == (Versions(1, VERSION_MAX), 7, False, True)
    spec = spec_of(Line)
    assert (spec.versions, spec.flexible) == (Versions(0, 3), Versions(2, VERSION_MAX))
    assert (spec.api_key, spec.listeners, spec.latest_version_unstable) == (99, ("broker",), True)


def test_a_tag_counts_from_the_fields_first_version_unless_told_otherwise() -> None:
    fields = fields_of(Line)
    assert fields["colour"].tagged == Versions(2, VERSION_MAX)
    assert fields["width"].tagged == Versions(2, VERSION_MAX)
    assert fields["name"].tagged == NO_VERSIONS


def test_a_struct_cannot_be_encoded_by_itself() -> None:
    with pytest.raises(TypeError, match="Point is a struct"):
        spec_of(Point)


def test_declared_classes_keep_their_names_and_docs() -> None:
    assert (Line.__name__, Line.__module__, Line.__doc__) == ("Line", __name__, "A name and some points.")
