"""Offsets of a source: what its options and its last batch mean in numbers, asked from the cluster."""

from collections.abc import Iterable, Mapping

from ottla.client.cluster import Cluster
from ottla.client.errors import BrokerError
from ottla.client.fetching import IsolationLevel
from ottla.client.list_offsets import EARLIEST, LATEST, list_offsets
from ottla.model.ids import TopicPartition
from ottla.pipelines.properties import InvalidOption
from ottla.pipelines.source.java_patterns import compile_pattern
from ottla.pipelines.source.options import Position, SourceOptions
from ottla.pipelines.source.plan import Offsets
from ottla.wire.error_code import ErrorCode


class DataLoss(Exception):
    """Records that were to be read are gone."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}: some records were lost before they were read. Retention may be too short, or a topic "
            "was deleted and created again. Set failOnDataLoss to false to continue with the remaining "
            "records"
        )


async def subscribed_partitions(cluster: Cluster, options: SourceOptions) -> list[TopicPartition]:
    """Return the partitions that the source has now, in order."""
    wanted = options.subscription
    if wanted.partitions:
        await _check_there(cluster, wanted.partitions)
        return sorted(wanted.partitions)
    if wanted.pattern:
        topology = await cluster.refresh(None)
        matches = compile_pattern(wanted.pattern).fullmatch
        names = [name for name, view in topology.topics.items() if matches(name) and not view.is_internal]
    else:
        names = list(wanted.topics)
        await cluster.retry(lambda: _refresh_existing(cluster, names))
        topology = cluster.topology
    return sorted(
        TopicPartition(name, number) for name in names for number in topology.topics[name].partitions
    )


async def _check_there(cluster: Cluster, wanted: Iterable[TopicPartition]) -> None:
    """Raise at once if a partition was never there: waiting for its leader would take a minute."""
    topology = await cluster.refresh(None)
    views = topology.topics
    unknown = [
        str(where)
        for where in wanted
        if where.topic not in views or where.partition not in views[where.topic].partitions
    ]
    if unknown:
        raise InvalidOption(f"assign names {', '.join(unknown)}, and there is no such partition")


async def _refresh_existing(cluster: Cluster, names: list[str]) -> None:
    topology = await cluster.refresh(names)
    for name in names:
        view = topology.topics.get(name)
        if view is None or not view.partitions:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if view is None else view.error_code
            raise BrokerError(code, f"cannot read topic {name!r}")


async def find_offsets(
    cluster: Cluster, partitions: Iterable[TopicPartition], place: int, isolation: IsolationLevel
) -> Offsets:
    """Return the earliest or the latest offset of each partition."""
    found = await list_offsets(cluster, dict.fromkeys(partitions, place), isolation)
    return {where: item.offset for where, item in found.items()}


async def resolve(
    cluster: Cluster,
    partitions: list[TopicPartition],
    position: Position,
    options: SourceOptions,
    *,
    is_start: bool,
) -> Offsets:
    """Turn a position into an offset for each partition."""
    if position.place is not None:
        return await find_offsets(cluster, partitions, position.place, options.isolation)
    if position.offsets is not None:
        _check_all_named(partitions, position.offsets)
        offsets: Offsets = {}
        for place in (EARLIEST, LATEST):
            those = [where for where in partitions if position.offsets[where] == place]
            offsets |= await find_offsets(cluster, those, place, options.isolation) if those else {}
        return offsets | {where: at for where, at in position.offsets.items() if at >= 0}
    times = position.timestamps_ms
    if times is None:
        assert position.timestamp_ms is not None, "a position is one of four"
        times = dict.fromkeys(partitions, position.timestamp_ms)
    _check_all_named(partitions, times)
    return await _resolve_times(cluster, times, options, is_start)


async def _resolve_times(
    cluster: Cluster, times: Mapping[TopicPartition, int], options: SourceOptions, is_start: bool
) -> Offsets:
    found = await list_offsets(cluster, dict(times), options.isolation)
    offsets = {where: item.offset for where, item in found.items()}
    late = [where for where in times if where not in offsets]
    if late and is_start and not options.late_timestamp_is_latest:
        raise InvalidOption(
            f"{', '.join(map(str, late))} has no record at or after the starting timestamp: set "
            "startingOffsetsByTimestampStrategy to latest to start with the next record"
        )
    return offsets | (await find_offsets(cluster, late, LATEST, options.isolation) if late else {})


def _check_all_named(partitions: list[TopicPartition], given: Mapping[TopicPartition, int]) -> None:
    if set(partitions) != set(given):
        missing = ", ".join(map(str, sorted(set(partitions) - set(given))))
        unknown = ", ".join(map(str, sorted(set(given) - set(partitions))))
        raise InvalidOption(
            "offsets must be given for exactly the existing partitions"
            + (f"; missing: {missing}" if missing else "")
            + (f"; unknown: {unknown}" if unknown else "")
        )


async def extend_start(
    cluster: Cluster, start: Offsets, partitions: list[TopicPartition], options: SourceOptions
) -> Offsets:
    """Add partitions that came since the last batch, from their beginning."""
    new = [where for where in partitions if where not in start]
    if not new:
        return start
    earliest = await find_offsets(cluster, new, EARLIEST, options.isolation)
    for where, offset in earliest.items():
        if offset > 0 and options.fail_on_data_loss:
            raise DataLoss(f"{where} is new and begins at offset {offset}")
    return start | earliest


def check_no_loss(start: Offsets, latest: Mapping[TopicPartition, int], options: SourceOptions) -> Offsets:
    """Return where a batch may stop: never before it starts. What is missing raises `DataLoss`, if asked."""
    stops: Offsets = {}
    for where, offset in start.items():
        end = latest.get(where)
        if end is None or end < offset:
            if options.fail_on_data_loss:
                raise DataLoss(f"{where} now ends at {end}, but was read up to {offset}")
            end = offset
        stops[where] = end
    return stops


async def check_within(
    cluster: Cluster, position: Position, given: Offsets, options: SourceOptions, name: str
) -> None:
    """Raise if offsets that were named lie behind the end of their partitions. Nobody would notice."""
    if position.offsets is None or not options.fail_on_data_loss:
        return
    latest = await find_offsets(cluster, given, LATEST, options.isolation)
    for where, offset in given.items():
        if offset > latest[where]:
            raise InvalidOption(
                f"{name} is {offset} for {where}, which ends at {latest[where]}: name an offset up to that, "
                "or set failOnDataLoss to false to read what is there"
            )
