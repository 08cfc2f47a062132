"""What storage refuses, and why. The broker turns each into the error code of an answer.

`CorruptFile` (in `file_errors`) never leaves this package, save for a directory that cannot be used at all.
"""

from typing import Final, NamedTuple

from ottla.wire.error_code import ErrorCode


class StorageError(Exception):
    """Something the storage engine would not or could not do."""


class RecordError(NamedTuple):
    """What is wrong with one record of a refused batch. `batch_index` counts its records from 0."""

    batch_index: int
    message: str


class AppendError(StorageError):
    """A batch was refused. Nothing of it was written."""

    def __init__(
        self, error_code: ErrorCode, message: str, record_errors: tuple[RecordError, ...] = ()
    ) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.message = message
        self.record_errors = record_errors


class OffsetOutOfRange(StorageError):
    """An offset was asked for that the log does not have, or not any more."""

    def __init__(self, offset: int, log_start_offset: int, log_end_offset: int) -> None:
        super().__init__(f"offset {offset} is not within {log_start_offset} to {log_end_offset}")
        self.offset = offset
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset


class OffsetOverflow(StorageError):
    """A batch does not fit into its segment: its offset is more than 2^31 - 1 above the base offset."""

    def __init__(self, base_offset: int, offset: int) -> None:
        super().__init__(f"offset {offset} does not fit into the segment at {base_offset}")
        self.base_offset = base_offset
        self.offset = offset


class LogDirectoryOffline(StorageError):
    """A log directory failed and is not touched any more before a restart."""

    error_code: Final = ErrorCode.KAFKA_STORAGE_ERROR

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"log directory {path} is offline: {cause}")
        self.path = path
        self.cause = cause


class DamagedRecords(StorageError):
    """Records are damaged here, and are being fetched from another replica."""

    error_code: Final = ErrorCode.KAFKA_STORAGE_ERROR

    def __init__(self, partition: str, first_offset: int, next_offset: int) -> None:
        super().__init__(
            f"offsets {first_offset} to {next_offset - 1} of {partition} are damaged, and are being healed"
        )


class LeadershipLost(StorageError):
    """Another node leads the partition now, and may not have what was appended here last."""

    error_code: Final = ErrorCode.NOT_LEADER_OR_FOLLOWER

    def __init__(self, partition: str) -> None:
        super().__init__(f"{partition} is led by another node now")


class DamagedLog(StorageError):
    """A log is damaged that is repaired only if an operator asks for it. Nothing was changed."""


class UnusableDirectory(StorageError):
    """A log directory cannot be started on: locked, foreign, damaged, or not one at all."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"cannot use log directory {path}: {reason}")
        self.path = path
        self.reason = reason


class MustBeOpened(AppendError):
    """A batch is large and has to be opened, which takes long. Nothing was appended."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, "the batch has to be opened first")
