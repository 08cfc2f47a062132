"""`ottla produce`: records from stdin, or from the command line, into a topic."""

import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Semaphore, Thread
from typing import IO, Any, Final, NamedTuple

import click

from ottla.cli.cluster import run_client
from ottla.cli.failure import Failure
from ottla.cli.naming import topic_names
from ottla.cli.numbers import INT32_MAX, INT64_MAX, PARTITION
from ottla.cli.output import Tally, json_option, say, show_done
from ottla.cli.profiles import cluster_options
from ottla.cli.records.templates import unescape
from ottla.cli.schemas.encoding import encoding_options
from ottla.records.attributes import CODEC_NAMES
from ottla.records.json_records import ENCODINGS, PLAIN, check_fields, decode_bytes, told, told_header

_STDIN: Final = 0
AHEAD_MAX: Final = 10_000
"""How many records may be read before they are sent."""


class Form(NamedTuple):
    """How records are written down."""

    key_delimiter: bytes | None
    null_values: bool
    key_format: str
    value_format: str
    keeps_partitions: bool


class Given(NamedTuple):
    """A record as it was given."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None
    is_copied: bool = False
    """Whether the partition is the one that the record was read from."""


@click.command()
@click.argument("topic", shell_complete=topic_names)
@cluster_options
@json_option
@click.option("-v", "--value", "values", multiple=True, help="The value of a record, instead of stdin.")
@click.option("-k", "--key", help="The key of every record.")
@click.option("-K", "--key-delimiter", help="The separator between key and value in each line.")
@click.option(
    "-H", "--header", "headers", metavar="NAME=VALUE", multiple=True, help="A header of every record."
)
@click.option("-p", "--partition", type=PARTITION, help="The partition to write to. Default: chosen by key.")
@click.option(
    "-D", "--delimiter", default="\\n", show_default=True, help="The separator between records on stdin."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "json", "bytes")),
    default="text",
    show_default=True,
    help="text: one record per line. json: one object per line, as `consume --json` prints them. bytes: the "
    "whole input is one record.",
)
@click.option(
    "--key-format",
    type=click.Choice(ENCODINGS),
    default=PLAIN,
    show_default=True,
    help="The encoding of keys in the input.",
)
@click.option(
    "--value-format",
    type=click.Choice(ENCODINGS),
    default=PLAIN,
    show_default=True,
    help="The encoding of values in the input.",
)
@click.option(
    "--repartition", is_flag=True, help="With json: choose partitions by key, and ignore those in the input."
)
@click.option(
    "-Z", "--null", "null_values", is_flag=True, help="Write a null (tombstone) for an empty value."
)
@click.option(
    "-z",
    "--compression",
    type=click.Choice(CODEC_NAMES),
    help="The compression of batches.",
)
@click.option(
    "--file",
    "source",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read from this file instead of stdin.",
)
@encoding_options
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
    key_format: str,
    value_format: str,
    repartition: bool,
    null_values: bool,
    compression: str | None,
    source: Path | None,
    registry: str | None,
    value_schema: str | None,
    key_schema: str | None,
    registry_user: str | None,
) -> None:
    """Write records to TOPIC: the lines of stdin, or each --value. Returns when all are acknowledged."""
    how = Form(_mark(key_delimiter, "-K"), null_values, key_format, value_format, not repartition)
    mark = _mark(delimiter, "-D")
    assert mark is not None, "it has a default"
    common_key = None if key is None else _content(os.fsencode(key), key_format, "--key")
    common = Given(common_key, None, tuple(map(_header, headers)), partition, None)
    if compression is not None:
        properties = {**properties, "compression.type": compression}

    def records() -> Iterator[Given]:
        if values:
            for value in values:
                yield common._replace(value=_value(os.fsencode(value), how, "--value"))
            return
        with source.open("rb") if source is not None else _stdin() as stream:
            if form == "bytes":
                yield common._replace(value=_value(stream.read(), how, "the value"))
                return
            for number, line in enumerate(_pieces(stream, mark), 1):
                if form != "json":
                    yield _from_line(line, number, common, how)
                elif line.strip():
                    yield _from_json(line, number, common, how)

    given = records()
    if registry is not None:
        from ottla.cli.schemas.encoding import encoded

        given = encoded(given, topic, registry, registry_user, value_schema, key_schema)
    elif value_schema is not None or key_schema is not None:
        raise click.UsageError("--value-schema and --key-schema need --registry")
    count, last = run_client(lambda: _send(properties, topic, given))
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
        async with (
            Producer(properties={"max.block.ms": "15000", **properties}) as producer,
            _tell_of_silence(lambda: next((one for one in sent if not one.is_done), None)),
        ):
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
                    hint = "; use --repartition to choose partitions by key" if record.is_copied else ""
                    raise Failure(f"{error}{hint}") from error
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


_SILENCE_S: Final = 5.0
"""After so long without an answer, somebody who waits hears of it."""


@asynccontextmanager
async def _tell_of_silence(first_on_its_way: Callable[[], Any]) -> AsyncIterator[None]:
    """Tell once on stderr if the oldest record that is on its way is the same for some seconds."""
    import asyncio

    async def watch() -> None:
        before = None
        while True:
            await asyncio.sleep(_SILENCE_S)
            now = first_on_its_way()
            if now is not None and now is before:
                say(
                    f"no broker has acknowledged a record for {_SILENCE_S:.0f} s; still trying, Ctrl-C stops",
                    err=True,
                )
                return
            before = now

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()


async def _read_aside(records: Iterator[Given]) -> AsyncIterator[Given]:
    """Read in a thread: reading waits for input, and the producer must go on sending meanwhile.

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
        say("type one record per line; Ctrl-D ends the input", err=True)
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


def _from_line(line: bytes, number: int, common: Given, how: Form) -> Given:
    what = f"line {number}"
    if how.key_delimiter is None:
        return common._replace(value=_value(line, how, what))
    key, found, value = line.partition(how.key_delimiter)
    if not found:
        raise Failure(f"{what} has no {how.key_delimiter.decode(errors='replace')!r} between key and value")
    return common._replace(key=_content(key, how.key_format, what), value=_value(value, how, what))


def _from_json(line: bytes, number: int, common: Given, how: Form) -> Given:
    try:
        given = json.loads(line)
        check_fields(given)
        headers = given.get("headers")
        copied = _whole(given, "partition", INT32_MAX) if how.keeps_partitions else None
        timestamp_ms = _whole(given, "timestamp_ms", INT64_MAX)
        return Given(
            key=told(given["key"], given.get("key_encoding")) if "key" in given else common.key,
            value=told(given["value"], given.get("value_encoding")),
            headers=common.headers if headers is None else tuple(map(told_header, headers)),
            partition=copied if common.partition is None else common.partition,
            timestamp_ms=timestamp_ms,
            is_copied=common.partition is None and copied is not None,
        )
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise Failure(
            f'line {number} is not a record such as {{"key": "k", "value": "v"}}: {error}'
        ) from error


def _whole(given: dict[str, Any], name: str, high: int) -> int | None:
    """Return a number of a record. None: there is none, or the record that was read had none."""
    number = given.get(name)
    if number is None or number == -1:
        return None
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= high:
        raise ValueError(f"{name} must be a number from 0 to {high}")
    return number


def _value(value: bytes, how: Form, what: str) -> bytes | None:
    return None if how.null_values and not value else _content(value, how.value_format, what)


def _content(text: bytes, form: str, what: str) -> bytes:
    if form == PLAIN:
        return text
    try:
        return decode_bytes(text.strip(), form)
    except ValueError as error:
        raise Failure(f"{what} is not {form}: {error}") from error


def _header(text: str) -> tuple[str, bytes | None]:
    name, equals, value = text.partition("=")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise click.BadParameter(
            f"{name!r} is not valid text, which a header name must be", param_hint="-H"
        ) from None
    return name, os.fsencode(value) if equals else None


def _mark(text: str | None, option: str) -> bytes | None:
    if text == "":
        raise click.BadParameter("it must have at least one character", param_hint=option)
    return None if text is None else unescape(text)
