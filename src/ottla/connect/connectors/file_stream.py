"""Kafka's file connectors: lines of a file to a topic, and values to lines of a file."""

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Final

from ottla.connect.configs.keys import Importance, Key, Kind, at_least
from ottla.connect.converters.plain import text_of
from ottla.connect.data.record import Record
from ottla.connect.data.schema import STRING
from ottla.connect.errors import ConnectError
from ottla.connect.plugins import Config, ConnectorPlugin, Offset, PluginKind
from ottla.connect.running.task import SinkContext, SourceContext, SourceTask
from ottla.model.ids import TopicPartition

_PACKAGE: Final = "org.apache.kafka.connect.file."
_FILE: Final = "filename"
_POSITION: Final = "position"
_WAIT_S: Final = 0.2
_CHUNK_BYTES: Final = 1 << 20

_SOURCE_KEYS: Final = (
    Key("file", Kind.STRING, "The file to read. It may come later, and it may grow.", None),
    Key("topic", Kind.STRING, "The topic to write to."),
    Key(
        "batch.size",
        Kind.INT,
        "The maximum number of lines in one transaction.",
        2000,
        Importance.LOW,
        check=at_least(1),
    ),
)
_SINK_KEYS: Final = (Key("file", Kind.STRING, "The file to append to.", None),)


class FileStreamSourceTask(SourceTask):
    """Reads the lines of a file, and waits for more. A line counts when its end is there."""

    def __init__(self, config: Config) -> None:
        if not config.get("file"):
            raise ConnectError("`file` is missing: reading standard input is not supported, so name a file")
        self._path = Path(config["file"])
        self._topic = config["topic"]
        self._lines_max = int(config.get("batch.size", "2000"))
        self._partition = {_FILE: config["file"]}
        self._file: BufferedReader | None = None
        self._position = 0
        self._rest = b""

    async def start(self, context: SourceContext) -> None:
        """Find where to go on."""
        found = context.position(self._partition)
        self._position = 0 if found is None else int(found.get(_POSITION, 0))

    async def poll(self) -> Sequence[Record]:
        """Return the next lines."""
        lines = await asyncio.to_thread(self._read)
        if not lines:
            await asyncio.sleep(_WAIT_S)
        records = []
        for line in lines:
            self._position += len(line)
            text = line.rstrip(b"\r\n").decode(errors="replace")
            offset = {_POSITION: self._position}
            records.append(
                Record(
                    self._topic,
                    None,
                    None,
                    None,
                    STRING,
                    text,
                    source_partition=self._partition,
                    source_offset=offset,
                )
            )
        return records

    def _read(self) -> list[bytes]:
        if self._file is None:
            try:
                self._file = self._path.open("rb")
            except FileNotFoundError:
                return []
            self._file.seek(self._position)
        lines: list[bytes] = []
        while len(lines) < self._lines_max:
            line = self._file.readline(_CHUNK_BYTES)
            if not line:
                break
            self._rest += line
            if not self._rest.endswith(b"\n"):
                continue
            lines.append(self._rest)
            self._rest = b""
        return lines

    async def stop(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


class FileStreamSinkTask:
    """Appends each value as a line."""

    commit_interval_s = None

    def __init__(self, config: Config) -> None:
        if not config.get("file"):
            raise ConnectError(
                "`file` is missing: writing to standard output is not supported, so name a file"
            )
        self._path = Path(config["file"])
        self._file: BinaryIO | None = None

    async def start(self, _context: SinkContext) -> None:
        """Open the file."""
        try:
            self._file = self._path.open("ab")
        except OSError as error:
            raise ConnectError(
                f"Couldn't find or create file '{self._path}' for FileStreamSinkTask: {error}"
            ) from error

    async def opened(self, _partitions: frozenset[TopicPartition]) -> dict[TopicPartition, int]:
        """A file keeps no offsets."""
        return {}

    async def closed(self, partitions: frozenset[TopicPartition]) -> None:
        """Each put is in the file."""

    async def put(self, records: Sequence[Record]) -> None:
        """Append lines."""
        assert self._file is not None, "it was started"
        lines = "".join(f"{text_of(record.value_schema, record.value)}\n" for record in records)
        await asyncio.to_thread(self._file.write, lines.encode())
        self._file.flush()

    async def flush(self) -> None:
        """Make the lines durable."""
        if self._file is not None:
            self._file.flush()
            await asyncio.to_thread(os.fsync, self._file.fileno())

    async def stop(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def _check_offsets(_config: Config, offsets: Iterable[Offset]) -> None:
    for partition, offset in offsets:
        if _FILE not in partition:
            raise ConnectError(f"Partition objects should contain the key '{_FILE}'")
        if offset is not None:
            _check_position(offset)


def _check_position(offset: Mapping[str, object]) -> None:
    if _POSITION not in offset:
        raise ConnectError(f"Offset objects should either be null or contain the key '{_POSITION}'")
    position = offset[_POSITION]
    if not isinstance(position, int) or isinstance(position, bool):
        raise ConnectError(f"Failed to parse the value for the '{_POSITION}' key in the offset: {position!r}")
    if position < 0:
        raise ConnectError(
            f"The value for the '{_POSITION}' key in the offset should be a non-negative value"
        )


PLUGINS: Final = (
    ConnectorPlugin(
        f"{_PACKAGE}FileStreamSourceConnector",
        PluginKind.SOURCE,
        FileStreamSourceTask,
        _SOURCE_KEYS,
        doc="The lines of one file, as text. Positions are bytes.",
        delivery="exactly once",
        task_class=f"{_PACKAGE}FileStreamSourceTask",
        check_offsets=_check_offsets,
    ),
    ConnectorPlugin(
        f"{_PACKAGE}FileStreamSinkConnector",
        PluginKind.SINK,
        FileStreamSinkTask,
        _SINK_KEYS,
        doc="Values as lines of one file.",
        task_class=f"{_PACKAGE}FileStreamSinkTask",
    ),
)
