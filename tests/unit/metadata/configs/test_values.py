"""Texts become values and values become texts by Java's rules."""

import math

import pytest

from ottla.metadata.configs.values import (
    DOUBLE_MAX,
    ConfigValue,
    Password,
    WrongType,
    format_double,
    format_value,
    parse_value,
)
from ottla.wire.config_kinds import ConfigType


@pytest.mark.parametrize(
    ("config_type", "text", "value"),
    [
        (ConfigType.BOOLEAN, " TRUE ", True),
        (ConfigType.BOOLEAN, "false", False),
        (ConfigType.INT, "+5", 5),
        (ConfigType.INT, "-2147483648", -(2**31)),
        (ConfigType.SHORT, "32767", 32767),
        (ConfigType.LONG, "9223372036854775807", 2**63 - 1),
        (ConfigType.DOUBLE, "1e-1", 0.1),
        (ConfigType.DOUBLE, "5", 5.0),
        (ConfigType.DOUBLE, "5.", 5.0),
        (ConfigType.DOUBLE, "12.5e1F", 125.0),
        (ConfigType.DOUBLE, ".5d", 0.5),
        (ConfigType.DOUBLE, "-Infinity", -math.inf),
        (ConfigType.STRING, "\t two words ", "two words"),
        (ConfigType.STRING, "", ""),
        (ConfigType.LIST, "", ()),
        (ConfigType.LIST, "  ", ()),
        (ConfigType.LIST, "a , b,c", ("a", "b", "c")),
        (ConfigType.LIST, "a,,b,", ("a", "", "b", "")),
        (ConfigType.LIST, "a\t,\n,\u00a0b", ("a", "", "\u00a0b")),
        (ConfigType.CLASS, "org.example.Thing", "org.example.Thing"),
        (ConfigType.PASSWORD, "secret", Password("secret")),
    ],
)
def test_a_text_is_read_as_java_reads_it(config_type: ConfigType, text: str, value: ConfigValue) -> None:
    assert parse_value(config_type, text) == value


@pytest.mark.parametrize(
    ("config_type", "text"),
    [
        (ConfigType.BOOLEAN, "yes"),
        (ConfigType.BOOLEAN, ""),
        (ConfigType.INT, "1_000"),
        (ConfigType.INT, "2147483648"),
        (ConfigType.INT, "1.0"),
        (ConfigType.INT, "0x10"),
        (ConfigType.INT, "9" * 100_000),
        (ConfigType.SHORT, "32768"),
        (ConfigType.LONG, "9223372036854775808"),
        (ConfigType.LONG, ""),
        (ConfigType.DOUBLE, "inf"),
        (ConfigType.DOUBLE, "nan"),
        (ConfigType.DOUBLE, "1e"),
        (ConfigType.DOUBLE, "1_0"),
    ],
)
def test_a_text_that_java_refuses_is_refused(config_type: ConfigType, text: str) -> None:
    with pytest.raises(WrongType):
        parse_value(config_type, text)


# Where the time grows by the square of the length, these take hours.
def test_a_hostile_number_takes_linear_time() -> None:
    with pytest.raises(WrongType):
        parse_value(ConfigType.DOUBLE, "1" * 500_000 + "x")


def test_a_hostile_list_takes_linear_time() -> None:
    spaces = " " * 1_000_000
    assert parse_value(ConfigType.LIST, f"a{spaces}b , c") == (f"a{spaces}b", "c")


def test_white_space_that_java_does_not_trim_is_not_trimmed() -> None:
    assert parse_value(ConfigType.STRING, "\u00a0x\u2003") == "\u00a0x\u2003"


# Made by Java's Double.toString.
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (0.5, "0.5"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (0.00012345, "1.2345E-4"),
        (9_999_999.0, "9999999.0"),
        (10_000_000.0, "1.0E7"),
        (12_345_678.5, "1.23456785E7"),
        (-2.5e20, "-2.5E20"),
        (2_147_483_647.0, "2.147483647E9"),
        (DOUBLE_MAX, "1.7976931348623157E308"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_a_double_is_written_as_java_writes_it(value: float, text: str) -> None:
    assert format_double(value) == text


@pytest.mark.parametrize(
    ("config_type", "value", "text"),
    [
        (ConfigType.BOOLEAN, True, "true"),
        (ConfigType.INT, -1, "-1"),
        (ConfigType.LIST, (), ""),
        (ConfigType.LIST, ("a", "b"), "a,b"),
        (ConfigType.DOUBLE, 0.5, "0.5"),
        (ConfigType.STRING, None, None),
        (ConfigType.PASSWORD, Password("secret"), "[hidden]"),
    ],
)
def test_a_value_is_shown_as_kafka_shows_it(
    config_type: ConfigType, value: ConfigValue, text: str | None
) -> None:
    assert format_value(config_type, value) == text


def test_a_password_does_not_show_itself() -> None:
    password = Password("hunter2")
    assert "hunter2" not in f"{password} {password!r} {[password]}"
    assert password == Password("hunter2")
    assert password != Password("hunter3")
    assert len({password, Password("hunter2")}) == 1
