"""`ottla produce`: records from stdin, or from the command line, into a topic."""

import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Semaphore, Thread
from typing import IO, Any, Final, NamedTuple

import click

from ottla.cli.cluster import run_client
from ottla.cli.failure import Failure
from ottla.cli.output import Tally, json_option, show_done
from ottla.cli.profiles import cluster_options

_STDIN: Final = 0
AHEAD_MAX: Final = 10_000
"""How many records may be read before they are sent."""
_ESCAPES: Final = {"\\t": "\t", "\\n": "\n", "\\0": "\0"}


class Given(NamedTuple):
    """A record as it was given."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


@click.command()
@click.argument("topic")
@cluster_options
@json_option
@click.option("-v", "--value", "values", multiple=True, help="A record's value, instead of stdin.")
@click.option("-k", "--key", help="The key of every record.")
@click.option("-K", "--key-delimiter", help="What parts key and value in each line.")
@click.option(
    "-H", "--header", "headers", metavar="NAME=VALUE", multiple=True, help="A header of every record."
)
@click.option("-p", "--partition", type=click.IntRange(0), help="The partition. Default: chosen by key.")
@click.option("-D", "--delimiter", default="\\n", show_default=True, help="What parts records on stdin.")
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "json", "bytes")),
    default="text",
    show_default=True,
    help="text: a record a line. json: an object a line, as `consume --json` prints. bytes: one record.",
)
@click.option("-Z", "--null", "null_values", is_flag=True, help="An empty value is none at all: a tombstone.")
@click.option(
    "--compression", type=click.Choice(("none", "gzip", "snappy", "lz4", "zstd")), help="Of batches."
)
@click.option(
    "--file", "source", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Not stdin."
)
def produce(
    properties: dict[str, str],
    as_json: bool,
    topic: str,
    values: tuple[str, ...],
    key: str | None,
    key_delimiter: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    delimiter: str,
    form: str,
    null_values: bool,
    compression: str | None,
    source: Path | None,
) -> None:
    """Write records into TOPIC: lines of stdin, or each --value. All are acknowledged when this returns."""
    common = Given(None if key is None else key.encode(), None, tuple(map(_header, headers)), partition, None)
    if compression is not None:
        properties = {**properties, "compression.type": compression}

    def records() -> Iterator[Given]:
        if values:
            yield from (common._replace(value=_value(value.encode(), null_values)) for value in values)
            return
        with source.open("rb") if source is not None else _stdin() as stream:
            if form == "bytes":
                yield common._replace(value=_value(stream.read(), null_values))
                return
            for number, line in enumerate(_pieces(stream, _unescape(delimiter)), 1):
                if form == "json":
                    yield _from_json(line, number, common)
                else:
                    yield _from_line(line, number, common, key_delimiter, null_values)

    count, last = run_client(lambda: _send(properties, topic, records()))
    where = "" if last is None else f", the last at {topic}-{last.partition} offset {last.offset}"
    show_done(
        f"{count} records written to {topic}{where}",
        as_json,
        topic=topic,
        records=count,
        last_partition=None if last is None else last.partition,
        last_offset=None if last is None else last.offset,
    )


async def _send(properties: dict[str, str], topic: str, records: Iterator[Given]) -> tuple[int, Any]:
    from ottla.client.producer import Producer

    count = 0
    sent: list[Any] = []
    with Tally("records read and on their way") as tally:
        async with Producer(properties={"max.block.ms": "15000", **properties}) as producer:
            async for record in _read_aside(records):
                try:
                    on_its_way = await producer.send(
                        topic,
                        record.value,
                        key=record.key,
                        headers=record.headers,
                        partition=record.partition,
                        timestamp_ms=record.timestamp_ms,
                    )
                except ValueError as error:
                    raise Failure(str(error)) from error
                sent.append(on_its_way)
                count += 1
                tally.show(count)
                if len(sent) >= 10_000:
                    for item in sent:
                        await item
                    sent = sent[-1:]
            await producer.flush()
            results = [await item for item in sent]
    return count, results[-1] if results else None


async def _read_aside(records: Iterator[Given]) -> AsyncIterator[Given]:
    """Read in a thread: reading waits for whoever types, and the producer must go on sending meanwhile.

    The thread is a daemon. One that waits for a line would otherwise keep the process from ending at Ctrl-C.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    read: asyncio.Queue[Given | Exception | None] = asyncio.Queue()
    room = Semaphore(AHEAD_MAX)

    def put(item: Given | Exception | None) -> None:
        # The loop is closed when nobody wants any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(read.put_nowait, item)

    def read_all() -> None:
        try:
            for record in records:
                room.acquire()
                put(record)
        except Exception as error:
            put(error)
        else:
            put(None)

    Thread(target=read_all, daemon=True).start()
    while (item := await read.get()) is not None:
        if isinstance(item, Exception):
            raise item
        room.release()
        yield item


def _stdin() -> IO[bytes]:
    if sys.stdin.isatty():
        click.echo("type records, a line each; Ctrl-D ends", err=True)
    if sys.stdin is not sys.__stdin__:
        return sys.stdin.buffer
    # Python closes its own stdin when it ends, and crashes if the thread that reads still waits in it.
    return open(_STDIN, "rb", closefd=False)


def _pieces(stream: IO[bytes], delimiter: bytes) -> Iterator[bytes]:
    """Cut a stream at a delimiter. What comes after the last one counts if it is not empty."""
    if delimiter == b"\n":
        for line in stream:
            yield line.removesuffix(b"\n")
        return
    left = b""
    while chunk := stream.read(1 << 16):
        *whole, left = (left + chunk).split(delimiter)
        yield from whole
    if left.removesuffix(b"\n"):
        yield left.removesuffix(b"\n")


def _from_line(
    line: bytes, number: int, common: Given, key_delimiter: str | None, null_values: bool
) -> Given:
    if key_delimiter is None:
        return common._replace(value=_value(line, null_values))
    mark = _unescape(key_delimiter)
    key, found, value = line.partition(mark)
    if not found:
        raise Failure(f"line {number} has no {key_delimiter!r} between key and value")
    return common._replace(key=key, value=_value(value, null_values))


def _from_json(line: bytes, number: int, common: Given) -> Given:
    try:
        given = json.loads(line)
        return Given(
            key=_bytes(given["key"]) if "key" in given else common.key,
            value=_bytes(given.get("value")),
            headers=tuple((name, _bytes(value)) for name, value in given.get("headers", common.headers)),
            partition=common.partition,
            timestamp_ms=given.get("timestamp_ms"),
        )
    except (ValueError, AttributeError, TypeError) as error:
        raise Failure(f'line {number} is no record, as in {{"key": "k", "value": "v"}}: {error}') from error


def _bytes(value: Any) -> bytes | None:
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


def _value(value: bytes, null_values: bool) -> bytes | None:
    return None if null_values and not value else value


def _header(text: str) -> tuple[str, bytes | None]:
    name, equals, value = text.partition("=")
    return name, value.encode() if equals else None


def _unescape(text: str) -> bytes:
    for escape, character in _ESCAPES.items():
        text = text.replace(escape, character)
    return text.encode()
