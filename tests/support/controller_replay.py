"""Let our controller decide what Apache Kafka's has decided, in the same situations, and compare the records.

A metadata log tells both: replayed up to a batch it gives the situation, and the batch is what Kafka made
of it. Whatever a broker does (register, want in, want out) shows in its registration, so the request can be
told from the record.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, takewhile
from typing import Any, NamedTuple

from ottla.metadata.configs.effective import EffectiveConfigs
from ottla.metadata.image import MetadataImage
from ottla.metadata.loader import MetadataLoader
from ottla.model.ids import Offset
from ottla.quorum.batches import MetadataBatch
from ottla.quorum.controller.brokers.fencing import FENCE
from ottla.quorum.controller.brokers.heartbeat import decide_heartbeat
from ottla.quorum.controller.brokers.registration import decide_register_broker
from ottla.quorum.controller.decision import ControllerView
from ottla.quorum.controller.settings import ControllerSettings
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from ottla.wire.metadata_records.brokers import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from ottla.wire.metadata_records.no_op import NoOpRecord
from ottla.wire.metadata_records.partitions import PartitionChangeRecord

STATIC = {"process.roles": "broker,controller", "node.id": "1", "controller.listener.names": "CONTROLLER"}
CLUSTER_ID = "any"


class Comparison(NamedTuple):
    """One decision of both. `ours` has what only we wrote, `theirs` what only Kafka did."""

    what: str
    offset: Offset
    record_count: int
    ours: list[str]
    theirs: list[str]


def view_of(image: MetadataImage, next_offset: Offset, static: Mapping[str, str] = STATIC) -> ControllerView:
    """Return what a controller sees that has loaded `image`."""
    configs = EffectiveConfigs(static, image.default_broker_config(), {})
    settings = ControllerSettings(int(static["node.id"]), CLUSTER_ID, static)
    return ControllerView(image, next_offset, 0, settings, configs, random.Random(1), kraft_version=1)


def compare_decisions(image: MetadataImage, batches: Iterable[MetadataBatch]) -> Iterator[Comparison]:
    """Give each decision about a broker in a log that starts at `image`."""
    loader = MetadataLoader(image)
    for batch in chain.from_iterable(map(_apart, batches)):
        if batch.is_control:
            loader.skip(batch.position)
            continue
        image, _ = loader.take()
        for record in batch.records:
            view = view_of(image, _begin_of_decision(batch))
            if isinstance(record, RegisterBrokerRecord):
                yield _compare(_what_registers(image, record), batch, _registered(view, record, batch))
            elif isinstance(record, BrokerRegistrationChangeRecord) and record.broker_id in image.brokers:
                decided = _changed(view, record)
                if decided is not None:
                    yield _compare(_what_changes(record), batch, decided)
        loader.feed(batch.records, batch.position)


def _apart(batch: MetadataBatch) -> Iterator[MetadataBatch]:
    """Give the decisions of a batch, each as a batch of its own.

    Mostly that is one. A controller on a busy machine writes together what it has decided meanwhile. Where a
    broker registers or is fenced, that record is the last of its decision.
    """
    rest = batch.records
    while not batch.is_control:
        ends = (number for number, record in enumerate(rest[:-1], 1) if ends_decision(record))
        count = next(ends, None)
        if count is None:
            break
        offset = Offset(batch.position.offset - len(rest) + count)
        yield batch._replace(
            base_offset=Offset(offset - count + 1),
            position=batch.position._replace(offset=offset),
            records=rest[:count],
        )
        rest = rest[count:]
    yield batch._replace(base_offset=Offset(batch.position.offset - len(rest) + 1), records=rest)


def ends_decision(record: Any) -> bool:
    """Say whether nothing that follows a record belongs to the same decision."""
    is_fence = isinstance(record, BrokerRegistrationChangeRecord) and record.fenced == FENCE
    return is_fence or isinstance(record, RegisterBrokerRecord)


def _begin_of_decision(batch: MetadataBatch) -> Offset:
    """Return the offset of a batch's first record that is no mere sign of life: those share batches."""
    signs = takewhile(lambda record: isinstance(record, NoOpRecord), batch.records)
    return Offset(batch.base_offset + sum(1 for _ in signs))


def _what_registers(image: MetadataImage, record: RegisterBrokerRecord) -> str:
    return "registers again" if record.broker_id in image.brokers else "registers"


def _registered(view: ControllerView, record: RegisterBrokerRecord, batch: MetadataBatch) -> list[Any]:
    """Decide the registration as if it had followed a clean stop, unless Kafka took it for another one."""
    known = view.image.brokers.get(record.broker_id)
    stopped_cleanly = not any(isinstance(one, PartitionChangeRecord) for one in batch.records)
    ask = BrokerRegistrationRequest(
        broker_id=record.broker_id,
        cluster_id=CLUSTER_ID,
        incarnation_id=record.incarnation_id,
        listeners=_listeners(record),
        features=tuple(
            Feature(
                name=one.name,
                min_supported_version=one.min_supported_version,
                max_supported_version=one.max_supported_version,
            )
            for one in record.features
        ),
        rack=record.rack,
        log_dirs=record.log_dirs,
        previous_broker_epoch=known.broker_epoch if known is not None and stopped_cleanly else -1,
    )
    return list(decide_register_broker(view, ask).records)


def _listeners(record: RegisterBrokerRecord) -> tuple[Listener, ...]:
    return tuple(
        Listener(name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol)
        for one in record.endpoints
    )


def _what_changes(record: BrokerRegistrationChangeRecord) -> str:
    if record.in_controlled_shutdown:
        return "begins to stop"
    return {1: "is fenced", -1: "is unfenced"}.get(record.fenced, "tells its directories")


def _changed(view: ControllerView, record: BrokerRegistrationChangeRecord) -> list[Any] | None:
    broker = view.image.brokers[record.broker_id]
    tells_directories = record.cordoned_log_dirs is not None
    if tells_directories and broker.fenced:
        # Together with the wish to come in it is a decision of its own, seen by that record.
        return None
    if record.fenced == 1 and broker.fenced:
        # Kafka fences a broker once more when its session ends after it has left.
        return None
    ask = BrokerHeartbeatRequest(
        broker_id=record.broker_id,
        broker_epoch=record.broker_epoch,
        current_metadata_offset=view.next_offset,
        want_fence=record.fenced == 1,
        want_shut_down=record.fenced == 1 or bool(record.in_controlled_shutdown),
        cordoned_log_dirs=record.cordoned_log_dirs,
    )
    return list(decide_heartbeat(view, ask).records)


def _compare(what: str, batch: MetadataBatch, decided: list[Any]) -> Comparison:
    ours, theirs = Counter(map(repr, decided)), Counter(map(repr, batch.records))
    changes = [text for text in theirs - ours if text.startswith("PartitionChangeRecord")]
    return Comparison(what, batch.base_offset, len(decided), list((ours - theirs).elements()), changes)
