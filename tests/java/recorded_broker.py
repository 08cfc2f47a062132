"""An Apache Kafka that is asked request by request, or what it answered when that was recorded.

What differs from one recording to the next is no part of a question: times in batches of records.
"""

import hashlib
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from tests.java.oracle import Oracle
from tests.support.plain_client import PlainClient

from ottla.records.batch import iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.errors import RecordsError
from ottla.wire.apis import api_of
from ottla.wire.declare import fields_of, spec_of
from ottla.wire.framing import decode_response

_CLOSED, _SILENT = "closed", "silent"


class RecordedBroker:
    """One broker. `address` starts it, if need be, and tells where it listens."""

    def __init__(self, oracle: Oracle, address: Callable[[], str]) -> None:
        self._oracle = oracle
        self._address = address

    def client(self, timeout_s: float = 60) -> "RecordedClient":
        """Connect to it."""
        return RecordedClient(self._oracle, lambda: PlainClient(self._address(), timeout_s))


class RecordedClient:
    """One connection: asks as a `PlainClient` does."""

    def __init__(self, oracle: Oracle, connect: Callable[[], PlainClient]) -> None:
        self._oracle = oracle
        self._connect = connect
        self._client: PlainClient | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def ask(self, request: Any, version: int | None = None) -> Any:
        """Send a request in `version` (the newest, if none is given) and return the answer."""
        spec = spec_of(type(request))
        assert spec.api_key is not None, "only requests can be sent"
        version = spec.versions.last if version is None else version
        question = f"{type(request).__name__} v{version} {_lasting(request)}"
        frame = self._oracle.answer(question, lambda: self._frame(request, version))
        if frame == _CLOSED:
            raise ConnectionError("the broker closed the connection instead of answering")
        if frame == _SILENT:
            raise TimeoutError("the broker did not answer")
        return decode_response(api_of(spec.api_key), version, bytes.fromhex(frame))[1]

    def _frame(self, request: Any, version: int) -> str:
        if self._client is None:
            self._client = self._connect()
        try:
            self._client.send(request, version)
            return self._client.receive_frame().hex()
        except ConnectionError:
            return _CLOSED
        except TimeoutError:
            return _SILENT


def _lasting(value: Any) -> Any:
    """Return what is to be the same in a request whenever it is recorded."""
    if isinstance(value, memoryview | bytearray):
        return _lasting_records(bytes(value))
    if hasattr(type(value), "__wire_fields__"):
        return [_lasting(getattr(value, name)) for name in fields_of(type(value))]
    if isinstance(value, tuple | list):
        return [_lasting(one) for one in value]
    if isinstance(value, bytes) and len(value) > 100:
        return hashlib.blake2b(value).hexdigest()
    return value


def _lasting_records(content: bytes) -> Any:
    try:
        batches = [
            (
                batch.header._replace(batch_length=0, crc=0, base_timestamp=0, max_timestamp=0),
                [(record.offset, record.key, record.value) for record in iter_batch_records(batch)],
            )
            for batch in iter_batches(memoryview(content))
        ]
    except RecordsError:
        return f"{len(content)} bytes that are no records"
    return batches
