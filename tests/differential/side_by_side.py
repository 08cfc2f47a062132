"""Apache Kafka and Ottla, asked the same things in the same order.

What may differ is left out of the comparison: ids, times, session numbers, and the words of error messages.
"""

from collections.abc import Callable
from typing import Any

from tests.java.recorded_broker import RecordedClient
from tests.support.data_plane import batch_of, create_topic, produce_request
from tests.support.plain_client import PlainClient
from tests.support.readiness import wait_until_led

from ottla.model.uuid import Uuid
from ottla.wire.apis import ApiKey, api_of

NO_SUCH_ID = Uuid(b"no such topic id")


class Side:
    """One broker, and what it calls things."""

    def __init__(self, client: PlainClient | RecordedClient) -> None:
        self.client = client
        self.ids: dict[str, Uuid] = {}
        self.session_id = 0

    def topic(self, name: str, by_id: bool) -> str | Uuid:
        return self.ids.get(name, NO_SUCH_ID) if by_id else name


class Both:
    """Apache Kafka and Ottla, asked side by side."""

    def __init__(self, kafka: RecordedClient, ottla: PlainClient) -> None:
        self.sides = [Side(kafka), Side(ottla)]

    def create(self, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        for side in self.sides:
            side.ids[name] = create_topic(side.client, name, partitions, configs)
            wait_until_led(side.client, name, partitions)

    def ask(self, request: Any | Callable[[Side], Any], version: int, view: Callable[[Any], Any]) -> Any:
        """Ask both, compare what `view` shows of the answers, and return it.

        A function makes the request for each side, where it has to name ids.
        """
        of_kafka, of_ottla = (
            view(side.client.ask(request(side) if callable(request) else request, version))
            for side in self.sides
        )
        assert of_ottla == of_kafka
        return of_ottla

    def close(self) -> None:
        for side in self.sides:
            side.client.close()


def versions_of(key: ApiKey) -> list[int]:
    return list(api_of(key).stable_versions.all)


def produced(answer: Any) -> Any:
    return [
        (
            part.partition_index,
            part.error_code,
            part.base_offset,
            part.log_append_time_ms,
            len(part.record_errors),
        )
        for topic in answer.responses
        for part in topic.partition_responses
    ]


def fetched(answer: Any) -> Any:
    return (
        answer.error_code,
        answer.session_id != 0,
        [
            (
                part.partition_index,
                part.error_code,
                part.high_watermark,
                part.last_stable_offset,
                part.log_start_offset,
                part.diverging_epoch,
                part.current_leader,
                part.aborted_transactions,
                part.preferred_read_replica,
                len(part.records),
            )
            for topic in answer.responses
            for part in topic.partitions
        ],
    )


def fill(both: Both, name: str) -> None:
    both.create(name)
    for _ in range(5):
        both.ask(produce_request(name, batch_of(b"a" * 50, b"b", b"c")), 12, produced)
