"""The levels of this node's loggers, under the names that Kafka's tools know.

A level that is changed holds until the node restarts (KIP-412). Python's CRITICAL is Kafka's FATAL, and below
Python's DEBUG lies Kafka's TRACE.
"""

import logging
from collections.abc import Sequence
from typing import Final

from ottla.metadata.configs.alter import Change
from ottla.metadata.configs.loggers import ROOT, check_logger_changes
from ottla.wire.config_kinds import AlterOperation

_NUMBERS: Final = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
}
_OUR_PREFIX: Final = "ottla"


def log_levels() -> dict[str, str]:
    """Return the level in force of each logger of ours, and of the root."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == _OUR_PREFIX]
    levels = {name: _name_of(logging.getLogger(name).getEffectiveLevel()) for name in names}
    levels[ROOT] = _name_of(logging.root.getEffectiveLevel())
    return levels


def change_log_levels(node_name: str, node_id: int, changes: Sequence[Change], *, only_check: bool) -> None:
    """Set levels, or remove them so that the parent's hold. Raises ChangeRefused before any change."""
    check_logger_changes(node_name, node_id, changes, log_levels().keys())
    if only_check:
        return
    for change in changes:
        logger = logging.root if change.name == ROOT else logging.getLogger(change.name)
        logger.setLevel(
            _NUMBERS[change.value]
            if change.operation == AlterOperation.SET and change.value
            else logging.NOTSET
        )


def _name_of(level: int) -> str:
    """Return the coarsest name that lets through everything the level does."""
    return next((name for name, number in _NUMBERS.items() if number <= level), "TRACE")
