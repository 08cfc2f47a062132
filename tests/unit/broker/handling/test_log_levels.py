"""Log levels go by Kafka's names."""

import logging
from collections.abc import Iterator

import pytest

from ottla.broker.handling.log_levels import change_log_levels, log_levels
from ottla.metadata.configs.alter import Change
from ottla.metadata.configs.errors import ChangeRefused
from ottla.wire.config_kinds import AlterOperation


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("ottla.test-log-levels")
    yield logger
    logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    ("level", "name"),
    [
        (logging.CRITICAL, "FATAL"),
        (logging.ERROR, "ERROR"),
        (logging.WARNING, "WARN"),
        (logging.INFO, "INFO"),
        (logging.DEBUG, "DEBUG"),
        (5, "TRACE"),
        (1, "TRACE"),
    ],
)
def test_pythons_levels_have_kafkas_names(logger: logging.Logger, level: int, name: str) -> None:
    logger.setLevel(level)
    assert log_levels()[logger.name] == name


def test_a_level_is_set_and_taken_away(logger: logging.Logger) -> None:
    change_log_levels("0", 0, [Change(logger.name, AlterOperation.SET, "ERROR")], only_check=True)
    assert logger.level == logging.NOTSET
    change_log_levels("0", 0, [Change(logger.name, AlterOperation.SET, "ERROR")], only_check=False)
    assert logger.level == logging.ERROR
    change_log_levels("0", 0, [Change(logger.name, AlterOperation.DELETE, None)], only_check=False)
    assert logger.level == logging.NOTSET


def test_nothing_changes_if_one_change_is_refused(logger: logging.Logger) -> None:
    changes = [
        Change(logger.name, AlterOperation.SET, "ERROR"),
        Change("ottla.nobody", AlterOperation.SET, "INFO"),
    ]
    with pytest.raises(ChangeRefused):
        change_log_levels("0", 0, changes, only_check=False)
    assert logger.level == logging.NOTSET
