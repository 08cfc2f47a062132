"""Records from and to HTTP."""

import asyncio
import datetime
import json
from collections.abc import Iterable, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import quote

import httpx

from ottla.connect.configs.keys import Importance, Key, Kind, at_least, one_of
from ottla.connect.converters.json import JsonConverter
from ottla.connect.data.record import Record
from ottla.connect.data.schema import STRING
from ottla.connect.errors import RECORD_ERRORS, ConnectError, DataError
from ottla.connect.plugins import Config, ConnectorPlugin, Offset, PluginKind
from ottla.connect.running.task import RetryLater, SinkContext, SourceContext, SourceTask
from ottla.model.ids import TopicPartition

# How much of an answer is read: the other side must not decide how much memory the worker needs.
_SOURCE_BYTES_MAX: Final = 16 * 1024 * 1024
_SINK_BYTES_MAX: Final = 64 * 1024
_MEDIUM, _LOW = Importance.MEDIUM, Importance.LOW
_OFFSET: Final = "offset"
_COMMON_KEYS: Final = (
    Key("http.headers", Kind.LIST, "Headers of requests, as name:value.", [], _MEDIUM),
    Key("http.timeout.ms", Kind.INT, "How long to wait for an answer.", 30_000, _LOW, check=at_least(1)),
)
_SINK_KEYS: Final = (
    Key(
        "http.url", Kind.STRING, "Where records are sent. ${topic} and ${key} are replaced, percent-encoded."
    ),
    Key(
        "http.method",
        Kind.STRING,
        "The method.",
        "POST",
        _MEDIUM,
        check=one_of("POST", "PUT", "PATCH", "DELETE"),
    ),
    *_COMMON_KEYS,
)
_SOURCE_KEYS: Final = (
    Key(
        "http.url", Kind.STRING, "What is asked. ${offset} is replaced by the last position, percent-encoded."
    ),
    Key("topic", Kind.STRING, "The topic to write to."),
    Key(
        "http.records.pointer",
        Kind.STRING,
        "Where in the answer the list of records is, as /a/b. Empty: the answer is the list, or one record.",
        "",
    ),
    Key("http.offset.field", Kind.STRING, "The field of a record that is its position.", "", _MEDIUM),
    Key("http.initial.offset", Kind.STRING, "The position to begin with.", "0", _MEDIUM),
    Key("poll.interval.ms", Kind.INT, "How long to wait between two requests.", 5000, check=at_least(1)),
    *_COMMON_KEYS,
)


def _headers(config: Config) -> dict[str, str]:
    pairs = [part.partition(":") for part in config.get("http.headers", "").split(",") if part.strip()]
    return {name.strip(): value.strip() for name, _, value in pairs}


def _client(config: Config) -> httpx.AsyncClient:
    timeout_s = int(config.get("http.timeout.ms", "30000")) / 1000
    # The library would unpack any number of bytes at once.
    headers = {"Accept-Encoding": "identity", **_headers(config)}
    return httpx.AsyncClient(timeout=timeout_s, trust_env=False, headers=headers)


async def _ask(
    client: httpx.AsyncClient, bytes_max: int, method: str, url: str, **parts: Any
) -> tuple[httpx.Response, bytes]:
    """Return an answer, and as much of its body as may be read, and a byte more. Raises httpx.HTTPError."""
    data = bytearray()
    async with client.stream(method, url, **parts) as answer:
        if _is_plain(answer):
            async for chunk in answer.aiter_bytes():
                data += chunk
                if len(data) > bytes_max:
                    break
        return answer, bytes(data[: bytes_max + 1])


def _is_plain(answer: httpx.Response) -> bool:
    return str(answer.headers.get("content-encoding", "identity")) == "identity"


# All that can be seen, but for what stands for something else.
_IN_HEADERS: Final = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")


def _in_url(text: str) -> str:
    """Return a text of a record as a part of an address: it must not lead to another one."""
    if text in (".", ".."):
        raise DataError(f"{text!r} cannot be a part of an address")
    return quote(text, safe="")


class HttpSinkTask:
    """Sends each record in a request of its own, in order.

    A record is sent again if it is not known whether it arrived, with the same `Idempotency-Key`.
    """

    commit_interval_s = None

    def __init__(self, config: Config) -> None:
        self._config = config
        self._converter = JsonConverter({"schemas.enable": "false", "decimal.format": "NUMERIC"})
        self._client: httpx.AsyncClient | None = None
        self._context: SinkContext | None = None

    async def start(self, context: SinkContext) -> None:
        """Make a client."""
        self._context = context
        self._client = _client(self._config)

    async def opened(self, _partitions: frozenset[TopicPartition]) -> dict[TopicPartition, int]:
        """The other side keeps no offsets."""
        return {}

    async def closed(self, partitions: frozenset[TopicPartition]) -> None:
        """Each put has arrived."""

    async def put(self, records: Sequence[Record]) -> None:
        """Send records, up to the first that does not arrive now."""
        assert self._context is not None, "it was started"
        for number, record in enumerate(records):
            try:
                await self._send(record)
            except RECORD_ERRORS as error:
                self._context.report(record, error)
            except RetryLater as error:
                error.done = number
                raise

    async def _send(self, record: Record) -> None:
        assert self._client is not None, "it was started"
        assert self._context is not None, "it was started"
        assert record.origin is not None, "a sink's records come from topics"
        key = "" if record.key is None else str(record.key)
        url = self._config["http.url"].replace("${topic}", record.topic).replace("${key}", _in_url(key))
        is_text = isinstance(record.value, str)
        body = (
            record.value.encode()
            if is_text
            else self._converter.to_bytes("", record.value_schema, record.value)
        )
        origin = record.origin
        headers = {
            "Content-Type": "text/plain; charset=utf-8" if is_text else "application/json",
            # Connectors may have any name, and headers are ASCII.
            "Idempotency-Key": f"{quote(self._context.connector, safe=_IN_HEADERS)}/{origin.topic}/"
            f"{origin.partition}/{origin.offset}",
        }
        method = self._config.get("http.method", "POST")
        try:
            answer, said = await _ask(
                self._client, _SINK_BYTES_MAX, method, url, content=body, headers=headers
            )
        except httpx.InvalidURL as error:
            # Made of a key that is much too long, say: it would never be one.
            raise DataError(f"the record has no address: {error}") from error
        except httpx.HTTPError as error:
            raise RetryLater(f"{url} does not answer: {error!r}") from error
        if answer.status_code in (408, 429) or answer.status_code >= 500:
            raise RetryLater(f"{url} answered {answer.status_code}", after_s=_retry_after_s(answer))
        if answer.status_code >= 300:
            raise DataError(f"{url} answered {answer.status_code}: {said[:200].decode(errors='replace')}")

    async def flush(self) -> None:
        """What was put has arrived."""

    async def stop(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()


def _retry_after_s(answer: httpx.Response) -> float | None:
    """Return how long the other side wants to be left alone: seconds, or the time when that ends."""
    text = answer.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if until.tzinfo is None:
        return None
    return max(0.0, (until - datetime.datetime.now(datetime.UTC)).total_seconds())


class HttpSourceTask(SourceTask):
    """Asks again and again, and takes the records of the answer."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._field = config.get("http.offset.field", "")
        self._interval_s = int(config.get("poll.interval.ms", "5000")) / 1000
        self._position = config.get("http.initial.offset", "0")
        self._partition = {"url": config["http.url"]}
        self._client: httpx.AsyncClient | None = None
        self._is_first = True

    async def start(self, context: SourceContext) -> None:
        """Find where to go on."""
        found = context.position(self._partition)
        if found is not None:
            self._position = str(found[_OFFSET])
        self._client = _client(self._config)

    async def poll(self) -> Sequence[Record]:
        """Ask for records."""
        assert self._client is not None, "it was started"
        if not self._is_first:
            await asyncio.sleep(self._interval_s)
        self._is_first = False
        url = self._config["http.url"].replace("${offset}", _in_url(self._position))
        try:
            answer, said = await _ask(self._client, _SOURCE_BYTES_MAX, "GET", url)
            answer.raise_for_status()
            if not _is_plain(answer):
                raise ConnectError(f"{url} answers with a Content-Encoding that it was not asked for")
            if len(said) > _SOURCE_BYTES_MAX:
                raise ConnectError(f"{url} answers with more than {_SOURCE_BYTES_MAX} bytes: ask for fewer")
            content = json.loads(said)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError) as error:
            raise ConnectError(f"{url} cannot be read: {error}") from error
        records = []
        for item in _listed(content, self._config.get("http.records.pointer", "")):
            if self._field:
                if not isinstance(item, dict) or self._field not in item:
                    raise ConnectError(f"a record of {url} has no field {self._field!r}")
                self._position = str(item[self._field])
            records.append(self._record(item))
        return records

    def _record(self, item: Any) -> Record:
        schema, value = (STRING, item) if isinstance(item, str) else (None, item)
        return Record(
            self._config["topic"],
            None,
            None,
            None,
            schema,
            value,
            source_partition=self._partition,
            source_offset={_OFFSET: self._position},
        )

    async def stop(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()


def _listed(content: Any, pointer: str) -> list[Any]:
    for part in pointer.split("/")[1:]:
        if not isinstance(content, dict) or part not in content:
            raise ConnectError(f"the answer has nothing at {pointer!r}: {json.dumps(content)[:200]}")
        content = content[part]
    return content if isinstance(content, list) else [content]


def _check_offsets(_config: Config, offsets: Iterable[Offset]) -> None:
    for partition, offset in offsets:
        if "url" not in partition or (offset is not None and _OFFSET not in offset):
            raise ConnectError("Partition objects should contain the key 'url', and offsets the key 'offset'")


PLUGINS: Final = (
    ConnectorPlugin(
        "ottla.connect.HttpSourceConnector",
        PluginKind.SOURCE,
        HttpSourceTask,
        _SOURCE_KEYS,
        doc="JSON from an address that is asked again and again.",
        delivery="exactly once, if the address answers from a position on that http.offset.field names",
        task_class="ottla.connect.HttpSourceTask",
        check_offsets=_check_offsets,
    ),
    ConnectorPlugin(
        "ottla.connect.HttpSinkConnector",
        PluginKind.SINK,
        HttpSinkTask,
        _SINK_KEYS,
        doc="Each record as a request: text as it is, everything else as JSON.",
        delivery="at least once, with an `Idempotency-Key` by which the other side can leave out repetitions",
        task_class="ottla.connect.HttpSinkTask",
    ),
)
