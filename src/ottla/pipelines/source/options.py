"""What can be said about a source, by the names that Spark's own Kafka source has."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.client.fetching import IsolationLevel
from ottla.client.list_offsets import EARLIEST, LATEST
from ottla.model.ids import TopicPartition
from ottla.pipelines.properties import InvalidOption, client_properties, common_properties
from ottla.pipelines.source.java_patterns import UnknownPattern, compile_pattern

# Spark reads whole ranges of a partition, so a piece may be large: Kafka's 1 MiB costs more round trips.
_PARTITION_FETCH_BYTES: Final = 4 * 1024 * 1024
_NAMES: Final = (
    "assign", "subscribe", "subscribepattern", "startingoffsets", "endingoffsets", "startingtimestamp",
    "endingtimestamp", "startingoffsetsbytimestamp", "endingoffsetsbytimestamp",
    "startingoffsetsbytimestampstrategy", "failondataloss", "includeheaders", "maxoffsetspertrigger",
    "minoffsetspertrigger", "maxtriggerdelay", "minpartitions", "maxrecordsperpartition",
    "kafkaconsumer.polltimeoutms", "fetchoffset.numretries", "fetchoffset.retryintervalms", "groupidprefix",
)  # fmt: skip
DECODING: Final = "ottla.decoding"
_ONLY_OF_BATCHES: Final = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
_ONLY_OF_STREAMS: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
_RETRY_TIMEOUT_MS: Final = 60_000
# As in Spark, if only one of the two is given.
_RETRIES: Final = 3
_RETRY_INTERVAL_MS: Final = 1_000
_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class Subscription:
    """Which topics: some by name, some by a pattern, or single partitions. Exactly one of the three."""

    topics: tuple[str, ...] = ()
    pattern: str = ""
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class Position:
    """Where to begin or to end: one place for all partitions, or each by an offset or a time of its own.

    Places are EARLIEST and LATEST, as numbers below 0, wherever an offset may stand.
    """

    place: int | None = None
    offsets: Mapping[TopicPartition, int] | None = None
    timestamp_ms: int | None = None
    timestamps_ms: Mapping[TopicPartition, int] | None = None


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """All that was said about a source."""

    properties: Mapping[str, str]
    subscription: Subscription
    starting: Position
    ending: Position
    late_timestamp_is_latest: bool
    fail_on_data_loss: bool
    include_headers: bool
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    min_partitions: int
    max_records_per_partition: int | None
    poll_timeout_ms: int
    isolation: IsolationLevel
    partition_fetch_bytes: int
    decoding: str | None = None
    """How values are decoded where they are read, as `source.decoding` writes it."""
    group: str | None = None
    """The group that shows how far a stream is."""
    retry_timeout_ms: int = 60_000


def parse_source_options(given: Mapping[str, str], *, is_streaming: bool) -> SourceOptions:
    """Read the options of a source. Raises InvalidOption with what is wrong."""
    options = {name.lower(): value for name, value in given.items()}
    _check_names(options)
    _check_kind(options, is_streaming)
    properties = client_properties(given)
    isolation = properties.get("isolation.level", "read_uncommitted")
    if isolation not in ("read_uncommitted", "read_committed"):
        raise InvalidOption(
            f"kafka.isolation.level is {isolation!r}: it must be read_committed or read_uncommitted"
        )
    starting = _starting(options, is_streaming)
    strategy = options.get("startingoffsetsbytimestampstrategy", "error").lower()
    if strategy not in ("error", "latest"):
        raise InvalidOption(
            f"startingOffsetsByTimestampStrategy is {strategy!r}: it must be 'error' or 'latest'"
        )
    return SourceOptions(
        properties=common_properties(properties),
        subscription=_subscription(options),
        starting=starting,
        ending=Position(place=LATEST) if is_streaming else _ending(options),
        late_timestamp_is_latest=strategy == "latest",
        fail_on_data_loss=_boolean(options, "failOnDataLoss", default=True),
        include_headers=_boolean(options, "includeHeaders", default=False),
        max_offsets_per_trigger=_number(options, "maxOffsetsPerTrigger"),
        min_offsets_per_trigger=_number(options, "minOffsetsPerTrigger"),
        max_trigger_delay_ms=_duration_ms(options.get("maxtriggerdelay", "15m")),
        min_partitions=_number(options, "minPartitions") or 0,
        max_records_per_partition=_number(options, "maxRecordsPerPartition"),
        poll_timeout_ms=_number(options, "kafkaConsumer.pollTimeoutMs") or 120_000,
        isolation=IsolationLevel[isolation.upper()],
        partition_fetch_bytes=int(properties.get("max.partition.fetch.bytes", _PARTITION_FETCH_BYTES)),
        decoding=options.get(DECODING),
        group=_group(options, properties.get("group.id")),
        retry_timeout_ms=_retry_timeout_ms(options),
    )


def _check_names(options: Mapping[str, str]) -> None:
    for name in options:
        # Spark adds some of its own, such as the path.
        if name not in (*_NAMES, DECODING, "path") and not name.startswith("kafka."):
            raise InvalidOption(f"unknown option {name!r} for reading topics")


def _check_kind(options: Mapping[str, str], is_streaming: bool) -> None:
    """Raise for what only the other kind of query has."""
    for name in _ONLY_OF_BATCHES if is_streaming else _ONLY_OF_STREAMS:
        if name.lower() in options:
            kind = "a stream has no end" if is_streaming else "a batch is read all at once"
            raise InvalidOption(f"{name} cannot be set here, since {kind}: leave it out")


def _group(options: Mapping[str, str], group: str | None) -> str | None:
    """Return the group that shows how far a stream is: the one given, or one with the prefix given."""
    prefix = options.get("groupidprefix")
    if group or not prefix:
        return group or None
    wanted = options.get("subscribe") or options.get("subscribepattern") or options.get("assign", "")
    return f"{prefix}-{re.sub(r'[^A-Za-z0-9._-]+', '-', wanted).strip('-')}"


def _retry_timeout_ms(options: Mapping[str, str]) -> int:
    if "fetchoffset.numretries" not in options and "fetchoffset.retryintervalms" not in options:
        return _RETRY_TIMEOUT_MS
    retries = _number(options, "fetchOffset.numRetries") or _RETRIES
    return retries * (_number(options, "fetchOffset.retryIntervalMs") or _RETRY_INTERVAL_MS)


def _subscription(options: Mapping[str, str]) -> Subscription:
    given = [name for name in ("assign", "subscribe", "subscribepattern") if options.get(name)]
    if len(given) != 1:
        raise InvalidOption(
            'set exactly one of "subscribe", "subscribePattern" and "assign"'
            + (f", not {' and '.join(given)}" if given else "")
        )
    value = options[given[0]]
    if given[0] == "subscribe":
        topics = tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))
        if not topics:
            raise InvalidOption('option "subscribe" names no topic')
        return Subscription(topics=topics)
    if given[0] == "subscribepattern":
        try:
            compile_pattern(value)
        except UnknownPattern as error:
            raise InvalidOption(
                f'option "subscribePattern" is not a valid regular expression: {error}'
            ) from error
        return Subscription(pattern=value)
    partitions = tuple(
        TopicPartition(topic, _partition(number))
        for topic, numbers in _json(value, "assign").items()
        for number in (numbers if isinstance(numbers, list) else [numbers])
    )
    return Subscription(partitions=partitions)


def _starting(options: Mapping[str, str], is_streaming: bool) -> Position:
    if "startingtimestamp" in options:
        return Position(timestamp_ms=_number(options, "startingTimestamp"))
    if "startingoffsetsbytimestamp" in options:
        text = options["startingoffsetsbytimestamp"]
        return Position(timestamps_ms=_by_partition(text, "startingOffsetsByTimestamp", at_least=0))
    text = options.get("startingoffsets", "latest" if is_streaming else "earliest").strip()
    if text.lower() == "earliest":
        return Position(place=EARLIEST)
    if text.lower() == "latest":
        if not is_streaming:
            raise InvalidOption("startingOffsets cannot be latest for a batch: nothing would be read")
        return Position(place=LATEST)
    offsets = _by_partition(text, "startingOffsets", at_least=EARLIEST)
    if not is_streaming and LATEST in offsets.values():
        raise InvalidOption("startingOffsets cannot be latest (-1) for a batch: nothing would be read")
    return Position(offsets=offsets)


def _ending(options: Mapping[str, str]) -> Position:
    if "endingtimestamp" in options:
        return Position(timestamp_ms=_number(options, "endingTimestamp"))
    if "endingoffsetsbytimestamp" in options:
        text = options["endingoffsetsbytimestamp"]
        return Position(timestamps_ms=_by_partition(text, "endingOffsetsByTimestamp", at_least=0))
    text = options.get("endingoffsets", "latest").strip()
    if text.lower() == "latest":
        return Position(place=LATEST)
    if text.lower() == "earliest":
        raise InvalidOption("endingOffsets cannot be earliest: nothing would be read")
    return Position(offsets=_by_partition(text, "endingOffsets", at_least=LATEST))


def _by_partition(text: str, option: str, at_least: int) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for topic, numbers in _json(text, option).items():
        if not isinstance(numbers, dict):
            raise InvalidOption(f'{option} must look like {{"topic": {{"0": 23, "1": -2}}}}')
        for partition, number in numbers.items():
            if not isinstance(number, int) or number < at_least:
                raise InvalidOption(f"{option} has {number!r} for {topic}-{partition}")
            found[TopicPartition(topic, _partition(partition))] = number
    return found


def _json(text: str, option: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidOption(f"{option} is neither a known keyword nor JSON: {error}") from error
    if not isinstance(content, dict):
        raise InvalidOption(f"{option} must be a JSON object of topics")
    return content


def _partition(number: Any) -> int:
    try:
        return int(number)
    except (TypeError, ValueError) as error:
        raise InvalidOption(f"{number!r} is not the number of a partition") from error


def _number(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name.lower())
    if text is None:
        return None
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0 or (number == 0 and "imestamp" not in name):
        raise InvalidOption(f"{name} is {text!r}: it must be a positive number")
    return number


def _boolean(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise InvalidOption(f"{name} is {text!r}: it must be true or false")
    return text == "true"


def _duration_ms(text: str) -> int:
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    unit = found[2] if found else ""
    if found is None or (unit or "ms") not in _UNITS_MS:
        raise InvalidOption(f"maxTriggerDelay is {text!r}: write a number and ms, s, m, h or d")
    return int(found[1]) * _UNITS_MS[unit or "ms"]
