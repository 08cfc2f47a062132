"""Reads partitions for `ottla consume` without a group: raw fetches, positions of its own, nothing committed.

Every batch is checked before it is shown. One that is damaged ends the reading with its offsets, or is left
out where that was asked for. A broker that goes away is waited for: some seconds, or with `follows` for as
long as it takes.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping
from typing import Final, NamedTuple

from ottla.cli.failure import Failure
from ottla.cli.naming import did_you_mean
from ottla.cli.places import Kind, Place
from ottla.cli.records.templates import Printable
from ottla.cli.topic_patterns import has_patterns, matching
from ottla.client.cluster import Cluster
from ottla.client.errors import BrokerError, ClientError
from ottla.client.fetching import FetchedPartition, IsolationLevel, fetch_once, visible_among
from ottla.client.list_offsets import EARLIEST, LATEST, list_offsets
from ottla.model.ids import TopicPartition
from ottla.records.batch import BatchView, iter_batches
from ottla.records.batch_records import iter_batch_records
from ottla.records.codec import Record
from ottla.records.errors import RecordsError
from ottla.wire.error_code import ErrorCode

NEVER: Final = 1 << 63
"""The end of a partition that is followed."""
_WRONG_CRC: Final = "its checksum does not match"
_LOOK_FOR_PARTITIONS_EVERY_S: Final = 5.0
_NO_TOPIC: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class Wish(NamedTuple):
    """What is to be read. `topics` are names, or patterns that begin with `^`."""

    topics: tuple[str, ...]
    partitions: tuple[int, ...] = ()
    start: Place = Place(Kind.BEGINNING)
    until_ms: int | None = None
    until_offset: int | None = None
    follows: bool = False
    read_uncommitted: bool = False
    skips_damaged: bool = False

    @property
    def isolation(self) -> IsolationLevel:
        """How records of transactions are seen."""
        return IsolationLevel.READ_UNCOMMITTED if self.read_uncommitted else IsolationLevel.READ_COMMITTED


class Reading:
    """One reading of partitions. `say` gets sentences for people."""

    def __init__(self, cluster: Cluster, wish: Wish, say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._wish = wish
        self._say = say
        self._positions: dict[TopicPartition, int] = {}
        self._firsts: dict[TopicPartition, int] = {}
        """What is wanted of each partition begins here; a position may be before it."""
        self._stops: dict[TopicPartition, int] = {}
        self._is_away = False
        self._look_again_s = 0.0

    async def records(self) -> AsyncGenerator[Printable, None]:
        """Yield what is wanted, in the order of offsets within each partition."""
        wish = self._wish
        await self._begin(await self._find_partitions())
        while positions := self._unfinished():
            for where, answer in (await self._fetch(positions)).items():
                first, stop = self._firsts[where], self._stops[where]
                for record in self._open(answer):
                    is_wanted = first <= record.offset < stop
                    if is_wanted and (wish.until_ms is None or record.timestamp < wish.until_ms):
                        yield Printable(where.topic, where.partition, *record)
            if wish.follows and not wish.partitions:
                await self._maybe_find_more()

    def _unfinished(self) -> dict[TopicPartition, int]:
        return {where: offset for where, offset in self._positions.items() if offset < self._stops[where]}

    # Which partitions

    async def _find_partitions(self) -> list[TopicPartition]:
        topics = await self._topics()
        views = (await self._cluster.refresh(topics)).topics
        found: list[TopicPartition] = []
        for topic in topics:
            view = views.get(topic)
            if view is None or not view.partitions:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if view is None else view.error_code
                if code in _NO_TOPIC and (
                    meant := did_you_mean(topic, (await self._cluster.refresh(None)).topics)
                ):
                    raise Failure(f"cannot read topic {topic!r}: {code.name}{meant}")
                raise BrokerError(code, f"cannot read topic {topic!r}")
            if missing := [number for number in self._wish.partitions if number not in view.partitions]:
                raise Failure(f"{topic} has no partition {missing[0]}, only 0 to {len(view.partitions) - 1}")
            numbers = sorted(self._wish.partitions or view.partitions)
            found += [TopicPartition(topic, number) for number in numbers]
        return found

    async def _topics(self) -> list[str]:
        if not has_patterns(self._wish.topics):
            return list(dict.fromkeys(self._wish.topics))
        views = (await self._cluster.refresh(None)).topics
        topics = matching(self._wish.topics, {name for name, view in views.items() if not view.is_internal})
        if not topics:
            raise Failure(
                f"no topic matches {', '.join(self._wish.topics)}; `ottla topic list` lists the topics"
            )
        return topics

    async def _maybe_find_more(self) -> None:
        """Follow partitions and topics, too, that came while we were reading."""
        now_s = asyncio.get_running_loop().time()
        if now_s < self._look_again_s:
            return
        self._look_again_s = now_s + _LOOK_FOR_PARTITIONS_EVERY_S
        try:
            new = [where for where in await self._find_partitions() if where not in self._positions]
            starts = await list_offsets(self._cluster, dict.fromkeys(new, EARLIEST), self._wish.isolation)
        except ClientError:
            # Nobody to ask, or a topic is gone. Fetching finds that out, and says it.
            return
        for where, found in starts.items():
            self._positions[where] = self._firsts[where] = found.offset
            self._stops[where] = self._wish.until_offset if self._wish.until_offset is not None else NEVER

    # Where to begin, and to end

    async def _begin(self, partitions: list[TopicPartition]) -> None:
        wish, until = self._wish, self._wish.until_offset
        starts = await self._look_up(dict.fromkeys(partitions, EARLIEST))
        ends = await self._look_up(dict.fromkeys(partitions, LATEST))
        for where in partitions:
            end = NEVER if wish.follows else ends[where]
            self._stops[where] = end if until is None else min(end, until)
        wanted = await self._wanted(partitions, starts, ends)
        for where in partitions:
            self._firsts[where] = wanted[where]
            # Brokers refuse to look behind the end: there one waits for what is wanted.
            self._positions[where] = max(starts[where], min(wanted[where], ends[where]))

    async def _wanted(
        self,
        partitions: Collection[TopicPartition],
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, int]:
        kind, number = self._wish.start
        if kind is Kind.TIME:
            found = await self._look_up(dict.fromkeys(partitions, number))
            return {where: found.get(where, ends[where]) for where in partitions}
        if kind is Kind.LAST:
            return {
                where: await self._first_of_last(where, starts[where], ends[where]) for where in partitions
            }
        if kind is Kind.OFFSET:
            self._check_offset(number, starts, ends)
            return dict.fromkeys(partitions, number)
        return dict(starts if kind is Kind.BEGINNING else ends)

    def _check_offset(
        self, number: int, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> None:
        longest = max(ends, key=lambda where: ends[where])
        end = ends[longest]
        if number > end and not self._wish.follows:
            raise Failure(
                f"offset {number} does not exist yet: {longest} ends at {end}; add --follow to wait for it"
            )
        for where, start in sorted(starts.items()):
            if number < start:
                self._say(f"older records were deleted: {where} begins at {start}")

    async def _first_of_last(self, where: TopicPartition, start: int, end: int) -> int:
        """Find the offset from which on this many records follow.

        Offsets do not tell: markers of transactions have some, and compaction leaves gaps. So it looks at
        what is there, from ever further back.
        """
        count = min(self._wish.start.number, end - start)
        if count <= 0:
            return end
        span = count
        while True:
            first = max(start, end - span)
            offsets: deque[int] = deque(maxlen=count)
            self._positions[where] = first
            while (position := self._positions[where]) < end:
                for answer in (await self._fetch({where: position})).values():
                    offsets += (
                        record.offset
                        for record in self._open(answer, quietly=True)
                        if first <= record.offset < end
                    )
            if len(offsets) == count or first == start:
                return offsets[0] if offsets else end
            span *= 4

    async def _look_up(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        found = await list_offsets(self._cluster, times, self._wish.isolation)
        return {where: item.offset for where, item in found.items()}

    # Records

    async def _fetch(
        self, positions: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, FetchedPartition]:
        while True:
            try:
                answers = await self._cluster.retry(lambda: self._fetch_once(positions))
            except ClientError as error:
                is_gone = isinstance(error, BrokerError) and error.error_code in _NO_TOPIC
                if not self._wish.follows or not error.retriable or is_gone:
                    raise
            else:
                if self._is_away:
                    self._is_away = False
                    self._say("the connection is back")
                return answers

    async def _fetch_once(
        self, positions: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, FetchedPartition]:
        topics = {where.topic for where in positions}
        try:
            answers = await fetch_once(self._cluster, positions, isolation=self._wish.isolation)
        except ClientError as error:
            if not isinstance(error, BrokerError):
                self._tell_away(error)
                # The leader is gone. Who follows it, the others know.
                await self._cluster.refresh(topics)
            raise
        if missing := positions.keys() - answers.keys():
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, f"cannot read {min(missing)}")
        for where, answer in answers.items():
            code = answer.error_code
            if code is ErrorCode.OFFSET_OUT_OF_RANGE:
                await self._go_back_into_range(where, positions[where])
            elif code is not ErrorCode.NONE:
                if code.refreshes_metadata:
                    await self._cluster.refresh(topics)
                raise BrokerError(code, f"cannot read {where} from offset {positions[where]}")
        return {where: answer for where, answer in answers.items() if answer.error_code is ErrorCode.NONE}

    def _tell_away(self, error: ClientError) -> None:
        if self._wish.follows and not self._is_away:
            self._is_away = True
            self._say(f"{error}; waiting")

    async def _go_back_into_range(self, where: TopicPartition, position: int) -> None:
        start = (await self._look_up({where: EARLIEST})).get(where, 0)
        if position >= start:
            end = (await self._look_up({where: LATEST})).get(where, 0)
            raise Failure(
                f"{where} ends at {end} now, before offset {position} that was read last: the topic was "
                "deleted and created again, or its broker lost records; restart the command to read what is "
                "there"
            )
        self._say(f"records {position} to {start - 1} of {where} were deleted before they could be read")
        self._positions[where] = start

    def _open(self, answer: FetchedPartition, quietly: bool = False) -> Iterator[Record]:
        """Yield the records of an answer, and move the position behind them."""
        where, before = answer.where, self._positions[answer.where]
        sound, after = self._sound_batches(answer, quietly)
        for batch in visible_among(sound, answer.aborted, self._wish.isolation):
            try:
                records = list(iter_batch_records(batch))
            except RecordsError as error:
                self._met_damage(where, batch, str(error), quietly)
            else:
                yield from records
        if after <= before and len(answer.records):
            raise Failure(_damage(where, f"at offset {before}", "it has no complete batch"))
        self._positions[where] = max(before, after)

    def _sound_batches(self, answer: FetchedPartition, quietly: bool) -> tuple[list[BatchView], int]:
        """Return the batches that are what was written, and the offset behind all."""
        sound: list[BatchView] = []
        after = answer.fetch_offset
        try:
            for batch in iter_batches(answer.records):
                if batch.crc_is_valid():
                    sound.append(batch)
                    after = batch.next_offset
                else:
                    self._met_damage(answer.where, batch, _WRONG_CRC, quietly)
                    # What it says of its end may be damaged, too.
                    is_likely = batch.base_offset < batch.next_offset <= answer.high_watermark
                    after = batch.next_offset if is_likely else max(after, batch.base_offset) + 1
        except RecordsError as error:
            if after <= answer.fetch_offset:
                raise Failure(_damage(answer.where, f"at offset {after}", str(error))) from error
        return sound, after

    def _met_damage(self, where: TopicPartition, batch: BatchView, reason: str, quietly: bool) -> None:
        offsets = f"at offsets {batch.base_offset} to {batch.last_offset}"
        if not self._wish.skips_damaged:
            raise Failure(f"{_damage(where, offsets, reason)}, or add --skip-damaged to skip it")
        if not quietly:
            self._say(f"skipped a damaged batch of {where} {offsets}: {reason}")


def _damage(where: TopicPartition, offsets: str, reason: str) -> str:
    return (
        f"a batch of {where} {offsets} is damaged: {reason}; check the broker's files with `ottla storage "
        "verify`, start after it with --offset"
    )
