"""Log levels are changed for known loggers of this node."""

import pytest

from ottla.metadata.configs.alter import Change
from ottla.metadata.configs.errors import ChangeRefused
from ottla.metadata.configs.loggers import check_logger_changes
from ottla.wire.config_kinds import AlterOperation
from ottla.wire.error_code import ErrorCode

SET, DELETE, APPEND, _ = AlterOperation
KNOWN = {"root", "ottla.broker"}


def test_the_level_of_a_known_logger_is_set_and_taken_away() -> None:
    check_logger_changes("0", 0, [Change("ottla.broker", SET, "DEBUG"), Change("root", SET, "WARN")], KNOWN)
    check_logger_changes("0", 0, [Change("ottla.broker", DELETE, None)], KNOWN)


@pytest.mark.parametrize(
    ("node", "change", "error_code"),
    [
        ("x", Change("root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
        ("", Change("root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
        ("5", Change("root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
        ("0", Change("nobody", SET, "INFO"), ErrorCode.INVALID_CONFIG),
        ("0", Change("nobody", DELETE, None), ErrorCode.INVALID_CONFIG),
        ("0", Change("root", SET, "info"), ErrorCode.INVALID_CONFIG),
        ("0", Change("root", DELETE, None), ErrorCode.INVALID_REQUEST),
        ("0", Change("root", APPEND, "INFO"), ErrorCode.INVALID_REQUEST),
        ("0", Change("root", 12, "INFO"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_other_changes_are_refused(node: str, change: Change, error_code: ErrorCode) -> None:
    with pytest.raises(ChangeRefused) as caught:
        check_logger_changes(node, 0, [change], KNOWN)
    assert caught.value.error_code is error_code
