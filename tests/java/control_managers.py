"""Runs the parts of Apache Kafka's controller that decide about brokers and partitions."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.java.oracle import Oracle

from ottla.wire.codec import decode, encode
from ottla.wire.declare import spec_of
from ottla.wire.error_code import ErrorCode
from ottla.wire.metadata_records.framing import MetadataRecord, decode_metadata_record, encode_metadata_record


class Outcome(NamedTuple):
    """What a step brought about."""

    records: list[MetadataRecord]
    reply: Any
    """The response, or the error that refuses the request as a whole."""
    is_unfinished: bool
    """Whether a periodic task wants to come again at once."""
    next_offset: int


class KafkaFailed(Exception):
    """Kafka's controller threw an exception that is no answer."""


class ControlManagers:
    """One controller."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    def begin(self, features: Mapping[str, int], cluster_id: str, session_ms: int, random: int) -> None:
        """Begin with an empty cluster. `random` modulo a bound is what the random source answers."""
        self._tell(
            op="new", features=dict(features), cluster=cluster_id, session=session_ms, random=random, now=0
        )

    def ask(self, request: Any, response: type[Any], version: int) -> Outcome:
        """Let Kafka decide about a request."""
        key = spec_of(type(request)).api_key
        answer = self._tell(op="ask", api=key, version=version, body=encode(request, version).hex())
        if "refused" in answer:
            return self._outcome(answer, ErrorCode(answer["refused"]))
        return self._outcome(answer, decode(response, bytes.fromhex(answer["reply"]), version))

    def run(self, task: str) -> Outcome:
        """Run one of the tasks `fence`, `balance` and `unclean`."""
        return self._outcome(self._tell(op="run", task=task), None)

    def replay(self, records: Sequence[MetadataRecord]) -> Outcome:
        """Apply records that somebody else wrote."""
        shown = [encode_metadata_record(record, version).hex() for record, version in records]
        return self._outcome(self._tell(op="replay", records=shown), None)

    def advance(self, now_ms: int) -> None:
        """Let time go on."""
        self._tell(op="advance", to=now_ms)

    def _outcome(self, answer: Mapping[str, Any], reply: Any) -> Outcome:
        records = [decode_metadata_record(bytes.fromhex(one)) for one in answer["records"]]
        return Outcome(records, reply, answer.get("more", False), answer["next"])

    def _tell(self, **question: Any) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = json.loads(self._oracle.ask("ControlManagers", json.dumps(question)))
        if "error" in answer:
            raise KafkaFailed(answer["error"])
        return answer
