"""Everything that the client raises, in one place: `from ottla.errors import Fenced, OutcomeUnknown`.

All but `InvalidProperty` and `UnusableProperties`, which say that the program is wrong, are `ClientError`s.
Each is imported when it is first used: an error of the registry's client would bring its HTTP client with it.
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ottla.client.admin.routes import OutcomeUnknown
    from ottla.client.consumer.assignment import NotAssigned
    from ottla.client.consumer.offsets import CommitFailed, RebalanceInProgress
    from ottla.client.consumer.positions import LogTruncated, NoOffset
    from ottla.client.consumer.record import Undeserializable
    from ottla.client.errors import (
        AuthenticationFailed,
        BrokerError,
        ClientError,
        ConnectionLost,
        NoBrokerReached,
        OffsetOutOfRange,
        RequestTimedOut,
        UnsupportedByBroker,
        UntrustedBroker,
    )
    from ottla.client.producer.accumulator import SendBufferFull
    from ottla.client.producer.producer import RecordTooLarge
    from ottla.client.producer.transactions import Fenced, WrongTransactionState
    from ottla.client.properties import InvalidProperty
    from ottla.client.properties_file import UnusableProperties
    from ottla.client.registry.client import RegistryRefused, RegistryUnreachable
    from ottla.client.share.record import NotHeld, UnreadableRecord
    from ottla.client.share.share_consumer import AcknowledgeFailed

__all__ = [
    "AcknowledgeFailed",
    "AuthenticationFailed",
    "BrokerError",
    "ClientError",
    "CommitFailed",
    "ConnectionLost",
    "Fenced",
    "InvalidProperty",
    "LogTruncated",
    "NoBrokerReached",
    "NoOffset",
    "NotAssigned",
    "NotHeld",
    "OffsetOutOfRange",
    "OutcomeUnknown",
    "RebalanceInProgress",
    "RecordTooLarge",
    "RegistryRefused",
    "RegistryUnreachable",
    "RequestTimedOut",
    "SendBufferFull",
    "Undeserializable",
    "UnreadableRecord",
    "UnsupportedByBroker",
    "UntrustedBroker",
    "UnusableProperties",
    "WrongTransactionState",
]

_MODULES: Final = {
    "AcknowledgeFailed": "ottla.client.share.share_consumer",
    "AuthenticationFailed": "ottla.client.errors",
    "BrokerError": "ottla.client.errors",
    "ClientError": "ottla.client.errors",
    "CommitFailed": "ottla.client.consumer.offsets",
    "ConnectionLost": "ottla.client.errors",
    "Fenced": "ottla.client.producer.transactions",
    "InvalidProperty": "ottla.client.properties",
    "LogTruncated": "ottla.client.consumer.positions",
    "NoBrokerReached": "ottla.client.errors",
    "NoOffset": "ottla.client.consumer.positions",
    "NotAssigned": "ottla.client.consumer.assignment",
    "NotHeld": "ottla.client.share.record",
    "OffsetOutOfRange": "ottla.client.errors",
    "OutcomeUnknown": "ottla.client.admin.routes",
    "RebalanceInProgress": "ottla.client.consumer.offsets",
    "RecordTooLarge": "ottla.client.producer.producer",
    "RegistryRefused": "ottla.client.registry.client",
    "RegistryUnreachable": "ottla.client.registry.client",
    "RequestTimedOut": "ottla.client.errors",
    "SendBufferFull": "ottla.client.producer.accumulator",
    "Undeserializable": "ottla.client.consumer.record",
    "UnreadableRecord": "ottla.client.share.record",
    "UnsupportedByBroker": "ottla.client.errors",
    "UntrustedBroker": "ottla.client.errors",
    "UnusableProperties": "ottla.client.properties_file",
    "WrongTransactionState": "ottla.client.producer.transactions",
}


if not TYPE_CHECKING:
    # Hidden from type checkers, which would take any name for one of ours.

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module 'ottla.errors' has no attribute {name!r}")
        from importlib import import_module

        found = globals()[name] = getattr(import_module(_MODULES[name]), name)
        return found
