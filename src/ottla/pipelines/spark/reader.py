"""The source as Spark drives it: which offsets come next, and the rows of one piece of them."""

import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from ottla.client.errors import ClientError
from ottla.client.list_offsets import EARLIEST, LATEST
from ottla.model.ids import TopicPartition
from ottla.pipelines.link import Link, shared_link
from ottla.pipelines.properties import InvalidOption
from ottla.pipelines.source.offsets import (
    DataLoss,
    check_no_loss,
    check_within,
    extend_start,
    find_offsets,
    resolve,
    subscribed_partitions,
)
from ottla.pipelines.source.options import SourceOptions
from ottla.pipelines.source.plan import (
    OffsetRange,
    Offsets,
    admit,
    available,
    beginning_to_json,
    fault_of,
    first_end_to_json,
    from_json,
    is_beginning,
    ranges_between,
    split,
    start_of,
    to_json,
)

_PARTITIONS_ARE_NEWS_FOR_S: Final = 1.0
_RETRY_TIMEOUT_MS: Final = 60_000
_logger = logging.getLogger(__name__)


class OffsetRangePartition(InputPartition):
    """One range of offsets, for one task."""

    def __init__(self, piece: OffsetRange) -> None:
        super().__init__(piece)
        self.piece = piece


class _RangeReader:
    """What a task does, for a batch and for a stream alike."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def _link(self) -> Link:
        options = self._options
        if options.retry_timeout_ms == _RETRY_TIMEOUT_MS:
            return shared_link(options.properties)
        return shared_link(options.properties, options.retry_timeout_ms)

    def _read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, OffsetRangePartition):
            # Spark makes up a partition where there is none.
            return iter(())
        # Arrow and NumPy come with it. Who only plans does not need them.
        from ottla.pipelines.source.decoding import make_decode
        from ottla.pipelines.source.read import ReadTerms, read_rows

        options = self._options
        terms = ReadTerms(
            options.isolation,
            options.include_headers,
            options.fail_on_data_loss,
            options.poll_timeout_ms,
            options.partition_fetch_bytes,
        )
        schema = to_arrow_schema(self._schema, timezone="UTC")
        return read_rows(self._link(), partition.piece, terms, schema, make_decode(schema, options.decoding))

    def _partitions(self, start: Offsets, end: Offsets) -> list[OffsetRangePartition]:
        options = self._options
        ranges = split(ranges_between(start, end), options.min_partitions, options.max_records_per_partition)
        return [OffsetRangePartition(piece) for piece in ranges]


class OttlaReader(_RangeReader, DataSourceReader):
    """Reads a fixed stretch of topics."""

    def partitions(self) -> Sequence[InputPartition]:
        """Settle the offsets, and cut them into tasks."""
        link, options = self._link(), self._options
        partitions = link.run(subscribed_partitions(link.cluster, options))
        start = link.run(resolve(link.cluster, partitions, options.starting, options, is_start=True))
        end = link.run(resolve(link.cluster, partitions, options.ending, options, is_start=False))
        link.run(check_within(link.cluster, options.starting, start, options, "startingOffsets"))
        link.run(check_within(link.cluster, options.ending, end, options, "endingOffsets"))
        return self._partitions(start, end)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read one range."""
        return self._read(partition)


class OttlaStreamReader(_RangeReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads topics as they grow. The object that plans lives as long as the query."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._target: Offsets | None = None
        self._last_batch_s = time.monotonic()
        self._known: list[TopicPartition] | None = None
        self._known_at_s = 0.0

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names, here and below
        """Say where a new query begins. One that starts its first batch again does not need to know."""
        link, options = self._link(), self._options
        partitions = link.run(subscribed_partitions(link.cluster, options))
        try:
            begin = link.run(resolve(link.cluster, partitions, options.starting, options, is_start=True))
        except InvalidOption as error:
            return beginning_to_json({}, str(error))
        return beginning_to_json(begin)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Say how much a batch may have."""
        offsets_max = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if offsets_max is None else ReadMaxRows(offsets_max)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Say where the next batch ends: at `start` itself if there is nothing new.

        There always is a first batch, even with nothing in it: it keeps where the query began.
        """
        fault = fault_of(start)
        if fault is not None:
            raise InvalidOption(fault)
        begin = began = from_json(start)
        link, options = self._link(), self._options
        if self._target is None:
            partitions = self._subscribed()
            begin = link.run(extend_start(link.cluster, begin, partitions, options))
            latest = link.run(find_offsets(link.cluster, partitions, LATEST, options.isolation))
        else:
            begin, latest = self._target | begin, self._target
        stops = check_no_loss(begin, latest, options)
        if self._target is None and self._is_too_little(begin, stops):
            return start
        if isinstance(limit, ReadMaxRows):
            stops = admit(begin, stops, limit.max_rows)
        self._last_batch_s = time.monotonic()
        if is_beginning(start):
            return first_end_to_json(began, stops)
        return start if stops == began else to_json(stops)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Say where the topics end now, for the query's progress."""
        link, options = self._link(), self._options
        found = link.run(find_offsets(link.cluster, self._subscribed(), LATEST, options.isolation))
        return to_json(found)

    def _subscribed(self) -> list[TopicPartition]:
        """Return the partitions there are, or were a moment ago: Spark asks many times a second."""
        now_s = time.monotonic()
        if self._known is None or now_s - self._known_at_s > _PARTITIONS_ARE_NEWS_FOR_S:
            link = self._link()
            self._known = link.run(subscribed_partitions(link.cluster, self._options))
            self._known_at_s = now_s
        return self._known

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Take note of where the topics end: whatever comes later is not for this run."""
        link, options = self._link(), self._options
        partitions = link.run(subscribed_partitions(link.cluster, options))
        self._target = link.run(find_offsets(link.cluster, partitions, LATEST, options.isolation))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Cut a batch into tasks. Partitions that came after its start are read from their beginning."""
        begin, stop = start_of(start, end), from_json(end)
        new = [where for where in stop if where not in begin]
        if new:
            link = self._link()
            begin |= link.run(find_offsets(link.cluster, new, EARLIEST, self._options.isolation))
        gone = [where for where in begin if where not in stop]
        if gone and self._options.fail_on_data_loss:
            raise DataLoss(f"{', '.join(map(str, gone))} is no longer there")
        return self._partitions(begin, stop)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read one range."""
        return self._read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Show in the group of the source, if it has one, how far the query is. It is one batch late."""
        group = self._options.group
        if group is None:
            return
        link = self._link()
        try:
            link.run(link.group_offsets.alter(group, from_json(end))).check()
        except ClientError as error:
            # Nobody reads it to go on, so it is no reason to stop.
            _logger.warning("cannot store the progress of a query in group %s: %s", group, error)

    def _is_too_little(self, begin: Offsets, stops: Offsets) -> bool:
        """Say whether to wait for more, as minOffsetsPerTrigger asks, though not for ever."""
        offsets_min = self._options.min_offsets_per_trigger
        if offsets_min is None or available(begin, stops) >= offsets_min:
            return False
        return (time.monotonic() - self._last_batch_s) * 1000 < self._options.max_trigger_delay_ms


class RefusedStreamReader(OttlaStreamReader):
    """Says what is wrong with the options when Spark asks for the first time.

    If making a reader fails, PySpark reports a mistake of its own last, and the reason lines above.
    """

    def __init__(self, error: InvalidOption) -> None:
        self._error = error

    def __getattribute__(self, name: str) -> Any:
        if name in _ASKED_BY_SPARK:
            raise object.__getattribute__(self, "_error")
        return object.__getattribute__(self, name)


_ASKED_BY_SPARK: Final = (
    "initialOffset",
    "getDefaultReadLimit",
    "prepareForTriggerAvailableNow",
    "partitions",
)
