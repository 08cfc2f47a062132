"""Whatever leaders write, our share coordinator writes and answers what Apache Kafka's does."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.java.oracle import Oracle
from tests.java.rounds import rounds
from tests.support.group_world import START_MS, FixedTopics, ManualClock, MemoryLog

from ottla.broker.apis.share import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from ottla.coordination.share.coordinator import ShareCoordinator
from ottla.coordination.share.settings import ShareSettings
from ottla.model.uuid import Uuid
from ottla.wire.codec import decode, encode
from ottla.wire.coordinator_records.framing import SHARE_STATE_RECORDS
from ottla.wire.declare import spec_of
from ottla.wire.messages import delete_share_group_state as delete
from ottla.wire.messages import initialize_share_group_state as initialize
from ottla.wire.messages import read_share_group_state as read
from ottla.wire.messages import read_share_group_state_summary as summarize
from ottla.wire.messages import write_share_group_state as write

PARTITIONS = 3
UPDATES_PER_SNAPSHOT = 5
STEPS = 120
HANDLERS: dict[type[Any], tuple[Callable[[Any, Any], Any], type[Any]]] = {
    initialize.InitializeShareGroupStateRequest: (
        initialize_share_group_state.initialize_share_group_state,
        initialize.InitializeShareGroupStateResponse,
    ),
    write.WriteShareGroupStateRequest: (
        write_share_group_state.write_share_group_state,
        write.WriteShareGroupStateResponse,
    ),
    read.ReadShareGroupStateRequest: (
        read_share_group_state.read_share_group_state,
        read.ReadShareGroupStateResponse,
    ),
    summarize.ReadShareGroupStateSummaryRequest: (
        read_share_group_state_summary.read_share_group_state_summary,
        summarize.ReadShareGroupStateSummaryResponse,
    ),
    delete.DeleteShareGroupStateRequest: (
        delete_share_group_state.delete_share_group_state,
        delete.DeleteShareGroupStateResponse,
    ),
}


class KafkaShard:
    """Kafka's shard."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    def tell(self, **question: Any) -> Any:
        answer = json.loads(self._oracle.ask("ShareShards", json.dumps(question)))
        assert "error" not in answer, answer
        return answer


class OurShard:
    """Our coordinator with one shard, and what handlers ask of a node."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.topics = FixedTopics(orders=PARTITIONS)
        self.log = MemoryLog(SHARE_STATE_RECORDS)
        self.coordinator = ShareCoordinator(ShareSettings(updates_per_snapshot=UPDATES_PER_SNAPSHOT), self)
        self.coordinator.shards.partition_count = 1
        shard = self.coordinator.shards.elect(0, 1, self.log)
        assert shard is not None
        self.shard = self.log.shard = shard
        shard.activate(self.clock.now_ms())

    # What the coordinator and the handlers ask for

    @property
    def broker(self) -> Any:
        return self

    @property
    def shares(self) -> Any:
        return self

    def wake(self, deadline_ms: int) -> None:
        """Nobody waits."""

    def prune(self, partition: int, offset: int) -> None:
        """Nothing is deleted."""

    def serve(self, request: Any) -> tuple[list[tuple[bytes, bytes | None]], Any]:
        """Serve a request. Return the records and the answer."""
        before = len(self.log.records())
        answer = HANDLERS[type(request)][0](request, self)
        self.shard.commit_up_to(self.log.end - 1)
        return self.written(before), answer.value()

    def written(self, before: int) -> list[tuple[bytes, bytes | None]]:
        return [
            (
                SHARE_STATE_RECORDS.encode_key(record.key),
                None if record.value is None else SHARE_STATE_RECORDS.encode_value(record.value, 0),
            )
            for record in self.log.records()[before:]
        ]


@pytest.fixture
def kafka(oracle: Oracle) -> KafkaShard:
    return KafkaShard(oracle)


@pytest.mark.parametrize("seed", rounds(10, 20))
def test_states_are_written_and_answered_alike(kafka: KafkaShard, seed: int) -> None:
    rng = random.Random(seed)
    ours = OurShard()
    topic_id = ours.topics.facts["orders"].topic_id
    kafka.tell(topic=str(topic_id), partitions=PARTITIONS, now=START_MS, updates=str(UPDATES_PER_SNAPSHOT))
    for _ in range(STEPS):
        ours.clock.advance(rng.randrange(10))
        request, version = _some_request(rng, topic_id)
        told = kafka.tell(
            api=spec_of(type(request)).api_key,
            version=version,
            now=ours.clock.now_ms(),
            body=encode(request, version).hex(),
        )
        records, answer = ours.serve(request)
        expected = [
            (bytes.fromhex(key), None if value is None else bytes.fromhex(value))
            for key, value in told["records"]
        ]
        assert records == expected, request
        theirs: Any = decode(HANDLERS[type(request)][1], bytes.fromhex(told["reply"]), version)
        assert _essence(answer) == _essence(theirs), request


def _essence(answer: Any) -> Any:
    """Everything but the sentences."""
    (topic,) = answer.results
    (one,) = topic.partitions
    return {name: getattr(one, name) for name in type(one).__slots__ if name != "error_message"}


def _some_request(rng: random.Random, topic_id: Uuid) -> tuple[Any, int]:
    topic = topic_id if rng.random() < 0.97 else Uuid(bytes(15) + b"\x07")
    number = rng.choice((0, 0, 0, 1, 2, PARTITIONS, -1)) if rng.random() < 0.3 else 0
    group = rng.choice("ab")
    match rng.choice("iwwwwwwwrsd" if rng.random() < 0.9 else "i"):
        case "i":
            one = initialize.PartitionData(
                partition=number, state_epoch=rng.randrange(3), start_offset=rng.choice((-1, 0, 5))
            )
            data = initialize.InitializeStateData(topic_id=topic, partitions=(one,))
            return initialize.InitializeShareGroupStateRequest(group_id=group, topics=(data,)), 0
        case "w":
            batches = []
            offset = rng.randrange(10)
            for _ in range(rng.randrange(4)):
                last = offset + rng.randrange(4)
                batches.append(
                    write.StateBatch(
                        first_offset=offset,
                        last_offset=last,
                        delivery_state=rng.choice((0, 2, 4)),
                        delivery_count=rng.randrange(1, 4),
                    )
                )
                offset = last + rng.randrange(-1, 4)
                offset = max(offset, 0)
            changed = write.PartitionData(
                partition=number,
                state_epoch=rng.choice((0, 1, 2, 2, -1)),
                leader_epoch=rng.choice((0, 1, 2, 2, -1)),
                start_offset=rng.choice((-1, rng.randrange(12))),
                delivery_complete_count=rng.randrange(4),
                state_batches=tuple(batches),
            )
            written = write.WriteStateData(topic_id=topic, partitions=(changed,))
            return write.WriteShareGroupStateRequest(group_id=group, topics=(written,)), 1
        case "r":
            asked = read.PartitionData(partition=number, leader_epoch=rng.choice((-1, 0, 1, 2)))
            wanted = read.ReadStateData(topic_id=topic, partitions=(asked,))
            return read.ReadShareGroupStateRequest(group_id=group, topics=(wanted,)), 0
        case "s":
            brief = summarize.PartitionData(partition=number, leader_epoch=-1)
            summary = summarize.ReadStateSummaryData(topic_id=topic, partitions=(brief,))
            return summarize.ReadShareGroupStateSummaryRequest(group_id=group, topics=(summary,)), 1
        case _:
            gone = delete.PartitionData(partition=number)
            deleted = delete.DeleteStateData(topic_id=topic, partitions=(gone,))
            return delete.DeleteShareGroupStateRequest(group_id=group, topics=(deleted,)), 0
