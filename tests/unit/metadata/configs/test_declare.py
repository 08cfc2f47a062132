"""Declarations are keys on the class and values on an instance."""

import pytest

from ottla.metadata.configs.declare import REQUIRED, ConfigKey, ConfigValues, integer, listing, password
from ottla.metadata.configs.errors import InvalidConfig
from ottla.metadata.configs.rules import DistinctList, GzipLevel, Range
from ottla.metadata.configs.values import Password
from ottla.wire.config_kinds import ConfigType


class Shelf(ConfigValues):
    shelf_width_cm = integer("shelf.width.cm", 80, Range(1), doc="How wide it is.")
    shelf_colours = listing("shelf.colours", (), DistinctList(("red", "blue")), doc="Its colours.")


class Lock(ConfigValues):
    lock_code = password("lock.code", doc="What opens it.")


class Cupboard(Shelf, Lock):
    cupboard_id = integer("cupboard.id", REQUIRED, doc="Which one it is.")


def test_the_class_gives_the_key_and_an_instance_the_value() -> None:
    key = Shelf.shelf_width_cm
    assert isinstance(key, ConfigKey)
    assert (key.name, key.type, key.default) == ("shelf.width.cm", ConfigType.INT, 80)
    assert Shelf({}).shelf_width_cm == 80
    assert Shelf({"shelf.width.cm": 120}).shelf_width_cm == 120


def test_a_class_has_what_its_bases_declare() -> None:
    assert Cupboard.keys.keys() == {"shelf.width.cm", "shelf.colours", "lock.code", "cupboard.id"}
    assert Cupboard({"cupboard.id": 7}).shelf_width_cm == 80


def test_what_has_no_default_must_be_given() -> None:
    with pytest.raises(InvalidConfig, match=r"cupboard\.id"):
        Cupboard({})


def test_an_attribute_must_be_named_after_its_config() -> None:
    with pytest.raises((AssertionError, RuntimeError)):
        type("Wrong", (ConfigValues,), {"height": integer("depth", 1, doc="No.")})


def test_the_same_config_cannot_be_declared_twice() -> None:
    with pytest.raises(AssertionError, match="declared twice"):
        type("Twice", (Shelf,), {"shelf_width_cm": integer("shelf.width.cm", 1, doc="Again.")})


def test_values_do_not_change() -> None:
    shelf = Shelf({})
    with pytest.raises(AttributeError, match="do not change"):
        shelf.shelf_width_cm = 5
    wider = shelf.replaced({"shelf.width.cm": 100})
    assert (shelf.shelf_width_cm, wider.shelf_width_cm) == (80, 100)
    assert shelf == wider.replaced({"shelf.width.cm": 80})
    assert shelf != wider


def test_a_text_is_parsed_and_judged() -> None:
    assert Shelf.shelf_width_cm.parse(" 90 ") == 90
    with pytest.raises(
        InvalidConfig, match=r"Invalid value x for configuration shelf\.width\.cm: Not a number"
    ):
        Shelf.shelf_width_cm.parse("x")
    with pytest.raises(InvalidConfig, match="Value must be at least 1"):
        Shelf.shelf_width_cm.parse("0")


def test_what_a_list_says_twice_counts_once() -> None:
    assert Shelf.shelf_colours.parse("red,blue,red") == ("red", "blue")


def test_a_rule_without_parts_is_applied_too() -> None:
    level = integer("level", -1, GzipLevel(), doc="How hard.")
    with pytest.raises(InvalidConfig):
        level.parse("0")


def test_a_secret_is_sensitive_and_is_not_shown_by_an_error() -> None:
    assert Lock.lock_code.is_sensitive
    lock = Lock({"lock.code": Password("1234")})
    assert "1234" not in repr(lock.lock_code)
    assert Lock.lock_code.format(lock.lock_code) == "[hidden]"
