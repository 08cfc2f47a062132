"""What the client raises. Each error says what failed, where, and what to do next, in one sentence."""

from collections.abc import Mapping

from ottla.model.ids import TopicPartition
from ottla.wire.error_code import ErrorCode


class ClientError(Exception):
    """The base of all errors of the client."""

    retriable = False


class NoBrokerReached(ClientError):
    """None of the bootstrap addresses answered."""

    retriable = True


class ConnectionLost(ClientError):
    """The connection broke while an answer was due: whether the request took effect is not known."""

    retriable = True


class RequestTimedOut(ClientError):
    """No answer came in time: whether the request took effect is not known."""

    retriable = True


class UnsupportedByBroker(ClientError):
    """The broker does not know this API, or only in versions that the client does not."""


class UntrustedBroker(ClientError):
    """The broker's certificate does not prove that it is the one we mean to talk to."""


class AuthenticationFailed(ClientError):
    """The broker refused who we say we are."""


class BrokerError(ClientError):
    """The broker answered with an error code."""

    def __init__(self, error_code: ErrorCode, what: str, detail: str | None = None) -> None:
        super().__init__(f"{what}: {detail or error_code.name}" + (f" ({error_code.name})" if detail else ""))
        self.error_code = error_code
        self.retriable = error_code.retriable


class OffsetOutOfRange(ClientError):
    """A position that the partition's log does not have: retention removed it, or it was never written."""

    def __init__(self, offsets: Mapping[TopicPartition, int]) -> None:
        positions = ", ".join(f"{where} at {offset}" for where, offset in offsets.items())
        super().__init__(
            f"offset out of range: {positions}. Retention may have removed it: seek to another offset, or "
            "set auto.offset.reset"
        )
        self.offsets = dict(offsets)


def raise_for(error_code: ErrorCode, what: str, detail: str | None = None) -> None:
    """Raise the error a code stands for; do nothing for NONE."""
    if error_code is not ErrorCode.NONE:
        raise BrokerError(error_code, what, detail)
