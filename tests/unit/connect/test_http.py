"""Records from and to HTTP: what is asked and sent, how long is waited, and what counts as which error."""

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from ottla.client.consumer.record import ConsumerRecord
from ottla.connect.connectors import http
from ottla.connect.connectors.http import HttpSinkTask, HttpSourceTask
from ottla.connect.data.record import Record
from ottla.connect.data.schema import INT64, STRING, struct
from ottla.connect.errors import ConnectError, ToleranceExceeded
from ottla.connect.plugins import Offset
from ottla.connect.running.task import RetryLater, SinkContext, SourceContext
from ottla.model.ids import TopicPartition
from ottla.records.attributes import TimestampType

URL = "http://server/items"
SOURCE, SINK = http.PLUGINS


class Server:
    """Answers in turn, and keeps what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: httpx.Response | Exception) -> None:
        self._answers = list(answers)
        self.asked: list[httpx.Request] = []
        self.pauses_s: list[float] = []
        client = httpx.AsyncClient

        def make(**options: Any) -> httpx.AsyncClient:
            self.options = options
            return client(transport=httpx.MockTransport(self._answer), **options)

        async def sleep(seconds: float) -> None:
            self.pauses_s.append(seconds)

        monkeypatch.setattr(httpx, "AsyncClient", make)
        monkeypatch.setattr(asyncio, "sleep", sleep)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def answers(content: Any) -> httpx.Response:
    return httpx.Response(200, json=content)


def read(
    config: Mapping[str, str] | None = None, *, polls: int = 1, position: dict[str, Any] | None = None
) -> list[Record]:
    """Poll a source several times."""

    async def story() -> list[Record]:
        task = HttpSourceTask({"http.url": URL, "topic": "t", **(config or {})})
        await task.start(SourceContext("c", 0, lambda partition: position))
        records = [record for _ in range(polls) for record in await task.poll()]
        await task.stop()
        return records

    return asyncio.run(story())


def test_a_source_waits_between_two_requests_and_not_before_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server(monkeypatch, answers([]), answers([]), answers([]))
    read({"poll.interval.ms": "2500"}, polls=3)
    assert server.pauses_s == [2.5, 2.5]
    assert len(server.asked) == 3


def test_a_source_asks_from_the_last_position_on(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, answers([{"id": 4}, {"id": 7}]), answers([]), answers([{"id": 9}]))
    config = {"http.url": URL + "?after=${offset}", "http.offset.field": "id", "http.initial.offset": "3"}
    records = read(config, polls=3)
    assert [str(request.url) for request in server.asked] == [f"{URL}?after={n}" for n in (3, 7, 7)]
    assert [(record.value, record.source_offset) for record in records] == [
        ({"id": 4}, {"offset": "4"}),
        ({"id": 7}, {"offset": "7"}),
        ({"id": 9}, {"offset": "9"}),
    ]
    assert {(record.topic, record.value_schema) for record in records} == {("t", None)}
    assert [record.source_partition for record in records] == [{"url": config["http.url"]}] * 3


def test_a_source_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, answers([]))
    read({"http.url": URL + "?after=${offset}"}, position={"offset": 12})
    assert str(server.asked[0].url) == f"{URL}?after=12"


def test_records_lie_where_the_pointer_says(monkeypatch: pytest.MonkeyPatch) -> None:
    Server(monkeypatch, answers({"a": {"b": ["x", 1]}}), answers({"a": {"b": "one"}}))
    records = read({"http.records.pointer": "/a/b"}, polls=2)
    assert [(record.value_schema, record.value) for record in records] == [
        (STRING, "x"),
        (None, 1),
        (STRING, "one"),
    ]
    # Without a field that is a position, it stays at the first.
    assert {str(record.source_offset) for record in records} == {"{'offset': '0'}"}


@pytest.mark.parametrize("content", [{"a": 1}, {"b": {"a": 1}}, [1]])
def test_an_answer_without_records_is_an_error(monkeypatch: pytest.MonkeyPatch, content: Any) -> None:
    Server(monkeypatch, answers(content))
    with pytest.raises(ConnectError, match=r"the answer has nothing at '/a/b'"):
        read({"http.records.pointer": "/a/b"})


@pytest.mark.parametrize("item", [{"other": 1}, "text"])
def test_a_record_without_a_position_is_an_error(monkeypatch: pytest.MonkeyPatch, item: Any) -> None:
    Server(monkeypatch, answers([item]))
    with pytest.raises(ConnectError, match="has no field 'id'"):
        read({"http.offset.field": "id"})


@pytest.mark.parametrize(
    "answer", [httpx.Response(404), httpx.Response(200, text="no JSON"), httpx.ConnectError("away")]
)
def test_what_cannot_be_read_fails_the_source(
    monkeypatch: pytest.MonkeyPatch, answer: httpx.Response | Exception
) -> None:
    Server(monkeypatch, answer)
    with pytest.raises(ConnectError, match=f"{URL} cannot be read"):
        read()


def test_requests_have_the_headers_and_the_time_that_were_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, answers([]), answers([]))
    read({"http.headers": "X-One: a:b , Two:c,", "http.timeout.ms": "1500"})
    assert (server.asked[0].headers["x-one"], server.asked[0].headers["two"]) == ("a:b", "c")
    assert (server.options["timeout"], server.options["trust_env"]) == (1.5, False)
    read()
    assert server.options["timeout"] == 30


@pytest.mark.parametrize(
    ("offset", "is_right"),
    [
        (({"url": URL}, {"offset": "1"}), True),
        (({"url": URL}, None), True),
        (({"url": URL}, {}), False),
        (({}, {"offset": "1"}), False),
        (({}, None), False),
    ],
)
def test_offsets_that_are_set_by_hand_are_checked(offset: Offset, is_right: bool) -> None:
    if is_right:
        SOURCE.check_offsets({}, [offset])
    else:
        with pytest.raises(ConnectError, match="should contain the key 'url'"):
            SOURCE.check_offsets({}, [offset])


# The sink


def record(offset: int, value: Any, key: Any = None, **more: Any) -> Record:
    origin = ConsumerRecord("t", 2, -1, TimestampType.CREATE_TIME, offset, 0, None, None, ())
    return Record("topic", 2, None, key, None, value, origin=origin, **more)


def send(
    puts: list[list[Record]],
    config: Mapping[str, str] | None = None,
    *,
    reported: list[tuple[Record, Exception]] | None = None,
    each: Callable[[RetryLater], None] = lambda _: None,
) -> None:
    """Put records several times, what is left of them again until they are taken."""

    def report(refused: Record, error: Exception) -> None:
        if reported is None:
            raise ToleranceExceeded from error
        reported.append((refused, error))

    async def story() -> None:
        task = HttpSinkTask({"http.url": URL, **(config or {})})
        await task.start(SinkContext("c", 0, report))
        assert await task.opened(frozenset({TopicPartition("t", 2)})) == {}
        for records in puts:
            left = list(records)
            for _ in range(5):
                try:
                    await task.put(left)
                except RetryLater as error:
                    each(error)
                    del left[: error.done]
                else:
                    break
        await task.flush()
        await task.stop()

    asyncio.run(story())


def test_each_record_is_a_request_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, *[httpx.Response(204)] * 3)
    schema = struct({"a": INT64})
    with_schema = record(9, {"a": 1})
    with_schema.value_schema = schema
    send(
        [[record(7, "text ü", key="k1"), record(8, {"b": [1, None]}), with_schema]],
        {"http.url": URL + "/${topic}/${key}"},
    )
    assert [str(request.url) for request in server.asked] == [
        f"{URL}/topic/k1",
        f"{URL}/topic/",
        f"{URL}/topic/",
    ]
    first, second, third = server.asked
    assert (first.method, first.content.decode()) == ("POST", "text ü")
    assert first.headers["content-type"] == "text/plain; charset=utf-8"
    assert (json.loads(second.content), json.loads(third.content)) == ({"b": [1, None]}, {"a": 1})
    assert second.headers["content-type"] == third.headers["content-type"] == "application/json"
    assert [request.headers["idempotency-key"] for request in server.asked] == [
        "c/t/2/7",
        "c/t/2/8",
        "c/t/2/9",
    ]


@pytest.mark.parametrize(
    "key", ["../users/7", "a?admin=1", "a#b", "//other/", "ü", "%2e%2e", "a\r\nHost: other"]
)
def test_a_key_stays_one_part_of_the_address(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    server = Server(monkeypatch, httpx.Response(204))
    send([[record(7, "a", key=key)]], {"http.url": URL + "/${key}/state?by=us"})
    (asked,) = server.asked
    address, question = str(asked.url).split("?")
    assert (address.count("/"), question) == (URL.count("/") + 2, "by=us")
    assert asked.url.host == "server"
    assert [unquote(part) for part in address.split("/")[-2:]] == [key, "state"]


@pytest.mark.parametrize(
    "poison", [record(7, "a", key="\ud800"), record(7, "\ud800"), record(7, "a", key="x" * 70_000)]
)
def test_a_record_that_is_no_request_is_reported_and_the_rest_goes_on(
    monkeypatch: pytest.MonkeyPatch, poison: Record
) -> None:
    server = Server(monkeypatch, httpx.Response(200))
    reported: list[tuple[Record, Exception]] = []
    send([[poison, record(8, "b")]], {"http.url": URL + "/${key}"}, reported=reported)
    assert [found for found, _ in reported] == [poison]
    assert [request.content for request in server.asked] == [b"b"]


class Endless(httpx.AsyncByteStream):
    """An answer without an end."""

    def __init__(self) -> None:
        self.sent = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            self.sent += 100_000
            yield b" " * 100_000


def test_of_an_answer_without_an_end_a_part_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    to_sink, to_source = Endless(), Endless()
    Server(monkeypatch, httpx.Response(200, stream=to_sink), httpx.Response(200, stream=to_source))
    send([[record(1, "a")]])
    assert to_sink.sent == 100_000
    with pytest.raises(ConnectError, match="answers with more than 16777216 bytes"):
        read()
    assert to_source.sent < 17_000_000


def test_an_answer_that_was_compressed_unasked_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = zlib.compress(b" " * 1_000_000)
    server = Server(monkeypatch, httpx.Response(200, content=bomb, headers={"Content-Encoding": "deflate"}))
    with pytest.raises(ConnectError, match="a Content-Encoding that it was not asked for"):
        read()
    assert server.asked[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("key", [".", ".."])
def test_a_key_that_leads_to_another_address_is_reported(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    server = Server(monkeypatch)
    reported: list[tuple[Record, Exception]] = []
    send([[record(7, "a", key=key)]], {"http.url": URL + "/${key}/state"}, reported=reported)
    assert server.asked == []
    assert [str(error) for _, error in reported] == [f"{key!r} cannot be a part of an address"]


def test_the_method_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, httpx.Response(200))
    send([[record(1, "a")]], {"http.method": "PUT"})
    assert server.asked[0].method == "PUT"


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(408),
        httpx.Response(429),
        httpx.Response(500),
        httpx.Response(503),
        httpx.ReadTimeout("late"),
    ],
)
def test_what_may_not_have_arrived_is_sent_again_and_what_has_arrived_is_not(
    monkeypatch: pytest.MonkeyPatch, answer: httpx.Response | Exception
) -> None:
    server = Server(monkeypatch, httpx.Response(200), answer, *[httpx.Response(200)] * 2)
    retried: list[RetryLater] = []
    send([[record(1, "a"), record(2, "b"), record(3, "c")]], each=retried.append)
    assert [error.done for error in retried] == [1]
    assert [request.content for request in server.asked] == [b"a", b"b", b"b", b"c"]
    assert len({request.headers["idempotency-key"] for request in server.asked}) == 3


@pytest.mark.parametrize(
    ("header", "least_s", "most_s"),
    [
        ("7", 7, 7),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 0, 0),
        ("Fri, 31 Dec 2199 23:59:59 GMT", 4e9, 6e9),
        ("Fri, 31 Dec 1999 23:59:59", None, None),
        ("soon", None, None),
        ("-1", None, None),
        ("", None, None),
    ],
)
def test_the_other_side_says_how_long_it_wants_to_be_left_alone(
    monkeypatch: pytest.MonkeyPatch, header: str, least_s: float | None, most_s: float | None
) -> None:
    Server(monkeypatch, httpx.Response(503, headers={"Retry-After": header}), httpx.Response(200))
    retried: list[RetryLater] = []
    send([[record(1, "a")]], each=retried.append)
    (after_s,) = [error.after_s for error in retried]
    if least_s is None or most_s is None:
        assert after_s is None
    else:
        assert after_s is not None
        assert least_s <= after_s <= most_s


def test_a_topic_that_was_deleted_and_made_again_is_sent_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server(monkeypatch, *[httpx.Response(200)] * 3)
    send([[record(6, "old"), record(7, "old")], [record(0, "new")]])
    assert [request.content for request in server.asked] == [b"old", b"old", b"new"]


@pytest.mark.parametrize("status", [400, 404, 499])
def test_what_is_refused_is_reported_and_the_rest_goes_on(
    monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    server = Server(monkeypatch, httpx.Response(status, text="x" * 300), httpx.Response(200))
    reported: list[tuple[Record, Exception]] = []
    refused = record(1, "a")
    send([[refused, record(2, "b")]], reported=reported)
    ((found, error),) = reported
    assert found is refused
    assert str(error) == f"{URL} answered {status}: {'x' * 200}"
    assert [request.content for request in server.asked] == [b"a", b"b"]


def test_what_is_refused_and_not_tolerated_ends_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    Server(monkeypatch, httpx.Response(400))
    with pytest.raises(ToleranceExceeded):
        send([[record(1, "a")]])


@pytest.mark.parametrize("status", [300, 302, 308, 399])
def test_a_redirection_is_not_followed_and_delivers_nothing(
    monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    server = Server(monkeypatch, httpx.Response(status, headers={"location": "http://elsewhere.example/"}))
    reported: list[tuple[Record, Exception]] = []
    moved = record(1, "a")
    send([[moved]], reported=reported)
    assert [found for found, _ in reported] == [moved]
    assert [str(request.url) for request in server.asked] == [URL]


def test_a_connector_of_any_name_sends_what_it_has_to(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, httpx.Response(200))

    async def story() -> None:
        task = HttpSinkTask({"http.url": URL})
        await task.start(SinkContext("Zahlungen f\u00fcr 100%", 0, lambda record, error: None))
        await task.put([_at_offset(7, None)])
        await task.stop()

    asyncio.run(story())
    assert server.asked[0].headers["Idempotency-Key"] == "Zahlungen f%C3%BCr 100%25/t/0/7"


def test_a_key_that_makes_no_address_is_reported_and_the_next_record_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server(monkeypatch, httpx.Response(200))
    reported: list[str] = []

    async def story() -> None:
        task = HttpSinkTask({"http.url": URL + "/${key}"})
        await task.start(SinkContext("c", 0, lambda record, error: reported.append(str(error))))
        await task.put([_at_offset(0, "k" * 70_000), _at_offset(1, "k")])
        await task.stop()

    asyncio.run(story())
    assert len(reported) == 1
    assert "the record has no address" in reported[0]
    assert [str(request.url) for request in server.asked] == [f"{URL}/k"]


def _at_offset(offset: int, key: str | None) -> Record:
    origin = ConsumerRecord("t", 0, -1, TimestampType.CREATE_TIME, offset, 0, None, None, ())
    return Record("t", 0, STRING, key, STRING, "v", origin=origin)
