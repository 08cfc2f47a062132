"""Whether log levels may be changed by IncrementalAlterConfigs (KIP-412), which hold until a restart."""

import re
from collections.abc import Container, Sequence
from typing import Final

from ottla.metadata.configs.alter import Change
from ottla.metadata.configs.errors import ChangeRefused
from ottla.wire.config_kinds import AlterOperation
from ottla.wire.error_code import ErrorCode

LEVELS: Final = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")
ROOT: Final = "root"
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")


def check_logger_changes(
    node_name: str, node_id: int, changes: Sequence[Change], known: Container[str]
) -> None:
    """Refuse changes of log levels on the node called `node_name`; `known` are its loggers."""
    if not _INTEGER.fullmatch(node_name):
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {node_name}")
    if int(node_name) != node_id:
        reason = f"Unexpected node id. Expected {node_id}, but received {node_name}"
        raise ChangeRefused(ErrorCode.INVALID_REQUEST, reason)
    for change in changes:
        _check(change, known)


def _check(change: Change, known: Container[str]) -> None:
    match change.operation:
        case AlterOperation.SET:
            if change.name not in known:
                raise ChangeRefused(ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist")
            if change.value not in LEVELS:
                reason = (
                    f"{change.name} cannot have the level {change.value}: it is none of {', '.join(LEVELS)}"
                )
                raise ChangeRefused(ErrorCode.INVALID_CONFIG, reason)
        case AlterOperation.DELETE:
            if change.name not in known:
                raise ChangeRefused(ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist")
            if change.name == ROOT:
                raise ChangeRefused(
                    ErrorCode.INVALID_REQUEST, "The level of the root logger cannot be removed"
                )
        case AlterOperation.APPEND | AlterOperation.SUBTRACT:
            verb = AlterOperation(change.operation).name
            raise ChangeRefused(ErrorCode.INVALID_REQUEST, f"{verb} is not allowed for log levels")
        case _:
            reason = f"Unknown operation {change.operation} on {change.name}"
            raise ChangeRefused(ErrorCode.INVALID_REQUEST, reason)
